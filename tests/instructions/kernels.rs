//! The measured parts of ppt itself:
//!
//! * `capture FRAMES FILE` writes a capture, the same each time;
//! * `dump FILE` makes a table of it, and discards that;
//! * `drain FRAMES` drains this number of frames from a ring into a capture, and discards that. It
//!   always writes the same number into the ring, so the difference is the cost of draining.

use std::error::Error;
use std::fs::File;
use std::io::{Write, sink};
use std::path::Path;
use std::sync::Arc;

use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Segment, Source,
};
use ppt_dump::{DumpRequest, dump};
use ppt_listener::{Feed, Listener};
use ppt_segment::{Created, Geometry, SegmentIdentity, RingWriter};

/// Two i32, three u64 and a stamp, as in the benchmarks.
const STRIDE: u32 = 48;
/// Frames of a full chunk of the listener.
const CHUNK: u64 = (512 << 10) / STRIDE as u64;
const LOG2_SLOTS: u32 = 17;
const NONCE: u64 = 7;
/// The counter's value at the start of a capture.
const TICKS: u64 = 5_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["capture", frames, file] => capture(frames.parse()?, File::create(file)?)?,
        ["dump", file] => _ = dump(Path::new(file), &DumpRequest::default(), sink())?,
        ["drain", frames] => drain(frames.parse()?)?,
        _ => return Err("capture FRAMES FILE, dump FILE or drain FRAMES".into()),
    }
    Ok(())
}

/// The words of a frame after its sequence number.
fn words(seq: u64) -> [u64; 5] {
    [seq & 0xffff_ffff | seq >> 1 << 32, seq, seq, seq, TICKS + 2_100 * seq]
}

fn source() -> Source {
    let field = |(name, ty, offset): (&str, FieldType, u32)| Field {
        name: name.into(),
        at: ty == FieldType::Tsc,
        ty,
        array: None,
        offset,
        interval: None,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let fields = [
        ("a", FieldType::I32, 8),
        ("b", FieldType::I32, 12),
        ("c", FieldType::U64, 16),
        ("d", FieldType::U64, 24),
        ("e", FieldType::U64, 32),
        ("at", FieldType::Tsc, 40),
    ];
    let schema = Schema {
        v: 1,
        buffer: "stamped".into(),
        slots: 1 << LOG2_SLOTS,
        stride: STRIDE,
        frames: vec![Frame {
            name: "stamped".into(),
            kind: "plain".into(),
            size: STRIDE,
            fields: fields.into_iter().map(field).collect(),
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    };
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer,
        ..Source::default()
    }
}

fn capture(frames: u64, out: impl Write) -> std::io::Result<()> {
    let mut writer = CaptureWriter::create(out, &FileHeader::default())?;
    let reading = |tick: u64, mono: u64| {
        let (a, b) = (ClockId::Tick, ClockId::Monotonic);
        ClockReading { a, a_before: tick, b, b_value: mono, a_after: tick, distrusted: false }
    };
    let (a, b) = (ClockId::Monotonic, ClockId::Realtime);
    let epoch = 1_795_238_091_000_000_000;
    let realtime =
        ClockReading { a, a_before: 0, b, b_value: epoch, a_after: 0, distrusted: false };
    let second = 1_000_000_000;
    writer.clock(&[
        reading(TICKS, second),
        reading(TICKS + 2_100_000_001, 2 * second),
        realtime,
    ])?;
    let segments = vec![Segment { nonce: NONCE, rings: 1, slots: 16, stride: STRIDE }];
    writer.source(0, &Source { segments, ..source() })?;
    for first_seq in (1..=frames).step_by(CHUNK as usize) {
        let next = (first_seq + CHUNK).min(frames + 1);
        let payload: Vec<u8> = (first_seq..next)
            .flat_map(|seq| [seq].into_iter().chain(words(seq)).flat_map(u64::to_le_bytes))
            .collect();
        let count = (next - first_seq) as u32;
        let tid = 12_345;
        let head = FramesHead {
            nonce: NONCE,
            tid,
            first_seq,
            count,
            stride: STRIDE,
            ..Default::default()
        };
        writer.frames(&head, &payload)?;
    }
    writer.end(&End::new(EndReason::Stopped, 0, 0))?;
    Ok(())
}

fn drain(frames: u64) -> Result<(), Box<dyn Error>> {
    let geometry = Geometry::new(STRIDE, LOG2_SLOTS, 1)?;
    let identity = SegmentIdentity { nonce: NONCE, schema_hash: 0, geometry };
    let mut key = std::process::id() as u16;
    let random = || {
        key = key.wrapping_add(1);
        key
    };
    let segment = Arc::new(ppt_segment::Segment::create(identity, None, Created::default(), random)?);
    let ring = segment.ring(0);
    assert!(ring.claim(1), "the ring is free");
    let all = geometry.slots() / 4 * 3;
    let mut writer = RingWriter::new(ring);
    (1..=all).for_each(|seq| _ = writer.write(words(seq).into_iter()));
    let first = vec![all.checked_sub(frames).ok_or("more frames than the ring is given")?];
    let (unattended, populated, alive) = (Vec::new(), 1, None);
    let cells = Default::default();
    let feed = Feed { source: source(), segment, first, cells, unattended, populated, alive };
    let options = ppt_listener::ListenerOptions::default();
    let listener = Listener::start(sink(), FileHeader::default(), vec![feed], options)?;
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert_eq!(summary.feeds[0].captured, frames);
    Ok(())
}
