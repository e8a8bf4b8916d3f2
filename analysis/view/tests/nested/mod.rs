//! Makes captures of threads with nested slices in two buffers, with moments and losses, in one file or
//! several.

use ppt_capture::frame_dsl::schema::{
    Clock, Extra, Field, FieldType, Frame, Interval, IntervalEnd, Schema,
};
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Gap,
    Packer, Process, Segment, Source,
};

const SECOND: u64 = 1_000_000_000;
const MONO: u64 = 5_000 * SECOND;
const REAL: u64 = 1_700_000_000 * SECOND;
const TICK: u64 = 77_000_000;
const STRIDE: u32 = 40;

/// Pseudo-random numbers, which depend only on the seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20) % most.max(1)
    }
}

/// The shape of captures.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub seed: u64,
    /// The approximate number of slices of each thread.
    pub slices: u64,
    pub threads: u64,
    /// The most frames of a chunk.
    pub chunk: u64,
    /// The number of buffers of a thread, 1 or 2.
    pub buffers: u64,
    /// Whether some slices overlap, as those of tasks that share a thread.
    pub overlap: bool,
    /// Whether frames may be about other threads than the one that wrote them. Some of these do not exist.
    pub others: bool,
    pub captures: u64,
}

fn field(name: &str, ty: &FieldType, offset: u32, edge: Option<IntervalEnd>, at: bool) -> Field {
    Field {
        name: match edge {
            Some(IntervalEnd::Start) => format!("{name}_start"),
            Some(IntervalEnd::End) => format!("{name}_end"),
            None => name.to_owned(),
        },
        ty: ty.clone(),
        array: None,
        offset,
        interval: edge.map(|edge| Interval { name: name.to_owned(), edge }),
        at,
        unit: if edge.is_none() && !at { "B".to_owned() } else { String::new() },
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    }
}

/// `job.handle` and `mark`, with times of this type.
fn schema(buffer: &str, ty: &FieldType, others: bool) -> Schema {
    let frame = |name: &str, fields| Frame {
        name: name.to_owned(),
        kind: "plain".to_owned(),
        size: STRIDE,
        fields,
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let job = vec![
        field("size", &FieldType::U32, 12, None, false),
        field("handle", ty, 16, Some(IntervalEnd::Start), false),
        field("handle", ty, 24, Some(IntervalEnd::End), true),
    ];
    let mark = vec![field("when", ty, 16, None, true)];
    let thread = |mut fields: Vec<Field>| {
        let mut own = field("thread", &FieldType::U32, 32, None, false);
        own.extra.insert("thread".to_owned(), true.into());
        fields.push(own);
        fields
    };
    let (job, mark) = if others { (thread(job), thread(mark)) } else { (job, mark) };
    let schema = Schema {
        v: 1,
        buffer: buffer.to_owned(),
        slots: 1 << 14,
        stride: STRIDE,
        frames: vec![frame("job", job), frame("mark", mark)],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    };
    Schema::from_json(schema.to_json().as_bytes()).unwrap()
}

/// A frame of a thread: the buffer, the kind, the start and the end.
type Event = (usize, u16, u64, u64);

/// The slices of a call and of the calls within it, in the order of their ends.
fn call(dice: &mut Dice, buffers: u64, depth: u64, now: &mut u64, left: &mut u64) -> Vec<Event> {
    let (start, mut events) = (*now, Vec::new());
    let mut calls = if depth < 6 { dice.below(5) } else { 0 };
    if depth == 0 && dice.below(20) == 0 {
        calls = dice.below(700);
    }
    *now += dice.below(40);
    for _ in 0..calls {
        if *left == 0 {
            break;
        }
        *left -= 1;
        events.extend(call(dice, buffers, depth + 1, now, left));
        *now += dice.below(9);
    }
    if dice.below(9) == 0 {
        events.push((dice.below(buffers) as usize, 1, *now, *now));
    }
    events.push((dice.below(buffers) as usize, 0, start, *now));
    events
}

fn thread(dice: &mut Dice, shape: &Shape) -> Vec<Event> {
    let (mut now, mut left, mut events) = (dice.below(1000), shape.slices, Vec::new());
    let whole = now;
    while left > 0 {
        left -= 1;
        events.extend(call(dice, shape.buffers, 0, &mut now, &mut left));
        now += dice.below(60);
        if shape.overlap && dice.below(3) == 0 {
            let since = now.saturating_sub(dice.below(900));
            events.push((0, 0, since, now));
        }
    }
    if dice.below(2) == 0 {
        events.push((0, 0, whole, now));
    }
    events
}

fn reading(a: ClockId, a_value: u64, b: ClockId, b_value: u64) -> ClockReading {
    ClockReading { a, a_before: a_value, b, b_value, a_after: a_value, distrusted: false }
}

/// The captures of a shape: consecutive files of one session.
pub fn captures(shape: Shape) -> Vec<Vec<u8>> {
    let dice = &mut Dice::new(shape.seed);
    let types = [FieldType::Ns { clock: Clock::Monotonic }, FieldType::Tsc];
    let schemas: Vec<Schema> =
        ["app", "db"].iter().zip(&types).map(|(name, ty)| schema(name, ty, shape.others)).collect();
    let schemas = &schemas[..shape.buffers as usize];
    let threads: Vec<Vec<Event>> = (0..shape.threads).map(|_| thread(dice, &shape)).collect();
    let end = threads.iter().flatten().map(|thread| thread.3).max().unwrap_or(0) + 1;
    let mut next: Vec<Vec<u64>> = threads.iter().map(|_| vec![1; schemas.len()]).collect();
    let captures = (0..shape.captures).map(|number| {
        let range = end * number / shape.captures..end * (number + 1) / shape.captures;
        let header = FileHeader {
            capture_id: [shape.seed as u8 ^ number as u8; 16],
            host: "here".to_owned(),
            boot_id: "boot".to_owned(),
            created_realtime_ns: REAL,
            created_mono_ns: MONO,
            ..FileHeader::default()
        };
        let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
        let clock = |since: u64| {
            [
                reading(ClockId::Monotonic, MONO + since, ClockId::Realtime, REAL + since),
                reading(ClockId::Tick, TICK + 3 * since, ClockId::Monotonic, MONO + since),
            ]
        };
        writer.clock(&clock(0)).unwrap();
        for (id, schema) in schemas.iter().enumerate() {
            let rings = threads.len() as u32;
            let segments =
                vec![Segment { nonce: 11 + id as u64, rings, slots: 1 << 14, stride: STRIDE }];
            let source = Source {
                schema_json: schema.to_json().into_bytes(),
                schema_hash: schema.hash(),
                buffer: schema.buffer.clone(),
                process: Process {
                    pid: 40,
                    start_time: 1000,
                    exe: "/bin/x".to_owned(),
                    ..Process::default()
                },
                segments,
                clock: "tick".to_owned(),
                ..Source::default()
            };
            writer.source(id as u16, &source).unwrap();
        }
        // A listener writes chunks in the order of their ends.
        let mut chunks = Vec::new();
        for (ring, events) in threads.iter().enumerate() {
            for buffer in 0..schemas.len() {
                let own: Vec<Event> = events
                    .iter()
                    .filter(|event| event.0 == buffer && range.contains(&event.3))
                    .copied()
                    .collect();
                let mut rest = &own[..];
                while !rest.is_empty() {
                    let count = (1 + dice.below(shape.chunk) as usize).min(rest.len());
                    let (chunk, behind) = rest.split_at(count);
                    chunks.push((chunk[count - 1].3, ring, buffer, chunk.to_vec()));
                    rest = behind;
                }
            }
        }
        chunks.sort_by_key(|chunk| chunk.0);
        let mut clocks = 1;
        for (at, ring, buffer, events) in chunks {
            while clocks * end / 7 < at {
                writer.clock(&clock(clocks * end / 7)).unwrap();
                clocks += 1;
            }
            let seq = &mut next[ring][buffer];
            let (source, nonce) = (buffer as u16, 11 + buffer as u64);
            if dice.below(6) == 0 {
                let cause = [Cause::Disk, Cause::Overrun][dice.below(2) as usize];
                let count = 1 + dice.below(9);
                let gap = Gap { source, nonce, ring: ring as u32, first_seq: *seq, count, cause };
                writer.gap(&gap).unwrap();
                *seq += count;
            }
            let first_seq = *seq;
            let word = |time: u64| match buffer {
                0 => MONO + time,
                _ => TICK + 3 * time,
            };
            let mut payload = Vec::new();
            for (_, kind, start, end) in &events {
                let id = u64::from(*kind) | (*seq << 32);
                let thread = match dice.below(6) {
                    0 => 100 + dice.below(shape.threads),
                    1 => [1, 4_000_000, u32::MAX.into()][dice.below(3) as usize],
                    _ => 0,
                };
                let last = if *kind == 0 { word(*end) } else { 0 };
                let own = [*seq, id, word(*start), last, thread];
                payload.extend(own.iter().flat_map(|number| number.to_le_bytes()));
                *seq += 1;
            }
            let head = FramesHead {
                source,
                nonce,
                ring: ring as u32,
                tid: 100 + ring as u32,
                first_seq,
                count: events.len() as u32,
                stride: STRIDE,
                drained_mono_ns: MONO + at,
                t_min: word(events[0].3),
                t_max: word(at),
                frame_mask: 3,
                ..FramesHead::default()
            };
            writer.packed_frames(&head, &Packer::new(None).pack(&payload)).unwrap();
        }
        writer.clock(&clock(end)).unwrap();
        let end = End::new(EndReason::Stopped, REAL + end, MONO + end);
        writer.end(&end).unwrap()
    });
    captures.collect()
}
