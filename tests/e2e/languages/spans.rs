//! Spans that one thread begins and another ends, and a chain through both, in every language: the
//! same program with the same frames.

use std::collections::HashMap;

use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::released;
use crate::fixtures::rust::programs;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Table, Target, available, of_both_kinds, ppt, text,
};

/// The frames of every program: by thread and round, an errand and a visit, each begun and ended,
/// and a leg in three steps.
fn check(bench: &Bench, mut target: Target, threads: i64, rounds: i64) {
    let attach = bench.attach(&target, &["--memory", "1G"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured as i64, threads * (7 * rounds + 1), "{account:?}");
    check_tables(|frame| bench.table("out.bin", &["--frame", frame]), threads, rounds);
    check_names(bench);
    check_wholes(bench, threads, rounds);
}

/// A dump contains frames; a request for spans or chains is answered with the right command.
fn check_names(bench: &Bench) {
    for (table, frame) in [("errand_spans", "errand"), ("leg_chains", "leg")] {
        let ran = bench.ppt(&["dump", "out.bin", "--frame", table]);
        let expected = format!(
            "out.bin: the table `{table}` is made of the frames `{frame}`, and a dump has frames alone: \
             choose --frame {frame}, or print the table by `ppt export out.bin --format csv --frame {table}`"
        );
        assert!(ran.code() == 2 && ran.stderr.contains(&expected), "{ran:?}");
    }
}

/// The tables of whole spans and chains match the frames and the program.
fn check_wholes(bench: &Bench, threads: i64, rounds: i64) {
    let asked = |query: &str| -> Vec<Vec<String>> {
        let output = bench.command(ppt()).args(["sql", "out.bin", query]).output().unwrap();
        assert!(output.status.success(), "{query}: {output:?}");
        let said = text(&output.stdout);
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
        said.lines().skip(1).map(cells).collect()
    };
    let count = threads * rounds;
    // From the dump, when each frame with that key was begun.
    let times = |frame: &str, mark: &str| -> HashMap<(i64, String), i64> {
        let table = bench.table("out.bin", &["--frame", frame]);
        let at = |name: &str| table.columns.iter().position(|column| column == name).unwrap();
        let [id, mark, time] = ["id", mark, "at"].map(at);
        let of = |row: &Vec<String>| {
            ((row[id].parse().unwrap(), row[mark].clone()), row[time].parse().unwrap())
        };
        table.rows.iter().map(of).collect()
    };

    let of = times("errand", "edge");
    let spans = asked(
        "SELECT id, dur, begin_thread, end_thread, begin_verb, end_bytes, tid = end_tid, state \
         FROM errand_spans",
    );
    assert_eq!(spans.len() as i64, count);
    for row in &spans {
        let id: i64 = row[0].parse().unwrap();
        let dur = of[&(id, "end".to_owned())] - of[&(id, "begin".to_owned())];
        let (thread, i) = (id >> 32, id & 0xffff_ffff);
        let other = (thread + 1) % threads;
        let verb = if i % 2 == 0 { "GET" } else { "PUT" };
        let same = if other == thread { "true" } else { "false" };
        let expected = [dur, thread, other].map(|number| number.to_string());
        assert_eq!(row[1..4], expected, "{row:?}");
        assert_eq!(row[4..], [verb, &(i * 7).to_string(), same, "closed"], "{row:?}");
    }

    let visits = asked("SELECT state, dur, count(*) FROM visit_spans GROUP BY 1, 2");
    assert_eq!(visits, [["closed".to_owned(), "1000".to_owned(), count.to_string()]]);

    let of = times("leg", "step");
    let legs = asked("SELECT id, total, leave_to_pass_, pass__to_arrive, state FROM leg_chains");
    assert_eq!(legs.len() as i64, count);
    for row in &legs {
        let time = |step: &str| of[&(row[0].parse().unwrap(), step.to_owned())];
        let [leave, pass, arrive] = ["leave", "pass_", "arrive"].map(time);
        let steps = [arrive - leave, pass - leave, arrive - pass].map(|number| number.to_string());
        assert_eq!(row[1..4], steps, "{row:?}");
        assert_eq!(row[4], "complete", "{row:?}");
    }
    let slices = asked("SELECT name, count(*), max(depth) FROM slices GROUP BY 1 ORDER BY 1");
    let closed = |name: &str| [name.to_owned(), count.to_string(), "0".to_owned()];
    assert_eq!(slices, [closed("errand"), closed("visit")]);
}

/// Checks the tables of the kinds of frames, with any dump.
fn check_tables(table: impl Fn(&str) -> Table, threads: i64, rounds: i64) {
    let errands = table("errand");
    let columns = ["seqno", "ring", "tid", "id", "thread", "verb", "bytes", "edge", "at"];
    assert_eq!(errands.columns, columns);
    let mut halves: HashMap<(i64, &str), &Vec<String>> = HashMap::new();
    let (id, edge, at) = (3, 7, 8);
    // Stamps of a thread are in the order of its frames.
    let mut latest: HashMap<&str, i64> = HashMap::new();
    for row in &errands.rows {
        let at: i64 = row[at].parse().expect("a time");
        let latest = latest.entry(&row[1]).or_default();
        assert!(0 < at && *latest <= at, "{row:?} after {latest}");
        *latest = at;
        let twice = halves.insert((row[id].parse().unwrap(), &row[edge]), row);
        assert_eq!(twice, None, "{row:?}");
    }
    assert_eq!(halves.len() as i64, 2 * threads * rounds);
    for (thread, i) in (0..threads).flat_map(|thread| (0..rounds).map(move |i| (thread, i))) {
        let half = |edge| halves[&(thread << 32 | i, edge)];
        let (begin, end) = (half("begin"), half("end"));
        let verb = if i % 2 == 0 { "GET" } else { "PUT" };
        assert_eq!(begin[4..7], [thread.to_string(), verb.into(), "0".into()]);
        let other = (thread + 1) % threads;
        assert_eq!(end[4..7], [other.to_string(), "GET".into(), (i * 7).to_string()]);
        assert!(begin[at].parse::<i64>().unwrap() <= end[at].parse::<i64>().unwrap());
    }

    let visits = table("visit");
    assert_eq!(visits.columns[3..], ["name", "thread", "when", "edge"], "stamped by the program");
    let mut rows: Vec<_> = visits.rows.iter().map(|row| row[3..].to_vec()).collect();
    rows.sort();
    let all = (0..threads).flat_map(|thread| (0..rounds).map(move |i| (thread, i)));
    let mut expected: Vec<_> = all
        .flat_map(|(thread, i)| {
            let name = format!("{thread}-{i}");
            let half = |thread: i64, when: i64, edge: &str| {
                vec![name.clone(), thread.to_string(), when.to_string(), edge.to_owned()]
            };
            let other = (thread + 1) % threads;
            [half(thread, 1000 + i, "begin"), half(other, 2000 + i, "end")]
        })
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
    let legs = table("leg");
    assert_eq!(legs.columns[3..], ["id", "thread", "step", "at"]);
    let mut way: HashMap<i64, Vec<(&str, &str, i64)>> = HashMap::new();
    for row in &legs.rows {
        let step = (row[5].as_str(), row[4].as_str(), row[6].parse().expect("a time"));
        way.entry(row[3].parse().unwrap()).or_default().push(step);
    }
    assert_eq!(way.len() as i64, threads * rounds);
    for (id, mut steps) in way {
        steps.sort_by_key(|step| step.2);
        let thread = id >> 32;
        let (from, to) = (thread.to_string(), ((thread + 1) % threads).to_string());
        let steps: Vec<_> = steps.iter().map(|step| (step.0, step.1)).collect();
        let expected = [("leave", &*from), ("pass_", &to), ("arrive", &to)];
        assert_eq!(steps, expected, "{id}");
    }
    assert_eq!(table("idle").rows.len() as i64, threads);
}

/// The program in C; its arguments are threads and rounds.
fn build_c(bench: &Bench) {
    bench.copy_all(&["errands.frame", "errands_main.c"]);
    bench.pptc(&["errands.frame"]);
    bench.cc(&["errands_main.c", "errands.c", "-o", "errands", "-lpthread"]);
}

of_both_kinds! {
    c_from_one_thread
    c_from_eight_threads
}

fn c_from_one_thread(kind: Kind) {
    c(kind, 1, 3_000);
}

fn c_from_eight_threads(kind: Kind) {
    c(kind, 8, 1_000);
}

fn c(kind: Kind, threads: i64, rounds: i64) {
    let bench = Bench::new().of(kind);
    build_c(&bench);
    let target = bench.start("errands", &[&threads.to_string(), &rounds.to_string()]);
    check(&bench, target, threads, rounds);
}

#[test]
fn cpp_from_eight_threads() {
    if !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.copy_all(&["errands.frame", "errands_main.cpp"]);
    bench.pptc(&["--emit", "cpp", "errands.frame"]);
    let sources = ["errands_main.cpp", "errands.cpp"];
    let args = ["-std=c++17", "-o", "errands", "-lpthread"];
    bench.compile("g++", &[&args[..], &sources].concat());
    let target = bench.start("errands", &["8", "1000"]);
    check(&bench, target, 8, 1000);
}

#[test]
fn rust_from_eight_threads() {
    let bench = Bench::new();
    let mut command = bench.command(programs().join("errands"));
    command.args(["8", "1000"]);
    check(&bench, Target::start(command), 8, 1000);
}

#[test]
fn python_from_four_threads() {
    let bench = Bench::new();
    bench.copy_all(&["errands_main.py", "errands.frame"]);
    if !modules(&bench, &["errands"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.args(["errands_main.py", "4", "500"]);
    check(&bench, Target::start(command), 4, 500);
}

#[test]
fn java_from_four_threads() {
    let bench = Bench::new();
    bench.copy_all(&["errands_main.java", "errands.frame"]);
    if java::program(&bench, &["errands"], &["errands_main.java"]) {
        check(&bench, Target::start(java::java(&bench, "Errands", &["4", "500"])), 4, 500);
    }
}

#[test]
fn node_from_four_workers() {
    let bench = Bench::new();
    bench.copy_all(&["errands_main.js", "errands.frame"]);
    if node::packages(&bench, &["errands"]) {
        let command = node::node(&bench, "errands_main.js", &["4", "500"]);
        check(&bench, Target::start(command), 4, 500);
    }
}

#[test]
fn go_from_four_threads() {
    let bench = Bench::new();
    bench.copy_all(&["errands_main.go", "errands.frame"]);
    if go::program(&bench, &["errands"], "errands_main.go") {
        check(&bench, Target::start(go::built(&bench, &["4", "500"])), 4, 500);
    }
}

/// A `ppt` of an earlier version without spans attaches, captures and dumps: it shows plain frames.
/// Each version reads the captures of the other.
#[test]
fn the_released_ppt_shows_the_frames() {
    let bench = Bench::new();
    let Some(released) = released::ppt(&bench) else { return };
    build_c(&bench);
    let mut target = bench.start("errands", &["4", "1000"]);
    let mut command = bench.command(&released);
    command.args(["attach", &target.pid().to_string(), "--memory", "1G"]);
    let attach = Attach::start(command);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let by = |ppt: &std::path::Path, capture: &str| {
        check_tables(|frame| bench.table_of(ppt, capture, &["--frame", frame]), 4, 1000);
    };
    by(&released, "out.bin");
    by(crate::fixtures::support::ppt().as_ref(), "out.bin");

    let mut target = bench.start("errands", &["4", "1000"]);
    let attach = bench.attach(&target, &["--memory", "1G", "-o", "new.bin"]);
    target.run();
    attach.stop();
    target.finish();
    by(&released, "new.bin");
}
