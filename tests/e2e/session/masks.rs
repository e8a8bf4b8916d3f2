//! `--only`, `--except`, `ppt enable` and `ppt disable`: select what a running program writes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::fixtures::family::{Family, attached};
use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::released;
use crate::fixtures::rust::program;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Target, available, of_both_kinds, ppt, stopped, wait_until,
};

of_both_kinds! {
    what_a_program_in_c_writes
    a_killed_session_does_not_blind_the_next
    rings_that_grow_forget_nothing
    flips_under_threads
}

/// The selectable names, in the order in which the targets count.
const NAMES: [&str; 7] = ["plain", "stamped", "job", "leg", "slot", "bytes", "waits"];
/// How often each is written, or added to, per round.
const EACH: [u64; 7] = [1, 1, 2, 2, 1, 1, 1];
const ROUNDS: u64 = 300;

pub(super) fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.c"]);
    bench.pptc(&["choosing.frame"]);
    bench.cc(&["choosing_main.c", "choosing.c", "-o", "choosing", "-lpthread"]);
    bench
}

/// Runs `ppt` with access to the sockets of the bench's sessions.
pub(super) fn ppt_of(bench: &Bench, args: &[&str]) -> (i32, String, String) {
    let mut command = bench.command(ppt());
    let ran = command.args(args).env("XDG_RUNTIME_DIR", bench.path("")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

/// Attaches to a process, with the socket in the bench's folder.
pub(super) fn attach(bench: &Bench, target: &Target, args: &[&str]) -> Attach {
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "--slots", "16384"]).args(bench.kind_args());
    Attach::start({
        command.args(args).env("XDG_RUNTIME_DIR", bench.path(""));
        command
    })
}

/// Runs a round of everything. Returns how often each block ran.
pub(super) fn run(target: &mut Target) -> [u64; 7] {
    target.say(&ROUNDS.to_string());
    let answer = target.stdout.wait_for("ran ");
    let counts: Vec<u64> = answer.split(' ').map(|piece| piece.parse().unwrap()).collect();
    counts.try_into().unwrap()
}

/// How often each name is in a capture.
fn captured(bench: &Bench, capture: &str) -> [u64; 7] {
    let info = bench.info(capture);
    assert_eq!((&info["mismatches"], &info["damages"]), (&0.into(), &0.into()));
    let account = Account::of(&info);
    assert_eq!((account.lost, account.dropped), (0, 0), "{account:?}");
    let buffer = &info["buffers"][0];
    let of = |list: &str, name: &str, key: &str| {
        let all = buffer[list].as_array().unwrap();
        all.iter().find(|value| value["name"] == name).unwrap()[key].as_u64().unwrap()
    };
    NAMES.map(|name| match name {
        "bytes" => of("counters", name, "value"),
        "waits" => of("histograms", name, "count"),
        _ => bench.table(capture, &["--frame", name]).rows.len() as u64,
    })
}

/// The expected counts, if each name was on for this many rounds.
fn expected(rounds: [u64; 7]) -> [u64; 7] {
    std::array::from_fn(|at| rounds[at] * EACH[at] * ROUNDS)
}

fn add(sum: &mut [u64; 7], more: [u64; 7]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// A session with a selection at the start and two later changes. `ran`: the names that the target
/// counts by itself.
fn check(bench: &Bench, mut target: Target, ran: [bool; 7]) {
    let pid = target.pid().to_string();
    let session = attach(bench, &target, &["--only", "@net,choosing.plain,waits"]);
    let mut sum = [0; 7];
    let mut take = |target: &mut Target| {
        let counts = run(target);
        add(&mut sum, counts);
        counts
    };
    let counted = |on: [u64; 7]| -> [u64; 7] {
        let all = expected(on);
        std::array::from_fn(|at| if ran[at] { all[at] } else { 0 })
    };
    //            plain stamped job leg slot bytes waits
    assert_eq!(take(&mut target), counted([1, 0, 1, 1, 0, 1, 1]));
    let (code, _, said) = ppt_of(bench, &["disable", &pid, "net.*,waits"]);
    let gone = "choosing.job, choosing.leg, choosing.bytes, choosing.waits";
    let line = format!("process {pid}: ppt with pid {} no longer writes {gone}\n", session.pid());
    assert_eq!((code, said), (0, line));
    assert_eq!(take(&mut target), counted([1, 0, 0, 0, 0, 0, 0]));
    let (code, _, said) = ppt_of(bench, &["enable", &pid, "s*", "?ytes"]);
    assert!(
        code == 0 && said.contains("writes choosing.stamped, choosing.slot, choosing.bytes from"),
        "{said}"
    );
    assert_eq!(take(&mut target), counted([1, 1, 0, 0, 1, 1, 0]));
    let (code, _, said) = ppt_of(bench, &["enable", &pid, "plain"]);
    assert!(code == 0 && said.contains("writes all of that already"), "{said}");

    // The enabled names.
    let (code, said, _) = ppt_of(bench, &["list", "--json", &pid]);
    let listed: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &listed[0]["disabled"]), (0, &serde_json::json!(["job", "leg", "waits"])));
    let (_, said, _) = ppt_of(bench, &["list", &pid]);
    assert!(said.contains("  DISABLED ") && said.contains("  job,leg,waits  "), "{said}");

    let said = session.stop();
    assert!(!said.contains("nothing was called"), "{said}");
    let all = expected([3, 1, 1, 1, 1, 2, 1]);
    assert_eq!(captured(bench, "out.bin"), all);
    assert_eq!(sum, std::array::from_fn(|at| if ran[at] { all[at] } else { 0 }));
    let info = bench.info("out.bin");
    assert_eq!(info["buffers"][0]["disabled"], serde_json::json!(["job", "leg", "waits"]));
    let stdout = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(stdout.contains("\ndisabled  job, leg, waits, at the end\n"), "{stdout}");
    masks_hold(bench, "out.bin", &info);

    // The next session has everything enabled.
    let session = attach(bench, &target, &["-o", "next.bin"]);
    assert_eq!(run(&mut target), counted([1; 7]));
    session.stop();
    assert_eq!(captured(bench, "next.bin"), expected([1; 7]));
    assert_eq!(bench.info("next.bin")["masks"], Value::Null, "nothing is said of masks");
    let session = attach(bench, &target, &["-o", "except.bin", "--except", "work.*,@net"]);
    assert_eq!(run(&mut target), counted([0, 0, 0, 0, 0, 0, 1]));
    session.stop();
    assert_eq!(captured(bench, "except.bin"), expected([0, 0, 0, 0, 0, 0, 1]));
    target.finish();

    // A ppt of an earlier version shows the captured frames, and reports no fault.
    let Some(released) = released::ppt(bench) else { return };
    let old = bench.table_of(&released, "out.bin", &["--frame", "plain"]);
    assert_eq!(old.rows, bench.table("out.bin", &["--frame", "plain"]).rows);
}

/// The numbers of a frame's rows, by segment and ring.
fn numbers(bench: &Bench, capture: &str, frame: &str) -> BTreeMap<(String, u64), Vec<u64>> {
    let table = bench.table(capture, &["--frame", frame]);
    let segment = table.columns.iter().position(|column| column == "segment");
    let mut numbers: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for row in &table.rows {
        let of = segment.map_or(String::new(), |at| row[at].clone());
        numbers.entry((of, row[1].parse().unwrap())).or_default().push(row[0].parse().unwrap());
    }
    numbers
}

/// The ranges in which a frame is off: from one sequence number up to before another.
type Off = Vec<(u64, u64)>;

/// Checks each frame against the capture's statements about masks. Returns the number of ranges in
/// which a frame is off.
pub(super) fn masks_hold(bench: &Bench, capture: &str, info: &Value) -> usize {
    let mut off: BTreeMap<(String, String, u64), Off> = BTreeMap::new();
    let segments: std::collections::BTreeSet<_> = info["masks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["segment"].to_string())
        .collect();
    for x in info["masks"].as_array().unwrap() {
        let text = |key: &str| x[key].as_str().unwrap().to_owned();
        for ring in x["rings"].as_array().unwrap() {
            let number = |key: &str| ring[key].as_u64().unwrap();
            let segment = if segments.len() > 1 { text("segment") } else { String::new() };
            let of = off.entry((text("name"), segment, number("ring"))).or_default();
            if x["enabled"].as_bool().unwrap() {
                // Rings that were claimed later are not affected.
                if let Some(last) = of.last_mut() {
                    last.1 = last.1.min(number("first_seq"));
                }
            } else {
                of.push((number("first_seq"), u64::MAX));
            }
        }
    }
    let mut stretches = 0;
    for frame in &NAMES[..5] {
        for ((segment, ring), numbers) in numbers(bench, capture, frame) {
            let of = off.get(&((*frame).to_owned(), segment, ring));
            for &(from, to) in of.into_iter().flatten() {
                stretches += 1;
                let first = numbers.partition_point(|&number| number < from);
                let wrong = numbers.get(first).filter(|&&number| number < to);
                assert_eq!(wrong, None, "{frame} in ring {ring} is off from {from} to {to}");
            }
        }
    }
    stretches
}

fn what_a_program_in_c_writes(kind: Kind) {
    let bench = built().of(kind);
    let target = bench.start("choosing", &[]);
    check(&bench, target, [true; 7]);
}

/// In C++, arguments are evaluated.
const BLOCKS: [bool; 7] = [true, true, true, true, true, false, false];

#[test]
fn what_a_program_in_cpp_writes() {
    if !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.cpp"]);
    bench.pptc(&["--emit", "cpp", "choosing.frame"]);
    let files = ["choosing_main.cpp", "choosing.cpp", "-o", "choosing", "-lpthread"];
    bench.compile("g++", &[&["-std=c++17"], &files[..]].concat());
    let target = bench.start("choosing", &[]);
    check(&bench, target, BLOCKS);
}

#[test]
fn what_a_program_in_rust_writes() {
    let bench = Bench::new();
    let target = Target::start(bench.command(program("choosing")));
    check(&bench, target, BLOCKS);
}

#[test]
fn what_a_program_in_python_writes() {
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.py"]);
    if !modules(&bench, &["choosing"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.arg("choosing_main.py");
    check(&bench, Target::start(command), [false; 7]);
}

#[test]
fn what_a_program_in_java_writes() {
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.java"]);
    if java::program(&bench, &["choosing"], &["choosing_main.java"]) {
        check(&bench, Target::start(java::java(&bench, "Choosing", &[])), BLOCKS);
    }
}

#[test]
fn what_a_program_in_node_writes() {
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.js"]);
    if node::packages(&bench, &["choosing"]) {
        let command = node::node(&bench, "choosing_main.js", &[]);
        check(&bench, Target::start(command), BLOCKS);
    }
}

#[test]
fn what_a_program_in_go_writes() {
    let bench = Bench::new();
    bench.copy_all(&["choosing.frame", "choosing_main.go"]);
    if go::program(&bench, &["choosing"], "choosing_main.go") {
        check(&bench, Target::start(go::built(&bench, &[])), BLOCKS);
    }
}

/// The next session has everything enabled, with this version and with the first release.
fn a_killed_session_does_not_blind_the_next(kind: Kind) {
    let bench = built().of(kind);
    let mut target = bench.start("choosing", &[]);
    let killed = |target: &mut Target, name: &str| {
        let session = attach(&bench, target, &["--only", "plain", "-o", name]);
        assert_eq!(run(target), expected([1, 0, 0, 0, 0, 0, 0]));
        session.kill();
    };
    killed(&mut target, "killed.bin");
    assert_eq!(run(&mut target), expected([1, 0, 0, 0, 0, 0, 0]), "its gate is still open");
    let session = attach(&bench, &target, &["-o", "next.bin"]);
    assert_eq!(run(&mut target), expected([1; 7]));
    session.stop();
    assert_eq!(captured(&bench, "next.bin"), expected([1; 7]));

    let Some(released) = released::ppt(&bench) else { return };
    killed(&mut target, "again.bin");
    let mut command = bench.command(&released);
    command.args(["attach", &target.pid().to_string(), "--slots", "16384"]);
    command.args(bench.kind_args()).args(["-o", "released.bin"]);
    let session = Attach::start(command);
    // It supports neither counters nor histograms, but blocks of frames run.
    assert_eq!(run(&mut target)[..5], expected([1; 7])[..5]);
    session.stop();
    for frame in &NAMES[..5] {
        let rows = bench.table("released.bin", &["--frame", frame]).rows.len() as u64;
        let at = NAMES.iter().position(|name| name == frame).unwrap();
        assert_eq!(rows, EACH[at] * ROUNDS, "{frame}");
    }
    // And back.
    let session = attach(&bench, &target, &["-o", "last.bin", "--only", "waits"]);
    assert_eq!(run(&mut target), expected([0, 0, 0, 0, 0, 0, 1]));
    session.stop();
    assert_eq!(captured(&bench, "last.bin"), expected([0, 0, 0, 0, 0, 0, 1]));
    target.finish();
}

/// The gate moves to another segment with the same masks.
fn rings_that_grow_forget_nothing(kind: Kind) {
    let bench = Bench::new().of(kind);
    bench.copy_all(&["choosing.frame", "choosing_main.c"]);
    let schema = std::fs::read_to_string(bench.path("choosing.frame")).unwrap();
    bench.write("choosing.frame", &schema.replace("buffer choosing 4096;", "buffer choosing 16;"));
    bench.pptc(&["choosing.frame"]);
    bench.cc(&["choosing_main.c", "choosing.c", "-o", "choosing", "-lpthread"]);
    let mut target = bench.start("choosing", &[]);
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string()]).args(bench.kind_args());
    command.args(["--slots", "auto", "--except", "net.*,stamped"]);
    command.env("XDG_RUNTIME_DIR", bench.path(""));
    let session = Attach::start(command);
    // Rings of 16 slots are too small for a burst, until they have grown enough.
    let mut counts = [0; 7];
    let on = [1, 0, 0, 0, 1, 0, 1];
    loop {
        // ppt is stopped until the burst is over.
        session.signal(libc::SIGSTOP);
        stopped(session.pid());
        let ran = run(&mut target);
        session.signal(libc::SIGCONT);
        assert_eq!(ran, expected(on));
        add(&mut counts, ran);
        let grew = session.stderr.wait_for("ppt: rings of choosing grew from ");
        let slots = grew.split(" to ").nth(1).unwrap().split(' ').next().unwrap();
        if slots.replace(',', "").parse::<u64>().unwrap() > 2 * ROUNDS {
            break;
        }
    }
    let ran = run(&mut target);
    assert_eq!(ran, expected(on));
    add(&mut counts, ran);
    session.stop();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(counts[0] + counts[4]);
    let count = |frame: &str| bench.table("out.bin", &["--frame", frame]).rows.len();
    assert_eq!(["stamped", "job", "leg"].map(count), [0; 3]);
    let waits = &info["buffers"][0]["histograms"][0];
    let bytes = &info["buffers"][0]["counters"][0];
    assert_eq!((&waits["count"], &bytes["value"]), (&counts[6].into(), &0.into()));
    let segments: std::collections::BTreeSet<_> = info["masks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["segment"].to_string())
        .collect();
    assert!(segments.len() > 1, "each segment says what is off: {segments:?}");
    target.finish();
}

/// The socket of a session.
pub(super) fn socket(bench: &Bench, session: &Attach) -> PathBuf {
    let folder =
        if nix::unistd::geteuid().is_root() { "/run/ppt".into() } else { bench.path("ppt") };
    let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
    folder.join(format!("{}-{namespace}", session.pid()))
}

/// Asks it, as `ppt enable` does.
pub(super) fn ask(socket: &Path, question: &Value) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    writeln!(stream, "{question}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// One kind of frame is flipped while eight threads write it and another: the other's count does
/// not change, and each frame agrees with the capture's statements. 10,000 flips with `PPT_LONG=1`.
fn flips_under_threads(kind: Kind) {
    let flips = if std::env::var_os("PPT_LONG").is_some() { 10_000 } else { 100 };
    let bench = built().of(kind);
    let mut target = bench.start("choosing", &["8"]);
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string()]).args(bench.kind_args());
    command.args(["--slots", "65536", "--memory", "1G"]).env("XDG_RUNTIME_DIR", bench.path(""));
    let session = Attach::start(command);
    target.say("start");
    let fetched = || bench.info("out.bin")["buffers"][0]["frames"].as_u64() > Some(0);
    wait_until("the first frames are in the file", fetched);
    let socket = socket(&bench, &session);
    let pid = target.pid();
    for flip in 0..flips {
        let what = if flip % 2 == 0 { "disable" } else { "enable" };
        let answer = ask(
            &socket,
            &serde_json::json!({"v": 1, "ask": what, "pid": pid, "names": ["stamped"]}),
        );
        assert_eq!(answer["changed"], serde_json::json!(["choosing.stamped"]), "{answer}");
    }
    target.say("stop");
    let said = target.stdout.wait_for("ran ");
    let counts: Vec<u64> = said.split(' ').map(|piece| piece.parse().unwrap()).collect();
    session.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!((account.lost, account.dropped), (0, 0), "{account:?}");
    let count = |frame: &str| bench.table("out.bin", &["--frame", frame]).rows.len() as u64;
    assert_eq!(count("plain"), counts[0], "a frame that nobody touched");
    // A block that began before the flip but ends after it is not written.
    let stamped = count("stamped");
    assert!(stamped <= counts[1] && counts[1] - stamped <= 8 * flips, "{stamped} of {}", counts[1]);
    assert_eq!(info["masks"].as_array().unwrap().len() as u64, flips);
    let stretches = masks_hold(&bench, "out.bin", &info);
    assert!(stretches > 0, "the masks speak of rings");
}

/// A client that sends nothing, or a byte from time to time, blocks neither the capture nor other
/// clients.
#[test]
fn the_session_waits_for_no_stranger() {
    let bench = built();
    let mut target = bench.start("choosing", &[]);
    let session = attach(&bench, &target, &[]);
    let socket = socket(&bench, &session);
    let _silent: Vec<_> = (0..3).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let mut slow = UnixStream::connect(&socket).unwrap();
    let slow = std::thread::spawn(move || {
        while slow.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let pid = target.pid().to_string();
    assert_eq!(ppt_of(&bench, &["disable", &pid, "job"]).0, 0);
    let (code, told, said) = ppt_of(&bench, &["list", &pid]);
    assert!(code == 0 && told.matches(" job ").count() == 1, "{told}{said}");
    assert_eq!(run(&mut target), expected([1, 1, 0, 1, 1, 1, 1]));
    session.stop();
    // There is no listener any more.
    slow.join().unwrap();
}

#[test]
fn nobody_is_reached_by_a_wrong_name_or_pid() {
    let bench = built();
    let mut target = bench.start("choosing", &[]);
    let pid = target.pid().to_string();
    let failed = |args: &[&str], expected: &str| {
        let (code, _, said) = ppt_of(&bench, args);
        assert!(code == 1 && said.contains(expected), "{args:?}: {code} {said}");
    };
    // Root may have other sessions.
    let nobody = format!("ppt: no ppt of yours captures process {pid}\n  ");
    failed(&["enable", &pid, "plain"], &nobody);
    let unknown = "ppt: nothing is called `plan`; did you mean `plain`?\n  there are: \
                   choosing.plain, choosing.stamped, choosing.job, choosing.leg, choosing.slot, \
                   choosing.bytes, choosing.waits, @net, @work\n";
    failed(&["attach", &pid, "--only", "job,plan"], unknown);
    failed(
        &["attach", &pid, "--except", "@nett"],
        "nothing is called `@nett`; did you mean `@net`?",
    );
    let session = attach(&bench, &target, &[]);
    failed(&["disable", &pid, "plan"], unknown);
    failed(&["disable", &pid, "job", "nothing*"], "nothing is called `nothing*`");
    failed(&["disable", "1", "job"], &format!("{pid} (choosing)"));
    let socket = socket(&bench, &session);
    assert!(socket.exists());
    assert_eq!(run(&mut target), expected([1; 7]), "nothing has changed");
    session.stop();
    failed(&["disable", &pid, "job"], &nobody);
    assert_eq!(captured(&bench, "out.bin"), expected([1; 7]));
    assert!(!socket.exists(), "no socket is left");
}

/// Each file of a series states what is off at its start.
#[test]
fn every_file_says_what_is_off() {
    let bench = built();
    let mut target = bench.start("choosing", &[]);
    let session = attach(&bench, &target, &["--except", "plain", "--rotate", "1s"]);
    let mut ran = [0; 7];
    let files = || {
        let names = bench.names(".").into_iter();
        names.filter(|name| name.starts_with("out.") && name.ends_with(".bin")).collect::<Vec<_>>()
    };
    // A file with content reaches its time limit after a second.
    for count in 1..=3 {
        add(&mut ran, run(&mut target));
        if count == 2 {
            assert_eq!(ppt_of(&bench, &["disable", &target.pid().to_string(), "job"]).0, 0);
        }
        wait_until("the next file begins", || files().len() > count);
    }
    session.stop();
    let mut counts = [0; 5];
    let mut off = Vec::new();
    for name in files() {
        let info = bench.info(&name);
        off.push(info["buffers"][0]["disabled"].clone());
        for (count, frame) in counts.iter_mut().zip(&NAMES[..5]) {
            *count += bench.table(&name, &["--frame", frame]).rows.len() as u64;
        }
        masks_hold(&bench, &name, &info);
    }
    assert_eq!(counts, ran[..5]);
    assert!(counts[0] == 0 && counts[2] > 0, "{counts:?}");
    assert_eq!(off[0], serde_json::json!(["plain"]));
    assert_eq!(off.last(), Some(&serde_json::json!(["plain", "job"])), "{off:?}");
    target.finish();
}

/// A window states what was off in it.
#[test]
fn a_window_says_what_was_off() {
    let bench = built();
    let mut target = bench.start("choosing", &[]);
    let pid = target.pid().to_string();
    let args = ["--flight", "60s", "--only", "plain,job", "-o", "flight"];
    let session = attach(&bench, &target, &args);
    assert_eq!(run(&mut target), expected([1, 0, 1, 0, 0, 0, 0]));
    assert_eq!(ppt_of(&bench, &["disable", &pid, "job"]).0, 0);
    assert_eq!(run(&mut target), expected([1, 0, 0, 0, 0, 0, 0]));
    assert_eq!(ppt_of(&bench, &["trigger", &pid]).0, 0);
    let stderr = session.stop();
    let names = bench.names("flight");
    let [window] = &names[..] else { panic!("{names:?}: {stderr}") };
    let window = format!("flight/{window}");
    let info = bench.info(&window);
    let off = ["stamped", "job", "leg", "slot", "bytes", "waits"];
    assert_eq!(info["buffers"][0]["disabled"], serde_json::json!(off));
    assert_eq!(captured(&bench, &window)[..3], [2 * ROUNDS, 0, 2 * ROUNDS]);
    masks_hold(&bench, &window, &info);
    target.finish();
}

/// From the first frame of a command on.
#[test]
fn a_command_writes_what_is_wanted() {
    let bench = built();
    bench.write("rounds", "300\n");
    let run = |only: &str| {
        let script = "exec \"$@\" < rounds";
        let (code, said, told) = ppt_of(
            &bench,
            &["run", "--force", "--only", only, "--", "sh", "-c", script, "sh", "./choosing"],
        );
        assert_eq!(code, 0, "{told}");
        (said.split("ran ").nth(1).unwrap().trim().to_owned(), told)
    };
    let (said, told) = run("leg,waits");
    assert_eq!(said, "0 0 0 600 0 0 300");
    assert!(!told.contains("nothing was called"), "{told}");
    assert_eq!(captured(&bench, "out.bin"), expected([0, 0, 0, 1, 0, 0, 1]));
    let (said, told) = run("leg,gone");
    assert_eq!(said, "0 0 0 600 0 0 0");
    assert!(told.contains("ppt: nothing was called `gone`\n"), "{told}");
}

/// Children get the selection of the command line, and each can be changed separately.
#[test]
fn children_write_what_is_wanted() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let mut command = bench.command(ppt());
    command.args(["attach", &family.target.pid().to_string(), "--follow", "--except", "beat"]);
    let session = Attach::start({
        command.env("XDG_RUNTIME_DIR", bench.path(""));
        command
    });
    let child = family.make("fork");
    attached(&session.stderr, child);
    assert_eq!(family.round(child), 0, "it writes nothing");
    assert_eq!(ppt_of(&bench, &["enable", &child.pid.to_string(), "beat"]).0, 0);
    let written = family.round(child);
    assert_eq!(written, 100);
    session.stop();
    assert_eq!(Account::of(&bench.info("out.bin")).captured, written);
    family.target.finish();
}

/// A program that was built before masks existed: its frames are off through the mask that it reads
/// before it writes.
#[test]
fn a_program_of_abi_1_writes_what_is_wanted() {
    if !cfg!(target_arch = "x86_64") {
        return eprintln!("skipped: the program is one for x86-64");
    }
    for kind in [Kind::SysV, Kind::Memfd] {
        let bench = Bench::new().of(kind);
        let frozen = crate::fixtures::support::root().join("tests/frozen/abi1-x86_64");
        crate::fixtures::support::copy_program(frozen, bench.path("abi1"));
        let mut target = bench.start("abi1", &[]);
        let round = |target: &mut Target| {
            target.say("1000");
            target.written();
        };
        let count = |capture: &str| {
            ["all", "tick"].map(|text| bench.table(capture, &["--frame", text]).rows.len())
        };
        // Frames that it writes before ppt has fetched its segment are not known to be off.
        let session = attach(&bench, &target, &[]);
        round(&mut target);
        let pid = target.pid().to_string();
        let fetched = || bench.info("out.bin")["buffers"][0]["frames"].as_u64() > Some(0);
        wait_until("the first frames are in the file", fetched);
        assert_eq!(ppt_of(&bench, &["disable", &pid, "@frozen"]).0, 0);
        round(&mut target);
        session.stop();
        assert_eq!(count("out.bin"), [1000, 2000], "{kind:?}");
        // Its segment exists now, with the masks from the start.
        let session = attach(&bench, &target, &["--only", "all", "-o", "next.bin"]);
        round(&mut target);
        session.kill();
        let session = attach(&bench, &target, &["-o", "last.bin"]);
        round(&mut target);
        session.stop();
        assert_eq!((count("next.bin")[1], count("last.bin")), (0, [1000; 2]), "{kind:?}");
        target.finish();
    }
}
