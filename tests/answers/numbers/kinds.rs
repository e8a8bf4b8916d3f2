//! Spans, chains, points, counters and histograms, in one file and over a series.

use ppt_capture::{Cause, Chosen, EndReason, Flip, FlipRing, Lost, Stretch, Trigger, TriggerCause};

use crate::numbers::made::{MS, MadeCapture, made, turn};
use crate::numbers::maker::{
    MONO, Maker, MakerProgram, MakerWord, RowOfCells, SECOND, TICKS, nonce,
};

const COUNTS: &str = "
buffer counts;
option time ns monotonic;
frame tick { u32 n; time when @at; }
frame request @span { u32 id @key; }
counter bytes_in @unit(\"B\");
counter inflight : i64;
histogram handling : duration;
histogram queue : u32 (0, 64, 8);
";

/// The number of a cell, by the name of its counter or histogram and its index there.
fn cell(maker: &Maker, source: u16, name: &str, number: u32) -> u32 {
    let metrics = maker.schema(source).metrics();
    metrics.iter().find(|metric| metric.name == name).unwrap().cells.start + number
}

/// Sums in the cells of a ring since the session began.
fn read(maker: &Maker, source: u16, seconds: u64, ring: u64) -> Vec<(u32, u64)> {
    let level = (if seconds <= 4 { seconds as i64 } else { -(seconds as i64) }) as u64;
    let mut cells = vec![
        (cell(maker, source, "bytes_in", 0), seconds * (1_000 + ring)),
        (cell(maker, source, "inflight", 0), level),
        (cell(maker, source, "handling", 0), 3_000_000 * seconds + ring),
        (cell(maker, source, "handling", 1), ring),
        (cell(maker, source, "handling", 40), 4 * seconds),
        (cell(maker, source, "handling", 300), seconds * seconds),
        (cell(maker, source, "queue", 0), 100 * seconds),
        (cell(maker, source, "queue", 3), 10 * seconds),
        (cell(maker, source, "queue", 10), ring * seconds),
    ];
    cells.sort_unstable();
    cells
}

fn count(maker: &mut Maker, source: u16, seconds: u64, base: bool) {
    maker.at(MONO + seconds * SECOND);
    let own = |ring: u32, tid| RowOfCells {
        ring: Some(ring),
        tid,
        cells: read(maker, source, seconds, ring.into()),
    };
    let shared = vec![(cell(maker, source, "bytes_in", 0), seconds * 7)];
    let rows = [own(0, 4211), own(1, 0), RowOfCells { ring: None, tid: 0, cells: shared }];
    maker.cells(source, base, &rows);
}

/// A series of three files, with spans that cross files, and counters.
pub fn series() -> MadeCapture {
    let mut maker = Maker::begin(5);
    let source = maker.source(MakerProgram { frames: COUNTS, pid: 4211, kind: "" });
    let rings = [maker.ring(source, 0, 4211), maker.ring(source, 1, 4212)];
    for n in 0..150u64 {
        let at = MONO + SECOND / 2 + n * 40 * MS;
        maker.at(at + MS);
        let ticks = TICKS + (at - MONO) / 2 * 3;
        maker.frame(rings[(n % 2) as usize], "tick", &[("n", n.into()), ("when", at.into())]);
        // Three spans are open at any time; the first ends belong to a closed span.
        let (id, edge) = if n % 3 == 0 { (n, 0) } else { ((n - n % 3).saturating_sub(9), n % 3) };
        if edge < 2 {
            let fields = [("id", id.into()), ("edge", edge.into()), ("at", MakerWord::from(ticks))];
            maker.frame(rings[0], "request", &fields);
        }
        if n % 25 == 24 {
            count(&mut maker, source, n / 25 + 1, false);
        }
        if n == 50 || n == 110 {
            maker.gap(rings[1], n, Cause::Overrun);
            maker.rotate();
            count(&mut maker, source, n / 25, true);
        }
    }
    made("series", maker, EndReason::Stopped)
}

const KINDS: &str = "
buffer kinds;
option time ns monotonic;
enum Verb : u8 { GET, PUT }
frame job { Verb verb; interval time handle; }
frame request @span { u64 id @key; Verb verb; u32 bytes @unit(\"B\"); }
frame visit @span(host, fifo) { char name[6] @key; time when @at; }
frame encode @chain(start, dsp, send) { u64 n @key; int cost; }
counter bytes_in @unit(\"B\");
counter inflight : i64;
histogram handling : duration;
histogram queue : u32 (0, 64, 8);
";

/// Spans and chains in each state, masks and triggers, and a loss that may have hidden halves.
pub fn kinds() -> MadeCapture {
    let mut maker = Maker::begin(6);
    let source = maker.source(MakerProgram { frames: KINDS, pid: 4211, kind: "" });
    let rings = [maker.ring(source, 0, 100), maker.ring(source, 1, 101)];
    for n in 0..70u64 {
        for (which, &ring) in (0u64..).zip(&rings) {
            let at = MONO + SECOND + n * 20 * MS + which * 3 * MS;
            let end = at + 500_000 + n * 7_919 % 900_000;
            let tick = |at: u64| MakerWord::from(TICKS + (at - MONO) / 2 * 3);
            let id = which << 32 | (n / 2 * 2);
            let verb = ("verb", MakerWord::from(n % 2));
            maker.at(end + MS);
            let mut tell =
                |kind: &str, fields: &[(&str, MakerWord)]| maker.frame(ring, kind, fields);
            tell(
                "request",
                &[("id", id.into()), verb.clone(), ("edge", 0.into()), ("at", tick(at))],
            );
            tell(
                "encode",
                &[("n", id.into()), ("cost", 5.into()), ("step", 0.into()), ("at", tick(at))],
            );
            let ends = [("handle_start", at.into()), ("handle_end", MakerWord::from(end))];
            tell("job", &[verb, ends[0].clone(), ends[1].clone()]);
            if n % 10 != 3 {
                let stamp = if n % 10 == 7 { tick(end + 4_000) } else { tick(end) };
                tell("encode", &[("n", id.into()), ("step", 1.into()), ("at", stamp)]);
            }
            tell(
                "encode",
                &[("n", (id + n % 2).into()), ("step", 2.into()), ("at", tick(end + 2_000))],
            );
            if n % 20 != 7 {
                let fields = [
                    ("id", (id + n / 60).into()),
                    ("edge", 1.into()),
                    ("bytes", n.into()),
                    ("at", tick(end)),
                ];
                tell("request", &fields);
            }
            let name = turn(&["x", "y", "zz", "x"], n);
            let when = if n % 17 == 9 { 0 } else { at };
            let edge = ("edge", MakerWord::from(n / 4 % 2));
            tell("visit", &[("name", name.into()), edge, ("when", when.into())]);
        }
        if n == 40 {
            maker.lose(rings[1], Lost { overrun: 21, disk: 0, corrupt: 0 });
        }
        if n % 14 == 13 {
            count(&mut maker, source, n / 14 + 1, false);
        }
    }
    let ring_states = [
        FlipRing { ring: 0, first_enabled: 1, first_disabled: 90 },
        FlipRing { ring: 1, first_enabled: 1, first_disabled: 80 },
    ];
    let metric = Chosen(Chosen::FIRST_METRIC);
    let flip = |mono_ns, enabled| Flip {
        source,
        nonce: nonce(4211),
        mono_ns,
        is_base: false,
        changes: vec![(Chosen(0), enabled), (metric, enabled)],
        rings: ring_states.to_vec(),
    };
    maker.masks(&flip(MONO + 2 * SECOND, false));
    maker.masks(&flip(MONO + 3 * SECOND, true));
    let whole = Stretch { from_ns: MONO, to_ns: MONO + 6 * SECOND };
    let trigger = |why, seqno: Option<u64>, expression: &str| Trigger {
        source: seqno.map(|_| source),
        mono_ns: MONO + 2 * SECOND,
        wanted: whole,
        held: whole,
        why,
        ring: seqno.map(|_| (nonce(4211), 0)),
        seqno,
        expression: expression.to_owned(),
        note: String::new(),
    };
    maker.trigger(&trigger(TriggerCause::Hand, None, ""));
    maker.trigger(&trigger(TriggerCause::On, Some(17), "handle > 1ms"));
    made("kinds", maker, EndReason::Duration)
}

const POINTS: &str = "
buffer flow;
option time ns monotonic;
frame sent @point { hash id @out(message); u32 bytes; }
frame received @point { hash id @in(message); hash128 body @out(payload); }
frame taken @point { hash128 body @in(payload); }
edge sent -> received within 500ms nearest;
edge received -> taken fifo;
";

/// Messages between two processes, some of which are lost.
pub fn points() -> MadeCapture {
    let mut maker = Maker::begin(7);
    let [a, b] =
        [4211, 4230].map(|pid| maker.source(MakerProgram { frames: POINTS, pid, kind: "" }));
    let (from, to, taker) =
        (maker.ring(a, 0, 4211), maker.ring(b, 0, 4230), maker.ring(b, 1, 4231));
    for n in 0..100u64 {
        let at = MONO + SECOND + n * 2 * MS;
        let tick = |at: u64| ("at", MakerWord::from(TICKS + (at - MONO) / 2 * 3));
        maker.at(at + MS);
        // Ids are reused.
        let id = ("id", MakerWord::from(0xfeed_0000_0000_0000 | (n % 40)));
        let body =
            |n: u64| ("body", MakerWord::Bytes(u128::from(n % 30 + 1).to_be_bytes().to_vec()));
        if n % 12 != 5 {
            maker.frame(from, "sent", &[id.clone(), ("bytes", (n * 10).into()), tick(at)]);
        }
        if n % 9 != 4 {
            maker.frame(to, "received", &[id, body(n), tick(at + 300_000 + n * 100)]);
        }
        if n % 3 != 1 {
            maker.frame(taker, "taken", &[body(n), tick(at + 700_000 + n * 200)]);
        }
        if n == 50 {
            maker.lose(to, Lost { overrun: 7, disk: 0, corrupt: 0 });
        }
    }
    made("points", maker, EndReason::Stopped)
}
