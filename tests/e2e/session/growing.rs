//! Rings that grow while threads write into them: `--slots auto`.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::fixtures::flood::{self, Beat, count, frames};
use crate::fixtures::ledger::Ledger;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Target, of_both_kinds, record, rounds, segments_mapped,
    segments_of, stopped, wait_until,
};

const THREADS: u64 = 8;
/// Frames of each thread per `go`.
const BURST: u64 = 2000;
/// A program around `flood.frame` with rings of 64 slots.
fn build(main: &str) -> Bench {
    flood::build_with_slots(main, 64)
}

fn start(bench: &Bench, threads: u64) -> Target {
    bench.start("flood_main", &[&threads.to_string(), &BURST.to_string()])
}

/// A burst during which ppt is stopped: each ring then holds all of it.
fn burst_unseen(target: &mut Target, attach: &Attach) -> u64 {
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    let written = target.run();
    attach.signal(libc::SIGCONT);
    written
}

/// Waits until rings have grown enough for a burst. Returns the reported number of slots.
fn enough(attach: &Attach) -> String {
    loop {
        let grew = attach.stderr.wait_for("ppt: rings of flood grew from ");
        let slots = grew.split(" to ").nth(1).unwrap().split(' ').next().unwrap();
        if slots.replace(',', "").parse::<u64>().unwrap() > BURST {
            return slots.to_owned();
        }
    }
}

/// Frames, losses, and number of rings of each segment.
fn by_segment(info: &Value) -> Vec<(u64, u64, u64)> {
    let mut segments: Vec<(String, (u64, u64, u64))> = Vec::new();
    for ring in info["buffers"][0]["rings"].as_array().unwrap() {
        let name = ring["segment"].as_str().unwrap();
        let at = segments.iter().position(|segment| segment.0 == name).unwrap_or_else(|| {
            segments.push((name.to_owned(), (0, 0, 0)));
            segments.len() - 1
        });
        let sum = &mut segments[at].1;
        sum.0 += ring["frames"].as_u64().unwrap();
        sum.1 += ring["lost"].as_u64().unwrap();
        sum.2 += 1;
    }
    segments.into_iter().map(|segment| segment.1).collect()
}

/// Checks that each frame is complete and unique.
fn whole(bench: &Bench, capture: &str, account: Account) -> Vec<Beat> {
    let beats = frames(bench, capture);
    let names: HashSet<_> = beats.iter().map(|beat| (beat.thread, beat.n)).collect();
    assert_eq!((beats.len(), names.len() as u64), (names.len(), account.captured));
    beats
}

fn a_burst_fits_after_growth(kind: Kind) {
    let bench = build("flood_main.c").of(kind);
    let mut target = start(&bench, THREADS);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    let agent = attach.pid();
    let mut written = burst_unseen(&mut target, &attach);
    let slots = enough(&attach);
    written += target.run();
    wait_until("the last segment is there", || {
        segments_mapped(agent) == segments_mapped(target.pid())
    });
    let stderr = attach.stop();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.dropped, 0, "{stderr}");
    let segments = by_segment(&info);
    assert_eq!(segments.len(), 2, "{segments:?}");
    assert!(segments.contains(&(THREADS * BURST, 0, THREADS)), "the same burst: {segments:?}");
    assert_eq!(info["buffers"].as_array().unwrap().len(), 1, "it is one buffer");
    whole(&bench, "out.bin", account);

    // The next session begins with the grown rings, and a burst fits.
    let next = bench.attach(&target, &["--slots", "auto", "-v", "-o", "next.bin"]);
    let written = burst_unseen(&mut target, &next);
    let agents = [agent, next.pid()];
    let stderr = next.stop();
    assert!(stderr.contains(&format!("64 rings of {slots} slots")), "{stderr}");
    assert!(stderr.contains("; adopted "), "{stderr}");
    let account = Account::of(&bench.info("next.bin"));
    assert_eq!((account.captured, account.lost), (written, 0));
    assert_eq!(whole(&bench, "next.bin", account).len() as u64, written);

    // Without the option, rings have the size of the frame file: the earlier ones, which continue.
    let small = bench.attach(&target, &["-v", "-o", "small.bin"]);
    let written = burst_unseen(&mut target, &small);
    let stderr = small.stop();
    assert!(stderr.contains("64 rings of 64 slots") && stderr.contains("; adopted "), "{stderr}");
    let account = Account::of(&bench.info("small.bin"));
    account.check(written);
    assert_eq!(account.captured, THREADS * 63);
    whole(&bench, "small.bin", account);
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

of_both_kinds! {
    a_burst_fits_after_growth
    killed_while_rings_grow
}

/// Resident bytes of the smallest System V segment of a process.
fn resident_of_smallest(pid: u32) -> u64 {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let (mut ours, mut size, mut all) = (false, 0, Vec::new());
    for line in smaps.lines() {
        let number = |rest: &str| rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
            ours = line.contains("/SYSV");
        } else if let Some(rest) = line.strip_prefix("Size:") {
            size = number(rest);
        } else if let (true, Some(rest)) = (ours, line.strip_prefix("Rss:")) {
            all.push((size, number(rest)));
        }
    }
    all.into_iter().min().map_or(0, |(_, resident)| resident)
}

#[test]
fn memory_of_former_rings_is_given_back() {
    const SLOTS: u64 = 1024;
    const RING: u64 = SLOTS * 56;
    let bench = flood::build_with_slots("flood_main.c", SLOTS as u32);
    let mut target = bench.start("flood_main", &[&THREADS.to_string(), "8000"]);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    let mut written = burst_unseen(&mut target, &attach);
    attach.stderr.wait_for("ppt: rings of flood grew from 1,024 to 16,384 slots");
    assert!(resident_of_smallest(target.pid()) >= THREADS * RING);
    // Threads leave a former ring with their next frame.
    written += target.run();
    // Only headers remain, and the pages around each cursor.
    let left = 64 * 512 + 4 * 4096 + THREADS * 3 * 4096;
    wait_until("the memory is given back", || resident_of_smallest(target.pid()) <= left);
    written += target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    let captured = THREADS * (SLOTS - 1);
    let mut segments = by_segment(&info);
    segments.sort_unstable();
    let expected =
        [(captured, THREADS * 8000 - captured, THREADS), (2 * THREADS * 8000, 0, THREADS)];
    assert_eq!(segments, expected);
    whole(&bench, "out.bin", account);
}

#[test]
fn memory_bounds_growth() {
    let bench = build("flood_main.c");
    let mut target = start(&bench, THREADS);
    let attach = bench.attach(&target, &["--slots", "auto", "--memory", "300K"]);
    let mut written = burst_unseen(&mut target, &attach);
    let why = attach.stderr.wait_for("ppt: rings of flood are too small ");
    assert_eq!(why, "but stay at 64 slots: --memory 300.0 KiB allows no more");
    written += burst_unseen(&mut target, &attach);
    let stderr = attach.stop();
    target.finish();
    assert_eq!(stderr.matches("rings of flood").count(), 1, "reported once: {stderr}");
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    assert_eq!(by_segment(&info), [(2 * THREADS * 63, 2 * THREADS * (BURST - 63), THREADS)]);
}

#[test]
fn a_ninth_segment_is_refused() {
    let bench = build("flood_main.c");
    let mut target = start(&bench, 2);
    // Rings of 64 slots never grow to these numbers.
    for slots in ["2", "4", "8", "16", "32", "64", "128", "512"] {
        let attach = bench.attach(&target, &["--slots", slots, "-o", &format!("{slots}.bin")]);
        target.run();
        attach.stop();
    }
    assert_eq!(segments_mapped(target.pid()), 8);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    let mut written = burst_unseen(&mut target, &attach);
    let why = attach.stderr.wait_for("ppt: rings of flood are too small ");
    assert!(why.contains("stay at 64 slots: ") && why.contains("8 geometries"), "{why}");
    written += target.run();
    attach.stop();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.dropped, 0);
    target.finish();
}

/// Limits a process to this much additional memory.
fn limit_memory(pid: u32, room: u64) {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let most = pages * 4096 + room;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is read, and the pointer for the former one is null.
    let set =
        unsafe { libc::prlimit(pid.cast_signed(), libc::RLIMIT_AS, &limit, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

#[test]
fn what_the_target_cannot_map_is_taken_back() {
    let bench = build("flood_main.c");
    let mut target = start(&bench, 2);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    limit_memory(target.pid(), 1 << 20);
    let mut written = burst_unseen(&mut target, &attach);
    enough(&attach);
    target.say("start");
    let back = attach.stderr.wait_for("ppt: rings of flood are back at ");
    assert!(
        back.starts_with("64 slots, because the target could not map larger ones: ENOMEM"),
        "{back}"
    );
    target.say("stop");
    written += target.written();
    written += target.run();
    attach.stop();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    // One frame of each thread may find the gate open and be refused after it is closed: it is
    // neither in a ring nor counted.
    let all = account.captured + account.lost + account.dropped;
    assert!((written - 2..=written).contains(&all), "{account:?} of {written}");
    assert!(count(&info, "dropped", "not_mapped") > 0);
    assert_eq!(by_segment(&info).len(), 1);
    whole(&bench, "out.bin", account);
    target.finish();
}

#[test]
fn what_is_refused_is_counted_once() {
    const ALL: u64 = 80;
    let bench = build("threads_main.c");
    let frames = BURST.to_string();
    let mut target = bench.start("threads_main", &["80", "80", &frames]);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    assert_eq!(burst_unseen(&mut target, &attach), ALL * BURST);
    enough(&attach);
    assert_eq!(target.run(), ALL * BURST);
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    Account::of(&info).check(2 * ALL * BURST);
    // In the former segment and in the last one.
    assert_eq!(count(&info, "dropped", "no_ring"), 2 * (ALL - 64) * BURST);
}

/// Rings grow, and `ppt` is killed before the former ones were fully read; the next one continues
/// in larger ones, or in the first ones again. Every frame is accounted for.
fn killed_while_rings_grow(kind: Kind) {
    let targets = rounds(6, 200);
    let bench = build("flood_main.c").of(kind);
    let (mut ledger, mut published, mut agents) = (Ledger::default(), 0, Vec::new());
    let mut info = Value::Null;
    for number in 0..targets {
        let mut command = flood::leisurely(&bench, "flood_main");
        command.args([&THREADS.to_string(), "0"]);
        let mut target = Target::start(command);
        target.say("start");
        let names = ["a", "b", "c"].map(|text| format!("{number:03}{text}.bin"));
        let auto = &["--slots", "auto", "--memory", "16M"][..];
        let then = if number % 2 == 0 { auto } else { &["--slots", "64"] };
        for (capture, args) in names.iter().zip([auto, then]) {
            let attach = bench.attach(&target, &[&["-o", capture], args].concat());
            agents.push(attach.pid());
            if args == auto && *capture == names[0] {
                attach.stderr.wait_for("ppt: rings of flood grew from ");
            }
            if capture == &names[0] || number % 3 == 0 { attach.kill() } else { _ = attach.stop() }
        }
        target.say("stop");
        target.written();
        published += flood::published(&target);
        // States the frames written after them.
        let last = bench.attach(&target, &[&["-o", &names[2]], auto].concat());
        agents.push(last.pid());
        last.stop();
        target.finish();
        for name in names {
            info = ledger.take(&bench, &name);
        }
        assert_eq!(ledger.total(), published, "target {number}: {ledger:?}");
    }
    assert!(ledger.unattended > 0, "{ledger:?}");
    let account = ledger.sum_up(&mut info);
    let case = kind.case(&format!("killed while rings grow, {targets} times"));
    record("14", &case, published - ledger.unattended, account, &info, segments_of(&agents));
}
