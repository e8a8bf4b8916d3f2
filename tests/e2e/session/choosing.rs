//! `--where`: the selected frames are in the capture, and all others are counted.

use std::fs;

use crate::fixtures::explained::explained;
use crate::fixtures::flood::{self, frames, gaps};
use crate::fixtures::ledger::{Ledger, captures};
use crate::fixtures::released;
use crate::fixtures::support::{Account, Bench, Kind, of_both_kinds, ppt, text, wait_until};

of_both_kinds! {
    what_is_not_wanted_is_counted
    a_session_goes_on_after_one_that_was_killed
}

fn what_is_not_wanted_is_counted(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["4", "3000"]);
    let wanted = "thread IN (1, 3) AND n NOT BETWEEN 100 AND 200";
    let attach = bench.attach(&target, &["--where", wanted]);
    let written = target.run();
    let said = attach.stop();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    let rows = frames(&bench, "out.bin");
    let numbers = |thread| rows.iter().filter(move |row| row.thread == thread).map(|row| row.n);
    let all: Vec<u64> = (0..3000).filter(|number| !(100..=200).contains(number)).collect();
    for (thread, expected) in [(0, &[][..]), (1, &all), (2, &[]), (3, &all)] {
        assert_eq!(numbers(thread).collect::<Vec<_>>(), expected, "{thread}");
    }
    let left_out = 12_000 - 2 * all.len() as u64;
    assert_eq!((account.lost, account.left_out), (0, left_out));
    assert_eq!(info["buffers"][0]["left_out"], left_out);
    assert_eq!(info["mismatches"], 0);
    assert!(said.contains("/s), left out 6,202, lost 0, dropped 0; out.bin"), "{said}");
    let gaps = gaps(&bench, "out.bin");
    assert!(gaps.iter().all(|it| it.3 == "left_out"), "{gaps:?}");
    assert_eq!(gaps.iter().map(|it| it.2).sum::<u64>(), left_out);
    let told = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(told.contains("\nleft out  6202 (--where)\n"), "{told}");

    // A ppt of an earlier version shows the captured frames, and reports no fault.
    let Some(released) = released::ppt(&bench) else { return };
    let run = |args: &[&str]| {
        let ran = bench.command(&released).args(args).output().unwrap();
        assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
        text(&ran.stdout)
    };
    assert_eq!(run(&["dump", "out.bin"]), bench.ppt(&["dump", "out.bin"]).stdout);
    let info: serde_json::Value =
        serde_json::from_str(&run(&["info", "--json", "out.bin"])).unwrap();
    let said =
        ["frames", "lost", "unattended"].map(|text| info["buffers"][0][text].as_u64().unwrap());
    assert_eq!(said, [account.captured, 0, left_out]);
    assert_eq!((&info["mismatches"], &info["damages"]), (&0.into(), &0.into()));
}

/// About every second frame, in many files of bounded size.
#[test]
fn in_many_files() {
    let ledger = rotated("a < 9223372036854775808", "1M", 6);
    assert!(ledger.captured > 0 && ledger.left_out > 0, "{ledger:?}");
}

/// A file that only states left-out frames also reaches its time limit.
#[test]
fn nothing_is_wanted_in_many_files() {
    let ledger = rotated("n < 0", "1s", 3);
    assert!(ledger.captured == 0 && ledger.left_out > 0, "{ledger:?}");
}

/// Captures selected frames in at least this many files, and checks each.
fn rotated(wanted: &str, rotate: &str, files: usize) -> Ledger {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "4");
    let args = ["--where", wanted, "--rotate", rotate, "--slots", "1024"];
    let attach = bench.attach(&target, &args);
    wait_until("there are so many files", || captures(&bench, "out").len() >= files);
    target.say("stop");
    let written = target.written();
    flood::published(&target);
    attach.stop();
    let mut ledger = Ledger::default();
    for name in captures(&bench, "out") {
        let info = ledger.take(&bench, &name);
        assert_eq!((&info["complete"], &info["mismatches"]), (&true.into(), &0.into()), "{name}");
        if rotate == "1M" {
            assert!(fs::metadata(bench.path(&name)).unwrap().len() <= 1 << 20, "{name}");
        }
        let count = |args: &[&str]| bench.table(&name, args).rows.len();
        assert_eq!(count(&["--where", wanted]), count(&[]), "{name}");
    }
    assert_eq!(ledger.total(), written, "{ledger:?}");
    ledger
}

#[test]
fn in_a_file_that_is_full() {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "4");
    let args = ["--where", "a < 9223372036854775808", "--max-size", "1M", "--slots", "1024"];
    let stderr = bench.attach(&target, &args).ended(0);
    target.say("stop");
    target.written();
    let published = flood::published(&target);
    assert!(stderr.contains("the capture has its full size"), "{stderr}");
    assert!(fs::metadata(bench.path("out.bin")).unwrap().len() <= 1 << 20);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!((&info["complete"], &info["mismatches"]), (&true.into(), &0.into()));
    assert!(account.captured > 0 && account.left_out > 0, "{account:?}");
    // The frames written after the session.
    bench.attach(&target, &["-o", "last.bin", "--slots", "1024"]).stop();
    let mut ledger = Ledger::default();
    ledger.take(&bench, "out.bin");
    ledger.take(&bench, "last.bin");
    assert_eq!(ledger.total(), published, "{ledger:?}");
}

fn a_session_goes_on_after_one_that_was_killed(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "4");
    let mut ledger = Ledger::default();
    for (capture, wanted) in [("1.bin", "thread = 2"), ("2.bin", "n < 0"), ("3.bin", "n >= 0")] {
        let args = ["--where", wanted, "-o", capture, "--slots", "1024"];
        let attach = bench.attach(&target, &args);
        wait_until("it has some", || fs::metadata(bench.path(capture)).unwrap().len() > 8192);
        attach.kill();
        ledger.take(&bench, capture);
    }
    target.say("stop");
    target.written();
    let published = flood::published(&target);
    bench.attach(&target, &["-o", "last.bin", "--slots", "1024"]).stop();
    ledger.take(&bench, "last.bin");
    assert_eq!(ledger.total(), published, "{ledger:?}");
    assert!(ledger.left_out > 0, "{ledger:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "100"]);
    let pid = target.pid().to_string();
    for (wanted, said) in [
        (
            "treads = 1",
            "ppt: --where: no field is called `treads`
  ╭─[ --where:1:1 ]",
        ),
        ("n = 'x'", "ppt: --where: `n` is a whole number, and cannot be compared with text"),
        ("n >", "ppt: --where: expected a field or a value, found the end"),
        ("n > 10ms", "ppt: --where: `n` is a whole number"),
        ("", "ppt: --where: expected "),
    ] {
        for command in ["attach", "run"] {
            let of_run = ["run", "--where", wanted, "--", "false"];
            let args =
                if command == "run" { &of_run[..] } else { &["attach", &pid, "--where", wanted] };
            let ran = bench.ppt(args);
            // The fields of a command are unknown before it runs.
            if command == "run" && !said.contains("expected") {
                assert_eq!(ran.code(), 1, "{wanted}: {}", ran.stderr);
                continue;
            }
            assert_eq!(
                ran.code(),
                if command == "run" { 125 } else { 2 },
                "{wanted}: {}",
                ran.stderr
            );
            let plain = anstream::adapter::strip_str(&ran.stderr).to_string();
            assert!(plain.starts_with(said.lines().next().unwrap()), "{wanted}: {plain}");
            assert!(plain.contains("more: ppt explain where"), "{plain}");
            assert!(!bench.path("out.bin").exists());
        }
    }
    assert_eq!(target.run(), 0, "nobody attached");
}

/// A command whose frames do not match the expression is captured completely, so that a mistake
/// loses nothing.
#[test]
fn a_command_that_the_expression_does_not_fit() {
    let bench = crate::fixtures::first::build();
    let ran = bench.ppt(&["run", "--where", "treads = 1", "--", "./first_main"]);
    let written = crate::fixtures::first::written(&ran.stdout);
    let info = bench.info("out.bin");
    assert_eq!(Account::of(&info), Account { captured: written, ..Account::default() });
    let stderr = explained(&ran.stderr);
    let expected = "flood: all frames are captured, because --where cannot be held against them: no \
                    field is called `treads`";
    assert!(stderr.contains(expected), "{stderr}");
    let ran = bench.ppt(&["run", "--force", "--where", "thread <> 0", "--", "./first_main"]);
    let account = Account::of(&bench.info("out.bin"));
    account.check(crate::fixtures::first::written(&ran.stdout));
    assert!(account.left_out > 0, "{account:?}");
}

/// ppt's own frames are recognised by their source, not by a name that any program may use.
#[test]
fn a_buffer_that_is_called_kernel_is_filtered() {
    let bench = Bench::new();
    bench.write("mine.frame", "buffer kernel 1024; frame event { u32 v; }");
    bench.write(
        "mine_main.c",
        r#"#include "mine.h"
int main(void) {
    for (unsigned n = 0; n < 100; n++)
        PPT_WRITE_EVENT(f) f.v = n;
    return 0;
}
"#,
    );
    bench.pptc(&["mine.frame"]);
    bench.cc(&["mine_main.c", "mine.c", "-o", "mine", "-pthread"]);
    bench.ppt(&["run", "--where", "v < 10", "--", "./mine"]);
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, account.left_out), (10, 90), "{account:?}");
}

/// Durations in ticks are known from the first frame on.
#[test]
fn ticks() {
    let bench = Bench::new();
    bench.write("wait.frame", "option time tsc; frame wait { interval time handle; u64 n; }");
    bench.write(
        "wait_main.c",
        r#"#include "wait.h"
#include <stdio.h>
#include <time.h>
int main(void) {
    for (unsigned n = 0; n < 200; n++)
        PPT_WRITE_WAIT(f) {
            f.n = n;
            f.handle_start = ppt_wait_now();
            if (n % 10 == 0)
                nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, 0);
            f.handle_end = ppt_wait_now();
        }
    return 0;
}
"#,
    );
    bench.pptc(&["wait.frame"]);
    bench.cc(&["-D_GNU_SOURCE", "wait_main.c", "wait.c", "-o", "wait"]);
    let mut command = bench.command(ppt());
    command.args(["run", "-q", "--where", "handle >= 1ms", "--", "./wait"]);
    assert!(command.status().unwrap().success());
    let account = Account::of(&bench.info("out.bin"));
    account.check(200);
    let table = bench.table("out.bin", &[]);
    let slow = table.numbers("n").iter().filter(|&&n| n % 10 == 0).count();
    assert_eq!(slow, 20, "each that slept is there");
    // The clock readings of the whole capture may give a time that differs by a nanosecond.
    assert_eq!(bench.table("out.bin", &["--where", "handle > 900us"]).rows.len(), table.rows.len());
}
