//! Captures of an invented shop: threads that handle requests of four kinds, queries within them, and a
//! heartbeat. They contain what makes pictures hard: a few very slow requests, two modes, a gap,
//! nesting.

use std::io::Write;

use ppt_capture::frame_dsl::schema::{
    Clock, Enum, Extra, Field, FieldType, Frame, Int, Interval, IntervalEnd, Schema,
};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Lost, Process,
    RingEnd, Segment, Source,
};

const SECOND: u64 = 1_000_000_000;
const MONO: u64 = 5_000 * SECOND;
const REAL: u64 = 1_795_238_091 * SECOND;
const STRIDE: usize = 72;
const NONCE: u64 = 0x5e9;
/// Frames of a chunk.
const CHUNK: usize = 2000;

/// Parameters of a capture.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Approximate number of frames.
    pub frames: u64,
    pub threads: u32,
    /// Whether a ring was overrun.
    pub gap: bool,
    /// Text that is part of everything but identifiers, which are checked before they are shown.
    pub text: String,
}

impl Default for Shop {
    fn default() -> Self {
        Shop { frames: 6_000, threads: 4, gap: true, text: String::new() }
    }
}

struct PseudoRandom(u64);

impl PseudoRandom {
    fn word(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = self.0;
        (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (word >> 32)
    }

    fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random value with a skewed distribution around `middle`.
    fn skewed(&mut self, middle: f64, wide: f64) -> u64 {
        let normal = (0..6).map(|_| self.share()).sum::<f64>() - 3.0;
        (middle * (normal * wide).exp()) as u64
    }
}

fn field(name: &str, ty: FieldType, offset: u32, unit: &str) -> Field {
    Field {
        name: name.to_owned(),
        ty,
        array: None,
        offset,
        interval: None,
        at: false,
        unit: unit.to_owned(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    }
}

fn ends(name: &str, offset: u32) -> [Field; 2] {
    [(IntervalEnd::Start, "start"), (IntervalEnd::End, "end")].map(|(edge, word)| {
        let at = offset + if edge == IntervalEnd::Start { 0 } else { 8 };
        let ty = FieldType::Ns { clock: Clock::Realtime };
        let mut field = field(&format!("{name}_{word}"), ty, at, "");
        field.interval = Some(Interval { name: name.to_owned(), edge });
        field.at = edge == IntervalEnd::End;
        field
    })
}

fn schema(text: &str) -> Schema {
    let frame = |name: &str, fields: Vec<Field>| Frame {
        name: name.to_owned(),
        kind: "plain".to_owned(),
        size: STRIDE as u32,
        fields,
        doc: text.to_owned(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let kinds = ["BROWSE", "SEARCH", "ORDER", "PAY"].map(str::to_owned);
    let mut request = vec![
        field("kind", FieldType::Enum { name: "Kind".to_owned() }, 12, ""),
        field("user", FieldType::U32, 16, ""),
        field("size", FieldType::U64, 24, &format!("B{text}")),
        field("path", FieldType::Char { len: 20 }, 48, ""),
    ];
    request.extend(ends("handle", 32));
    let mut query = vec![field("rows", FieldType::U32, 12, "")];
    query.extend(ends("run", 32));
    let mut at = field("at", FieldType::Ns { clock: Clock::Realtime }, 32, "");
    at.at = true;
    let beat = vec![field("load", FieldType::F64, 24, ""), at];
    Schema {
        v: 1,
        buffer: "shop".to_owned(),
        slots: 4096,
        stride: STRIDE as u32,
        frames: vec![frame("request", request), frame("query", query), frame("beat", beat)],
        enums: vec![Enum {
            name: "Kind".to_owned(),
            repr: Int::I32,
            values: kinds.into_iter().zip(0..).collect(),
            doc: String::new(),
            extra: Extra::new(),
        }],
        tags: vec![("build".to_owned(), format!("r7{text}"))],
        extra: Extra::new(),
    }
}

fn put(frame: &mut [u8; STRIDE], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}

struct MadeThread {
    dice: PseudoRandom,
    now: u64,
    next: u64,
    captured: u64,
    lost: Lost,
    chunk: Vec<[u8; STRIDE]>,
    /// Frames lost before the current chunk.
    before: Lost,
}

impl MadeThread {
    fn frame(&mut self, kind: u16) -> [u8; STRIDE] {
        let mut frame = [0; STRIDE];
        put(&mut frame, 8, &kind.to_le_bytes());
        frame
    }

    fn take(&mut self, mut frame: [u8; STRIDE]) {
        put(&mut frame, 0, &self.next.to_le_bytes());
        self.next += 1;
        self.chunk.push(frame);
    }

    /// Writes a request with its queries.
    fn request(&mut self, text: &str, number: u64) {
        let kind = [0, 0, 0, 0, 0, 1, 1, 1, 2, 3][(self.dice.word() % 10) as usize];
        let start = self.now;
        self.now += self.dice.skewed(4_000.0, 0.4);
        let queries = [1, 2, 3, 2][kind as usize];
        for _ in 0..queries {
            let from = self.now;
            let hit = self.dice.share() < 0.7;
            self.now +=
                if hit { self.dice.skewed(9_000.0, 0.3) } else { self.dice.skewed(240_000.0, 0.5) };
            let mut frame = self.frame(1);
            put(&mut frame, 12, &((self.dice.word() % 400) as u32).to_le_bytes());
            put(&mut frame, 32, &from.to_le_bytes());
            put(&mut frame, 40, &self.now.to_le_bytes());
            self.take(frame);
            self.now += self.dice.skewed(6_000.0, 0.5);
        }
        // A payment waits for another service.
        if kind == 3 {
            self.now += self.dice.skewed(1_400_000.0, 0.6);
        }
        if self.dice.word().is_multiple_of(1500) {
            self.now += self.dice.skewed(22_000_000.0, 0.5);
        }
        let mut frame = self.frame(0);
        put(&mut frame, 12, &i32::to_le_bytes(kind));
        put(&mut frame, 16, &((self.dice.word() % 5000) as u32).to_le_bytes());
        put(&mut frame, 24, &self.dice.skewed(3_000.0, 0.9).to_le_bytes());
        put(&mut frame, 32, &start.to_le_bytes());
        put(&mut frame, 40, &self.now.to_le_bytes());
        let path = format!("{text}/item/{}", number % 97);
        put(&mut frame, 48, &path.as_bytes()[..path.len().min(20)]);
        self.take(frame);
        // The load varies in waves.
        let wave = 1.0 + 0.7 * ((self.now - REAL) as f64 / 1.3e9).sin();
        self.now += self.dice.skewed(900_000.0 * wave, 0.5);
    }
}

/// Writes a capture and returns its number of frames.
pub fn write(shop: &Shop, out: impl Write) -> u64 {
    let Shop { frames, threads, text, .. } = shop;
    let header = FileHeader {
        capture_id: [7; 16],
        host: format!("till-2{text}"),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(out, &header).unwrap();
    let reading = |second: u64| ClockReading {
        a: ClockId::Monotonic,
        a_before: MONO + second * SECOND,
        b: ClockId::Realtime,
        b_value: REAL + second * SECOND + 40,
        a_after: MONO + second * SECOND + 80 + second % 3 * 10,
        distrusted: false,
    };
    writer.clock(&[reading(0), reading(1)]).unwrap();
    let schema = schema(text);
    let segment = Segment { nonce: NONCE, rings: *threads, slots: 4096, stride: STRIDE as u32 };
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        process: Process {
            pid: 4211,
            start_time: 1000,
            exe: format!("/opt/shop/bin/shopd{text}"),
            ..Process::default()
        },
        segments: vec![segment],
        clock: "realtime".to_owned(),
        tags: vec![("build".to_owned(), format!("r7{text}"))],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let mut all: Vec<MadeThread> = (0..*threads)
        .map(|number| MadeThread {
            dice: PseudoRandom(u64::from(number) * 7919 + 11),
            now: REAL + u64::from(number) * 300_000,
            next: 1,
            captured: 0,
            lost: Lost::default(),
            chunk: Vec::new(),
            before: Lost::default(),
        })
        .collect();
    let mut beat = REAL;
    let mut number = 0;
    let mut captured = 0;
    let mut gap = shop.gap;
    while captured < *frames {
        // The thread with the earliest time continues, so that the times of all threads rise together.
        let which = (0..all.len()).min_by_key(|&index| all[index].now).unwrap_or(0);
        let middle = all.len() / 2;
        let thread = &mut all[which];
        if which == 0 && thread.now > beat {
            let mut frame = thread.frame(2);
            put(&mut frame, 24, &(0.5 + 0.4 * thread.dice.share()).to_le_bytes());
            put(&mut frame, 32, &thread.now.to_le_bytes());
            thread.take(frame);
            beat += SECOND / 20;
        }
        let before = thread.next;
        thread.request(text, number);
        number += 1;
        captured += thread.next - before;
        let overrun = gap && which == middle && captured * 10 > frames * 6;
        if thread.chunk.len() >= CHUNK || overrun {
            flush(&mut writer, thread, which as u32);
        }
        if overrun {
            gap = false;
            let lost = Lost { overrun: 204, ..Lost::default() };
            thread.next += 204;
            thread.now += 200_000_000;
            thread.lost += lost;
            thread.before = lost;
        }
    }
    for (ring, thread) in (0..).zip(&mut all) {
        flush(&mut writer, thread, ring);
    }
    let end = all.iter().map(|thread| thread.now).max().unwrap_or(REAL) - REAL;
    let rings = (0..).zip(&all).map(|(ring, thread)| RingEnd {
        source: 0,
        nonce: NONCE,
        ring,
        first_seq: 1,
        next_seq: thread.next,
        captured: thread.captured,
        lost: thread.lost,
    });
    let captured = all.iter().map(|thread| thread.captured).sum();
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: rings.collect(),
        drops: Vec::new(),
        realtime_ns: REAL + end,
        mono_ns: MONO + end,
    };
    writer.end(&end).unwrap().flush().unwrap();
    captured
}

fn flush<W: Write>(writer: &mut CaptureWriter<W>, thread: &mut MadeThread, ring: u32) {
    let chunk = std::mem::take(&mut thread.chunk);
    if chunk.is_empty() {
        return;
    }
    let time = |frame: &[u8; STRIDE]| {
        let at = if frame[8] == 2 { 32 } else { 40 };
        u64::from_le_bytes(frame[at..at + 8].try_into().unwrap())
    };
    let head = FramesHead {
        nonce: NONCE,
        ring,
        tid: 4211 + ring,
        first_seq: thread.next - chunk.len() as u64,
        count: chunk.len() as u32,
        stride: STRIDE as u32,
        lost_before: std::mem::take(&mut thread.before),
        drained_mono_ns: MONO + (thread.now - REAL) + 1_000_000,
        t_min: chunk.iter().map(time).min().unwrap_or(0),
        t_max: chunk.iter().map(time).max().unwrap_or(0),
        frame_mask: 7,
        ..FramesHead::default()
    };
    thread.captured += chunk.len() as u64;
    writer.frames(&head, &chunk.concat()).unwrap();
}
