//! The flight recorder: windows around triggers, in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::fixtures::busy::Busy;
use crate::fixtures::explained::explained;
use crate::fixtures::flood::{self, Beat, frames};
use crate::fixtures::released;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, PATIENCE, Target, fetched, of_both_kinds, ppt, text, wait_until,
};
use crate::session::account::SmallDisk;

of_both_kinds! {
    a_frame_triggers
    every_frame_of_many_windows_is_there
    the_target_is_killed
}

/// The windows of the folder `flight`, as paths, first to last.
fn windows(bench: &Bench) -> Vec<String> {
    if bench.path("flight").exists() {
        bench.names("flight").into_iter().map(|name| format!("flight/{name}")).collect()
    } else {
        Vec::new()
    }
}

fn wait_for(bench: &Bench, count: usize) -> Vec<String> {
    wait_until("there are so many windows", || windows(bench).len() >= count);
    windows(bench)
}

/// Checks that a window is a complete capture, which accounts for all frames and states the
/// triggers.
fn check(bench: &Bench, window: &str) -> (Value, Account, Vec<Beat>) {
    let info = bench.info(window);
    assert_eq!((&info["complete"], &info["mismatches"]), (&true.into(), &0.into()), "{window}");
    assert_eq!(info["damages"], 0);
    let account = Account::of(&info);
    let beats = frames(bench, window);
    assert_eq!(beats.len() as u64, account.captured);
    // A thread has a ring for its whole life, and numbers its frames like its ring.
    let mut rings = BTreeMap::new();
    for beat in &beats {
        let offset = beat.n.wrapping_sub(beat.seqno);
        assert_eq!(*rings.entry((beat.segment, beat.ring)).or_insert(offset), offset, "{beat:?}");
    }
    assert!(!info["triggers"].as_array().unwrap().is_empty());
    (info, account, beats)
}

fn attach(bench: &Bench, target: &Target, args: &[&str]) -> Attach {
    bench.attach(target, &[&["--flight", "60s", "-o", "flight"], args].concat())
}

#[track_caller]
fn trigger(bench: &Bench, target: &Target, note: &str) {
    let ran = bench.ppt(&["trigger", &target.pid().to_string(), "--note", note]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
}

fn a_frame_triggers(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["4", "3000"]);
    let attach = attach(&bench, &target, &["--on", "n = 2999 AND thread = 3"]);
    target.run();
    let window = wait_for(&bench, 1).remove(0);
    target.run();
    let stderr = attach.stop();
    assert!(stderr.contains("ppt: recorded 24,000 frames in "), "{stderr}");
    assert!(stderr.contains("lost 0, dropped 0; 1 window in flight"), "{stderr}");
    assert_eq!(windows(&bench), [window.as_str()]);
    let name = window.strip_prefix("flight/").unwrap();
    assert!(name.starts_with(&format!("{}-20", target.pid())), "{name}");
    assert!(name.ends_with(".000001.bin"), "{name}");
    let (info, account, beats) = check(&bench, &window);
    assert_eq!((account.lost, account.dropped), (0, 0));
    let numbers: Vec<u64> =
        beats.iter().filter(|beat| beat.thread == 3).map(|beat| beat.n).collect();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>(), "all up to the frame");
    let triggers = info["triggers"].as_array().unwrap();
    let [value] = &triggers[..] else { panic!("{triggers:?}") };
    let beat = beats.iter().find(|beat| (beat.thread, beat.n) == (3, 2999)).unwrap();
    assert_eq!(
        (&value["why"], &value["expression"]),
        (&"on".into(), &"n = 2999 AND thread = 3".into())
    );
    assert_eq!((&value["ring"], &value["seqno"]), (&beat.ring.into(), &beat.seqno.into()));
    assert_eq!((&value["buffer"], &value["note"]), (&"flood".into(), &"".into()));
    let stdout = bench.ppt(&["info", &window]).stdout;
    assert!(stdout.contains("\nwindow    ") && stdout.contains("\ntrigger   on, "), "{stdout}");

    // A ppt of an earlier version without windows reads it like any capture.
    let Some(released) = released::ppt(&bench) else { return };
    let ran = bench.command(&released).args(["dump", &window]).output().unwrap();
    assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
    assert_eq!(text(&ran.stdout), bench.ppt(&["dump", &window]).stdout);
}

/// A target that never pauses, with windows by hand. A window states its missing frames.
fn every_frame_of_many_windows_is_there(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "2");
    let args = ["--before", "100ms", "--after", "20ms", "--memory-flight", "128M"];
    let attach = attach(&bench, &target, &args);
    // On a busy machine, the first frame may be late.
    let begun = Instant::now();
    let has_frames = |window: &String| Account::of(&bench.info(window)).captured > 0;
    let mut count = 0;
    while count < 6 || !windows(&bench).iter().any(has_frames) {
        assert!(begun.elapsed() < *PATIENCE, "no window has a frame");
        count += 1;
        trigger(&bench, &target, &format!("number {count}"));
        wait_for(&bench, count);
    }
    target.say("stop");
    target.written();
    let said = attach.stop();
    assert!(said.contains(&format!("; {count} windows in flight")), "{said}");
    for (number, window) in windows(&bench).iter().enumerate() {
        let (info, ..) = check(&bench, window);
        let triggers = info["triggers"].as_array().unwrap();
        let of = |key: &str| triggers[0][key].as_u64().unwrap();
        assert_eq!(triggers[0]["note"], format!("number {}", number + 1));
        assert_eq!(of("to_ns") - of("from_ns"), 120_000_000);
        // On a busy machine, memory may hold less than that.
        assert!(of("held_to_ns") <= of("to_ns") && of("from_ns") <= of("held_from_ns"));
    }
}

/// The last frames are captured, whatever ends the target.
fn the_target_is_killed(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["4", "3000"]);
    let attach = attach(&bench, &target, &["--on-exit"]);
    let written = target.run();
    if kind == Kind::Memfd {
        fetched(&attach, 1);
    }
    target.signal(libc::SIGKILL);
    target.wait();
    let stderr = attach.ended(0);
    assert!(stderr.contains("; 1 window in flight"), "{stderr}");
    let (info, account, _) = check(&bench, &windows(&bench)[0]);
    account.check(written);
    assert_eq!((account.lost, account.dropped), (0, 0));
    let value = &info["triggers"][0];
    let note = format!("process {} (flood) ended", target.pid());
    assert_eq!((&value["why"], &value["note"]), (&"exit".into(), &note.into()));
}

#[test]
fn a_command_is_recorded_from_its_first_frame() {
    let bench = crate::fixtures::first::build();
    let flight = ["--flight", "60s", "--on-exit", "-o", "flight", "--compress", "zstd"];
    let ran = bench.ppt(&[&["run"], &flight[..], &["--", "./first_main"]].concat());
    let written = crate::fixtures::first::written(&ran.stdout);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let account = Account::of(&bench.info(&windows(&bench)[0]));
    assert_eq!(account, Account { captured: written, ..Account::default() });
}

/// A window that is open at the end of the session ends with it.
#[test]
fn ctrl_c_writes_what_is_pending() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "1000"]);
    let attach = attach(&bench, &target, &["--after", "1h", "--on", "n = 10"]);
    let written = target.run();
    let stderr = attach.stop();
    assert!(stderr.contains("; 1 window in flight"), "{stderr}");
    let (_, account, _) = check(&bench, &windows(&bench)[0]);
    account.check(written);
    // Without a trigger, nothing is written.
    let attach = self::attach(&bench, &target, &[]);
    target.run();
    let stderr = attach.stop();
    assert!(stderr.contains("; no window was written"), "{stderr}");
    assert_eq!(windows(&bench).len(), 1);
}

#[test]
fn a_killed_ppt_leaves_whole_windows() {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "2");
    let attach = attach(&bench, &target, &["--before", "200ms"]);
    trigger(&bench, &target, "");
    wait_for(&bench, 1);
    // It may be anywhere in the second one.
    trigger(&bench, &target, "");
    attach.kill();
    for window in windows(&bench) {
        check(&bench, &window);
    }
    target.say("stop");
    target.written();
}

#[test]
fn the_last_windows_stay() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "100"]);
    let attach = attach(&bench, &target, &["--max", "2", "--before", "1ms"]);
    for number in 1..=4 {
        target.run();
        trigger(&bench, &target, "");
        let is_there =
            || windows(&bench).iter().any(|window| window.ends_with(&format!("{number}.bin")));
        wait_until("the window is written", is_there);
    }
    let said = attach.stop();
    assert!(said.contains("; 4 windows in flight"), "{said}");
    let numbers = windows(&bench);
    let numbers: Vec<&str> =
        numbers.iter().filter_map(|number| number.split('.').nth_back(1)).collect();
    assert_eq!(numbers, ["000003", "000004"]);
}

#[test]
fn a_window_that_the_disk_has_no_room_for_is_tried_again() {
    let bench = flood::build();
    let Some(disk) = SmallDisk::new(&bench) else { return };
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![1; 900 << 10]).unwrap();
    let mut target = bench.start("flood", &["1", "8000"]);
    let folder = disk.0.join("flight");
    let folder = folder.to_str().unwrap();
    let attach = bench.attach(&target, &["--flight", "60s", "-o", folder]);
    let written = target.run();
    trigger(&bench, &target, "");
    attach.stderr.wait_for("ppt: a window cannot be written: No space left on device");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    fs::remove_file(&ballast).unwrap();
    wait_until("it is written", || fs::read_dir(folder).unwrap().count() == 1);
    let stderr = attach.stop();
    assert!(stderr.contains("; 1 window in "), "{stderr}");
    let window = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    Account::of(&bench.info(window.to_str().unwrap())).check(written);
}

#[test]
fn lost_frames_trigger() {
    let bench = flood::build_with_slots("flood_main.c", 64);
    let mut target = bench.start("flood_main", &["1", "200000"]);
    let attach = attach(&bench, &target, &["--on-gap", "--cooldown", "1h", "--slots", "64"]);
    target.run();
    let window = wait_for(&bench, 1).remove(0);
    attach.stop();
    let (info, account, _) = check(&bench, &window);
    assert!(account.lost > 0);
    let value = &info["triggers"][0];
    assert_eq!(value["why"], "gap");
    assert!(value["note"].as_str().unwrap().ends_with(" frames lost"), "{value}");
    assert_eq!(windows(&bench), [window], "others came within the cooldown");
}

#[test]
fn counters_trigger() {
    let bench = Bench::new();
    bench.write("sums.frame", "counter errors;\ncounter calls;\nframe beat { u64 n; }");
    bench.write(
        "sums_main.c",
        r#"#include "sums.h"
#include <stdio.h>
int main(void) {
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        PPT_WRITE_BEAT(f) f.n = 1;
        PPT_ADD_CALLS(10);
        if (line[0] == 'e')
            PPT_ADD_ERRORS(3);
        puts("written 1");
        fflush(stdout);
    }
    return 0;
}
"#,
    );
    bench.pptc(&["sums.frame"]);
    bench.cc(&["sums_main.c", "sums.c", "-o", "sums"]);
    let mut target = bench.start("sums", &[]);
    let args = ["--on-counter", "errors >= 3 AND calls < 1000", "--counters", "10ms"];
    let attach = attach(&bench, &target, &args);
    target.run();
    target.say("error");
    target.written();
    let window = wait_for(&bench, 1).remove(0);
    attach.stop();
    let info = bench.info(&window);
    let value = &info["triggers"][0];
    assert_eq!((&value["why"], &value["expression"]), (&"counter".into(), &args[1].into()));
    assert_eq!(info["buffers"][0]["counters"][0]["value"], 3);
    assert_eq!(info["buffers"][0]["counters"][1]["value"], 20);
}

/// Kernel activity is part of a window, with a separate account.
#[test]
fn the_kernel_is_recorded_too() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["2", "1000"]);
    // On a busy machine, the kernel's frames come later than the program's.
    let args = ["--kernel", "sched", "--on", "n = 999", "--after", "2s"];
    let attach = attach(&bench, &target, &args);
    let written = target.run();
    wait_for(&bench, 1);
    attach.stop();
    let window = windows(&bench).remove(0);
    let info = bench.info(&window);
    assert_eq!((&info["complete"], &info["mismatches"]), (&true.into(), &0.into()));
    let switches = bench.table(&window, &["-b", "kernel", "--frame", "switch_in"]);
    assert!(!switches.rows.is_empty(), "its threads ran");
    let beats = bench.table(&window, &["-b", "flood"]);
    assert!(beats.rows.len() as u64 > 999 && beats.rows.len() as u64 <= written);
}

/// The frames of a program are known only once it runs: an expression that fits none is reported,
/// and the program continues.
#[test]
fn a_command_whose_frames_have_no_such_field_runs() {
    let bench = crate::fixtures::first::build();
    let flight = ["run", "--flight", "60s", "--on", "treads > 1", "-o", "flight"];
    let ran = bench.ppt(&[&flight[..], &["--", "./first_main"]].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let stderr = explained(&ran.stderr);
    assert!(
        stderr.contains("no frame triggers, because --on cannot be held against them"),
        "{stderr}"
    );
    assert!(stderr.contains("no field is called `treads`"), "{stderr}");
    assert!(windows(&bench).is_empty());
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "100"]);
    let pid = target.pid().to_string();
    bench.write("file", "mine");
    let flight = |more: &[&'static str]| -> Vec<String> {
        let args = [&["attach", &pid, "--flight", "10s"], more].concat();
        args.into_iter().map(str::to_owned).collect()
    };
    for (args, code, said) in [
        (&["-o", "flight", "--on", "treads = 1"][..], 2, "--on: no field is called `treads`"),
        (&["-o", "flight", "--on", "n = 'x'"], 2, "--on: `n` is a whole number"),
        (&["-o", "flight", "--on", "n >"], 2, "--on: expected a field or a value"),
        (&["-o", "flight", "--on-counter", "errors > 0"], 2, "--on-counter: no field is called"),
        (&["-o", "flight", "--memory-flight", "1M"], 2, "--memory-flight 1.0 MiB is too small"),
        (&["-o", "flight", "--before", "11s"], 2, "--before 11s is longer than --flight 10s"),
        (&["-o", "file"], 2, "file is no folder, and --flight writes a capture for each window"),
        (&["-o", "-"], 2, "stdout is no folder"),
        (&["-o", "none/flight"], 1, "cannot write none/flight: No such file or directory"),
        (&["-o", "/proc/flight"], 1, "cannot write /proc/flight: No such file or directory"),
        (&[], 2, "the following required arguments were not provided"),
        (&["-o", "flight", "--rotate", "1M"], 2, "cannot be used with"),
    ] {
        let args = flight(args);
        let ran = bench.ppt(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let plain = anstream::adapter::strip_str(&ran.stderr).to_string();
        assert_eq!(ran.code(), code, "{args:?}: {plain}");
        assert!(plain.contains(said), "{args:?}: {plain}");
    }
    let ran = bench.ppt(&["attach", &pid, "--on", "n = 1"]);
    assert_eq!(ran.code(), 2, "it triggers nothing: {}", ran.stderr);
    assert_eq!(target.run(), 0, "nobody attached");
    assert_eq!(fs::read_to_string(bench.path("file")).unwrap(), "mine");
    assert!(windows(&bench).is_empty());
}

#[test]
fn only_a_recorder_is_triggered() {
    let bench = flood::build();
    let target = bench.start("flood", &["1", "100"]);
    let pid = target.pid().to_string();
    let refused = || {
        let ran = bench.ppt(&["trigger", &pid]);
        assert_eq!(ran.code(), 1, "{}", ran.stderr);
        explained(&ran.stderr)
    };
    let none = format!("ppt: no flight recorder has process {pid}\n");
    assert!(refused().starts_with(&none));
    let plain = bench.attach(&target, &[]);
    assert!(refused().starts_with(&none), "a capture is no recorder");
    plain.stop();
    let other = bench.start("flood", &["1", "100"]);
    let recorder = attach(&bench, &other, &[]);
    let there = format!("{} (flood)", other.pid());
    assert!(refused().contains(&there), "it says what there is");
    trigger(&bench, &other, "");
    wait_for(&bench, 1);
    recorder.stop();
    let ran = bench.ppt(&["trigger", &other.pid().to_string()]);
    assert_eq!(ran.code(), 1, "it has ended: {}", ran.stderr);
    assert_eq!(bench.ppt(&["trigger"]).code(), 2);
}

/// With several processes, the window states which one triggered, and also contains the others.
#[test]
fn several_processes_are_one_recorder() {
    let bench = crate::fixtures::family::Family::build();
    let mut family = crate::fixtures::family::Family::start(&bench);
    let pid = family.target.pid().to_string();
    let mut command = bench.command(ppt());
    let flight = ["--flight", "60s", "--on-exit", "-o", "flight"];
    command.args(["attach", &pid, "--follow"]).args(flight);
    let attach = Attach::start(command);
    let child = family.make("fork");
    crate::fixtures::family::attached(&attach.stderr, child);
    let child = child.pid.to_string();
    // The child ends with it.
    family.target.close();
    family.target.wait();
    attach.ended(0);
    let mut pids = BTreeSet::new();
    for window in windows(&bench) {
        let info = bench.info(&window);
        assert_eq!((&info["complete"], &info["mismatches"]), (&true.into(), &0.into()));
        for value in info["triggers"].as_array().unwrap() {
            assert_eq!(value["why"], "exit");
            pids.insert(value["note"].to_string());
        }
    }
    for pid in [pid, child] {
        assert!(pids.iter().any(|it| it.contains(&format!("process {pid} "))), "{pids:?}");
    }
}

/// Every frame triggers. Windows are written during that time, and a user's request is in one of
/// them.
#[test]
fn a_storm_of_triggers_hides_no_trigger_by_hand() {
    let _busy = Busy::start();
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "200"]);
    let args = ["--flight", "1s", "--before", "100ms", "-o", "flight", "--on", "thread = 0"];
    let attach = bench.attach(&target, &args);
    let written_by = |window: &String| bench.info(window)["triggers"].as_array().unwrap().clone();
    let is_asked_for = |value: &Value| value["note"] == "the storm, by hand";
    let (mut written, mut asked, mut looked_at) = (0, false, 0);
    let begun = Instant::now();
    let found = loop {
        assert!(begun.elapsed() < *PATIENCE, "no window has it while the storm lasts");
        written += target.run();
        if !asked && written >= 2000 {
            trigger(&bench, &target, "the storm, by hand");
            asked = true;
        }
        let there = windows(&bench);
        let new = there[looked_at..].iter().find(|text| written_by(text).iter().any(is_asked_for));
        if let Some(window) = new {
            break window.clone();
        }
        looked_at = there.len();
    };
    written += target.run();
    let said = attach.stop();
    let (mut by_frames, mut by_hand) = (0, 0);
    for window in windows(&bench) {
        let (info, _, beats) = check(&bench, &window);
        let listed = written_by(&window);
        let hand = listed.iter().filter(|value| is_asked_for(value)).count() as u64;
        let more = info["triggers_not_listed"].as_u64().unwrap_or(0);
        let all = listed.len() as u64 + more;
        by_hand += hand;
        by_frames += all - hand;
        assert!(beats.len() as u64 >= all - hand, "each trigger's frame is in its window");
        let is_written = |line: &&str| line.contains(&window) && line.contains(" frames of ");
        let line = said.lines().find(is_written).unwrap();
        // A single trigger is not counted in the text.
        let told =
            line.split_once(" triggers").map_or("1", |entry| entry.0.rsplit(' ').next().unwrap());
        assert_eq!(told.replace(',', "").parse::<u64>().ok(), Some(all), "{line}");
        let text = bench.ppt(&["info", &window]).stdout;
        let shown =
            (0..).zip(&listed).filter(|(at, value)| *at < 10 || is_asked_for(value)).count() as u64;
        let and_more = format!("          and {} more triggers\n", all - shown);
        assert_eq!(text.contains(&and_more), all > shown, "{text}");
        assert_eq!(text.contains("the storm, by hand"), window == found, "{text}");
    }
    // On a busy machine, frames are lost: they trigger nothing.
    let (_, lost) = said.rsplit_once("/s), lost ").unwrap();
    let lost = lost.split([' ', '\n']).next().unwrap().trim_end_matches(',').replace(',', "");
    let all = by_frames + lost.parse::<u64>().unwrap();
    assert_eq!((all, by_hand), (written, 1), "each trigger is in one window: {said}");
}
