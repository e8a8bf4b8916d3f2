//! Captures of known content, and the reader's result for given bytes.

use std::collections::BTreeSet;
use std::io::Cursor;

use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{
    Capture, CaptureError, CaptureItem, CaptureWriter, Cause, Chosen, Chunk, ClockId, ClockReading,
    Codec, Damage, Dropped, Drops, End, EndReason, FileHeader, Flip, FlipRing, FramesHead, Gap,
    Lost, Module, Modules, Packer, RingEnd, Segment, Source, Stretch, ThreadName, ThreadNames,
    Trigger, TriggerCause,
};
use proptest::prelude::*;

pub const STRIDE: u32 = 24;
pub const NONCE: u64 = 0xfeed_beef;

/// Source, ring, sequence number, bytes.
pub type FrameRow = (u16, u32, u64, Vec<u8>);

#[derive(Debug, Clone)]
pub enum Op {
    Frames { ring: u32, count: u32, lost: Lost },
    Gap { ring: u32, count: u64, cause: Cause },
    Clock,
    Drops(u64),
    Source,
    Trigger(u64),
    Masks(u64),
    Threads(u64),
    Modules(u64),
}

pub struct WrittenCapture {
    pub bytes: Vec<u8>,
    pub rows: Vec<FrameRow>,
    pub rings: Vec<RingEnd>,
    pub dropped: Dropped,
    pub triggers: Vec<Trigger>,
    pub flips: Vec<Flip>,
    pub names: Vec<ThreadNames>,
    pub modules: Vec<Modules>,
}

pub fn schema() -> Schema {
    let field = |name: &str, offset| Field {
        name: name.to_owned(),
        ty: FieldType::U64,
        array: None,
        offset,
        interval: None,
        at: false,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    Schema {
        v: 1,
        buffer: "test".to_owned(),
        slots: 16,
        stride: STRIDE,
        frames: vec![Frame {
            name: "test".to_owned(),
            kind: "plain".to_owned(),
            size: STRIDE,
            fields: vec![field("a", 8), field("b", 16)],
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

pub fn source() -> Source {
    let schema = schema();
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: "test".to_owned(),
        segments: vec![Segment { nonce: NONCE, rings: 4, slots: 16, stride: STRIDE }],
        tags: vec![("build".to_owned(), "r\u{1b}1".to_owned())],
        ..Source::default()
    }
}

pub fn header() -> FileHeader {
    FileHeader { capture_id: *b"0123456789abcdef", host: "h".to_owned(), ..FileHeader::default() }
}

pub fn frame(ring: u32, seq: u64) -> Vec<u8> {
    let words = [seq, seq.wrapping_mul(0x9e37_79b9_7f4a_7c15), u64::from(ring) << 32 | 7];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Every codec occurs; equal counts get the same one.
pub fn codec(count: u32) -> Option<Codec> {
    match count {
        ..4 => None,
        _ if count.is_multiple_of(2) => Some(Codec::Lz4),
        _ => Some(Codec::Zstd),
    }
}

pub fn write(ops: &[Op]) -> WrittenCapture {
    let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
    writer.source(0, &source()).unwrap();
    let mut rows = Vec::new();
    let mut rings: Vec<RingEnd> = (0..4)
        .map(|ring| RingEnd { nonce: NONCE, ring, first_seq: 1, next_seq: 1, ..RingEnd::default() })
        .collect();
    let mut dropped = Dropped::default();
    let (mut triggers, mut flips, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut modules = Vec::new();
    for op in ops {
        match op {
            Op::Frames { ring, count, lost } => {
                let account = &mut rings[*ring as usize];
                let first_seq = account.next_seq + lost.total();
                let head = FramesHead {
                    nonce: NONCE,
                    ring: *ring,
                    first_seq,
                    count: *count,
                    stride: STRIDE,
                    lost_before: *lost,
                    ..FramesHead::default()
                };
                let seqs = first_seq..head.next_seq();
                let payload: Vec<u8> = seqs.clone().flat_map(|seq| frame(*ring, seq)).collect();
                let mut packer = Packer::new(codec(*count));
                writer.packed_frames(&head, &packer.pack(&payload)).unwrap();
                rows.extend(seqs.map(|seq| (0, *ring, seq, frame(*ring, seq))));
                account.next_seq = head.next_seq();
                account.captured += u64::from(*count);
                account.lost += *lost;
            }
            Op::Gap { ring, count, cause } => {
                let account = &mut rings[*ring as usize];
                let first_seq = account.next_seq;
                let (ring, count, cause) = (*ring, *count, *cause);
                writer
                    .gap(&Gap { source: 0, nonce: NONCE, ring, first_seq, count, cause })
                    .unwrap();
                account.next_seq += count;
                account.lost.add(cause, count);
            }
            Op::Clock => {
                let (a, b) = (ClockId::Tick, ClockId::Monotonic);
                let reading =
                    ClockReading { a, a_before: 1, b, b_value: 2, a_after: 3, distrusted: false };
                writer.clock(&[reading, reading]).unwrap();
            }
            Op::Drops(nested) => {
                dropped.nested += nested;
                writer.drops(&Drops { source: 0, dropped, mono_ns: 0 }).unwrap();
            }
            Op::Source => writer.source(0, &source()).unwrap(),
            Op::Masks(at) => {
                let flip = flip(*at);
                writer.masks(&flip).unwrap();
                flips.push(flip);
            }
            Op::Threads(at) => {
                let some = thread_names(*at);
                writer.thread_names(&some).unwrap();
                names.push(some);
            }
            Op::Modules(at) => {
                let some = some_modules(*at);
                writer.modules(&some).unwrap();
                modules.push(some);
            }
            Op::Trigger(at) => {
                let trigger = trigger(*at);
                writer.trigger(&trigger).unwrap();
                triggers.push(trigger);
            }
        }
    }
    let end = End {
        reason: EndReason::Duration,
        message: "done".to_owned(),
        rings: rings.clone(),
        drops: vec![(0, dropped)],
        realtime_ns: 5,
        mono_ns: 6,
    };
    WrittenCapture {
        bytes: writer.end(&end).unwrap(),
        rows,
        rings,
        dropped,
        triggers,
        flips,
        names,
        modules,
    }
}

/// A flip of the only frame, in some rings.
fn flip(at: u64) -> Flip {
    let ring = |ring| FlipRing { ring, first_enabled: at + 1, first_disabled: at + 2 };
    Flip {
        source: 0,
        nonce: NONCE,
        mono_ns: at,
        is_base: at.is_multiple_of(3),
        changes: vec![(Chosen(0), at.is_multiple_of(2))],
        rings: (0..at as u32 % 5).map(ring).collect(),
    }
}

/// Some modules with paths of any bytes.
fn some_modules(at: u64) -> Modules {
    let module = |number: u64| Module {
        start: number << 20,
        end: (number << 20) + 0x1000 * (1 + at % 3),
        offset: at << 12,
        address: at.is_multiple_of(2).then_some(at << 4),
        path: vec![at as u8; (at % 70) as usize],
        build_id: vec![number as u8; (number % 21) as usize],
        is_deleted: at.is_multiple_of(5),
    };
    Modules {
        source: 0,
        is_base: at % 3 == 1,
        mono_ns: at,
        left_out: at as u32 % 2,
        mapped: (1..at % 9).map(module).collect(),
    }
}

/// Some names of any bytes.
fn thread_names(at: u64) -> ThreadNames {
    let name = |tid: u32| ThreadName { tid, mono_ns: at, name: [(at as u8).wrapping_mul(7); 16] };
    ThreadNames {
        source: 0,
        is_base: at.is_multiple_of(3),
        names: (1..at as u32 % 5).map(name).collect(),
    }
}

/// A trigger on a frame, or on nothing.
fn trigger(at: u64) -> Trigger {
    let of_frame = at.is_multiple_of(2);
    Trigger {
        source: of_frame.then_some(0),
        mono_ns: at,
        wanted: Stretch { from_ns: at / 2, to_ns: 2 * at },
        held: Stretch { from_ns: at, to_ns: at },
        why: if of_frame { TriggerCause::On } else { TriggerCause::Hand },
        ring: of_frame.then_some((NONCE, at as u32 % 4)),
        seqno: of_frame.then_some(at + 1),
        expression: "a > 1".repeat(at as usize % 3),
        note: "because".into(),
    }
}

#[derive(Default)]
pub struct ReadCapture {
    pub rows: Vec<FrameRow>,
    pub damaged: Vec<Damage>,
    pub cut: Option<u64>,
    pub kinds: Vec<u16>,
    pub triggers: Vec<Trigger>,
    pub flips: Vec<Flip>,
    pub names: Vec<ThreadNames>,
    pub modules: Vec<Modules>,
}

pub fn read_all(capture: &mut Capture) -> ReadCapture {
    let mut all = ReadCapture::default();
    while let Some(item) = capture.read().unwrap() {
        match item {
            CaptureItem::Damage(damage) => all.damaged.push(damage),
            CaptureItem::Chunk(Chunk::Frames(frames)) => {
                let (source, ring) = (frames.head.source, frames.head.ring);
                all.rows
                    .extend(frames.iter().map(|(seq, bytes)| (source, ring, seq, bytes.to_vec())));
            }
            CaptureItem::Chunk(Chunk::Other(kind)) => all.kinds.push(kind),
            CaptureItem::Chunk(Chunk::Trigger(trigger)) => all.triggers.push(trigger),
            CaptureItem::Chunk(Chunk::Masks(flip)) => all.flips.push(flip),
            CaptureItem::Chunk(Chunk::Threads(names)) => all.names.push(names),
            CaptureItem::Chunk(Chunk::Modules(modules)) => all.modules.push(modules),
            CaptureItem::Chunk(_) => {}
        }
    }
    all.cut = capture.finish().cut;
    all
}

pub fn read(bytes: &[u8]) -> Result<ReadCapture, CaptureError> {
    Ok(read_all(&mut Capture::from_reader(Cursor::new(bytes.to_vec()))?))
}

/// Start and end of each chunk, according to the format.
pub fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut at = 256;
    let mut all = Vec::new();
    while at < bytes.len() {
        let header = u32::from_le_bytes(bytes[at + 16..at + 20].try_into().unwrap()) as usize;
        let stored = u64::from_le_bytes(bytes[at + 32..at + 40].try_into().unwrap()) as usize;
        let end = (at + header + stored).next_multiple_of(64);
        all.push((at, end));
        at = end;
    }
    all
}

/// Changes a chunk header and corrects its checksum.
pub fn forge(chunk: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let len = u32::from_le_bytes(chunk[16..20].try_into().unwrap()) as usize;
    change(chunk);
    chunk[28..32].fill(0);
    let crc = crc32c::crc32c(&chunk[..len]);
    chunk[28..32].copy_from_slice(&crc.to_le_bytes());
}

pub fn small() -> WrittenCapture {
    let lost = Lost { overrun: 3, disk: 0, corrupt: 1 };
    write(&[
        Op::Clock,
        Op::Frames { ring: 0, count: 3, lost: Lost::default() },
        Op::Frames { ring: 1, count: 1, lost },
        Op::Gap { ring: 0, count: 2, cause: Cause::Disk },
        Op::Drops(4),
        Op::Frames { ring: 0, count: 5, lost: Lost::default() },
        Op::Frames { ring: 0, count: 2, lost },
    ])
}

pub fn lost() -> impl Strategy<Value = Lost> {
    let parts = (0..3u64, 0..3u64, 0..3u64);
    parts.prop_map(|(overrun, disk, corrupt)| Lost { overrun, disk, corrupt })
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0..4u32, 1..9u32, lost())
            .prop_map(|(ring, count, lost)| Op::Frames { ring, count, lost }),
        1 => (0..4u32, 1..9u64).prop_map(|(ring, count)| Op::Gap { ring, count, cause: Cause::Disk }),
        1 => Just(Op::Clock),
        1 => (0..9u64).prop_map(Op::Drops),
        1 => Just(Op::Source),
        1 => (0..99u64).prop_map(Op::Trigger),
        1 => (0..99u64).prop_map(Op::Masks),
        1 => (0..99u64).prop_map(Op::Threads),
        1 => (0..99u64).prop_map(Op::Modules),
    ];
    proptest::collection::vec(op, 0..30)
}

/// Every row was written, and none occurs twice.
pub fn check_rows(read: &ReadCapture, written: &WrittenCapture) {
    let known: BTreeSet<_> = written.rows.iter().collect();
    let mut seen = BTreeSet::new();
    for row in &read.rows {
        assert!(known.contains(row), "a row that nobody wrote: {row:?}");
        assert!(seen.insert(row), "a row that comes twice: {row:?}");
    }
}
