//! Generates captures of messages that go from point to point, and the real causes.
//!
//! ```text
//! source ─m0→ relay ─m1→ 1 to 5 workers ─m1→ done
//!                                side ─m2→ ┘
//! ```
//! Each message starts at a source and ends in `done`, once all its workers and its side have done
//! theirs. A relay translates: what leaves it has another identity. A worker hands on what it got.

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Gap,
    Process, Segment, Source,
};

use crate::random::Dice;

const MONO: u64 = 5_000_000_000_000;
const REAL: u64 = 1_700_000_000_000_000_000;
const STRIDE: usize = 56;
/// How many frames a chunk has.
const CHUNK: usize = 4096;
/// How many rings each of the four processes has.
const RINGS: [u32; 4] = [2, 1, 3, 1];

/// A frame: its process, ring and number.
pub type CauseName = (u32, u32, u64);

#[derive(Debug, Clone, Copy)]
pub struct CauseSchema {
    pub messages: u64,
    /// Identities come again after this number of messages; 0: never.
    pub period: u64,
    /// How long a hop takes at most, ns; a message starts every 10 ns.
    pub delay: u64,
    /// One frame of this many is lost; 0: none.
    pub loss: u64,
    /// One message of this many has no source; 0: none.
    pub strays: u64,
    pub captures: usize,
    /// Policy of the edge lines; None: there are none.
    pub policy: Option<&'static str>,
}

pub struct CausesWorld {
    pub captures: Vec<Vec<u8>>,
    /// The real causes; ends may be lost.
    pub edges: Vec<(CauseName, CauseName)>,
    /// Which frames are lost.
    pub lost: std::collections::HashSet<CauseName>,
    /// Frames that are present.
    pub points: u64,
    /// Times, by message: of its source and of its end.
    pub paths: Vec<(CauseName, CauseName, u64)>,
    pub strays: u64,
}

fn schema(policy: Option<&str>) -> Schema {
    let at = r#"{"name":"at","type":"tsc","offset":32,"at":true,"stamp":true}"#;
    let frame = |name: &str, fields: &str| {
        format!(r#"{{"name":"{name}","kind":"point","size":56,"fields":[{fields},{at}]}}"#)
    };
    let hash = |name: &str, offset: u32, role: &str| {
        format!(r#"{{"name":"{name}","type":"u64","offset":{offset},"hash":"xxh3",{role}}}"#)
    };
    let wide = |role: &str| {
        format!(r#"{{"name":"wide","type":"bytes","len":16,"offset":40,"hash":"raw",{role}}}"#)
    };
    let frames = [
        frame("source", &hash("id", 16, r#""out":"m0""#)),
        frame(
            "relay",
            &format!("{},{}", hash("id", 16, r#""in":"m0""#), hash("next", 24, r#""out":"m1""#)),
        ),
        frame("worker", &hash("id", 16, r#""in":"m1""#)),
        frame("done", &format!("{},{}", hash("id", 16, r#""in":"m1""#), wide(r#""in":"m2""#))),
        frame("side", &wide(r#""out":"m2""#)),
    ];
    let lines =
        [("source", "relay"), ("relay", "worker"), ("worker", "flow.done"), ("side", "done")];
    let lines = lines.map(|(from, to)| {
        let policy = policy.unwrap_or("all");
        format!(r#"{{"from":"{from}","to":"{to}","policy":"{policy}"}}"#)
    });
    let lines = match policy {
        Some(_) => lines.join(","),
        None => String::new(),
    };
    let text = format!(
        r#"{{"v":1,"buffer":"flow","slots":16,"stride":56,"frames":[{}],"enums":[],"edges":[{lines}]}}"#,
        frames.join(",")
    );
    Schema::from_json(text.as_bytes()).unwrap()
}

/// A frame before it is written: the place of its ring, kind, identities, time.
#[derive(Debug, Clone, Copy)]
struct Event {
    ring: usize,
    kind: u16,
    id: u64,
    next: u64,
    wide: u64,
    at: u64,
}

/// All rings: process, ring.
fn rings() -> Vec<(u32, u32)> {
    let of = |process: usize| (0..RINGS[process]).map(move |ring| (process as u32, ring));
    (0..RINGS.len()).flat_map(of).collect()
}

/// Distinct numbers that look like hashes.
fn identity(salt: u64, number: u64, period: u64) -> u64 {
    let number = if period == 0 { number } else { number % period };
    (number.wrapping_add(salt << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub fn world(dice: &mut Dice, kind: CauseSchema) -> CausesWorld {
    let mut events: Vec<Event> = Vec::new();
    // Places of events.
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut paths: Vec<(u32, u32)> = Vec::new();
    let mut strays = 0;
    for n in 0..kind.messages {
        let mut later = |at: u64| at + 1 + dice.below(kind.delay);
        let start = 10 * n + 1000;
        let (m0, m1, m2) =
            (identity(1, n, kind.period), identity(2, n, kind.period), identity(3, n, kind.period));
        let event = |ring, kind, at| Event { ring, kind, id: 0, next: 0, wide: 0, at };
        let mut add = |event: Event| {
            events.push(event);
            events.len() as u32 - 1
        };
        let relayed = later(start);
        let is_stray = kind.strays > 0 && n % kind.strays == 3;
        let relay = Event { id: m0, next: m1, ..event(2, 1, relayed) };
        let (relay, source) = if is_stray {
            (add(relay), None)
        } else {
            let source = add(Event { id: m0, ..event(0, 0, start) });
            (add(relay), Some(source))
        };
        strays += u64::from(is_stray);
        edges.extend(source.map(|source| (source, relay)));
        let side_at = later(start);
        let side = add(Event { wide: m2, ..event(1, 4, side_at) });
        let mut last = (side_at, 0);
        let mut workers = Vec::new();
        for worker in 0..1 + later(0) % 5 {
            let at = later(relayed);
            let worker = add(Event { id: m1, ..event(3 + (n + worker) as usize % 3, 2, at) });
            edges.push((relay, worker));
            workers.push((at, worker));
        }
        workers.sort_unstable();
        last.0 = last.0.max(workers[workers.len() - 1].0);
        let done = add(Event { id: m1, wide: m2, ..event(6, 3, later(last.0)) });
        edges.push((side, done));
        match kind.policy {
            // The last one; among equal ones it is not known which.
            Some("nearest") => edges.extend(workers.last().map(|worker| (worker.1, done))),
            _ => edges.extend(workers.iter().map(|worker| (worker.1, done))),
        }
        paths.extend(source.map(|source| (source, done)));
    }
    // What each ring holds, in the order of time.
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    order.sort_by_key(|&number| (events[number as usize].at, number));
    let all = rings();
    let mut names: Vec<CauseName> = vec![(0, 0, 0); events.len()];
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); all.len()];
    for &count in &order {
        let ring = events[count as usize].ring;
        own[ring].push(count);
        names[count as usize] = (all[ring].0 + 40, all[ring].1, own[ring].len() as u64);
    }
    let lost = names.iter().filter(|_| kind.loss > 0 && dice.chance(kind.loss)).copied().collect();
    let schema = schema(kind.policy);
    let captures = (0..kind.captures).map(|number| {
        let is_here = |ring: usize| all[ring].0 as usize % kind.captures == number;
        let here: Vec<usize> = (0..all.len()).filter(|&index| is_here(index)).collect();
        capture(&schema, number, &here, &own, (&events, &names, &lost))
    });
    CausesWorld {
        captures: captures.collect(),
        edges: edges.iter().map(|edge| (names[edge.0 as usize], names[edge.1 as usize])).collect(),
        points: (events.len() - std::collections::HashSet::len(&lost)) as u64,
        paths: paths
            .iter()
            .map(|&(a, b)| {
                let at = |number: u32| events[number as usize].at;
                (names[a as usize], names[b as usize], at(b) - at(a))
            })
            .collect(),
        lost,
        strays,
    }
}

fn stamp(event: &Event) -> u64 {
    (MONO + event.at) | 1 << 63
}

fn write(event: &Event, seq: u64, to: &mut Vec<u8>) {
    let at = to.len();
    to.extend(seq.to_le_bytes());
    to.extend(u64::from(event.kind).to_le_bytes());
    to.extend(event.id.to_le_bytes());
    to.extend(event.next.to_le_bytes());
    to.extend(stamp(event).to_le_bytes());
    to.extend(event.wide.to_be_bytes());
    to.extend([7; 8]);
    assert_eq!(to.len() - at, STRIDE);
}

type Lost<'a> = (&'a [Event], &'a [CauseName], &'a std::collections::HashSet<CauseName>);

fn capture(
    schema: &Schema,
    number: usize,
    here: &[usize],
    own: &[Vec<u32>],
    (events, names, lost): Lost<'_>,
) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [number as u8 + 1; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let mono = ClockReading::exact(ClockId::Monotonic, MONO, ClockId::Realtime, REAL);
    writer.clock(&[mono]).unwrap();
    let all = rings();
    let mut processes: Vec<u32> = here.iter().map(|&ring| all[ring].0).collect();
    processes.dedup();
    let stride = STRIDE as u32;
    let nonce = |process: u32| 7_000 + u64::from(process);
    for &process in &processes {
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: "flow".to_owned(),
            process: Process {
                pid: 40 + process,
                start_time: 7,
                exe: format!("/bin/{process}"),
                ..Process::default()
            },
            segments: vec![Segment { nonce: nonce(process), rings: 4, slots: 16, stride }],
            clock: "tick".to_owned(),
            ..Source::default()
        };
        writer.source(process as u16, &source).unwrap();
    }
    let mut end = MONO;
    for &place in here {
        let (process, ring) = all[place];
        let (source, nonce) = (process as u16, nonce(process));
        let mut rest = &own[place][..];
        while let Some(first) = rest.first() {
            let is_lost = |number: &u32| lost.contains(&names[*number as usize]);
            let missing = is_lost(first);
            let run = rest.iter().take_while(|number| is_lost(number) == missing).count();
            let run = if missing { run } else { run.min(CHUNK) };
            let (own, behind) = rest.split_at(run);
            rest = behind;
            let first_seq = names[*first as usize].2;
            if missing {
                let (cause, count) = (Cause::Overrun, run as u64);
                writer.gap(&Gap { source, nonce, ring, first_seq, count, cause }).unwrap();
                continue;
            }
            let all: Vec<&Event> = own.iter().map(|&number| &events[number as usize]).collect();
            let mut payload = Vec::with_capacity(run * STRIDE);
            all.iter().zip(first_seq..).for_each(|(event, seq)| write(event, seq, &mut payload));
            let last = all[all.len() - 1].at;
            end = end.max(MONO + last);
            let head = FramesHead {
                source,
                nonce,
                ring,
                tid: 100 + 10 * process + ring,
                first_seq,
                count: run as u32,
                stride,
                drained_mono_ns: MONO + last,
                t_min: stamp(all[0]),
                t_max: stamp(all[all.len() - 1]),
                frame_mask: all.iter().fold(0, |mask, event| mask | 1 << event.kind),
                ..FramesHead::default()
            };
            writer.frames(&head, &payload).unwrap();
        }
    }
    let end = End::new(EndReason::Stopped, REAL + (end - MONO), end + 1);
    writer.end(&end).unwrap()
}
