//! Captures that questions take long to answer: `cargo bench -p ppt-capture --bench answers -- FOLDER
//! SHAPE [FRAMES]`. `bench/answers/run` makes them and measures the answers.
//!
//! | shape | frames |
//! |---|---|
//! | `calls` | 112 bytes: an interval, numbers, an enum, a text |
//! | `points` | each message leaves one point and enters another |
//! | `wide` | text of 3,900 bytes |
//! | `kinds` | 200 kinds in turn |

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::stamps::Stamps;
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, Segment,
    Source,
};

type Failed = Box<dyn Error>;

/// CLOCK_MONOTONIC and CLOCK_REALTIME at the beginning, ns; a tick takes half a nanosecond.
const MONO: u64 = 1_000_000_000_000;
const REAL: u64 = 1_795_238_091_000_000_000;
/// Between two frames, ns.
const STEP: u64 = 1_000;
/// Bytes of a chunk of frames, as the listener makes them.
const CHUNK: usize = 512 << 10;
const RINGS: u32 = 2;
const KINDS: usize = 200;

const CALLS: &str = "
option time tsc;
buffer calls;
enum Verb : u8 { GET, PUT, LIST, DROP }
frame call {
    interval time handle @at;
    u64 id; u64 parent; u64 bytes @unit(\"B\"); u64 cost; i64 delta;
    double load;
    u32 who; Verb verb;
    char name[32];
}
";

const POINTS: &str = "
option time tsc;
buffer points;
frame sent @point { hash message @out(message); }
frame taken @point { hash message @in(message); }
";

const WIDE: &str = "
option time tsc;
buffer wide;
frame page { time at; u32 number; char text[3900]; }
";

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [folder, shape, more @ ..] = &args[..] else {
        return Err("usage: FOLDER calls|points|wide|kinds [FRAMES]".into());
    };
    let frames = more.first().map(|word| word.parse()).transpose()?;
    let shape = match shape.as_str() {
        "calls" => {
            Shape { text: CALLS.to_owned(), frames: frames.unwrap_or(10_000_000), fill: call }
        }
        "points" => {
            Shape { text: POINTS.to_owned(), frames: frames.unwrap_or(20_000_000), fill: point }
        }
        "wide" => Shape { text: WIDE.to_owned(), frames: frames.unwrap_or(62_500), fill: page },
        "kinds" => Shape { text: kinds(), frames: frames.unwrap_or(10_000_000), fill: one_of_many },
        other => return Err(format!("no shape `{other}`").into()),
    };
    shape.write(&Path::new(folder).join("out.bin"))
}

/// A capture to be made.
struct Shape {
    /// The frame file.
    text: String,
    frames: u64,
    /// Fills in a frame.
    fill: fn(&mut Frame<'_>),
}

/// A frame on its way.
struct Frame<'a> {
    schema: &'a Schema,
    bytes: &'a mut [u8],
    /// Counted over all rings.
    number: u64,
    /// Its time, in ticks.
    now: u64,
    random: u64,
}

impl Frame<'_> {
    /// Says of which kind the frame is.
    fn kind(&mut self, kind: usize) {
        if self.schema.frames.len() > 1 {
            self.bytes[8..10].copy_from_slice(&(kind as u16).to_le_bytes());
        }
    }

    /// Sets the field of that index.
    fn set(&mut self, kind: usize, field: usize, value: &[u8]) {
        let at = self.schema.frames[kind].fields[field].offset as usize;
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Sets all fields, in their order.
    fn fill<const N: usize>(&mut self, kind: usize, values: [&[u8]; N]) {
        self.kind(kind);
        values.iter().enumerate().for_each(|(field, value)| self.set(kind, field, value));
    }
}

fn call(frame: &mut Frame<'_>) {
    let (random, now) = (frame.random, frame.now);
    let length = 2 * (200 + random % 700);
    let name = format!("/api/v1/item/{:04}", random >> 20 & 0xfff);
    frame.fill(
        0,
        [
            &(now - length).to_le_bytes(),
            &now.to_le_bytes(),
            &frame.number.to_le_bytes(),
            &(frame.number / 8).to_le_bytes(),
            &(random % 65_536).to_le_bytes(),
            &(random >> 8 & 0xff_ffff).to_le_bytes(),
            &((random >> 3 & 0x7fff) as i64 - 16_384).to_le_bytes(),
            &((random >> 11 & 0x3ff) as f64 / 1024.0).to_le_bytes(),
            &((random >> 30) as u32 % 1_000).to_le_bytes(),
            &[(random >> 50) as u8 % 4],
            name.as_bytes(),
        ],
    );
}

/// A message leaves the one ring, and enters the other one.
fn point(frame: &mut Frame<'_>) {
    let (kind, number) = ((frame.number % 2) as usize, frame.number / 2);
    let message = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let fields = &frame.schema.frames[kind].fields;
    let place = |name: &str| fields.iter().position(|field| field.name == name);
    let places = (place("message"), place("at"));
    frame.kind(kind);
    if let (Some(id), Some(at)) = places {
        let now = frame.now.to_le_bytes();
        frame.set(kind, id, &message.to_le_bytes());
        frame.set(kind, at, &now);
    }
}

fn page(frame: &mut Frame<'_>) {
    let (number, now) = (frame.number, frame.now);
    let text: String = (0..300).fold(String::new(), |mut text, word| {
        let _ = write!(text, "{:012x} ", (number + word).wrapping_mul(0x9e37_79b9_7f4a) >> 4);
        text
    });
    let text = &text.as_bytes()[..3_899];
    frame.fill(0, [&now.to_le_bytes(), &(number as u32).to_le_bytes(), text]);
}

fn one_of_many(frame: &mut Frame<'_>) {
    let (now, random) = (frame.now, frame.random);
    let kind = (random >> 7) as usize % KINDS;
    frame.fill(kind, [&now.to_le_bytes(), &frame.number.to_le_bytes(), &random.to_le_bytes()]);
}

/// A frame file of many kinds.
fn kinds() -> String {
    let mut text = "option time tsc;\nbuffer kinds;\n".to_owned();
    for kind in 0..KINDS {
        let _ = writeln!(text, "frame kind_{kind} {{ time at; u64 number; u64 value; }}");
    }
    text
}

impl Shape {
    fn write(&self, path: &Path) -> Result<(), Failed> {
        let schema = ppt_frame_dsl::compile(self.text.as_bytes(), "made.frame");
        let schema = schema.map_err(|error| format!("{error:?}"))?.schema;
        let header = FileHeader {
            capture_id: [7; 16],
            host: "here".to_owned(),
            boot_id: "boot".to_owned(),
            tool: "bench".to_owned(),
            created_realtime_ns: REAL,
            created_mono_ns: MONO,
        };
        let mut writer = CaptureWriter::create(BufWriter::new(File::create(path)?), &header)?;
        clocks(&mut writer, self.frames * STEP)?;
        let stride = schema.stride as usize;
        let segment = Segment { nonce: 7, rings: RINGS, slots: 1 << 16, stride: schema.stride };
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            process: Process { pid: 4_211, exe: "/opt/made".to_owned(), ..Process::default() },
            segments: vec![segment],
            clock: "tick".to_owned(),
            ..Source::default()
        };
        writer.source(0, &source)?;
        let stamps = Stamps::from_json(&source.schema_json);
        let mut rings: Vec<(u64, Vec<u8>)> = (0..RINGS).map(|_| (1, Vec::new())).collect();
        let mut random = 88_172_645_463_325_252u64;
        for number in 0..self.frames {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let ring = (number % u64::from(RINGS)) as usize;
            let (first, bytes) = &mut rings[ring];
            let at = bytes.len();
            bytes.resize(at + stride, 0);
            let seqno = *first + (at / stride) as u64;
            bytes[at..at + 8].copy_from_slice(&seqno.to_le_bytes());
            let now = 2 * (MONO + number * STEP);
            let (schema, slot) = (&schema, &mut bytes[at..]);
            (self.fill)(&mut Frame { schema, bytes: slot, number, now, random });
            if bytes.len() + stride > CHUNK || number + u64::from(RINGS) >= self.frames {
                let words: &[[u8; 8]] = bytes.as_chunks().0;
                let stamp = stamps.stamp(words, stride / 8);
                let count = bytes.len() / stride;
                let head = FramesHead {
                    nonce: 7,
                    ring: ring as u32,
                    tid: 4_211 + ring as u32,
                    first_seq: *first,
                    count: count as u32,
                    stride: schema.stride,
                    drained_mono_ns: MONO + number * STEP + 50_000,
                    t_min: stamp.t_min,
                    t_max: stamp.t_max,
                    frame_mask: stamp.frame_mask,
                    ..FramesHead::default()
                };
                writer.frames(&head, bytes)?;
                *first += count as u64;
                bytes.clear();
            }
        }
        let mono_ns = MONO + self.frames * STEP;
        let end = End {
            reason: EndReason::Stopped,
            message: String::new(),
            rings: Vec::new(),
            drops: Vec::new(),
            realtime_ns: REAL + self.frames * STEP,
            mono_ns,
        };
        writer.end(&end)?.flush()?;
        Ok(())
    }
}

/// Readings of the clocks, one a second.
fn clocks(writer: &mut CaptureWriter<impl Write>, length: u64) -> Result<(), Failed> {
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    for second in 0..=length / 1_000_000_000 + 1 {
        let passed = second * 1_000_000_000;
        let mono = MONO + passed;
        writer.clock(&[
            reading(ClockId::Tick, 2 * mono, ClockId::Monotonic, mono),
            reading(ClockId::Monotonic, mono, ClockId::Realtime, REAL + passed),
        ])?;
    }
    Ok(())
}
