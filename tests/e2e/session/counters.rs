//! Counters and histograms: every add is in the capture, compared with sums that the target keeps
//! itself.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use crate::fixtures::ledger::captures;
use crate::fixtures::released;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Target, of_both_kinds, ppt, rounds, segments_of, stopped,
    wait_until,
};

/// The number of threads that `sums_main` starts at each line, and of the rounds of each.
fn start(bench: &Bench, threads: u32, rounds: u32, more: &[&str]) -> Target {
    let numbers = [threads.to_string(), rounds.to_string()];
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    bench.start("sums", &[&numbers, more].concat())
}

fn build() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["sums.frame", "sums_main.c"]);
    bench.pptc(&["sums.frame"]);
    bench.cc(&["sums.c", "sums_main.c", "-pthread", "-o", "sums"]);
    bench
}

/// Sums, from the target or from a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CounterSums {
    frames: u64,
    bytes: u64,
    inflight: i64,
    ticks: u64,
    wait: (u64, u64),
    queue: (u64, u64),
}

impl CounterSums {
    /// The target's sums since its start.
    fn parse(line: &str) -> Self {
        let sums: Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| sums[name].as_u64().unwrap_or_else(|| panic!("{name} in {line}"));
        Self {
            frames: of("frames"),
            bytes: of("bytes"),
            inflight: 0,
            ticks: of("ticks"),
            wait: (of("wait_count"), of("wait_sum")),
            queue: (of("queue_count"), of("queue_sum")),
        }
    }

    /// Makes the target add. Returns its sums.
    fn run(target: &mut Target, line: &str) -> Self {
        target.say(line);
        Self::parse(&target.stdout.wait_for("written "))
    }

    /// The sums over all buffers of a capture.
    fn of(info: &Value) -> Self {
        let buffers = info["buffers"].as_array().unwrap();
        buffers.iter().map(Self::of_buffer).fold(Self::default(), Self::plus)
    }

    fn of_buffer(buffer: &Value) -> Self {
        let of = |list: &str, name: &str| {
            let all = buffer[list].as_array().unwrap();
            all.iter()
                .find(|value| value["name"] == name)
                .unwrap_or_else(|| panic!("{name}"))
                .clone()
        };
        let counter = |name: &str| of("counters", name)["value"].as_i64().unwrap();
        let histogram = |name: &str| {
            let x = of("histograms", name);
            let sum =
                x["sum"].as_i64().map_or_else(|| x["sum"].as_u64(), |number| Some(number as u64));
            (x["count"].as_u64().unwrap(), sum.unwrap())
        };
        let frames = |name: &str| buffer[name].as_u64().unwrap();
        Self {
            frames: frames("frames") + frames("lost") + dropped(buffer),
            bytes: counter("bytes") as u64,
            inflight: counter("inflight"),
            ticks: counter("ticks") as u64,
            wait: histogram("wait"),
            queue: histogram("queue"),
        }
    }

    fn plus(self, other: Self) -> Self {
        let pair = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            inflight: self.inflight + other.inflight,
            ticks: self.ticks + other.ticks,
            wait: pair(self.wait, other.wait),
            queue: pair(self.queue, other.queue),
        }
    }
}

/// A number that differs from round to round, and from one run of the tests to the next.
fn random(round: u64) -> u64 {
    BuildHasher::hash_one(&RandomState::new(), round)
}

fn dropped(buffer: &Value) -> u64 {
    buffer["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum()
}

of_both_kinds! {
    threads_that_come_and_go_while_signals_interrupt_them
    more_threads_than_rings
    sessions_after_each_other
    a_killed_target
    rings_that_grow
    a_fork_in_between
}

fn threads_that_come_and_go_while_signals_interrupt_them(kind: Kind) {
    let bench = build().of(kind);
    let mut target = start(&bench, 4, 50_000, &[]);
    let attach = bench.attach(&target, &["--counters", "50ms"]);
    let agent = attach.pid();
    let mut sums = CounterSums::default();
    for _ in 0..6 {
        sums = CounterSums::run(&mut target, "go");
    }
    attach.stop();
    assert!(sums.ticks > 0, "no signal came");
    assert_eq!(CounterSums::of(&bench.info("out.bin")), sums);
    target.finish();
    assert_eq!(segments_of(&[agent]), 0);
}

fn more_threads_than_rings(kind: Kind) {
    let bench = build().of(kind);
    let mut target = start(&bench, 150, 500, &[]);
    let attach = bench.attach(&target, &[]);
    let sums = CounterSums::run(&mut target, "go");
    attach.stop();
    let info = bench.info("out.bin");
    assert_eq!(CounterSums::of(&info), sums);
    target.finish();
}

/// Adds without a session are in no capture, and each session has its own adds.
fn sessions_after_each_other(kind: Kind) {
    let bench = build().of(kind);
    let mut target = start(&bench, 4, 2_000, &[]);
    let mut before = CounterSums::default();
    for session in 0..4 {
        let name = format!("{session}.bin");
        let attach = bench.attach(&target, &["-o", &name]);
        let sums = CounterSums::run(&mut target, "go");
        attach.stop();
        let captured = CounterSums::of(&bench.info(&name));
        assert_eq!(
            before.plus(captured),
            CounterSums { frames: before.frames + captured.frames, ..sums }
        );
        assert_eq!(captured.wait.0, 8_000);
        let unattended = CounterSums::run(&mut target, "go");
        assert_eq!(unattended, sums, "nothing is added, nor evaluated, while nobody is attached");
        before = unattended;
    }
    target.finish();
}

/// kill -9 during adds: all adds are there, except possibly one per thread.
fn a_killed_target(kind: Kind) {
    const THREADS: u64 = 4;
    let bench = build().of(kind);
    for round in 0..rounds(3, 500) {
        let ledger = format!("ledger{round}");
        let mut target = start(&bench, THREADS as u32, 100_000_000, &[&ledger]);
        let word = |index: usize| {
            let bytes = fs::read(bench.path(&ledger)).unwrap();
            u64::from_le_bytes(bytes[index * 8..][..8].try_into().unwrap())
        };
        let name = format!("{round}.bin");
        let attach = bench.attach(&target, &["-o", &name]);
        target.say("go");
        let adds_before = 20_000 + random(round as u64) % 100_000;
        wait_until("it is at work", || word(1) > adds_before);
        // Its segment is fetched by then, if it made one.
        wait_until("ppt has read", || captured_bytes(&bench, &name) > 0);
        target.signal(libc::SIGKILL);
        target.wait();
        attach.ended(0);
        let info = bench.info(&name);
        let (begun, done, bytes) = (word(0), word(1), word(2));
        assert!(begun - done <= THREADS, "{begun} {done}");
        let counted = CounterSums::of(&info);
        // The largest possible single add.
        assert!(bytes - counted.bytes <= THREADS * 1024, "{counted:?} of {bytes}");
        assert!(counted.bytes <= bytes);
        assert!((0..=THREADS as i64).contains(&counted.inflight), "{counted:?}");
        let (least, most) = (done - THREADS, begun + THREADS);
        assert!((least..=most).contains(&counted.wait.0), "{counted:?} of {begun}");
        assert!((least..=most).contains(&counted.queue.0), "{counted:?} of {begun}");
    }
}

/// The counter's value in a capture, which may still be growing.
fn captured_bytes(bench: &Bench, capture: &str) -> u64 {
    let ran = bench.ppt(&["info", "--json", capture]);
    let info: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    info["buffers"][0]["counters"][0]["value"].as_u64().unwrap_or(0)
}

fn rings_that_grow(kind: Kind) {
    let bench = build().of(kind);
    let mut target = start(&bench, 4, 50_000, &[]);
    let attach = bench.attach(&target, &["--slots", "auto", "--counters", "20ms"]);
    let mut sums = CounterSums::run(&mut target, "go");
    attach.stderr.wait_for("ppt: rings of sums grew from ");
    for _ in 0..4 {
        sums = CounterSums::run(&mut target, "go");
    }
    attach.stop();
    let info = bench.info("out.bin");
    assert_eq!(
        CounterSums { frames: 0, ..CounterSums::of(&info) },
        CounterSums { frames: 0, ..sums }
    );
    target.finish();
}

/// A child has its parent's memory but none of its rows; it is off, so it adds nothing.
fn a_fork_in_between(kind: Kind) {
    let bench = build().of(kind);
    let mut target = start(&bench, 4, 5_000, &[]);
    let attach = bench.attach(&target, &[]);
    let first = CounterSums::run(&mut target, "go");
    let forked = CounterSums::run(&mut target, "fork");
    assert_eq!(first, forked, "the child is off");
    let sums = CounterSums::run(&mut target, "go");
    attach.stop();
    assert_eq!(CounterSums::of(&bench.info("out.bin")), sums);
    target.finish();
}

/// The program cannot map the segment: adds are lost, and each is counted.
#[test]
fn adds_without_a_segment_are_counted() {
    let bench = build();
    bench.copy("refused_main.c");
    bench.cc(&["refused_main.c", "-o", "refused"]);
    let call = libc::SYS_shmat.to_string();
    let mut target = bench.start("refused", &[&call, "1", "0", "./sums", "4", "1000"]);
    let attach = bench.attach(&target, &["--allow", "seccomp", "--segment", "sysv"]);
    let agent = attach.pid();
    // The gate keeps its value while the agent does not read the target's report.
    attach.signal(libc::SIGSTOP);
    stopped(agent);
    let sums = CounterSums::run(&mut target, "go");
    attach.signal(libc::SIGINT);
    attach.signal(libc::SIGCONT);
    attach.ended(0);
    let info = bench.info("out.bin");
    let buffer = &info["buffers"][0];
    // Each round adds to two histograms, to `bytes`, and twice to `inflight`.
    let adds = 5 * sums.wait.0 + sums.ticks;
    assert_eq!((sums.wait.0, sums.queue.0), (4000, 4000));
    assert_eq!(buffer["adds_not_mapped"], adds);
    assert_eq!(
        CounterSums::of(&info),
        CounterSums { frames: sums.frames, ..CounterSums::default() }
    );
    let stdout = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(stdout.contains(&format!("adds_not_mapped {adds}\n")), "{stdout}");
    target.finish();
    assert_eq!(segments_of(&[agent]), 0);
}

/// Children that ppt follows count separately: in the capture, each is a separate process.
#[test]
fn children_that_are_followed() {
    let bench = build();
    let mut command = bench.command(crate::fixtures::support::ppt());
    command.args(["run", "-o", "out.bin", "--"]).arg(bench.path("sums")).args(["4", "5000"]);
    let mut target = Target::start(command);
    let mut sums = CounterSums::run(&mut target, "go");
    for _ in 0..3 {
        // The sums are in memory that parent and children share; the frames are not.
        sums = CounterSums::run(&mut target, "fork");
    }
    target.finish();
    let captured = CounterSums::of(&bench.info("out.bin"));
    assert_eq!(CounterSums { frames: sums.frames, ..captured }, sums);
    assert_eq!(captured.wait.0, 4 * 4 * 5000);
}

/// kill -9 of ppt: the next session begins at the current values.
#[test]
fn a_killed_ppt() {
    let bench = build();
    let mut target = start(&bench, 4, 5_000, &[]);
    let killed = bench.attach(&target, &["-o", "killed.bin", "--counters", "10ms"]);
    let before = CounterSums::run(&mut target, "go");
    wait_until("it is in the file", || captured_bytes(&bench, "killed.bin") == before.bytes);
    killed.kill();
    let between = CounterSums::run(&mut target, "go");
    let attach = bench.attach(&target, &[]);
    let after = CounterSums::run(&mut target, "go");
    attach.stop();
    let captured = CounterSums::of(&bench.info("out.bin"));
    assert_eq!(between.bytes + captured.bytes, after.bytes);
    assert_eq!(between.wait.0 + captured.wait.0, after.wait.0);
    assert!(between.bytes > before.bytes, "the gate stays open");
    let said = |capture| bench.ppt(&["info", capture]).stdout;
    let missing = "what was added after the last reading is not in this capture";
    assert!(said("killed.bin").contains(missing) && !said("out.bin").contains(missing));
    target.finish();
}

/// kill -9 of ppt at any moment, while threads add: what it has read is never more than was added,
/// and the session after it has each of its own adds, and no other.
#[test]
fn a_ppt_that_is_killed_at_random() {
    let bench = build();
    // Some of its readings, every 5 ms, are within a run.
    let mut target = start(&bench, 2, 500_000, &["ledger"]);
    let done = || {
        let bytes = fs::read(bench.path("ledger")).unwrap();
        u64::from_le_bytes(bytes[8..16].try_into().unwrap())
    };
    let mut captured_adds = 0;
    for round in 0..rounds(5, 500) {
        let killed = bench.attach(&target, &["-o", "killed.bin", "--force", "--counters", "5ms"]);
        let before = done();
        let kill_after = before + random(round as u64) % 900_000;
        target.say("go");
        wait_until("it is time", || done() >= kill_after);
        killed.kill();
        let between = CounterSums::parse(&target.stdout.wait_for("written "));
        let info = bench.ppt(&["info", "--json", "killed.bin"]).stdout;
        if let Ok(info) = serde_json::from_str::<Value>(&info) {
            let killed = CounterSums::of(&info);
            assert!(killed.wait.0 <= between.wait.0 - before, "{killed:?} of {between:?}");
            captured_adds += killed.wait.0;
        }
        let attach = bench.attach(&target, &["--force"]);
        let after = CounterSums::run(&mut target, "go");
        attach.stop();
        let captured = CounterSums::of(&bench.info("out.bin"));
        assert_eq!(between.bytes + captured.bytes, after.bytes, "round {round}");
        assert_eq!(between.wait.0 + captured.wait.0, after.wait.0, "round {round}");
        assert_eq!(between.queue.0 + captured.queue.0, after.queue.0, "round {round}");
        assert_eq!(captured.inflight, 0, "round {round}");
    }
    assert!(captured_adds > 0, "no killed ppt had read anything");
    target.finish();
}

/// Each file of a rotated capture has the adds made while it was written.
#[test]
fn files_of_a_rotation_add_up() {
    let bench = build();
    let mut target = start(&bench, 4, 50_000, &[]);
    let args = ["--rotate", "1M", "--slots", "65536", "--counters", "10ms"];
    let attach = bench.attach(&target, &args);
    let mut sums = CounterSums::default();
    for _ in 0..3 {
        sums = CounterSums::run(&mut target, "go");
    }
    attach.stop();
    let names = captures(&bench, "out");
    assert!(names.len() > 2, "{names:?}");
    let files = names.iter().map(|name| CounterSums::of(&bench.info(name)));
    assert_eq!(files.fold(CounterSums::default(), CounterSums::plus), sums);
    target.finish();
}

/// The first release attaches to a program with counters, and dumps its frames; so does the current
/// version after it, and before it.
#[test]
fn the_first_release_sees_frames_alone() {
    let bench = build();
    let Some(released) = released::ppt(&bench) else { return };
    let mut target = start(&bench, 2, 1_000, &[]);
    let mut before = CounterSums::default();
    for (round, old) in [false, true, false, true].into_iter().enumerate() {
        let name = format!("{round}.bin");
        let attach = if old {
            let mut command = bench.command(&released);
            let pid = target.pid().to_string();
            command.args(["attach", &pid, "-o", &name, "--slots", "4096"]);
            Attach::start(command)
        } else {
            bench.attach(&target, &["-o", &name, "--slots", "4096"])
        };
        let sums = CounterSums::run(&mut target, "go");
        attach.stop();
        let info = bench.info(&name);
        Account::of(&info).check(sums.frames - before.frames);
        if !old {
            assert_eq!(CounterSums::of(&info).wait.0, sums.wait.0 - before.wait.0);
        }
        let table = bench.table_of(&released, &name, &[]);
        assert_eq!(table.rows.len(), 2_000, "{name}");
        assert_eq!(bench.table(&name, &[]).rows, table.rows);
        before = sums;
    }
    target.finish();
}

/// The text for people, and the equivalent for `ppt dump`.
#[test]
fn what_info_says() {
    let bench = build();
    let mut target = start(&bench, 1, 1_000, &[]);
    let attach = bench.attach(&target, &["--slots", "4096"]);
    let sums = CounterSums::run(&mut target, "go");
    attach.stop();
    let stdout = bench.ppt(&["info", "out.bin"]).stdout;
    for line in [
        format!("counter   bytes = {} B\n", sums.bytes),
        "counter   inflight = 0\n".into(),
        "histogram wait: 1000 values, p50 ".into(),
        "histogram queue: 1000 values, p50 ".into(),
    ] {
        assert!(stdout.contains(&line), "{line} is not in\n{stdout}");
    }
    let table = bench.table("out.bin", &[]);
    assert_eq!((table.columns.last().unwrap().as_str(), table.rows.len()), ("n", 1000));
    target.finish();
}

/// Tables and traces sum up to the target's own sums.
#[test]
fn tables_and_traces_add_up_to_what_the_target_says() {
    let bench = build();
    let mut target = start(&bench, 90, 300, &[]);
    let attach = bench.attach(&target, &["--counters", "10ms"]);
    let mut sums = CounterSums::default();
    for _ in 0..3 {
        sums = CounterSums::run(&mut target, "go");
    }
    attach.stop();
    target.finish();
    let asked = |sql: &str| -> Vec<Value> {
        let ran = bench.ppt(&["sql", "out.bin", sql, "--format", "jsonl"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let counters = asked("SELECT name, sum(delta) AS n FROM counters GROUP BY name ORDER BY name");
    let expected = [("bytes", sums.bytes), ("inflight", 0), ("ticks", sums.ticks)];
    let of =
        |value: &Value| (value["name"].as_str().unwrap().to_owned(), value["n"].as_u64().unwrap());
    let expected: Vec<_> = expected.map(|(name, n)| (name.to_owned(), n)).into();
    let mut found: Vec<_> = counters.iter().map(of).collect();
    // A metric without an observed change has no row: a signal need not reach a thread that adds,
    // and a gauge may have returned to its former value.
    for name in ["inflight", "ticks"] {
        if found.iter().all(|entry| entry.0 != name) {
            found.push((name.into(), 0));
        }
    }
    found.sort();
    assert_eq!(found, expected);
    let last = "SELECT name, sum(count) AS n, sum(CASE WHEN lo IS NULL THEN count END) AS below \
                FROM (SELECT *, max(ts) OVER (PARTITION BY segment, ring, name) AS last \
                      FROM histograms) WHERE ts = last GROUP BY name ORDER BY name";
    let histograms: Vec<_> = asked(last).iter().map(of).collect();
    let expected = [("queue".into(), sums.queue.0), ("wait".into(), sums.wait.0)];
    assert_eq!(histograms, expected);
    let added = "SELECT name, sum(delta) AS n FROM histograms GROUP BY name ORDER BY name";
    assert_eq!(asked(added).iter().map(of).collect::<Vec<_>>(), expected);

    assert_eq!(bench.ppt(&["export", "out.bin", "--format", "chrome", "-o", "c.json"]).code(), 0);
    let trace: Value = serde_json::from_slice(&fs::read(bench.path("c.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let curve = |name: &str| {
        let of = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
        of.map(|value| {
            value["args"].as_object().unwrap().values().next().unwrap().as_f64().unwrap()
        })
        .collect::<Vec<_>>()
    };
    let bytes = curve("sums.bytes");
    assert!(bytes.is_sorted() && bytes.len() > 1, "{bytes:?}");
    assert_eq!(bytes.last(), Some(&(sums.bytes as f64)));
    assert!(curve("sums.inflight").last().is_none_or(|&last| last == 0.0));
}

/// In a trace, each process has its own adds.
#[test]
fn traces_keep_the_processes_apart() {
    let bench = build();
    let mut command = bench.command(ppt());
    command.args(["run", "-o", "out.bin", "--"]).arg(bench.path("sums")).args(["2", "3000"]);
    let mut target = Target::start(command);
    CounterSums::run(&mut target, "go");
    for _ in 0..3 {
        CounterSums::run(&mut target, "fork");
    }
    target.finish();
    let by_process = |rows: Vec<(String, u64)>| {
        let mut sums = BTreeMap::<String, u64>::new();
        for (pid, value) in rows {
            // The last value of a curve.
            sums.insert(pid, value);
        }
        sums
    };
    let sql = "SELECT pid, sum(delta) AS n FROM counters WHERE name = 'bytes' GROUP BY pid";
    let ran = bench.ppt(&["sql", "out.bin", sql, "--format", "jsonl"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["pid"].to_string(), row["n"].as_u64().unwrap())
    };
    let expected = by_process(ran.stdout.lines().map(row).collect());
    assert_eq!(expected.len(), 4, "{expected:?}");

    assert_eq!(bench.ppt(&["export", "out.bin", "--format", "chrome", "-o", "c.json"]).code(), 0);
    let trace: Value = serde_json::from_slice(&fs::read(bench.path("c.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let bytes = events.filter(|event| event["ph"] == "C" && event["name"] == "sums.bytes");
    let curve = bytes.map(|event| {
        let value = event["args"].as_object().unwrap().values().next().unwrap();
        (event["pid"].to_string(), value.as_f64().unwrap() as u64)
    });
    assert_eq!(by_process(curve.collect()), expected);

    assert_eq!(
        bench.ppt(&["export", "out.bin", "--format", "otlp-json", "-o", "o.jsonl"]).code(),
        0
    );
    let mut sums = Vec::new();
    for line in fs::read_to_string(bench.path("o.jsonl")).unwrap().lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        // Some requests are of spans.
        for resource in request["resourceMetrics"].as_array().into_iter().flatten() {
            let attributes = resource["resource"]["attributes"].as_array().unwrap();
            let pid =
                attributes.iter().find(|attribute| attribute["key"] == "process.pid").unwrap();
            let pid = pid["value"]["intValue"].as_str().unwrap().to_owned();
            for scope in resource["scopeMetrics"].as_array().unwrap() {
                let metrics = scope["metrics"].as_array().unwrap().iter();
                for metric in metrics.filter(|metric| metric["name"] == "sums.bytes") {
                    let points = metric["sum"]["dataPoints"].as_array().unwrap();
                    let value = |point: &Value| point["asInt"].as_str().unwrap().parse().unwrap();
                    sums.extend(points.iter().map(|point| (pid.clone(), value(point))));
                }
            }
        }
    }
    assert_eq!(by_process(sums), expected);
}
