//! `--metrics`: compares the numbers of a running capture with the later statements of the capture
//! and with the program's own counts.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixtures::flood;
use crate::fixtures::ledger::captures;
use crate::fixtures::scraped::{Scrape, Served};
use crate::fixtures::support::{Account, Bench, Kind, Target, of_both_kinds, wait_until};

of_both_kinds! {
    counters_and_histograms_are_those_of_the_capture_and_of_the_program
    scrapes_without_a_pause_lose_nothing
    rings_that_grow_keep_their_numbers
}

/// The program `sums`, which adds to counters and histograms.
pub fn sums() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["sums.frame", "sums_main.c"]);
    bench.pptc(&["sums.frame"]);
    bench.cc(&["sums.c", "sums_main.c", "-pthread", "-o", "sums"]);
    bench
}

/// Makes it add. Returns its own sums.
pub fn run(target: &mut Target) -> Value {
    target.say("go");
    serde_json::from_str(&target.stdout.wait_for("written ")).unwrap()
}

/// A scrape in which all these frames are accounted for.
fn settled(served: &Served, written: u64) -> Scrape {
    let what = format!("{written} frames are accounted for");
    served.scrape_until(&what, |scrape| scrape.count("ppt_frames_written_total", &[]) == written)
}

/// The account by metrics is that of the captures.
#[track_caller]
fn check_account(bench: &Bench, names: &[String], last: &Scrape) {
    let infos: Vec<Value> = names.iter().map(|name| bench.info(name)).collect();
    let buffers = || infos.iter().flat_map(|info| info["buffers"].as_array().unwrap());
    let number = |value: &Value| value.as_u64().unwrap();
    let sum =
        |list: &str, key: &str| buffers().map(|buffer| number(&buffer[list][key])).sum::<u64>();
    for cause in ["overrun", "disk", "corrupt"] {
        let lost = last.count("ppt_frames_lost_total", &[("cause", cause)]);
        assert_eq!(lost, sum("lost_by", cause), "{cause}");
    }
    let captured: u64 = buffers().map(|buffer| number(&buffer["frames"])).sum();
    assert_eq!(last.count("ppt_frames_captured_total", &[]), captured);
}

fn counters_and_histograms_are_those_of_the_capture_and_of_the_program(kind: Kind) {
    let bench = sums().of(kind);
    let mut target = bench.start("sums", &["4", "20000"]);
    // Adds before the session are not included.
    run(&mut target);
    let served = Served::attach(&bench, &target, &["--counters", "10ms"]);
    run(&mut target);
    let own = run(&mut target);
    let of = |name: &str| own[name].as_u64().unwrap();
    settled(&served, of("frames"));
    let observed = |scrape: &Scrape| scrape.count("ppt_sums_queue_bucket", &[("le", "+Inf")]);
    let last = served.scrape_until("counters are read", |scrape| {
        observed(scrape) == of("queue_count")
            && scrape.count("ppt_sums_ticks_total", &[]) == of("ticks")
    });

    assert_eq!(last.count("ppt_sums_bytes_total", &[]), of("bytes"));
    assert_eq!(last.count("ppt_sums_inflight", &[]), 0);
    assert_eq!(last.count("ppt_sums_queue_sum", &[]), of("queue_sum"));
    assert_eq!(last.count("ppt_sums_queue_count", &[]), of("queue_count"));
    assert_eq!(last.count("ppt_sums_queue_bucket", &[("le", "9.0")]), of("queue_below"));
    let below_1000 = last.count("ppt_sums_queue_bucket", &[("le", "999.0")]);
    assert_eq!(of("queue_count") - below_1000, of("queue_above"));
    let waits = last.count("ppt_sums_wait_seconds_bucket", &[("le", "+Inf")]);
    assert_eq!(waits, of("wait_count"));
    // The sum may have wrapped around: then it is omitted.
    let sum = of("wait_sum").cast_signed();
    let told: Vec<f64> = last.all("ppt_sums_wait_seconds_sum", &[]).map(|entry| entry.1).collect();
    let expected: Vec<f64> = (sum >= 0).then_some(sum as f64 / 1e9).into_iter().collect();
    assert_eq!(told, expected);

    last.check_by_prometheus();
    let pid = target.pid().to_string();
    let labels =
        [("pid", pid.as_str()), ("program", "sums"), ("buffer", "sums"), ("frame", "beat")];
    assert!(last.count("ppt_frames_captured_total", &labels) > 0);
    served.attach.stop();
    check_account(&bench, &["out.bin".into()], &last);
    let info = bench.info("out.bin");
    let histograms = info["buffers"][0]["histograms"].as_array().unwrap();
    let queue = histograms.iter().find(|histogram| histogram["name"] == "queue").unwrap();
    assert_eq!(queue["count"], of("queue_count"));
    target.finish();
}

/// Threads add to rows of two segments, and their adds move from one to the other.
fn rings_that_grow_keep_their_numbers(kind: Kind) {
    let bench = sums().of(kind);
    let mut target = bench.start("sums", &["4", "50000"]);
    let served = Served::attach(&bench, &target, &["--slots", "auto", "--counters", "10ms"]);
    run(&mut target);
    served.attach.stderr.wait_for("ppt: rings of sums grew from ");
    run(&mut target);
    let own = run(&mut target);
    let of = |name: &str| own[name].as_u64().unwrap();
    // Counters are read more often than rings are drained.
    let last = served.scrape_until("counters are read, and frames are drained", |scrape| {
        scrape.count("ppt_sums_queue_bucket", &[("le", "+Inf")]) == of("queue_count")
            && scrape.count("ppt_sums_ticks_total", &[]) == of("ticks")
            && scrape.count("ppt_frames_captured_total", &[]) > 0
    });
    assert_eq!(last.count("ppt_sums_bytes_total", &[]), of("bytes"));
    assert_eq!(last.count("ppt_sums_queue_sum", &[]), of("queue_sum"));
    served.attach.stop();
    let account = Account::of(&bench.info("out.bin"));
    // The last frames may have been on their way at the last scrape.
    assert!(last.count("ppt_frames_captured_total", &[]) <= account.captured);
    target.finish();
}

/// A program at full speed and a scrape every 10 ms: the account is exact, and no monotonic number
/// decreases.
fn scrapes_without_a_pause_lose_nothing(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "2");
    let served = Served::attach(&bench, &target, &[]);
    let (mut before, began) = (BTreeMap::new(), Instant::now());
    let mut scrapes = 0;
    while began.elapsed() < Duration::from_secs(3) {
        let scrape = served.scrape();
        for name in
            ["ppt_frames_written_total", "ppt_frames_captured_total", "ppt_frames_lost_total"]
        {
            for (labels, value) in scrape.all(name, &[]) {
                let last = before.insert((name, labels.clone()), value).unwrap_or_default();
                assert!(value >= last, "{name} {labels:?}: {value} after {last}");
            }
        }
        let parts = ["captured", "lost", "dropped", "left_out"];
        let parts = parts.map(|part| scrape.count(&format!("ppt_frames_{part}_total"), &[]));
        let written = scrape.count("ppt_frames_written_total", &[]);
        assert_eq!(parts.iter().sum::<u64>(), written, "each scrape adds up");
        for name in ["ppt_ring_fill_max_ratio", "ppt_ring_fill_mean_ratio"] {
            assert!((0.0..=1.0).contains(&scrape.sum(name, &[])), "{}", scrape.text);
        }
        scrapes += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(scrapes > 20, "{scrapes}");
    target.say("stop");
    let written = target.written();
    // Unattended frames need no check: this is the first session, and it began late.
    let last = served.scrape_until("nothing waits", |scrape| {
        scrape.count("ppt_session_waiting_frames", &[]) == 0
            && scrape.count("ppt_frames_written_total", &[]) == written
    });
    assert!(last.sum("ppt_ring_fill_peak_ratio", &[]) > 0.0);
    let drained = last.count("ppt_session_drained_frames_total", &[]);
    assert_eq!(drained, last.count("ppt_frames_captured_total", &[]));
    served.attach.stop();
    check_account(&bench, &["out.bin".into()], &last);
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

/// Three kinds of frames, in rows of different lengths.
const KINDS: &str = r#"
#include "kinds.h"
#include <stdio.h>
int main(void) {
    char line[8];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (unsigned i = 0; i < 3000; i++) {
            if (i % 7 == 0) {
                PPT_WRITE_RARE(f) f.n = i;
            } else if (i < 1000) {
                PPT_WRITE_EARLY(f) f.n = i;
            } else {
                PPT_WRITE_LATE(f) f.n = i;
            }
        }
        puts("written 3000");
        fflush(stdout);
    }
    return 0;
}
"#;

#[test]
fn each_kind_of_frame_is_counted() {
    let bench = Bench::new();
    bench.write(
        "kinds.frame",
        "frame early { u64 n; }\nframe rare { u64 n; }\nframe late { u64 n; }\n",
    );
    bench.pptc(&["kinds.frame"]);
    bench.write("main.c", KINDS);
    bench.cc(&["main.c", "kinds.c", "-o", "main"]);
    let mut target = bench.start("main", &[]);
    let served = Served::attach(&bench, &target, &[]);
    target.run();
    let last = settled(&served, target.run() * 2);
    served.attach.stop();
    for (kind, count) in [("early", 2 * 857), ("rare", 2 * 429), ("late", 2 * 1714)] {
        assert_eq!(last.count("ppt_frames_captured_total", &[("frame", kind)]), count, "{kind}");
        let table = bench.table("out.bin", &["--frame", kind]);
        assert_eq!(table.rows.len() as u64, count, "{kind}");
    }
    check_account(&bench, &["out.bin".into()], &last);
    target.finish();
}

#[test]
fn files_that_follow_each_other_are_one_session() {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "4");
    let served = Served::attach(&bench, &target, &["--rotate", "1M", "--slots", "1024"]);
    wait_until("there are four files", || captures(&bench, "out").len() >= 4);
    target.say("stop");
    let last = settled(&served, target.written());
    served.attach.stop();
    check_account(&bench, &captures(&bench, "out"), &last);
    target.finish();
}

#[test]
fn a_flight_recorder_counts_what_it_has_seen() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["4", "3000"]);
    let served = Served::attach(&bench, &target, &["--flight", "60s", "-o", "flight"]);
    let written = target.run();
    let last = settled(&served, written);
    assert_eq!(last.count("ppt_frames_captured_total", &[("frame", "beat")]), written);
    assert_eq!(last.count("ppt_session_info", &[("mode", "flight")]), 1);
    assert_eq!(last.all("ppt_session_capture_bytes_total", &[]).count(), 0, "it writes no file");
    let stderr = served.attach.stop();
    assert!(stderr.contains("ppt: recorded 12,000 frames in "), "{stderr}");
    target.finish();
}

#[test]
fn frames_that_nobody_wants_are_counted() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "3000"]);
    let served = Served::attach(&bench, &target, &["--where", "n < 1000"]);
    let last = settled(&served, target.run());
    served.attach.stop();
    check_account(&bench, &["out.bin".into()], &last);
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(last.count("ppt_frames_left_out_total", &[]), account.left_out);
    assert_eq!((account.captured, account.left_out), (1000, 2000));
    target.finish();
}

/// Two programs of one command, one of which ends: its last numbers stay, and those of the other
/// change.
#[test]
fn a_program_that_ends_leaves_its_numbers() {
    let bench = sums();
    for name in ["first", "second"] {
        let made = bench.command("mkfifo").arg(name).status().unwrap();
        assert!(made.success());
    }
    let script = "./sums 1 1000 < first & ./sums 2 700 < second & wait";
    let mut command = bench.command(crate::fixtures::support::ppt());
    command.args([
        "run",
        "--metrics",
        "127.0.0.1:0",
        "--counters",
        "10ms",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let served = Served::start(command);
    let pipe = |name: &str| fs::OpenOptions::new().write(true).open(bench.path(name)).unwrap();
    let (mut first, mut second) = (pipe("first"), pipe("second"));
    use std::io::Write;
    first.write_all(b"go\n").unwrap();
    second.write_all(b"go\n").unwrap();
    let values = |scrape: &Scrape| {
        let all = scrape.all("ppt_sums_queue_bucket", &[("le", "+Inf")]);
        let mut values: Vec<u64> = all.map(|entry| entry.1 as u64).collect();
        values.sort_unstable();
        values
    };
    // The two numbers are not stated at the same moment.
    let are_captured = |scrape: &Scrape, expected: u64| {
        ["ppt_buffer_attached", "ppt_session_processes"]
            .iter()
            .all(|name| scrape.count(name, &[]) == expected)
    };
    let both = served.scrape_until("both have added", |scrape| {
        values(scrape) == [1000, 1400] && are_captured(scrape, 2)
    });
    both.check_by_prometheus();
    drop(first);
    let one = served.scrape_until("one has ended", |scrape| are_captured(scrape, 1));
    assert_eq!(one.all("ppt_buffer_attached", &[]).count(), 2);
    second.write_all(b"go\n").unwrap();
    served.scrape_until("the other goes on", |scrape| values(scrape) == [1000, 2800]);
    settled(&served, 1000 + 2800);
    drop(second);
    served.attach.ended(0);
    let account = Account::of(&bench.info("out.bin"));
    account.check(1000 + 2800);
}
