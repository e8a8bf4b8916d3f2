//! `option time tsc`: the time in a table lies between the values of CLOCK_REALTIME before and
//! after each stamp, within the error that `ppt info` states. Tested with the CPU's counter, with
//! one that is transformed and jumps, and with an untrusted counter.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ppt_agent::{AgentError, ClockChoice, Distrust, News, Session, StampClock, System, UserLimits};
use ppt_listener::{EndReason, Feed, Listener};
use serde_json::Value;

use crate::fixtures::support::{Account, Bench, Target, available, wait_until};

/// Compiles `truth_main.c` as C or C++; `flags` choose its counter.
fn build(bench: &Bench, cpp: bool, flags: &[&str]) {
    bench.copy_all(&["truth.frame", "truth_main.c", "truth_ticks.h"]);
    if cpp {
        bench.pptc(&["--emit", "cpp", "truth.frame"]);
        let args = ["-x", "c++", "-std=c++17", "truth.cpp", "truth_main.c", "-o", "truth"];
        bench.compile("g++", &[flags, &args].concat());
    } else {
        bench.pptc(&["truth.frame"]);
        bench.cc(&[flags, &["truth.c", "truth_main.c", "-o", "truth"]].concat());
    }
}

const TRANSFORMED: [&str; 3] = ["-DPPT_TICKS=truth_ticks", "-include", "truth_ticks.h"];

/// The raw counter and CLOCK_REALTIME may be read by different CPUs: the counter's own resolution.
const RESOLUTION_NS: i64 = if cfg!(target_arch = "x86_64") { 1 } else { 100 };

fn error_of(info: &Value, clock: &str) -> i64 {
    assert_eq!(info["buffers"][0]["clock"], clock, "{info}");
    assert_eq!(info["clock"]["target"], clock);
    let key = if clock == "tick" { "tick_error_ns" } else { "monotonic_error_ns" };
    let error = info["clock"][key].as_i64().unwrap_or_else(|| panic!("{}", info["clock"]));
    error + RESOLUTION_NS
}

/// Checks that every stamp of `times` frames of each form is in its interval. Returns the number of
/// frames.
fn check(bench: &Bench, capture: &str, times: u64, error: i64) {
    let mut stamps = 0;
    for (frame, columns) in [
        ("block", &[("when", "before", "after")][..]),
        ("macros", &[("when", "before", "after")]),
        (
            "scoped",
            &[
                ("work_start", "start_before", "start_after"),
                ("work_end", "end_before", "end_after"),
                ("real", "start_after", "end_before"),
            ],
        ),
    ] {
        let table = bench.table(capture, &["--frame", frame]);
        for (time, before, after) in columns {
            let bounds = table.numbers(before).into_iter().zip(table.numbers(after));
            for (row, (time, (before, after))) in table.numbers(time).iter().zip(bounds).enumerate()
            {
                stamps += 1;
                assert!(before > 0 && before - error <= *time, "{frame} {row}: {time} {before}");
                assert!(after == 0 || *time <= after + error, "{frame} {row}: {time} {after}");
            }
        }
        if frame == "macros" && !table.rows.is_empty() {
            assert!(table.cells("never").iter().all(|cell| cell.is_empty()), "not taken");
        }
        if frame == "scoped" {
            let mono = table.numbers("mono");
            assert!(mono.windows(2).all(|it| it[0] < it[1]), "{mono:?}");
        }
    }
    let info = bench.info(capture);
    assert_eq!(info["clock"]["steps"], Value::Array(vec![]), "realtime was stepped meanwhile");
    assert!(stamps >= 4 * times, "{stamps}");
}

fn go(target: &mut Target, times: u64) -> u64 {
    target.say(&format!("go {times}"));
    target.written()
}

/// The normal `ppt`, and a target that reads the counter unchanged.
fn as_it_is(bench: &Bench, mut target: Target) {
    for (capture, args, clock) in [
        ("t.bin", &["-v", "-o", "t.bin"][..], "tick"),
        ("m.bin", &["--clock", "monotonic", "-v", "-o", "m.bin"], "monotonic"),
    ] {
        let attach = bench.attach(&target, args);
        go(&mut target, 150);
        let stderr = attach.stop();
        let info = bench.info(capture);
        let said_so = if clock == "tick" { "truth: stamps are ticks" } else { "as requested" };
        if clock == "tick" && info["buffers"][0]["clock"] == "monotonic" {
            eprintln!("skipped: ticks cannot be trusted here");
            check(bench, capture, 150, error_of(&info, "monotonic"));
            continue;
        }
        assert!(stderr.contains(said_so), "{stderr}");
        Account::of(&info).check(info["buffers"][0]["frames"].as_u64().unwrap());
        check(bench, capture, 150, error_of(&info, clock));
        let text = bench.ppt(&["info", capture]).stdout;
        assert!(text.contains("of CLOCK_REALTIME") && text.contains("stamps "), "{text}");
    }
    target.finish();
}

#[test]
fn c() {
    let bench = Bench::new();
    build(&bench, false, &[]);
    as_it_is(&bench, bench.start("truth", &[]));
}

#[test]
fn cpp() {
    if available("g++") {
        let bench = Bench::new();
        build(&bench, true, &[]);
        as_it_is(&bench, bench.start("truth", &[]));
    }
}

#[test]
fn rust() {
    let bench = Bench::new();
    let program = crate::fixtures::rust::program("truth");
    as_it_is(&bench, Target::start(bench.command(program)));
}

/// Agent and listener in this process, with a counter and a system of the test.
struct Inside {
    session: Session,
    listener: Listener,
}

impl Inside {
    fn attach(bench: &Bench, target: &Target, system: &System, ticks: fn() -> u64) -> Self {
        let session = open(target, system, ClockChoice::Auto).unwrap();
        let attached = &session.attached()[0];
        let feed = Feed {
            first: attached.first.clone(),
            source: ppt_listener::Source {
                schema_json: attached.buffer.schema_json.clone(),
                schema_hash: attached.buffer.schema_hash,
                buffer: attached.buffer.schema.buffer.clone(),
                clock: attached.clock.as_ref().unwrap().name().into(),
                ..Default::default()
            },
            ..Feed::starting_now(Default::default(), attached.segment.clone())
        };
        let options = ppt_listener::ListenerOptions { ticks, ..Default::default() };
        let out = File::create(bench.path("out.bin")).unwrap();
        let header = ppt_listener::header("a test");
        let listener = Listener::start(out, header, vec![feed], options).unwrap();
        Self { session, listener }
    }

    fn stop(mut self) {
        self.session.gate_off();
        let summary =
            self.listener.finish(EndReason::Stopped, String::new(), vec![Default::default()]);
        assert!(summary.error.is_none() && summary.lost().total() == 0);
        self.session.close();
    }
}

fn open(target: &Target, system: &System, clock: ClockChoice) -> Result<Session, AgentError> {
    let target = ppt_agent::Target::open(system, target.pid() as i32)?;
    let buffers = target.buffers()?.buffers;
    let options = ppt_agent::AttachOptions {
        limits: UserLimits { memory: Some(16 << 20), ..UserLimits::default() },
        clock,
        ..Default::default()
    };
    Session::attach(target, buffers, &options)
}

/// A system whose CPU and kernel trust the counter, regardless of this machine; and the file that
/// states it.
fn trusting(bench: &Bench) -> (System, PathBuf) {
    let place = bench.path("sys/devices/system/clocksource/clocksource0");
    fs::create_dir_all(&place).unwrap();
    let clocksource = place.join("current_clocksource");
    fs::write(&clocksource, "tsc\n").unwrap();
    let counter = || ppt_agent::CpuCounter { invariant: true, now: 1 << 60 };
    (System { sys: bench.path("sys"), counter, ..System::default() }, clocksource)
}

/// The CPU's counter, read after all earlier instructions.
fn raw() -> u64 {
    (ppt_listener::ListenerOptions::default().ticks)()
}

/// `truth_ticks.h` in Rust, without the jump.
fn transformed() -> u64 {
    let raw = raw();
    (1 << 60) + raw + (raw >> 12)
}

fn transformed_target(target: Target, bench: &Bench) {
    let mut target = target;
    let (system, _) = trusting(bench);
    let inside = Inside::attach(bench, &target, &system, transformed);
    assert_eq!(inside.session.attached()[0].clock, Some(StampClock::Ticks));
    go(&mut target, 150);
    inside.stop();
    target.finish();
    let info = bench.info("out.bin");
    check(bench, "out.bin", 150, error_of(&info, "tick"));
    assert_eq!(info["clock"]["tick_steps"], Value::Array(vec![]));
}

#[test]
fn c_with_another_counter() {
    let bench = Bench::new();
    build(&bench, false, &TRANSFORMED);
    transformed_target(bench.start("truth", &[]), &bench);
}

#[test]
fn cpp_with_another_counter() {
    if available("g++") {
        let bench = Bench::new();
        build(&bench, true, &TRANSFORMED);
        transformed_target(bench.start("truth", &[]), &bench);
    }
}

#[test]
fn rust_with_another_counter() {
    let bench = Bench::new();
    let program = crate::fixtures::rust::program_with("truth", "--cfg ppt_ticks");
    transformed_target(Target::start(bench.command(program)), &bench);
}

/// The same transformation as in the target, for the listener of one test: ahead.
mod ahead {
    use super::*;
    pub static AT: AtomicU64 = AtomicU64::new(u64::MAX);
    pub const BY: u64 = 1 << 40;

    pub fn ticks() -> u64 {
        super::jumping(&AT, BY)
    }
}

/// For another test: back, so that ticks repeat.
mod behind {
    use super::*;
    pub static AT: AtomicU64 = AtomicU64::new(u64::MAX);
    pub const BY: u64 = 0u64.wrapping_sub(1 << 40);

    pub fn ticks() -> u64 {
        super::jumping(&AT, BY)
    }
}

fn jumping(at: &AtomicU64, by: u64) -> u64 {
    let raw = raw();
    let shown = (1 << 60) + raw + (raw >> 12);
    if raw < at.load(Relaxed) { shown } else { shown.wrapping_add(by) }
}

fn jump(at: &AtomicU64, by: u64, ticks: fn() -> u64) {
    let bench = Bench::new();
    build(&bench, false, &TRANSFORMED);
    let mut target = bench.start("truth", &[]);
    let (system, _) = trusting(&bench);
    let inside = Inside::attach(&bench, &target, &system, ticks);
    let before = raw();
    go(&mut target, 150);
    // Wait as long again.
    let now = raw();
    let moment = now + (now - before);
    target.say(&format!("jump {moment} {by}"));
    target.stdout.wait_for("jump");
    at.store(moment, Relaxed);
    assert!(raw() < moment, "too slow to choose a moment");
    let mut times = 150;
    while raw() < moment + 4 * (now - before) || times < 1500 {
        times += 100;
        go(&mut target, 100);
    }
    inside.stop();
    target.finish();
    let info = bench.info("out.bin");
    let steps = info["clock"]["tick_steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{}", info["clock"]);
    assert_eq!(steps[0]["by_ns"].as_i64().unwrap() > 0, by.cast_signed() > 0, "{}", steps[0]);
    // Up to a second from the nearest reading, by the rate of the last few readings.
    check(&bench, "out.bin", times, error_of(&info, "tick") + 20_000);
    let text = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(text.contains("clock     ticks went "), "{text}");
}

#[test]
fn a_counter_that_jumps_ahead() {
    jump(&ahead::AT, ahead::BY, ahead::ticks);
}

#[test]
fn a_counter_that_jumps_back() {
    jump(&behind::AT, behind::BY, behind::ticks);
}

#[test]
fn where_ticks_cannot_be_trusted() {
    let bench = Bench::new();
    build(&bench, false, &TRANSFORMED);
    let mut target = bench.start("truth", &[]);
    let (system, clocksource) = trusting(&bench);
    fs::write(clocksource, "hpet\n").unwrap();
    let refused = open(&target, &system, ClockChoice::Ticks).unwrap_err().to_string();
    assert!(
        refused
            .contains("the CPU's counter cannot be trusted: the kernel uses `hpet` as its clock"),
        "{refused}"
    );
    let inside = Inside::attach(&bench, &target, &system, transformed);
    let clock = inside.session.attached()[0].clock.clone();
    assert!(matches!(clock, Some(StampClock::Distrusted(_))), "{clock:?}");
    go(&mut target, 50);
    inside.stop();
    target.finish();
    check(&bench, "out.bin", 50, error_of(&bench.info("out.bin"), "monotonic"));
}

/// Why ticks are no longer trusted, if that has changed.
fn given_up(news: Vec<News>) -> Option<Distrust> {
    news.into_iter().find_map(|news| match news {
        News::TicksGivenUp(why) => Some(why),
        _ => None,
    })
}

/// As if a kernel found the counters of two CPUs to differ.
#[test]
fn ticks_that_are_no_longer_trusted() {
    let bench = Bench::new();
    build(&bench, false, &TRANSFORMED);
    let mut target = bench.start("truth", &[]);
    let (system, clocksource) = trusting(&bench);
    let mut inside = Inside::attach(&bench, &target, &system, transformed);
    go(&mut target, 100);
    assert!(given_up(inside.session.advance(0)).is_none());
    fs::write(clocksource, "hpet\n").unwrap();
    // A recent check still counts.
    let mut why = None;
    wait_until("ticks are given up", || {
        why = given_up(inside.session.advance(0));
        why.is_some()
    });
    let why = why.unwrap();
    inside.listener.distrust_ticks();
    assert!(why.to_string().contains("hpet"), "{why}");
    assert!(given_up(inside.session.advance(0)).is_none(), "said once");
    go(&mut target, 100);
    inside.stop();
    target.finish();
    let info = bench.info("out.bin");
    check(&bench, "out.bin", 200, error_of(&info, "tick"));
    assert!(info["clock"]["ticks_distrusted_ns"].is_u64(), "{}", info["clock"]);
    let text = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(text.contains("the system stopped trusting ticks"), "{text}");
}

/// A tick stamp from one session, written in a later session with the monotonic clock.
#[test]
fn stamps_keep_their_meaning_from_session_to_session() {
    let bench = Bench::new();
    bench.write("kept.frame", "option time tsc;\nframe kept { time first, second; }\n");
    bench.write(
        "main.c",
        r#"#include "kept.h"
#include <stdio.h>
int main(void) {
    puts("ready");
    fflush(stdout);
    for (int c = getchar(); c != EOF; c = getchar()) {
        if (c == '1')
            WRITE_KEPT_FIRST_TIMESTAMP();
        if (c == '2') {
            WRITE_KEPT_SECOND_TIMESTAMP();
            ppt_write_kept_frame();
        }
        if (c == '\n') {
            puts("written 1");
            fflush(stdout);
        }
    }
    return 0;
}
"#,
    );
    bench.pptc(&["kept.frame"]);
    bench.cc(&["kept.c", "main.c", "-o", "kept"]);
    for clocks in [["tsc", "monotonic"], ["monotonic", "tsc"]] {
        let mut target = bench.start("kept", &[]);
        for (said, clock) in ["1", "2"].into_iter().zip(clocks) {
            let args = ["--clock", clock, "--force", "-o", "kept.bin"];
            let attach = bench.attach(&target, &args);
            target.say(said);
            target.written();
            attach.stop();
        }
        target.finish();
        let table = bench.table("kept.bin", &[]);
        let (first, second) = (table.numbers("first")[0], table.numbers("second")[0]);
        // Both are recent times, in order.
        assert!(first < second && second - first < 60_000_000_000, "{clocks:?}: {first} {second}");
    }
}
