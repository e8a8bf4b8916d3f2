//! `ppt why`: compares its report with a program whose waits are known.

use std::collections::HashMap;

use serde_json::Value;

use super::kernel::{NUMBERS, with_tracefs};
use crate::fixtures::support::{Attach, Bench, Table};

/// Rounds of each kind except the last, which has one.
const ROUNDS: usize = 5;
/// How often the last one loses its CPU.
const PREEMPTED: i64 = 40;

/// The thread that waited, and the thread that caused the wait.
type Who = HashMap<String, (i64, i64)>;

/// A capture of the program, and whether the neighbour takes the CPU from others. `None` if queries
/// are not possible here.
fn captured() -> Option<(Bench, Who, bool)> {
    let bench = Bench::new();
    bench.copy_all(&["reasons.frame", "reasons_main.c"]);
    bench.pptc(&["reasons.frame"]);
    bench.cc(&["reasons_main.c", "reasons.c", "-o", "reasons", "-pthread"]);
    let mut command = with_tracefs(&bench)?;
    let mut target = bench.start("reasons", &[]);
    command.args(["attach", &target.pid().to_string(), "--kernel", "sched,syscalls,faults"]);
    let attach = Attach::start(command);
    target.say("go");
    let is_first = target.stdout.wait_for("first ") == "1";
    let mut who = Who::new();
    for _ in 0..4 {
        let line = target.stdout.wait_for("who ");
        let words: Vec<&str> = line.split(' ').collect();
        who.insert(words[0].into(), (words[1].parse().unwrap(), words[2].parse().unwrap()));
    }
    assert_eq!(target.written() as usize, 5 * ROUNDS + 2);
    attach.stop();
    target.finish();
    Some((bench, who, is_first))
}

fn why(bench: &Bench, args: &[&str]) -> Vec<Value> {
    let ran = bench.ppt(&[&["why", "out.bin", "--format", "json"], args].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn ns(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn each_wait_is_named_and_its_parts_add_up_to_the_ns() {
    let _numbers = NUMBERS.read();
    let Some((bench, who, is_first)) = captured() else { return };
    // The frames themselves, from a dump.
    let jobs = bench.table("out.bin", &["-b", "reasons", "--frame", "job"]);
    let [starts, ends, seqnos, threads] =
        ["wait_start", "wait_end", "seqno", "thread"].map(|text| jobs.numbers(text));
    let all = why(&bench, &["--frame", "job", "--field", "wait", "--slowest", "100"]);
    assert_eq!((all.len(), jobs.rows.len()), (3 * ROUNDS + 1, 3 * ROUNDS + 1));
    assert!(all.is_sorted_by_key(|it| -ns(&it["dur"])), "the slowest come first");
    for job in &all {
        let parts = job["parts"].as_array().unwrap();
        let sum: i64 = parts.iter().map(|part| ns(&part["ns"])).sum();
        assert_eq!(sum, ns(&job["dur"]), "{job}");
        let frame = (ns(&job["tid"]), ns(&job["seqno"]));
        let row = (0..jobs.rows.len()).find(|&row| (threads[row], seqnos[row]) == frame);
        let row = row.unwrap_or_else(|| panic!("no frame of {job}"));
        assert_eq!(ends[row] - starts[row], ns(&job["dur"]), "{job}");
    }
    // The time of the parts of all jobs of a kind that satisfy a condition, and the duration of the
    // jobs.
    let of = |kind: &str, such: &dyn Fn(&Value) -> bool| -> (i64, i64) {
        let (thread, _) = who[kind];
        let jobs: Vec<_> = all.iter().filter(|value| ns(&value["tid"]) == thread).collect();
        assert!(!jobs.is_empty(), "{kind}");
        let parts = jobs.iter().flat_map(|job| job["parts"].as_array().unwrap());
        let sum = parts.filter(|part| such(part)).map(|part| ns(&part["ns"])).sum();
        (sum, jobs.iter().map(|job| ns(&job["dur"])).sum())
    };
    let calls = [("SLEEP", "nanosleep"), ("FUTEX", "futex"), ("PIPE", "read")];
    for (kind, call) in calls {
        let is_it = |value: &Value| {
            let named = value["call"].as_str().is_some_and(|text| text.ends_with(call));
            value["part"] == "blocked" && named
        };
        let (blocked, all) = of(kind, &is_it);
        assert!(2 * blocked > all, "{kind}: {blocked} of {all} ns blocked in {call}");
    }
    for kind in ["FUTEX", "PIPE"] {
        let (thread, giver) = who[kind];
        let waits = all.iter().filter(|value| ns(&value["tid"]) == thread);
        let waits: Vec<_> = waits.flat_map(|wait| wait["parts"].as_array().unwrap()).collect();
        let by_it =
            |value: &&&Value| value["waker"].as_i64() == Some(giver) && value["part"] == "blocked";
        let by_it: Vec<_> = waits.iter().filter(by_it).collect();
        // perf omits a record from time to time.
        assert!(!by_it.is_empty(), "{kind}: {waits:?}");
        assert!(by_it.iter().any(|it| it["doing"] == "give.hold"), "{kind}: {by_it:?}");
        let told = all.iter().filter(|value| ns(&value["tid"]) == thread);
        let told: Vec<_> = told.map(|value| value["sentence"].as_str().unwrap()).collect();
        let expected =
            format!("until it was woken by thread {giver} (reasons), which was in give.hold then");
        assert!(told.iter().any(|it| it.contains(&expected)), "{kind}: {told:?}");
        // What the thread that caused the wait was doing: it slept.
        let slept = by_it.iter().flat_map(|part| part["hops"].as_array().unwrap());
        let mut slept = slept.filter(|hop| hop["thread"] == giver);
        let is_sleep =
            |hop: &Value| hop["call"].as_str().is_some_and(|text| text.ends_with("nanosleep"));
        assert!(slept.any(is_sleep), "{kind}: {by_it:?}");
    }
    // The program counted this many, and the kernel a few more before and after.
    let (thread, neighbour) = who["BUSY"];
    let busy = all.iter().find(|value| ns(&value["tid"]) == thread).unwrap();
    let parts =
        || busy["parts"].as_array().unwrap().iter().filter(|value| value["part"] == "preempted");
    let times: i64 = parts().map(|part| ns(&part["times"])).sum();
    assert!(times >= PREEMPTED, "{busy:#}");
    // On a busy machine, other threads share the CPU.
    let by_it = parts().any(|part| part["successor"].as_i64() == Some(neighbour));
    assert!(by_it || !is_first, "{busy:#}");
    let (ran, all_of) = of("BUSY", &|value| value["part"] == "running");
    assert!(ran > 0 && ran < all_of, "{ran} of {all_of} ns");
    check_running(&bench, busy);

    // The same as a table, and as text.
    let ran = bench.ppt(&["why", "out.bin", "--frame", "job", "--slowest", "3"]);
    let table = Table::parse(&ran.stdout);
    let [ranks, lengths, parts] = ["rank", "dur", "ns"].map(|text| table.numbers(text));
    for (rank, job) in (1..).zip(&all[..3]) {
        let rows: Vec<usize> = (0..ranks.len()).filter(|&row| ranks[row] == rank).collect();
        assert_eq!(rows.len(), job["parts"].as_array().unwrap().len());
        assert!(rows.iter().all(|&row| lengths[row] == ns(&job["dur"])));
        assert_eq!(rows.iter().map(|&row| parts[row]).sum::<i64>(), ns(&job["dur"]));
    }
    assert_eq!(ranks.last(), Some(&3));
    let ran = bench.ppt(&["why", "out.bin", "--frame", "job", "--format", "text"]);
    let lines: Vec<&str> = ran.stdout.lines().map(str::trim).collect();
    for (rank, job) in (1..).zip(&all) {
        // Of several with the same cause, the first is reported in full.
        let first = job["alike"].as_u64().unwrap();
        let sentence = job["sentence"].as_str().unwrap();
        assert!(first != rank || lines.contains(&sentence), "{job}: {}", ran.stdout);
        let told = lines.iter().any(|line| line.starts_with(&format!("{rank}. ")));
        assert!(told, "{job}: {}", ran.stdout);
    }

    check_trace(&bench);
}

/// Most of the running time of the busy job was in its phase, as the states show.
fn check_running(bench: &Bench, busy: &Value) {
    let steps = bench.table("out.bin", &["-b", "reasons", "--frame", "phase"]);
    let [starts, ends, seqnos] =
        ["crunch_start", "crunch_end", "seqno"].map(|column| steps.numbers(column));
    assert_eq!(starts.len(), 1);
    let query = format!(
        "WITH step AS (SELECT pid, tid, arrow_cast(ts, 'Int64') AS t0, arrow_cast(ts, 'Int64') + dur AS t1 \
         FROM slices WHERE name = 'phase.crunch' AND seqno = {}), \
         state AS (SELECT pid, tid, arrow_cast(ts, 'Int64') AS t0, arrow_cast(ts, 'Int64') + dur AS t1 \
         FROM thread_states WHERE state = 'running') \
         SELECT step.tid AS tid, sum(least(step.t1, state.t1) - greatest(step.t0, state.t0)) AS ns \
         FROM step JOIN state ON step.pid = state.pid AND step.tid = state.tid \
         AND state.t0 < step.t1 AND step.t0 < state.t1 GROUP BY 1",
        seqnos[0]
    );
    let ran = bench.ppt(&["sql", "out.bin", &query, "--format", "jsonl"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let expected: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    let parts = busy["parts"].as_array().unwrap().iter();
    let running: Vec<_> = parts.filter(|part| part["part"] == "running").collect();
    let [running] = running[..] else { panic!("{busy:#}") };
    let [step] = &running["running_in"].as_array().unwrap()[..] else { panic!("{running:#}") };
    assert_eq!(step["name"], "phase.crunch");
    assert_eq!((ns(&step["ns"]), ns(&busy["tid"])), (ns(&expected["ns"]), ns(&expected["tid"])));
    assert_eq!((ns(&step["slices"]), ns(&step["longest_ns"])), (1, ns(&step["ns"])));
    assert_eq!(ns(&step["longest_frame"]["seqno"]), seqnos[0]);
    assert!(ns(&step["ns"]) <= ends[0] - starts[0] && ns(&step["ns"]) <= ns(&running["ns"]));
    let percent = 100.0 * ns(&step["ns"]) as f64 / ns(&running["ns"]) as f64;
    let expected = format!("; {percent:.0} % of it in phase.crunch)");
    let sentence = busy["sentence"].as_str().unwrap();
    assert!(sentence.contains(&expected), "{sentence}: {expected}");
    let ran = bench.ppt(&["why", "out.bin", "--frame", "job", "--summary", "--slowest", "100"]);
    let table = Table::parse(&ran.stdout);
    let (causes, times) = (table.cells("cause"), table.numbers("ns"));
    let told = causes.iter().position(|cause| *cause == "running in phase.crunch");
    assert_eq!(told.map(|row| times[row]), Some(ns(&step["ns"])), "{}", ran.stdout);
}

/// A trace has a slice for each state.
fn check_trace(bench: &Bench) {
    let query = "SELECT arrow_cast(coalesce(blocked_in, state), 'Utf8') AS name, tid, count(*) AS n, \
                 sum(dur) AS ns FROM thread_states GROUP BY 1, 2";
    let ran = bench.ppt(&["sql", "out.bin", query, "--format", "jsonl"]);
    let row = |line: &str| -> ((String, i64), (i64, i64)) {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap().to_owned();
        ((name, ns(&row["tid"])), (ns(&row["n"]), ns(&row["ns"])))
    };
    let expected: HashMap<_, _> = ran.stdout.lines().map(row).collect();
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(bench.ppt(&["export", "out.bin", "--format", "chrome", "-o", "c.json"]).code(), 0);
    let trace: Value =
        serde_json::from_slice(&std::fs::read(bench.path("c.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let tracks = events.iter().filter(|event| event["name"] == "thread_name");
    let tracks: HashMap<(i64, i64), &str> = tracks
        .map(|track| {
            ((ns(&track["pid"]), ns(&track["tid"])), track["args"]["name"].as_str().unwrap())
        })
        .collect();
    // A thread that lives for less than a second may end before its name is read: `thread 12:
    // states`.
    let thread_of = |track: &str| -> Option<i64> {
        let (_, number) = track.strip_suffix(": states")?.rsplit_once(' ')?;
        Some(number.parse().unwrap())
    };
    let mut found: HashMap<(String, i64), (i64, i64)> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let track = tracks[&(ns(&event["pid"]), ns(&event["tid"]))];
        if let Some(tid) = thread_of(track) {
            let name = event["name"].as_str().unwrap().to_owned();
            let sums = found.entry((name, tid)).or_default();
            sums.0 += 1;
            sums.1 += (event["dur"].as_f64().unwrap() * 1000.0).round() as i64;
        }
    }
    let differing = found.iter().filter(|(state, sums)| expected.get(*state) != Some(*sums));
    let differing: Vec<_> = differing.collect();
    let missing: Vec<_> = expected.keys().filter(|track| !found.contains_key(*track)).collect();
    assert!(differing.is_empty() && missing.is_empty(), "{differing:?}, missing: {missing:?}");
    assert_eq!(bench.ppt(&["export", "out.bin", "--format", "perfetto", "-o", "p"]).code(), 0);
}

/// Requests of an unmodified program: the lock that they waited for, and the code that requested
/// it.
#[test]
fn a_lock_of_an_unmodified_program_is_named() {
    let _numbers = NUMBERS.read();
    let bench = Bench::new();
    bench.copy("with/holding_main.c");
    bench.cc(&["holding_main.c", "-o", "holding", "-lpthread"]);
    let Some(mut command) = with_tracefs(&bench) else { return };
    command.args(["run", "-q", "--with", "net,locks", "--kernel", "sched,syscalls", "--"]);
    let output = command.args(["./holding", "5"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let all = why(&bench, &["--frame", "served"]);
    assert_eq!(all.len(), 5);
    let parts = all.iter().flat_map(|value| value["parts"].as_array().unwrap());
    let waits: Vec<_> = parts.filter(|part| part["call"] == "futex").collect();
    assert!(!waits.is_empty(), "{all:?}");
    assert!(waits.iter().all(|it| it["inside"] == "waited.wait"), "{waits:?}");
    for wait in waits {
        let about = wait["inside_about"].as_str().unwrap();
        assert!(about.starts_with("waiting for lock 0x"), "{about}");
        assert!(about.contains(" taken from take_the_lock+0x"), "{about}");
    }
    let said = all.iter().map(|value| value["sentence"].as_str().unwrap());
    let mut told = said.filter(|text| text.contains("was blocked in futex (waiting for lock 0x"));
    assert!(told.next().is_some(), "{all:?}");
}
