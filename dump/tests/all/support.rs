//! Schemas, frames and one capture with every kind of content.

use ppt_capture::frame_dsl::schema::{Clock, Enum, Extra, Field, FieldType, Frame, Int, Schema};
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, Dropped, Drops, End, EndReason, FileHeader,
    FramesHead, Gap, Lost, Process, RingEnd, Segment, Source,
};

pub const NONCE: u64 = 0xfeed_0000_0000_beef;

fn field(name: &str, ty: FieldType, offset: u32) -> Field {
    Field {
        name: name.to_owned(),
        ty,
        array: None,
        offset,
        interval: None,
        at: false,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    }
}

fn schema(buffer: &str, frames: Vec<(&str, u32, Vec<Field>)>, enums: Vec<Enum>) -> Schema {
    let frame = |(name, size, fields): (&str, u32, Vec<Field>)| Frame {
        name: name.to_owned(),
        kind: "plain".to_owned(),
        size,
        fields,
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let frames: Vec<Frame> = frames.into_iter().map(frame).collect();
    Schema {
        v: 1,
        buffer: buffer.to_owned(),
        slots: 16,
        stride: frames.iter().map(|frame| frame.size).max().unwrap(),
        frames,
        enums,
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

fn of_schema(schema: &Schema) -> Source {
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        object: "/usr/bin/\u{1b}[31mdemo".to_owned(),
        process: Process {
            pid: 42,
            comm: "de\nmo".to_owned(),
            exe: "/usr/bin/demo".to_owned(),
            namespaces: vec![("pid".to_owned(), 4_026_531_836)],
            ..Process::default()
        },
        segments: vec![Segment { nonce: NONCE, rings: 4, slots: 16, stride: schema.stride }],
        clock: "tick".to_owned(),
        tags: vec![("build".to_owned(), "r1234".to_owned())],
        ..Source::default()
    }
}

/// Two kinds of frames, and every type of field.
pub fn source() -> Source {
    let kinds = vec![("TIMEOUT".to_owned(), -1), ("UPDATE".to_owned(), 0), ("LOGIN".to_owned(), 1)];
    let kind = Enum {
        name: "Kind".to_owned(),
        repr: Int::I32,
        values: kinds,
        doc: String::new(),
        extra: Extra::new(),
    };
    let pass = vec![
        field("kind", FieldType::Enum { name: "Kind".to_owned() }, 16),
        field("who", FieldType::I32, 20),
        field("sleep", FieldType::Timeval, 24),
        field("start", FieldType::Ns { clock: Clock::Realtime }, 40),
        field("bytes", FieldType::U64, 48),
        Field { array: Some(2), ..field("pos", FieldType::F32, 56) },
        field("name", FieldType::Char { len: 16 }, 64),
        field("ok", FieldType::Bool, 10),
        field("raw", FieldType::Bytes { len: 3 }, 11),
        field("done", FieldType::Tsc, 80),
        field("ratio", FieldType::F64, 88),
        field("spent", FieldType::Duration, 96),
        field("at", FieldType::Timespec { clock: Clock::Monotonic }, 104),
    ];
    let login = vec![field("who", FieldType::I32, 12)];
    of_schema(&schema("demo", vec![("pass", 120, pass), ("login", 16, login)], vec![kind]))
}

/// One kind of frame with one field.
pub fn other_source() -> Source {
    of_schema(&schema("other", vec![("only", 16, vec![field("count", FieldType::I64, 8)])], vec![]))
}

/// A frame of `stride` bytes: its sequence number, then `rest`.
pub fn frame(seq: u64, rest: &[u8], stride: usize) -> Vec<u8> {
    let mut bytes = seq.to_le_bytes().to_vec();
    bytes.extend_from_slice(rest);
    bytes.resize(stride, 0);
    bytes
}

/// The bytes of a `login` frame after the sequence number.
pub fn login(who: i32) -> Vec<u8> {
    [&[1, 0, 0, 0], &who.to_le_bytes()[..]].concat()
}

/// The bytes of a `pass` frame after the sequence number; the values change with `n`.
pub fn pass(n: usize) -> Vec<u8> {
    let texts: [&[u8]; 4] =
        [b"plain", b"tab\t\"q\", \\\n", b"\x1b[31m\xc2\x9b\x7f\xff", b"16 bytes of text"];
    let floats = [0.1, f64::NAN, f64::NEG_INFINITY, 1e300];
    let odd = n % 2 == 1;
    let mut bytes = vec![0, 0, [0u8, 1, 7][n % 3], 0xde, 0xad, n as u8, 0, 0];
    bytes.extend([1i32, -1, 99][n % 3].to_le_bytes());
    bytes.extend((n as i32 - 2).to_le_bytes());
    // Not recorded in every other frame.
    for word in [1_700_000_000i64, 5, 1_700_000_000_000_000_005] {
        bytes.extend(if odd { word } else { 0 }.to_le_bytes());
    }
    bytes.extend((u64::MAX - n as u64).to_le_bytes());
    bytes.extend(1.5f32.to_le_bytes());
    bytes.extend((n as f32 / 10.0).to_le_bytes());
    let mut name = [0; 16];
    let text = texts[n % 4];
    name[..text.len()].copy_from_slice(text);
    bytes.extend(name);
    bytes.extend(if odd { 1_000 + 10 * n as u64 } else { 0 }.to_le_bytes());
    bytes.extend(floats[n % 4].to_le_bytes());
    bytes.extend((-5 * n as i64).to_le_bytes());
    for word in [3i64, 250_000_000] {
        bytes.extend(if odd { word } else { 0 }.to_le_bytes());
    }
    bytes
}

/// An end chunk with accounts of rings 0, given as (source, next_seq, captured, disk), each of
/// which starts at 1.
pub fn end(rings: &[(u16, u64, u64, u64)]) -> End {
    let ring = |&(source, next_seq, captured, disk): &(u16, u64, u64, u64)| RingEnd {
        source,
        nonce: NONCE,
        ring: 0,
        first_seq: 1,
        next_seq,
        captured,
        lost: Lost { disk, ..Lost::default() },
    };
    End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: rings.iter().map(ring).collect(),
        drops: Vec::new(),
        realtime_ns: 1_700_000_002_000_000_000,
        mono_ns: 2_500_000_000,
    }
}

fn reading(a: ClockId, a_middle: u64, b: ClockId, b_value: u64) -> ClockReading {
    ClockReading { a, a_before: a_middle - 1, b, b_value, a_after: a_middle + 1, distrusted: false }
}

/// Frames of both kinds in two rings, losses of every cause, drops, a step of realtime.
pub fn capture() -> Vec<u8> {
    let header = FileHeader {
        capture_id: *b"0123456789abcdef",
        host: "ho\u{1b}st".to_owned(),
        boot_id: "b7a0c1de-0000-4000-8000-000000000000".to_owned(),
        tool: "ppt 0.1.0".to_owned(),
        created_realtime_ns: 1_700_000_000_000_000_000,
        created_mono_ns: 500_000_000,
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let (tick, mono, real) = (ClockId::Tick, ClockId::Monotonic, ClockId::Realtime);
    writer
        .clock(&[
            reading(tick, 1_000, mono, 500_000_000),
            reading(tick, 2_000, mono, 500_001_000),
            reading(mono, 500_000_000, real, 1_700_000_000_000_000_000),
        ])
        .unwrap();
    writer.source(0, &source()).unwrap();

    let head = FramesHead {
        source: 0,
        nonce: NONCE,
        ring: 0,
        tid: 1234,
        first_seq: 1,
        count: 4,
        stride: 120,
        drained_mono_ns: 600_000_000,
        frame_mask: 1,
        ..FramesHead::default()
    };
    let payload: Vec<u8> = (1..5).flat_map(|n| frame(n as u64, &pass(n), 120)).collect();
    writer.frames(&head, &payload).unwrap();

    let gap =
        Gap { source: 0, nonce: NONCE, ring: 2, first_seq: 1, count: 99, cause: Cause::Unattended };
    writer.gap(&gap).unwrap();
    let lost_before = Lost { overrun: 7, disk: 0, corrupt: 1 };
    let next = FramesHead {
        ring: 2,
        tid: 0,
        first_seq: 108,
        count: 2,
        lost_before,
        frame_mask: 3,
        ..head
    };
    let payload = [frame(108, &login(-7), 120), frame(109, &pass(5), 120)].concat();
    writer.frames(&next, &payload).unwrap();
    let gap = Gap { ring: 0, first_seq: 5, count: 3, cause: Cause::Disk, ..gap };
    writer.gap(&gap).unwrap();
    writer.clock(&[reading(mono, 1_500_000_000, real, 1_700_000_004_000_000_000)]).unwrap();
    let dropped = Dropped { no_ring: 2, nested: 1, not_mapped: 0 };
    writer.drops(&Drops { source: 0, dropped, mono_ns: 0 }).unwrap();

    let mut end = end(&[(0, 8, 4, 3)]);
    end.rings.push(RingEnd {
        source: 0,
        nonce: NONCE,
        ring: 2,
        first_seq: 100,
        next_seq: 110,
        captured: 2,
        lost: lost_before,
    });
    end.drops.push((0, dropped));
    writer.end(&end).unwrap()
}
