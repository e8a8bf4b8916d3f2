//! Programs and captures of earlier versions, which are kept in tests/frozen.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::fixtures::released;
use crate::fixtures::support::{Account, Attach, Bench, Target, copy_program, ppt, root, text};

fn frozen(name: &str) -> PathBuf {
    root().join("tests/frozen").join(name)
}

/// Attaches to a program that was built with ABI 1.
fn program_of_abi_1(kind: &str) {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program is one for x86-64");
        return;
    }
    let bench = Bench::new();
    copy_program(frozen("abi1-x86_64"), bench.path("abi1"));
    let mut target = bench.start("abi1", &[]);
    let mut rows = 0;
    // The second session adopts the segment of the first one.
    for capture in ["first.bin", "second.bin"] {
        let attach = bench.attach(&target, &["--segment", kind, "--slots", "4096", "-o", capture]);
        target.say("1000");
        let written = target.written() - rows;
        attach.stop();
        let info = bench.info(capture);
        let account = Account::of(&info);
        account.check(written);
        assert_eq!((written, account.captured), (2000, 2000));
        rows += written;

        let table = bench.table(capture, &["--frame", "all"]);
        let first = if capture == "first.bin" { 0 } else { 1000 };
        let numbers: Vec<i64> = table.numbers("n");
        assert!(numbers.iter().copied().eq(first..first + 1000));
        for row in &table.rows {
            let cell = |name: &str| row[table.column(name)].as_str();
            let n: i64 = cell("n").parse().unwrap();
            assert_eq!(cell("d"), (-n << 33).to_string());
            assert_eq!(cell("h"), (!(n as u64)).to_string());
            assert_eq!(cell("name"), format!("no {}", n % 1000));
            assert_eq!(cell("color"), ["RED", "GREEN", "BLUE"][n as usize % 3]);
            assert_eq!(cell("pair_1"), (-n).to_string());
            let time = |name: &str| cell(name).parse::<i64>().unwrap();
            assert!(time("work_start") <= time("work_end"));
            // Stamps of the counter and of the clock, in the same frame.
            assert!(time("wall").abs_diff(time("work_end")) < 1_000_000_000, "{row:?}");
        }
        assert_eq!(bench.table(capture, &["--frame", "tick"]).rows.len(), 1000);
    }
    target.finish();
}

#[test]
fn a_program_of_abi_1() {
    program_of_abi_1("sysv");
}

#[test]
fn a_program_of_abi_1_that_makes_its_segment() {
    program_of_abi_1("memfd");
}

#[test]
fn a_capture_of_format_1() {
    let bench = Bench::new();
    let capture = frozen("format1.bin");
    let capture = capture.to_str().unwrap();
    for (args, table) in [(&["dump"][..], "format1.tsv"), (&["dump", "--gaps"], "format1.gaps.tsv")]
    {
        let ran = bench.ppt(&[args, &[capture]].concat());
        assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
        assert_eq!(ran.stdout, fs::read_to_string(frozen(table)).unwrap());
    }
    let then: Value = serde_json::from_slice(&fs::read(frozen("format1.json")).unwrap()).unwrap();
    holds(&bench.info(capture), &then, "account");
}

/// The first release reads current captures completely.
#[test]
fn a_capture_of_today_in_the_first_release() {
    let bench = Bench::new();
    let Some(released) = released::ppt(&bench) else { return };
    let written = root().join("dump/tests/golden/written.bin");
    let out = bench.command(released).arg("dump").arg(&written).output().unwrap();
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(0), ""));
    // That release shows each time by its own clock.
    let now = bench.ppt(&["dump", "--time", "own", written.to_str().unwrap()]);
    assert_eq!((text(&out.stdout), now.code()), (now.stdout, 0));
}

/// Whether `now` contains everything in `then`.
fn holds(now: &Value, then: &Value, at: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, then) in then {
                holds(now.get(key).unwrap_or(&Value::Null), then, &format!("{at}.{key}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{at}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                holds(now, then, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{at}"),
    }
}

/// A target with another monotonic clock than ours.
fn in_a_time_namespace(clock: &str) {
    let bench = Bench::new();
    copy_program(frozen("abi1-x86_64"), bench.path("abi1"));
    let enter = ["--time", "--monotonic", "100000", "--boottime", "100000", "--fork"];
    let possible = bench.command("unshare").args(enter).arg("true").output();
    if !cfg!(target_arch = "x86_64") || !possible.is_ok_and(|possible| possible.status.success()) {
        eprintln!("skipped: no time namespace can be made here");
        return;
    }
    let mut command = bench.command("unshare");
    command.args(enter).arg("--kill-child").arg(bench.path("abi1"));
    let mut target = Target::start(command);
    let unshare = target.pid();
    let children = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
    let mut command = bench.command(ppt());
    command.args(["attach", children.trim(), "--clock", clock, "--slots", "4096"]);
    let attach = Attach::start(command);
    target.say("1000");
    let written = target.written();
    attach.stop();
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    let table = bench.table("out.bin", &["--frame", "all"]);
    let times = table.numbers("work_start").into_iter().zip(table.numbers("work_end"));
    for ((start, end), wall) in times.zip(table.numbers("wall")) {
        // Recorded between the two, within the error of the conversion.
        assert!(start - 1_000_000 <= wall && wall <= end + 1_000_000, "{start} {wall} {end}");
    }
    assert_eq!(table.rows.len(), 1000);
    target.finish();
}

#[test]
fn in_a_time_namespace_by_ticks() {
    in_a_time_namespace("auto");
}

#[test]
fn in_a_time_namespace_by_the_monotonic_clock() {
    in_a_time_namespace("monotonic");
}
