//! The names of threads: in captures, in tables, and in the kernel.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::fixtures::support::{Attach, Bench, Target, ppt, wait_until};

fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["named.frame", "named_main.c"]);
    bench.pptc(&["named.frame"]);
    bench.cc(&["named_main.c", "named.c", "-o", "named", "-lpthread"]);
    bench
}

fn say(target: &mut Target, what: &str) {
    target.say(what);
    target.stdout.wait_for("done");
}

/// The current names of the target's threads, by thread id, according to the kernel.
fn of_kernel(target: &Target) -> BTreeMap<u64, Vec<u8>> {
    let tasks = Path::new("/proc").join(target.pid().to_string()).join("task");
    let name = |task: std::fs::DirEntry| {
        let comm = std::fs::read(task.path().join("comm")).unwrap();
        let tid = task.file_name().to_str().unwrap().parse().unwrap();
        (tid, comm.strip_suffix(b"\n").unwrap().to_vec())
    };
    tasks.read_dir().unwrap().map(|task| name(task.unwrap())).collect()
}

fn lossy(names: &BTreeMap<u64, Vec<u8>>) -> BTreeMap<u64, String> {
    names.iter().map(|(&tid, name)| (tid, String::from_utf8_lossy(name).into_owned())).collect()
}

/// The last name of each thread in `ppt info --json`.
fn of_capture(info: &Value) -> BTreeMap<u64, String> {
    let threads = info["threads"].as_array().map_or(&[][..], |all| all);
    let name = |thread: &Value| {
        (thread["tid"].as_u64().unwrap(), thread["name"].as_str().unwrap().to_owned())
    };
    threads.iter().map(name).collect()
}

/// Waits until the capture has the new name of the second worker.
fn wait_for_rename(bench: &Bench, capture: &str) {
    let has = || of_capture(&bench.info(capture)).values().any(|name| name == "compactor");
    wait_until("the capture has the other name", has);
}

#[test]
fn names_are_as_the_kernel_has_them() {
    let bench = built();
    let mut target = bench.start("named", &[]);
    let before = of_kernel(&target);
    assert_eq!(before.len(), 4);
    let session = bench.attach(&target, &[]);
    let shown = |capture: &str| {
        let table = bench.table(capture, &["--names"]);
        let threads = table.cells("thread");
        let numbers = table.numbers("tid");
        // A field with that name keeps it.
        assert_eq!(table.columns[..4], ["seqno", "ring", "tid", "_thread"]);
        let names = table.cells("_thread").into_iter().map(str::to_owned);
        assert_eq!(numbers.iter().map(ToString::to_string).collect::<Vec<_>>(), threads);
        numbers.into_iter().map(|tid| tid as u64).zip(names).collect::<Vec<_>>()
    };
    say(&mut target, "beat");
    wait_until("the first frames are in the file", || bench.table("out.bin", &[]).rows.len() == 4);
    say(&mut target, "rename");
    wait_for_rename(&bench, "out.bin");
    say(&mut target, "beat");
    let after = of_kernel(&target);
    session.stop();

    let info = bench.info("out.bin");
    assert_eq!(of_capture(&info), lossy(&after));
    let renamed =
        info["threads"].as_array().unwrap().iter().find(|value| value["former_names"] == 1);
    assert_eq!(renamed.unwrap()["name"], "compactor");
    // Next to the id of each thread.
    let top = bench.ppt(&["top", "out.bin", "--once", "--threads"]).stdout;
    for (tid, name) in lossy(&after).into_iter().filter(|thread| thread.1.is_ascii()) {
        let label = format!(" {tid} ({}) ", name.replace('\u{1b}', "\\x1b").replace('\t', "\\t"));
        assert!(top.contains(&label), "{label}: {top}");
    }
    assert!(!top.contains('\u{1b}'), "{top:?}");
    // In TSV, special characters are escaped.
    let tsv = |name: &[u8]| match name {
        b"\x1b[31m\t\xff" => r"\x1b[31m\t\xff".to_owned(),
        plain => String::from_utf8(plain.to_vec()).unwrap(),
    };
    let rows = shown("out.bin");
    assert_eq!(rows.len(), 8);
    for names in [&before, &after] {
        for (&tid, name) in names {
            assert!(rows.contains(&(tid, tsv(name))), "{tid} {name:?}: {rows:?}");
        }
    }
    // Without the option, nothing is added.
    assert_eq!(bench.table("out.bin", &[]).columns, ["seqno", "ring", "tid", "thread"]);
    let refused = bench.ppt(&["dump", "--gaps", "--names", "out.bin"]);
    assert_eq!(refused.code(), 2, "{refused:?}");

    let stdout = bench.ppt(&["info", "out.bin"]).stdout;
    let line = format!("\nthread    {}, chief\n", target.pid());
    assert!(stdout.contains(&line) && stdout.contains(r", \x1b[31m\t"), "{stdout}");
    let listed = bench.ppt(&["list", &target.pid().to_string()]).stdout;
    assert!(listed.contains(r"  chief,reader,compactor,\x1b[31m\t"), "{listed}");
    let listed = bench.ppt(&["list", "--json", &target.pid().to_string()]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["threads"][0], json!({"tid": target.pid(), "name": "chief"}));
    assert_eq!(listed[0]["threads"].as_array().unwrap().len(), 4);
    target.finish();
}

/// Each file of a series, and each window of a flight recorder, has all names.
#[test]
fn every_file_has_the_names() {
    let bench = built();
    let mut target = bench.start("named", &[]);
    let all = lossy(&of_kernel(&target));
    let session = bench.attach(&target, &["-o", "out.bin", "--rotate", "1s"]);
    let files = || bench.names("").into_iter().filter(|name| name.starts_with("out.")).count();
    let mut beats = 0;
    while files() < 3 {
        (0..64).for_each(|_| say(&mut target, "beat"));
        beats += 64;
        assert!(beats < 2_000_000);
    }
    session.stop();
    let captures: Vec<_> =
        bench.names("").into_iter().filter(|name| name.starts_with("out.")).collect();
    assert!(captures.len() >= 3);
    for capture in captures {
        assert_eq!(of_capture(&bench.info(&capture)), all, "{capture}");
    }

    std::fs::create_dir(bench.path("windows")).unwrap();
    let mut command = bench.command(ppt());
    let pid = target.pid().to_string();
    command.args(["attach", &pid, "--flight", "1s", "-o", "windows"]);
    command.env("XDG_RUNTIME_DIR", bench.path(""));
    let session = Attach::start(command);
    say(&mut target, "beat");
    let mut trigger = bench.command(ppt());
    trigger.args(["trigger", &pid]).env("XDG_RUNTIME_DIR", bench.path(""));
    assert!(trigger.status().unwrap().success());
    wait_until("there is a window", || !bench.names("windows").is_empty());
    session.stop();
    let window = &bench.names("windows")[0];
    assert_eq!(of_capture(&bench.info(&format!("windows/{window}"))), all);
    target.finish();
}

/// Threads of a process in another pid namespace have their ids in that namespace, as in the
/// frames.
#[test]
fn names_go_with_the_numbers_of_the_process() {
    let bench = built();
    let mut command = bench.command("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--map-root-user", "./named"]);
    if !bench
        .command("unshare")
        .args(["--pid", "--map-root-user", "--fork", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        return eprintln!("skipped: no pid namespace can be made here");
    }
    let mut target = Target::start(command);
    let children = format!("/proc/{0}/task/{0}/children", target.pid());
    let child = std::fs::read_to_string(children).unwrap().trim().to_owned();
    let mut attach = bench.command(ppt());
    attach.args(["attach", &child]);
    let session = Attach::start(attach);
    say(&mut target, "beat");
    wait_until("the frames are in the file", || bench.table("out.bin", &[]).rows.len() == 4);
    session.stop();
    let table = bench.table("out.bin", &["--names"]);
    let names: BTreeMap<_, _> =
        table.numbers("tid").into_iter().zip(table.cells("_thread")).collect();
    assert_eq!(names[&1], "chief", "{names:?}");
    assert_eq!(names.values().filter(|name| !name.is_empty()).count(), 4, "{names:?}");
    target.close();
    target.wait();
}
