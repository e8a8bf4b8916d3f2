//! Random captures of spans and chains.

use std::collections::{BTreeMap, BTreeSet};

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Gap,
    Process, Segment, Source,
};

use crate::random::Dice;

const MONO: u64 = 5_000_000_000_000;
pub const REAL: u64 = 1_700_000_000_000_000_000;
const END: u64 = 1_000_000;
const STRIDE: usize = 32;

/// Five kinds in one buffer. `ts`, `capture` and `Dur` are keys that columns give way to.
fn schema() -> Schema {
    let frame = |name: &str, kind: &str, mark: &str, keys: &str, more: &str| {
        let mark_enum = format!("{}{}{}", name[..1].to_uppercase(), &name[1..], mark);
        format!(
            r#"{{"name":"{name}","kind":"{kind}","size":32,"fields":[{keys},{{"name":"value","type":"u32","unit":"B","offset":20}},{{"name":"{mark}","type":"enum","enum":"{mark_enum}","offset":11,"{mark}":true}},{{"name":"at","type":"tsc","offset":24,"at":true,"stamp":true}}]{more}}}"#
        )
    };
    let id = r#"{"name":"id","type":"u8","offset":10,"key":true}"#;
    let text = r#"{"name":"ts","type":"char","len":4,"offset":12,"key":true}"#;
    let frames = [
        frame("request", "span", "edge", id, r#","across":"process""#),
        frame(
            "retry",
            "span",
            "edge",
            &format!("{id},{text}"),
            r#","across":"process","fifo":true"#,
        ),
        frame("visit", "span", "edge", &id.replace("\"id\"", "\"Dur\""), r#","across":"host""#),
        frame("trip", "span", "edge", id, r#","across":"everywhere","fifo":true"#),
        frame("encode", "chain", "step", id, ""),
    ];
    let marks = ["RequestEdge", "RetryEdge", "VisitEdge", "TripEdge"]
        .map(|name| format!(r#"{{"name":"{name}","type":"u8","values":[["begin",0],["end",1]]}}"#));
    let steps = r#"{"name":"Encodestep","type":"u8","values":[["start",0],["dsp",1],["send",2]]}"#;
    let marks = marks.join(",").replace("Edge\"", "edge\"");
    let text = format!(
        r#"{{"v":1,"buffer":"net","slots":16,"stride":32,"frames":[{}],"enums":[{marks},{steps}]}}"#,
        frames.join(",")
    );
    Schema::from_json(text.as_bytes()).unwrap()
}

/// A frame that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFrames {
    pub capture: usize,
    pub boot: u8,
    pub pid: u32,
    pub ring: u32,
    pub nonce: u64,
    pub seq: u64,
    pub kind: usize,
    pub key: u8,
    pub text: &'static str,
    pub mark: u8,
    pub value: u32,
    /// ns since the start; None: not taken.
    pub at: Option<u64>,
    pub lost: bool,
}

/// Where the frames of one ring are missing, ns since the start.
#[derive(Debug, Clone)]
pub struct Hole {
    pub boot: u8,
    pub pid: u32,
    pub times: (i128, i128),
}

pub struct WholesWorld {
    pub captures: Vec<Vec<u8>>,
    pub written: Vec<WrittenFrames>,
    pub holes: Vec<Hole>,
    pub boots: BTreeSet<u8>,
}

/// The random choices of a world, except those of its dice.
#[derive(Debug, Clone, Copy)]
pub struct WholeSchema {
    /// Frames are lost.
    pub gaps: bool,
    /// Some frames say no time.
    pub untimed: bool,
    /// Heads state the times of their frames.
    pub stated: bool,
    pub boots: u8,
    /// Frames, at most.
    pub frames: u64,
}

/// A ring: capture, process, and what was written to it.
struct WholesRing {
    capture: usize,
    boot: u8,
    pid: u32,
    source: u16,
    nonce: u64,
    ring: u32,
    frames: Vec<WrittenFrames>,
}

pub fn world(dice: &mut Dice, kind: WholeSchema) -> WholesWorld {
    let schema = schema();
    let captures = 1 + dice.below(3) as usize;
    let boots: Vec<u8> = (0..captures).map(|_| dice.below(kind.boots.into()) as u8).collect();
    let mut rings: Vec<WholesRing> = Vec::new();
    for (capture, &boot) in boots.iter().enumerate() {
        // The second capture may be of the same processes.
        for source in 0..1 + dice.below(2) as u16 {
            let nonce = dice.word();
            for ring in 0..1 + dice.below(2) as u32 {
                let pid = 40 + u32::from(source);
                let frames = Vec::new();
                rings.push(WholesRing { capture, boot, pid, source, nonce, ring, frames });
            }
        }
    }
    let (mut now, texts) = (10, ["", "a", "ab\0x", "abcd"]);
    for _ in 0..dice.below(kind.frames) {
        now += dice.below(3);
        let at = dice.below(rings.len() as u64) as usize;
        let ring = &mut rings[at];
        let kind_of = dice.below(5) as usize;
        let mark = match kind_of {
            4 => dice.below(3) as u8,
            _ => dice.below(2) as u8,
        };
        let untimed = kind.untimed && dice.chance(12);
        ring.frames.push(WrittenFrames {
            capture: ring.capture,
            boot: ring.boot,
            pid: ring.pid,
            ring: ring.ring,
            nonce: ring.nonce,
            seq: ring.frames.len() as u64 + 1,
            kind: kind_of,
            key: dice.below(4) as u8,
            text: texts[dice.below(4) as usize],
            // Now and then none that there is.
            mark: if kind.untimed && dice.chance(30) { 9 } else { mark },
            value: dice.below(1000) as u32,
            at: (!untimed).then_some(now),
            lost: false,
        });
    }
    let mut holes = Vec::new();
    if kind.gaps {
        for ring in &mut rings {
            for _ in 0..dice.below(3) {
                let from = dice.below(ring.frames.len() as u64 + 1) as usize;
                let to = (from + dice.below(6) as usize).min(ring.frames.len());
                ring.frames[from..to].iter_mut().for_each(|frame| frame.lost = true);
            }
            let mut at = 0;
            while let Some(from) =
                ring.frames[at..].iter().position(|frame| frame.lost).map(|index| index + at)
            {
                let to = ring.frames[from..].iter().position(|frame| !frame.lost);
                let to = to.map_or(ring.frames.len(), |index| index + from);
                let time = |frames: &WrittenFrames| i128::from(frames.at.unwrap());
                let lo = ring.frames[..from].last().map_or(0, time);
                let hi = ring.frames.get(to).map_or(i128::from(END), time);
                holes.push(Hole { boot: ring.boot, pid: ring.pid, times: (lo, hi) });
                at = to;
            }
        }
    }
    let bytes = boots.iter().enumerate().map(|(capture, boot)| {
        let mut own: Vec<&WholesRing> =
            rings.iter().filter(|ring| ring.capture == capture).collect();
        own.sort_by_key(|ring| (ring.source, ring.ring));
        self::capture(dice, &schema, (capture, *boot), &own, kind)
    });
    let captures = bytes.collect();
    let written = rings.into_iter().flat_map(|ring| ring.frames).collect();
    WholesWorld { captures, written, holes, boots: boots.into_iter().collect() }
}

fn bytes_of(frame: &WrittenFrames) -> Vec<u8> {
    let mut bytes = vec![0; STRIDE];
    bytes[..8].copy_from_slice(&frame.seq.to_le_bytes());
    bytes[8..10].copy_from_slice(&(frame.kind as u16).to_le_bytes());
    bytes[10] = frame.key;
    bytes[11] = frame.mark;
    bytes[12..12 + frame.text.len()].copy_from_slice(frame.text.as_bytes());
    bytes[20..24].copy_from_slice(&frame.value.to_le_bytes());
    let at = frame.at.map_or(0, |at| (MONO + at) | 1 << 63);
    bytes[24..].copy_from_slice(&at.to_le_bytes());
    bytes
}

fn capture(
    dice: &mut Dice,
    schema: &Schema,
    (number, boot): (usize, u8),
    rings: &[&WholesRing],
    kind: WholeSchema,
) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [number as u8 + 1; 16],
        host: format!("host{boot}"),
        boot_id: format!("boot{boot}"),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let mono = ClockReading::exact(ClockId::Monotonic, MONO, ClockId::Realtime, REAL);
    writer.clock(&[mono]).unwrap();
    let sources: BTreeMap<u16, (u32, u64)> =
        rings.iter().map(|ring| (ring.source, (ring.pid, ring.nonce))).collect();
    for (id, (pid, nonce)) in sources {
        let stride = STRIDE as u32;
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: "net".to_owned(),
            process: Process { pid, start_time: 7, exe: "/bin/x".to_owned(), ..Process::default() },
            segments: vec![Segment { nonce, rings: 2, slots: 16, stride }],
            clock: "tick".to_owned(),
            ..Source::default()
        };
        writer.source(id, &source).unwrap();
    }
    // Chunks of rings, in the order in which a listener that looks now and then had them.
    let mut next = vec![0; rings.len()];
    let mut look = 0;
    while look <= END / 2 {
        look = if look > 600 { END } else { look + 1 + dice.below(120) };
        for (ring, next) in rings.iter().zip(&mut next) {
            let is_there = |frames: &WrittenFrames| frames.at.is_none_or(|at| at <= look);
            let there = ring.frames[*next..].iter().take_while(|frame| is_there(frame)).count();
            let until = *next + there;
            while *next < until {
                let run = &ring.frames[*next..until];
                let lost = run[0].lost;
                let run: Vec<_> = run.iter().take_while(|frames| frames.lost == lost).collect();
                let most = if lost { run.len() } else { 1 + dice.below(run.len() as u64) as usize };
                let run = &run[..most];
                *next += run.len();
                let (source, nonce, ring) = (ring.source, ring.nonce, ring.ring);
                let (first_seq, count) = (run[0].seq, run.len() as u64);
                if lost {
                    let cause = [Cause::Overrun, Cause::Disk][dice.below(2) as usize];
                    let gap = Gap { source, nonce, ring, first_seq, count, cause };
                    writer.gap(&gap).unwrap();
                    continue;
                }
                let times =
                    || run.iter().filter_map(|frames| frames.at).map(|at| (MONO + at) | 1 << 63);
                let (t_min, t_max) = if kind.stated {
                    (times().min().unwrap_or(0), times().max().unwrap_or(0))
                } else {
                    (0, 0)
                };
                let head = FramesHead {
                    source,
                    nonce,
                    ring,
                    tid: 100 + ring,
                    first_seq,
                    count: count as u32,
                    stride: STRIDE as u32,
                    drained_mono_ns: MONO + look,
                    t_min,
                    t_max,
                    ..FramesHead::default()
                };
                let payload: Vec<u8> = run.iter().flat_map(|frames| bytes_of(frames)).collect();
                writer.frames(&head, &payload).unwrap();
            }
        }
    }
    let end = End::new(EndReason::Stopped, REAL + END, MONO + END);
    writer.end(&end).unwrap()
}
