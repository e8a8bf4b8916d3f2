//! Java targets: programs built as the documentation describes, with the JDK of `javac`.

use std::collections::BTreeSet;

use ppt_capture::{Capture, CaptureItem, Chunk};

use crate::fixtures::java::{classes, home, java, library, program};
use crate::fixtures::support::{Account, Attach, Bench, Target, wait_until};

const FRAMES: &str = "buffer work;
enum Kind : u8 { GET = 1, PUT }
frame request { Kind kind; i32 who; char path[8]; float pos[2]; bytes raw[3]; interval time handle; }
frame note { u8 n; u32 most; i16 list[2]; }
";

const CALLS: &str = r#"
import java.util.Scanner;
import work.*;

class Main {
    static void refused(Runnable call, String message) {
        try {
            call.run();
        } catch (IllegalArgumentException error) {
            if (!message.equals(error.getMessage()))
                throw new IllegalStateException(error.getMessage() + " is not " + message);
            return;
        }
        throw new IllegalStateException("no error: " + message);
    }

    static void check(boolean right) {
        if (!right)
            throw new IllegalStateException();
    }

    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        check(!Ppt.on() && Ppt.now() == 0 && Ppt.failure() == null);
        Note.write(-1, -1, new int[7]); // arguments are not looked at while off
        Request.write(f -> { throw new IllegalStateException("runs only while on"); });
        Request.Scope off = Request.scope();
        check(off == Request.scope());
        off.who(7).pos(new float[9]);
        off.close();
        System.out.println("ready");
        in.nextLine();
        check(Ppt.on() && Request.on() && Ppt.now() > 1_000_000_000_000_000_000L);
        Ppt.prepare();
        off.who(8); // begun before: it stays off
        off.close();
        Request.write(
            Kind.PUT, 1, "\u00e9".repeat(9), new float[] {0.5f, 2}, "abcdef".getBytes(), 0, 0);
        float[] pos = {1, 2};
        try (Request.Scope scope = Request.scope()) {
            scope.kind(Kind.GET).who(2).path("a\ud800b").pos(pos);
            pos[0] = 77; // it has been taken
        }
        try (Request.Scope scope = Request.scope()) {
            scope.kind(9).who(3);
            throw new UnsupportedOperationException();
        } catch (UnsupportedOperationException expected) {
            check(true);
        }
        try (Request.Scope scope = Request.scope()) {
            scope.abandon();
        }
        Request.Scope twice = Request.scope();
        twice.who(4);
        twice.close();
        twice.close();
        Request.write(null, 5, null, null, null, 0, 0);
        refused(() -> Note.write(-1, 0, null), "note.n (u8): -1 does not fit");
        refused(() -> Note.write(256, 0, null), "note.n (u8): 256 does not fit");
        refused(() -> Note.write(0, 1L << 32, null), "note.most (u32): 4294967296 does not fit");
        refused(() -> Note.write(0, -1, null), "note.most (u32): -1 does not fit");
        refused(() -> Note.write(0, 0, new int[] {0, 32768}), "note.list (i16[2]): 32768 does not fit");
        refused(() -> Note.write(0, 0, new int[3]), "note.list (i16[2]): 2 elements are needed, not 3");
        refused(() -> Note.write(f -> f.n(-1)), "note.n (u8): -1 does not fit");
        refused(() -> Request.write(f -> f.kind(256)), "request.kind (Kind): 256 does not fit");
        refused(() -> Request.write(f -> f.pos(new float[1])),
            "request.pos (f32[2]): 2 elements are needed, not 1");
        Note.write(255, 4294967295L, new int[] {-32768, 32767});
        System.out.println("written 6");
        while (in.hasNextLine())
            in.nextLine();
    }
}
"#;

#[test]
fn calls_scopes_and_errors() {
    let bench = Bench::new();
    bench.write("work.frame", FRAMES);
    bench.write("Main.java", CALLS);
    if !program(&bench, &["work"], &["Main.java"]) {
        return;
    }
    let mut target = Target::start(java(&bench, "Main", &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.close();
    assert!(target.wait().success());
    let stdout = target.stdout.rest();
    assert!(!stdout.contains("WARNING"), "-Xcheck:jni says: {stdout}");
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, 6);
    let table = bench.table("out.bin", &["--frame", "request"]);
    assert_eq!(table.cells("kind"), ["PUT", "GET", "9", "0", "0"]);
    assert_eq!(table.numbers("who"), [1, 2, 3, 4, 5]);
    assert_eq!(table.cells("path"), ["éééé", "a\u{fffd}b", "", "", ""]);
    assert_eq!(table.cells("pos_0"), ["0.5", "1.0", "0.0", "0.0", "0.0"]);
    assert_eq!(table.cells("raw")[..2], ["616263", "000000"]);
    let seconds = |name: &str| table.numbers_or_0(&format!("{name}.tv_sec"));
    let (start, end) = (seconds("handle_start"), seconds("handle_end"));
    assert!((1..4).all(|row| 0 < start[row] && start[row] <= end[row]), "{start:?} {end:?}");
    assert_eq!([(start[0], end[0]), (start[4], end[4])], [(0, 0); 2], "not taken");
    let note = bench.table("out.bin", &["--frame", "note"]);
    assert_eq!(note.rows[0][3..], ["255", "4294967295", "-32768", "32767"]);
}

/// The frames of a capture, as in the file.
fn frames(bench: &Bench, capture: &str) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut capture = Capture::open(&bench.path(capture)).unwrap();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(Chunk::Frames(chunk)) = item {
            frames.extend(chunk.iter().map(|(_, bytes)| bytes.to_vec()));
        }
    }
    frames
}

/// Compares not only the tables: every byte of every frame, including padding.
#[test]
fn the_bytes_are_those_of_c() {
    let bench = Bench::new();
    bench.copy_all(&["values.frame", "clocks.frame", "values_main.c", "values_main.java"]);
    if !program(&bench, &["values", "clocks"], &["values_main.java"]) {
        return;
    }
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
    let rounds = "300";
    let captured = |mut target: Target, capture: &str| {
        let attach = bench.attach(&target, &["-o", capture]);
        assert_eq!(target.run(), 1200);
        attach.stop();
        target.finish();
        let mut frames = frames(&bench, capture);
        // Two buffers, whose chunks are in the order of draining.
        frames.sort();
        frames
    };
    let c = captured(bench.start("values", &["1", rounds]), "c.bin");
    let java = captured(Target::start(java(&bench, "Values", &["1", rounds])), "java.bin");
    assert_eq!((c.len(), java.len()), (1200, 1200));
    let differ = c.iter().zip(&java).find(|(c, java)| c != java);
    assert_eq!(differ, None);
}

const THREADS: &str = r#"
import java.util.Scanner;
import job.*;

class Main {
    static void start(String name, int who) {
        Thread thread = new Thread(() -> {
            for (int i = 0; i < 1000; i++)
                Tick.write(who, i);
            System.out.println("wrote");
            try {
                Thread.sleep(600_000);
            } catch (InterruptedException end) {
                return;
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws InterruptedException {
        Scanner in = new Scanner(System.in);
        Thread before = new Thread(() -> {
            in.nextLine();
            for (int i = 0; i < 1000; i++)
                Tick.write(1, i);
            System.out.println("wrote");
            in.nextLine();
        }, "before");
        before.start();
        Ppt.on(); // loads the library
        System.out.println("ready");
        while (!Ppt.on())
            Thread.sleep(1);
        start("pool-1-thread-12", 2);
        before.join();
    }
}
"#;

/// Threads of a running JVM, started before and after the session, by their Java names.
#[test]
fn threads_and_their_names() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int who, i; }");
    bench.write("Main.java", THREADS);
    if !program(&bench, &["job"], &["Main.java"]) {
        return;
    }
    let mut target = Target::start(java(&bench, "Main", &[]));
    let attach = bench.attach(&target, &[]);
    target.stdout.wait_for("wrote");
    target.say("go");
    target.stdout.wait_for("wrote");
    let listed = bench.ppt(&["list", "--json", &target.pid().to_string()]).stdout;
    attach.stop();
    target.say("end");
    target.finish();
    let info = bench.info("out.bin");
    Account::of(&info).check(2000);
    let names = |json: &serde_json::Value| -> BTreeSet<String> {
        let threads = json["threads"].as_array().unwrap().iter();
        threads.map(|thread| thread["name"].as_str().unwrap().to_owned()).collect()
    };
    // The JVM passes the name to the kernel, which keeps 15 bytes.
    let wanted = ["before", "pool-1-thread-1"].map(str::to_owned);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for names in [names(&info), names(&listed[0])] {
        assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
    }
    let table = bench.table("out.bin", &[]);
    let named = |who: i64| {
        let row = table.rows.iter().find(|row| row[3] == who.to_string()).unwrap();
        let tid: u64 = row[2].parse().unwrap();
        let mut threads = info["threads"].as_array().unwrap().iter();
        let thread = threads.find(|thread| thread["tid"].as_u64() == Some(tid)).unwrap();
        thread["name"].as_str().unwrap().to_owned()
    };
    assert_eq!([named(1), named(2)], wanted);
}

const LOADERS: &str = r#"
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Scanner;

class Main {
    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in);
        URL[] path = {new File("plugin/").toURI().toURL()};
        Runnable[] plugins = new Runnable[2];
        for (int i = 0; i < plugins.length; i++) {
            ClassLoader loader = new URLClassLoader(path);
            plugins[i] = (Runnable) loader.loadClass("Plugin").getConstructor().newInstance();
            plugins[i].run(); // off
        }
        System.out.println("ready");
        in.nextLine();
        for (Runnable plugin : plugins)
            plugin.run();
        System.out.println("written 2000");
        while (in.hasNextLine())
            in.nextLine();
    }
}
"#;

const PLUGIN: &str = r#"
import job.*;
public class Plugin implements Runnable {
    static int runs;
    @Override
    public void run() {
        if (Ppt.failure() != null)
            throw new IllegalStateException(Ppt.failure());
        for (int i = 0; i < 1000; i++)
            Tick.write(runs, i);
        runs++;
    }
}
"#;

/// Two class loaders have two copies of the classes, each with its own library and buffer.
#[test]
fn every_class_loader_writes() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int run, i; }");
    bench.write("Plugin.java", PLUGIN);
    if !program(&bench, &["job"], &["Plugin.java"]) {
        return;
    }
    std::fs::rename(bench.path("classes"), bench.path("plugin")).unwrap();
    bench.write("Main.java", LOADERS);
    classes(&bench, &["Main.java"]);
    let check = |mut command: std::process::Command| {
        command.env("TMPDIR", bench.path(""));
        let mut target = Target::start(command);
        let attach = bench.attach(&target, &[]);
        let written = target.run();
        attach.stop();
        target.finish();
        let account = Account::of(&bench.info("out.bin"));
        account.check(written);
        let table = bench.table("out.bin", &[]);
        let mut runs = table.numbers("run");
        runs.sort();
        assert_eq!(runs, [vec![1; 2000]].concat(), "each counts its own runs");
        std::fs::remove_file(bench.path("out.bin")).unwrap();
    };
    // The library is in a folder: one loader uses it and the other one copies it.
    let libraries = |command: &mut std::process::Command| {
        command.arg(format!("-Djava.io.tmpdir={}", bench.path("").display()));
    };
    let mut command = bench.command("java");
    libraries(&mut command);
    command.args(["-Djava.library.path=.", "-cp", "classes", "Main"]);
    check(command);
    // The library is next to the classes, as in a jar: each loader has a copy.
    std::fs::copy(bench.path("libjob_jni.so"), bench.path("plugin/job/libjob_jni.so")).unwrap();
    let mut command = bench.command("java");
    libraries(&mut command);
    command.args(["-cp", "classes", "Main"]);
    check(command);
    let left = bench.names("").into_iter().filter(|name| name.starts_with("ppt-"));
    assert_eq!(left.count(), 0, "copies are gone");
}

const EXITS: &str = r#"
import job.*;
class Main {
    public static void main(String[] args) throws InterruptedException {
        Ppt.on(); // loads the library
        System.out.println("ready");
        while (!Ppt.on())
            Thread.sleep(1);
        for (int t = 0; t < 4; t++) {
            int who = t;
            new Thread(() -> {
                for (int i = 0;; i++)
                    Tick.write(who, i);
            }).start();
        }
        Thread.sleep(100);
        System.exit(3);
    }
}
"#;

/// A JVM that ends while its threads write: published frames are captured, and all are accounted
/// for.
#[test]
fn an_exit_in_the_middle() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 65536; frame tick { int who, i; }");
    bench.write("Main.java", EXITS);
    if !program(&bench, &["job"], &["Main.java"]) {
        return;
    }
    let mut target = Target::start(java(&bench, "Main", &[]));
    let attach = bench.attach(&target, &[]);
    assert_eq!(target.wait().code(), Some(3));
    attach.ended(0);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert!(account.captured > 4, "{account:?}");
    assert_eq!((&info["mismatches"], &info["damages"]), (&0.into(), &0.into()));
    // Each thread numbers its frames: missing numbers are lost.
    let table = bench.table("out.bin", &[]);
    let mut next = [0; 4];
    for (who, i) in table.numbers("who").into_iter().zip(table.numbers("i")) {
        let next = &mut next[usize::try_from(who).unwrap()];
        assert!(*next <= i, "{who} wrote {i} after {next}");
        *next = i + 1;
    }
    let written: i64 = next.iter().sum();
    assert!(account.captured + account.lost >= u64::try_from(written).unwrap(), "{account:?}");
}

const HOT: &str = r#"
import job.*;
class Main {
    static void run(int from, int to) {
        for (int i = from; i < to; i++)
            Tick.write(i);
    }
    public static void main(String[] args) {
        run(0, 20_000_000);
        System.out.println("ready");
        run(20_000_000, 2_000_000_000);
        System.out.println("done");
    }
}
"#;

/// An otherwise empty loop that was compiled without a session notices an attach; from then on no
/// frame is missing.
#[test]
fn a_compiled_loop_sees_the_switch() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 262144; frame tick { int i; }");
    bench.write("Main.java", HOT);
    if !program(&bench, &["job"], &["Main.java"]) {
        return;
    }
    let mut command = bench.command("java");
    command.args(["-Djava.library.path=.", "-cp", "classes", "Main"]);
    let target = Target::start(command);
    let attach = bench.attach(&target, &[]);
    let size = || std::fs::metadata(bench.path("out.bin")).map_or(0, |metadata| metadata.len());
    wait_until("frames are in the capture", || size() > 1 << 20);
    attach.stop();
    assert!(!target.stdout.has("done"), "it is still in its loop");
    let account = Account::of(&bench.info("out.bin"));
    let table = bench.table("out.bin", &[]);
    // Frames lost by the listener have numbers, too: each frame has the next one.
    let rows = table.numbers("i").into_iter().zip(table.numbers("seqno"));
    let first: BTreeSet<_> = rows.map(|(i, seqno)| i - seqno).collect();
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(account.dropped, 0, "{account:?}");
}

const OFF: &str = r#"
import job.*;
class Main {
    public static void main(String[] args) {
        for (int i = 0; i < 1000; i++) {
            Tick.write(i, "text");
            Tick.write(f -> f.i(7));
            Sum.add(7);
            try (Tick.Scope scope = Tick.scope()) {
                scope.i(7);
            }
        }
        Ppt.prepare();
        Ppt.allowAttach();
        System.out.println(Ppt.on() + " " + Ppt.now() + " " + Ppt.hash(new byte[1]) + " "
            + Ppt.hashU64(1) + " " + Ppt.hash128(null).length + " " + Ppt.nsBetween(1, 2));
        System.out.println(Ppt.failure() == null ? "there" : Ppt.failure().getClass().getName());
    }
}
"#;

/// Without its library, with that of other frames, or on an unsupported platform, a program still
/// runs.
#[test]
fn a_program_without_its_library_runs_on() {
    let bench = Bench::new();
    let frames =
        "option time tsc; frame tick { int i; char a[9]; hash id; interval time t; } counter sum;";
    bench.write("job.frame", frames);
    bench.write("Main.java", &OFF.replace("(i, \"text\")", "(i, \"text\", 1, 2, 3)"));
    if !program(&bench, &["job"], &["Main.java"]) {
        return;
    }
    let run = |arguments: &[&str]| {
        let mut command = bench.command("java");
        let output = command.args(arguments).args(["-cp", "classes", "Main"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let [out, err] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (out, err)
    };
    let (out, err) = run(&["-Djava.library.path=/nowhere"]);
    assert_eq!(out, "false 0 0 0 16 -1\njava.lang.UnsatisfiedLinkError\n");
    assert!(err.contains("buffer job writes no frames: "), "{err}");
    assert_eq!(err.matches("writes no frames").count(), 1, "{err}");

    let (out, err) = run(&["-Dppt.library=/nowhere/libjob_jni.so"]);
    assert_eq!(out, "false 0 0 0 16 -1\njava.lang.UnsatisfiedLinkError\n");
    assert!(err.contains("/nowhere/libjob_jni.so"), "{err}");

    let path = bench.path("libjob_jni.so");
    let named = format!("-Dppt.library.job={}", path.display());
    let (out, err) = run(&[&named]);
    assert!(out.starts_with("false 0 ") && out.ends_with("there\n"), "{out}");
    assert_eq!(err, "");

    let home = home().unwrap();
    library(&bench, &home, "job", &["-DPPT_DISABLE"]);
    let (out, err) = run(&[&named]);
    assert_eq!((&*out, &*err), ("false 0 0 0 16 -1\nthere\n", ""), "nothing is compiled in");

    // The library of a file with a different field.
    std::fs::rename(bench.path("generated"), bench.path("classes.old")).unwrap();
    bench.write("job.frame", &frames.replace("int i;", "int i, more;"));
    bench.pptc(&["--emit", "java", "-o", "generated", "job.frame"]);
    library(&bench, &home, "job", &[]);
    let (out, err) = run(&[&named]);
    assert_eq!(out, "false 0 0 0 16 -1\njava.lang.UnsatisfiedLinkError\n");
    assert!(
        err.contains("the library is not of these classes; build both from one frame file"),
        "{err}"
    );
}

/// A JVM under `ppt run` is captured from its first frame.
#[test]
fn from_the_first_frame() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int i; }");
    bench.write(
        "Main.java",
        "class Main { public static void main(String[] a) {\
         for (int i = 0; i < 500; i++) job.Tick.write(i); } }",
    );
    if !program(&bench, &["job"], &["Main.java"]) {
        return;
    }
    let mut command = bench.command(crate::fixtures::support::ppt());
    command.args(["run", "-o", "out.bin", "--", "java", "-Djava.library.path=.", "-cp", "classes"]);
    command.arg("Main");
    Attach::spawn(command).ended(0);
    let table = bench.table("out.bin", &[]);
    assert_eq!(table.numbers("i"), (0..500).collect::<Vec<_>>());
}

#[test]
fn names_that_java_keeps_are_refused() {
    let bench = Bench::new();
    for (frames, what) in [
        ("frame f { int wait; }", "field `wait`"),
        ("frame f { int java; }", "field `java`"),
        ("frame scope { int a; }", "frame `scope`"),
        ("enum Frame { A } frame f { Frame a; }", "enum `Frame`"),
    ] {
        bench.write("a.frame", frames);
        let pptc = env!("CARGO_BIN_EXE_pptc");
        let output = bench.command(pptc).args(["--emit", "java", "a.frame"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let expected = format!("the {what} has a name that Java output needs for itself\n");
        assert!(stderr.contains(&expected), "{stderr}");
    }
}
