//! Threads and processes that work, lose frames, and fork; and their kernel activity.

use ppt_capture::{Cause, Dropped, EndReason, Lost};

use crate::numbers::made::{MS, MadeCapture, made, turn};
use crate::numbers::maker::{MONO, Maker, MakerProgram, MakerWord, SECOND, TICKS};

const SHOP: &str = "
buffer shop;
option time ns monotonic;
enum Verb : u8 { GET, PUT, POST }
frame job { Verb verb; u32 user; interval time handle @at; interval time parse; u64 size @unit(\"B\"); }
frame beat { double load; time when @at; }
frame request @span(host) { u64 id @key; Verb verb; u32 bytes @unit(\"B\"); }
";

const STORE: &str = "
buffer store;
option time ns monotonic;
frame query { interval time run @at; u32 rows; }
frame request @span(process, fifo) { char name[8] @key; time when @at; int code; }
";

/// Jobs of a ring: nested intervals, sometimes with a gap of time.
fn job(at: u64, n: u64) -> Vec<(&'static str, MakerWord)> {
    let length = 200_000 + n * 7_919 % 600_000;
    vec![
        ("verb", (n * n % 4).into()),
        ("user", (n * 31 % 17).into()),
        ("handle_start", at.into()),
        ("handle_end", (at + length).into()),
        ("parse_start", (at + 10_000).into()),
        ("parse_end", (at + length / 3).into()),
        ("size", (n * 104_729 % 65_536).into()),
    ]
}

fn request(id: u64, edge: u64, at: u64) -> Vec<(&'static str, MakerWord)> {
    // Stamps are in ticks.
    let ticks = TICKS + (at - MONO) / 2 * 3;
    vec![
        ("id", id.into()),
        ("edge", edge.into()),
        ("at", ticks.into()),
        ("verb", (id % 3).into()),
        ("bytes", (id * 10 + edge).into()),
    ]
}

fn named(name: &str, edge: u64, at: u64) -> Vec<(&'static str, MakerWord)> {
    let code = if edge == 0 { 0 } else { 200 + at % 3 };
    vec![("name", name.into()), ("edge", edge.into()), ("when", at.into()), ("code", code.into())]
}

/// Missing frames of every cause, in two buffers of one process.
pub fn lossy() -> MadeCapture {
    let mut maker = Maker::begin(3);
    let shop = maker.source(MakerProgram { frames: SHOP, pid: 4211, kind: "" });
    let store = maker.source(MakerProgram { frames: STORE, pid: 4211, kind: "" });
    let rings = [maker.ring(shop, 0, 4211), maker.ring(shop, 1, 4212), maker.ring(shop, 5, 0)];
    let queries = maker.ring(store, 0, 4211);
    maker.begins_at(rings[1], 500);
    maker.gap(rings[0], 12, Cause::Unattended);
    for n in 0..120u64 {
        let at = MONO + SECOND + n * 2 * MS;
        for (which, &ring) in (0u64..).zip(&rings) {
            maker.at(at + MS);
            maker.frame(ring, "job", &job(at + which * 300_000, n * 3 + which));
            match (which, n) {
                (0, 30) => maker.lose(ring, Lost { overrun: 17, disk: 4, corrupt: 0 }),
                (0, 70) => maker.gap(ring, 9, Cause::Disk),
                (0, 80) => maker.gap(ring, 33, Cause::LeftOut),
                (1, 50) => maker.lose(ring, Lost { overrun: 0, disk: 0, corrupt: 3 }),
                (1, 90) => maker.gap(ring, 1_000_000, Cause::Overrun),
                (2, 20) => maker.gap(ring, 5, Cause::Unattended),
                _ => {}
            }
            if n % 5 == which {
                maker.frame(ring, "request", &request(n, 0, at + 50_000));
            }
            if n % 5 == 4 && which < 2 {
                maker.frame(ring, "request", &request(n - 4 + which, 1, at + 90_000));
            }
        }
        if n % 10 == 0 {
            maker.frame(
                rings[0],
                "beat",
                &[("load", (n as f64 / 7.0).into()), ("when", at.into())],
            );
        }
        let from = at + 20_000;
        let run = [("run_start", from.into()), ("run_end", (from + 40_000 + n).into())];
        let rows = ("rows", MakerWord::from(n % 9));
        maker.frame(queries, "query", &[run[0].clone(), run[1].clone(), rows]);
        if n % 6 < 2 {
            maker.frame(queries, "request", &named(turn(&["a", "b", "a"], n / 6), n % 6, at));
        }
        if n == 60 {
            maker.gap(queries, 2, Cause::Overrun);
        }
        if n == 100 {
            maker.drops(shop, Dropped { no_ring: 3, nested: 1, not_mapped: 0 });
        }
    }
    maker.drops(shop, Dropped { no_ring: 5, nested: 2, not_mapped: 40 });
    // Frames lost at the end have no frame after them.
    maker.gap(rings[2], 8, Cause::Disk);
    made("lossy", maker, EndReason::Failed)
}

/// Three processes with spans that cross processes.
pub fn forked() -> MadeCapture {
    let mut maker = Maker::begin(4);
    let pids = [4211u32, 4230, 4231];
    let sources = pids.map(|pid| maker.source(MakerProgram { frames: SHOP, pid, kind: "" }));
    let mut rings = Vec::new();
    for (&source, pid) in sources.iter().zip(pids) {
        rings.push(maker.ring(source, 0, pid));
        rings.push(maker.ring(source, 1, pid + 100));
    }
    for n in 0..60u64 {
        for (which, &ring) in (0u64..).zip(&rings) {
            let at = MONO + SECOND + n * 3 * MS + which * 200_000;
            maker.at(at + 2 * MS);
            maker.frame(ring, "job", &job(at, n + which));
            if which == n % 6 {
                maker.frame(ring, "request", &request(n, 0, at));
            }
            if n > 3 && which == n % 5 && n % 9 != 0 {
                maker.frame(ring, "request", &request(n - 3, 1, at + 40_000));
            }
        }
        if n == 30 {
            maker.lose(rings[2], Lost { overrun: 6, disk: 0, corrupt: 0 });
        }
    }
    made("forked", maker, EndReason::Stopped)
}

/// Time, frame and fields of an event.
type ShopRow = (u64, &'static str, Vec<(&'static str, u64)>);

/// Kernel activity of two threads, in a buffer of its own.
pub fn kernel() -> MadeCapture {
    let mut maker = Maker::begin(8);
    let shop = maker.source(MakerProgram { frames: SHOP, pid: 4211, kind: "" });
    let file = include_str!("../../../kernel/src/kernel.frame");
    let file = format!("{file}\nenum Call : u16 {{ read = 0, futex = 202, write = 1 }}\n");
    let kernel = maker.source(MakerProgram { frames: &file, pid: 4211, kind: "kernel" });
    let rings = [maker.ring(shop, 0, 100), maker.ring(shop, 1, 101)];
    let by_kernel = maker.ring(kernel, 0, 0);
    let mut told: Vec<ShopRow> = Vec::new();
    for ring in 0..2u64 {
        let thread = ("thread", 100 + ring);
        let cpu = ("cpu", ring);
        told.push((MONO + SECOND / 2 + ring, "watched", vec![thread]));
        for n in 0..50u64 {
            let at = MONO + SECOND + n * 20 * MS + ring * 3 * MS;
            let (ran, waited, late) = (100_000 + n * 1_000, 400_000 + n % 7 * 300_000, 50_000);
            let called = at + ran;
            let woken = called + waited;
            let back = woken + late + 10;
            let end = at + ran + waited + late + 20_000;
            let call = ("call", [0, 202, 1, 77][(n % 4) as usize]);
            let waker = ("waker", 100 + (1 - ring));
            told.push((at - 10, "switch_in", vec![thread, cpu]));
            if n % 6 != 5 {
                told.push((called - 10, "syscall_enter", vec![thread, cpu, call]));
            } else {
                let fault = [("kind", n % 2), ("address", u64::MAX - n)];
                told.push((called - 10, "page_fault", [&[thread, cpu], &fault[..]].concat()));
            }
            told.push((called, "switch_out", vec![thread, cpu, ("preempted", 0)]));
            if n % 5 != 4 {
                told.push((woken, "wakeup", vec![thread, cpu, ("by", n % 3), waker]));
            }
            told.push((woken + late, "switch_in", vec![thread, cpu]));
            if n % 6 != 5 {
                told.push((back, "syscall_exit", vec![thread, cpu, call, ("result", n)]));
            }
            let next = [("state", 0), ("next", if n % 2 == 0 { 0 } else { 9_999 })];
            told.push((end + 30, "successor", [&[thread, cpu], &next[..]].concat()));
            told.push((end + 30, "switch_out", vec![thread, cpu, ("preempted", n % 2)]));
            if n % 16 == 8 {
                let lost = [("since", end + 40), ("count", 3)];
                told.push((end + 900, "lost", [&[("thread", 0), cpu], &lost[..]].concat()));
            }
            maker.at(end + MS);
            maker.frame(rings[ring as usize], "job", &job(at, n));
            maker.frame(rings[ring as usize], "request", &request(n << 8 | ring, 0, at));
            maker.frame(rings[ring as usize], "request", &request(n << 8 | ring, 1, end));
        }
    }
    told.sort_by_key(|frame| frame.0);
    let last = told.last().unwrap().0 + 1_000;
    told.push((last, "watch_end", Vec::new()));
    for (at, kind, fields) in told {
        maker.at(at + MS);
        if kind == "lost" {
            let count = fields.iter().find(|field| field.0 == "count").unwrap().1;
            maker.lose(by_kernel, Lost { overrun: count, disk: 0, corrupt: 0 });
        }
        let mut words: Vec<(&str, MakerWord)> =
            fields.into_iter().map(|(name, value)| (name, value.into())).collect();
        words.push(("at", at.into()));
        if kind == "successor" {
            words.push(("name", "kworker/0".into()));
        }
        maker.frame(by_kernel, kind, &words);
    }
    made("kernel", maker, EndReason::Stopped)
}

pub fn single(count: u64, name: &'static str) -> MadeCapture {
    let mut maker = Maker::begin(10 + count as u8);
    let source = maker.source(MakerProgram { frames: SHOP, pid: 4211, kind: "" });
    let ring = maker.ring(source, 0, 4211);
    for n in 0..count {
        maker.at(MONO + SECOND);
        maker.frame(ring, "job", &job(MONO + SECOND / 2, n));
    }
    made(name, maker, EndReason::Exited)
}

/// A capture that ends in the middle of a chunk, without an end.
pub fn cut() -> MadeCapture {
    let mut made = lossy();
    let length = made.files[0].len() * 3 / 5;
    made.files[0].truncate(length);
    MadeCapture { name: "cut", told: None, ..made }
}
