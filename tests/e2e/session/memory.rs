//! The memory of a capture: never more than stated, and only used parts are allocated.

use std::fs;

use crate::fixtures::support::{Account, Bench, record, segments_of};

const PAGE: u64 = 4096;
const STRIDE: u64 = 512;
/// Most bytes of a large ring that are populated in advance.
const POPULATED: u64 = 4 << 20;
/// Rings that are kept populated in addition to those in use.
const AHEAD: u64 = 2;
/// Most bytes that the first frame of a thread may populate.
const FIRST_FRAME: u64 = 256 << 10;
/// Frames of each thread.
const FRAMES: u64 = 101;

/// A geometry and its message.
struct Case {
    threads: u64,
    args: &'static [&'static str],
    rings: u64,
    slots: u64,
    said: &'static str,
}

/// Resident bytes of System V shared memory in a process.
fn resident(pid: u32) -> u64 {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let (mut ours, mut sum) = (false, 0);
    for line in smaps.lines() {
        // A mapping starts with a line of its addresses, followed by lines of its properties.
        if line.split(' ').next().is_some_and(|word| !word.ends_with(':')) {
            ours = line.contains("/SYSV");
        } else if let (true, Some(rest)) = (ours, line.strip_prefix("Rss:")) {
            sum += rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        }
    }
    sum
}

/// Size of the segment that a process made.
fn size_of_segment(maker: u32) -> u64 {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let of = |line: &str| {
        let words: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        (words[4] == u64::from(maker)).then_some(words[3])
    };
    table.lines().skip(1).filter_map(of).sum()
}

fn check(name: &str, case: &Case) {
    let Case { threads, args, rings, slots, said } = *case;
    let bench = Bench::new();
    bench.copy_all(&["wide.frame", "wide_main.c"]);
    bench.pptc(&["wide.frame"]);
    bench.cc(&["wide_main.c", "wide.c", "-o", "wide", "-lpthread"]);
    let mut target = bench.start("wide", &[&threads.to_string()]);
    let attach = bench.attach(&target, args);
    let agent = attach.pid();

    let ring = slots * STRIDE;
    let size = size_of_segment(agent);
    let headers = size - rings * ring;
    assert!(headers <= (rings + 4) * PAGE, "{headers} bytes of headers");
    // A ring for each thread, including the main thread, and two to spare.
    let populated = (threads + 1 + 2) * ring.min(POPULATED);
    let before = resident(agent);
    assert!(before <= headers + populated, "{before} resident of {headers} + {populated}");

    target.say("first");
    let faults: u64 = target.stdout.wait_for("faults ").parse().unwrap();
    assert_eq!(target.written(), threads);
    assert!(faults * PAGE <= FIRST_FRAME, "{faults} page faults for a thread's first frame");
    let theirs = resident(target.pid());
    assert!(theirs <= threads * FIRST_FRAME, "{theirs} resident after the first frames");

    let written = target.run();
    assert_eq!(written, threads * FRAMES);
    let frames = threads * (FRAMES * STRIDE + 2 * PAGE);
    let (ours, theirs) = (resident(agent), resident(target.pid()));
    let most = headers + populated + AHEAD * ring.min(POPULATED);
    assert!(ours <= most + frames, "{ours} resident of {most} populated, {frames} written");
    assert!(theirs <= headers + frames, "{theirs} resident of {frames} written");
    println!("{name}: {faults} faults, resident {before}, {ours} ({theirs} in the target)");

    let all = attach.stop();
    assert_eq!(all.lines().next(), Some(said), "{all}");
    // The printed size is that of the segment in the kernel.
    let (unit, name_of_unit) = if size < 1 << 30 { (1 << 20, "MiB") } else { (1 << 30, "GiB") };
    let printed = format!("({:.1} {name_of_unit})", size as f64 / f64::from(unit));
    assert!(said.contains(&printed), "{printed}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{account:?}");
    record("52", name, written, account, &info, segments_of(&[agent]));
}

#[test]
fn slots_give_way() {
    let case = Case {
        threads: 64,
        args: &["--memory", "64M"],
        rings: 128,
        slots: 1024,
        said: "ppt: wide: 128 rings of 1,024 slots of 512 bytes (64.1 MiB), to stay within \
               --memory 64.0 MiB",
    };
    check("slots give way to --memory", &case);
}

#[test]
fn rings_give_way_to_slots_that_were_asked_for() {
    let case = Case {
        threads: 6,
        args: &["--slots", "1M", "--memory", "8G"],
        rings: 16,
        slots: 1 << 20,
        said: "ppt: wide: 16 rings of 1,048,576 slots of 512 bytes (8.0 GiB), to stay within \
               --memory 8.0 GiB",
    };
    check("rings give way to --slots", &case);
}
