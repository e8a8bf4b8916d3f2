//! Random captures: schemas with every type of field and interval, buffers of one and of several
//! kinds of frames, several processes, threads, rings and segments, compressed chunks, losses of every
//! cause, and frames of any bytes.

use ppt_capture::columns::Time;
use ppt_capture::frame_dsl::schema::{
    Clock, Enum, Extra, Field, FieldType, Frame, Int, Interval, IntervalEnd, Schema,
};
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, Codec, Dropped, Drops, End, EndReason, FileHeader,
    FramesHead, Gap, Lost, Packer, Process, RingEnd, Segment, Source,
};

const SECOND: u64 = 1_000_000_000;
const MONO: u64 = 5_000 * SECOND;
const REAL: u64 = 1_700_000_000 * SECOND;
const BOOT: u64 = 9_000 * SECOND;
const TICK: u64 = 77_000_000;

/// Numbers that look random, the same for one seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn word(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = self.0;
        (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (word >> 32)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.word() % most.max(1)
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// All types with their alignments.
fn types() -> Vec<FieldType> {
    let mut types = vec![
        FieldType::I8,
        FieldType::I16,
        FieldType::I32,
        FieldType::I64,
        FieldType::U8,
        FieldType::U16,
        FieldType::U32,
        FieldType::U64,
        FieldType::F32,
        FieldType::F64,
        FieldType::Bool,
        FieldType::Duration,
        FieldType::Addr,
        FieldType::Timeval,
        FieldType::Tsc,
        FieldType::Enum { name: "Small".to_owned() },
        FieldType::Enum { name: "Wide".to_owned() },
        FieldType::Char { len: 5 },
        FieldType::Bytes { len: 3 },
    ];
    for clock in Clock::ALL {
        types.extend([FieldType::Ns { clock }, FieldType::Timespec { clock }]);
    }
    types
}

fn enums() -> Vec<Enum> {
    let of = |name: &str, repr, values: &[(&str, i128)]| Enum {
        name: name.to_owned(),
        repr,
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        doc: String::new(),
        extra: Extra::new(),
    };
    vec![
        of("Small", Int::I8, &[("TIMEOUT", -1), ("UPDATE", 0), ("AGAIN", 0), ("LOGIN", 2)]),
        of("Wide", Int::U64, &[("ZERO", 0), ("MOST", u64::MAX as i128)]),
    ]
}

/// A schema of these kinds; places fields one after the other, as aligned as they must be.
fn schema(dice: &mut Dice, buffer: &str, names: &[&str]) -> Schema {
    let mut schema = Schema {
        v: 1,
        buffer: buffer.to_owned(),
        slots: 16,
        stride: 0,
        frames: Vec::new(),
        enums: enums(),
        tags: vec![("build".to_owned(), "r1".to_owned())],
        extra: Extra::new(),
    };
    for name in names {
        let mut offset: u32 = if names.len() > 1 { 10 } else { 8 };
        let mut fields: Vec<Field> = Vec::new();
        for n in 0..1 + dice.below(7) {
            let all = types();
            let ty = all[dice.below(all.len() as u64) as usize].clone();
            let is_bytes = matches!(ty, FieldType::Char { .. } | FieldType::Bytes { .. });
            let array = (!is_bytes && dice.chance(5)).then_some(2);
            let interval = array.is_none() && !is_bytes && dice.chance(2);
            let halves: &[Option<IntervalEnd>] = if interval {
                &[Some(IntervalEnd::Start), Some(IntervalEnd::End)]
            } else {
                &[None]
            };
            for edge in halves {
                let field = Field {
                    name: match edge {
                        Some(IntervalEnd::Start) => format!("f{n}_start"),
                        Some(IntervalEnd::End) => format!("f{n}_end"),
                        None => format!("f{n}"),
                    },
                    ty: ty.clone(),
                    array,
                    offset: offset.next_multiple_of(ty.align(&schema)),
                    interval: edge.map(|edge| Interval { name: format!("f{n}"), edge }),
                    at: false,
                    unit: String::new(),
                    doc: String::new(),
                    attributes: Vec::new(),
                    extra: Extra::new(),
                };
                offset = field.offset + field.bytes(&schema);
                fields.push(field);
            }
        }
        // Made of any bytes: threads that do not exist, and numbers that no thread has.
        let can_name_thread = |field: &&mut Field| {
            matches!(field.ty, FieldType::U32 | FieldType::I32)
                && field.array.is_none()
                && field.interval.is_none()
        };
        if let Some(field) = fields.iter_mut().find(can_name_thread) {
            field.extra.insert("thread".to_owned(), true.into());
        }
        let is_at = |field: &&mut Field| {
            field.ty.is_time()
                && field.array.is_none()
                && !field.ty.clock().is_some_and(Clock::is_cpu)
                && field.interval.as_ref().is_none_or(|interval| interval.edge == IntervalEnd::End)
        };
        if let Some(field) = fields.iter_mut().rfind(is_at) {
            field.at = true;
        }
        schema.frames.push(Frame {
            name: (*name).to_owned(),
            kind: "plain".to_owned(),
            size: offset.next_multiple_of(8),
            fields,
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        });
    }
    schema.stride = schema.frames.iter().map(|frame| frame.size).max().unwrap_or(8);
    Schema::from_json(schema.to_json().as_bytes()).unwrap()
}

/// ns since the start, as a word of `ty`'s clock; now and then any bytes.
fn time(dice: &mut Dice, ty: &FieldType, since: u64) -> Vec<u8> {
    let since = since + dice.below(SECOND / 4);
    let pair =
        |ns: u64, unit: u64| [ns / SECOND, ns % SECOND / unit].map(u64::to_le_bytes).concat();
    let size = if matches!(ty, FieldType::Timeval | FieldType::Timespec { .. }) { 16 } else { 8 };
    if dice.chance(9) {
        return vec![0; size];
    }
    if dice.chance(25) {
        return (0..size).map(|_| dice.word() as u8).collect();
    }
    let ns = match ty.clock() {
        Some(Clock::Realtime) => REAL + since,
        Some(Clock::Monotonic) => MONO + since,
        Some(Clock::Boottime) => BOOT + since,
        Some(_) => since,
        None if dice.chance(3) => return ((MONO + since) | (1 << 63)).to_le_bytes().to_vec(),
        None => return (TICK + 3 * since).to_le_bytes().to_vec(),
    };
    match ty {
        FieldType::Timeval => pair(ns, 1000),
        FieldType::Timespec { .. } => pair(ns, 1),
        _ => ns.to_le_bytes().to_vec(),
    }
}

fn frame(dice: &mut Dice, schema: &Schema, seq: u64, since: u64, stride: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..stride).map(|_| dice.word() as u8).collect();
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    let mut id = dice.below(schema.frames.len() as u64) as usize;
    if schema.multi() {
        let unknown = dice.chance(20);
        let told = if unknown { 7 + dice.below(3) as u16 } else { id as u16 };
        bytes[8..10].copy_from_slice(&told.to_le_bytes());
        id = usize::from(told);
    }
    let Some(kind) = schema.frames.get(id) else { return bytes };
    for field in &kind.fields {
        for element in 0..field.count() {
            let at = (field.offset + element * field.ty.size(schema)) as usize;
            let put = |bytes: &mut Vec<u8>, value: &[u8]| {
                bytes[at..at + value.len()].copy_from_slice(value);
            };
            match &field.ty {
                ty if ty.is_time() => {
                    let value = time(dice, ty, since);
                    put(&mut bytes, &value);
                }
                FieldType::Enum { .. } | FieldType::Bool if !dice.chance(6) => {
                    put(&mut bytes, &[dice.below(3) as u8]);
                    let size = field.ty.size(schema) as usize;
                    bytes[at + 1..at + size].fill(0);
                }
                FieldType::Char { .. } if !dice.chance(4) => put(&mut bytes, b"a\t\0"),
                _ => {}
            }
        }
    }
    bytes
}

fn reading(a: ClockId, a_value: u64, b: ClockId, b_value: u64) -> ClockReading {
    ClockReading { a, a_before: a_value, b, b_value, a_after: a_value, distrusted: false }
}

/// The frames that are written to a ring.
#[derive(Clone, Copy)]
struct Ring {
    source: u16,
    nonce: u64,
    ring: u32,
    next: u64,
    captured: u64,
    lost: Lost,
}

/// A capture, the same for one seed. `clocks`: whether all clocks are read.
pub fn capture(seed: u64, id: u8, clocks: bool) -> Vec<u8> {
    let dice = &mut Dice::new(seed);
    let header = FileHeader {
        capture_id: [id; 16],
        host: format!("host{}", dice.below(2)),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let read = |second: u64| {
        let mono = MONO + second * SECOND;
        let mut all =
            vec![reading(ClockId::Monotonic, mono, ClockId::Realtime, REAL + second * SECOND)];
        if clocks {
            all.push(reading(ClockId::Tick, TICK + 3 * second * SECOND, ClockId::Monotonic, mono));
            all.push(reading(ClockId::Monotonic, mono, ClockId::Boottime, BOOT + second * SECOND));
        }
        all
    };
    writer.clock(&read(0)).unwrap();
    writer.clock(&read(1)).unwrap();

    // The schema follows from the name of the buffer alone, so that captures fit together.
    let buffers: [(&str, &[&str]); 4] = [
        ("one", &["only"]),
        ("two", &["job", "gaps", "only"]),
        ("tri", &["x", "X"]),
        ("none", &["y"]),
    ];
    let mut sources = Vec::new();
    let mut rings: Vec<Ring> = Vec::new();
    for (n, (buffer, names)) in buffers.iter().enumerate() {
        let schema = schema(&mut Dice::new(n as u64 + 1), buffer, names);
        for process in 0..1 + dice.below(2) {
            let id = sources.len() as u16;
            let stride = schema.stride;
            let segments: Vec<Segment> = (0..1 + dice.below(2))
                .map(|_| Segment { nonce: dice.word(), rings: 2, slots: 16, stride })
                .collect();
            let time_offsets = if dice.chance(2) {
                vec![("monotonic".to_owned(), 250), ("boottime".to_owned(), -40)]
            } else {
                Vec::new()
            };
            let source = Source {
                schema_json: schema.to_json().into_bytes(),
                schema_hash: schema.hash(),
                buffer: (*buffer).to_owned(),
                process: Process {
                    pid: 40 + process as u32,
                    start_time: 1000,
                    exe: "/bin/x".to_owned(),
                    time_offsets,
                    ..Process::default()
                },
                segments: segments.clone(),
                clock: "tick".to_owned(),
                tags: vec![
                    ("build".to_owned(), "r1".to_owned()),
                    (format!("t{n}"), "v".to_owned()),
                ],
                ..Source::default()
            };
            writer.source(id, &source).unwrap();
            for segment in segments {
                for ring in 0..2 {
                    let (source, nonce) = (id, segment.nonce);
                    let lost = Lost::default();
                    rings.push(Ring { source, nonce, ring, next: 1, captured: 0, lost });
                }
            }
            sources.push(schema.clone());
        }
    }

    let mut dropped = vec![Dropped::default(); sources.len()];
    for step in 0..4 + dice.below(16) {
        let since = step * SECOND / 8;
        let at = dice.below(rings.len() as u64) as usize;
        // Nothing is written to the last buffer, so its table has no rows.
        let Ring { source, nonce, ring, next, .. } = rings[at];
        let schema = &sources[usize::from(source)];
        if schema.buffer == "none" {
            continue;
        }
        match dice.below(8) {
            0 => {
                let causes = [
                    Cause::Disk,
                    Cause::Overrun,
                    Cause::Corrupt,
                    Cause::Unattended,
                    Cause::LeftOut,
                ];
                let cause = causes[dice.below(5) as usize];
                let count = 1 + dice.below(5);
                writer.gap(&Gap { source, nonce, ring, first_seq: next, count, cause }).unwrap();
                rings[at].next += count;
                rings[at].lost.add(cause, count);
            }
            1 => {
                let dropped = &mut dropped[usize::from(source)];
                dropped.nested += dice.below(3);
                dropped.no_ring += 1;
                writer.drops(&Drops { source, dropped: *dropped, mono_ns: 0 }).unwrap();
            }
            2 => writer.clock(&read(2 + step)).unwrap(),
            _ => {
                let lost = if dice.chance(3) {
                    Lost { overrun: dice.below(3), disk: dice.below(2), corrupt: 0 }
                } else {
                    Lost::default()
                };
                let first_seq = next + lost.total();
                let count = 1 + dice.below(12) as u32;
                let stride = schema.stride as usize;
                let mut frames: Vec<Vec<u8>> = (0..u64::from(count))
                    .map(|n| frame(dice, schema, first_seq + n, since, stride))
                    .collect();
                let mut bad = 0;
                if dice.chance(8) {
                    frames[0][0] ^= 0xff;
                    bad = 1;
                }
                let head = FramesHead {
                    source,
                    nonce,
                    ring,
                    tid: if dice.chance(6) { 0 } else { 100 + dice.below(2) as u32 },
                    first_seq,
                    count,
                    stride: stride as u32,
                    lost_before: lost,
                    drained_mono_ns: if dice.chance(9) { 0 } else { MONO + since + SECOND / 2 },
                    drained_by_mono_ns: [0, MONO, MONO + since + SECOND][dice.below(3) as usize],
                    ..stated(dice, schema, &frames)
                };
                let codec = [None, Some(Codec::Lz4), Some(Codec::Zstd)][dice.below(3) as usize];
                let payload = frames.concat();
                writer.packed_frames(&head, &Packer::new(codec).pack(&payload)).unwrap();
                rings[at].next = first_seq + u64::from(count);
                rings[at].captured += u64::from(count - bad);
                rings[at].lost += lost;
            }
        }
    }
    let whole = writer.bytes() as usize;
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: rings
            .iter()
            .filter(|ring| ring.next > 1)
            .map(|ring| RingEnd {
                source: ring.source,
                nonce: ring.nonce,
                ring: ring.ring,
                first_seq: 1,
                next_seq: ring.next,
                captured: ring.captured,
                lost: ring.lost,
            })
            .collect(),
        drops: (0..).zip(dropped).collect(),
        realtime_ns: REAL + 30 * SECOND,
        mono_ns: MONO + 30 * SECOND,
    };
    let mut bytes = writer.end(&end).unwrap();
    if dice.chance(6) {
        bytes.truncate(whole);
    }
    bytes
}

/// What the head says about the frames of a listener; sometimes nothing.
fn stated(dice: &mut Dice, schema: &Schema, frames: &[Vec<u8>]) -> FramesHead {
    if dice.chance(6) {
        return FramesHead::default();
    }
    let times: Vec<Option<Time>> =
        schema.frames.iter().map(|frame| frame.at().and_then(Time::from_field)).collect();
    let mut head = FramesHead::default();
    let mut scales = times.iter().flatten().map(|time| time.scale());
    let first = scales.next();
    let same = scales.all(|scale| Some(scale) == first);
    for frame in frames {
        let id = if schema.multi() { ppt_capture::columns::frame_id(frame) } else { 0 };
        head.frame_mask |= 1 << id.min(63);
        let time = times.get(usize::from(id)).copied().flatten().filter(|_| same);
        let word = time.map_or(0, |time| time.word(frame));
        if word != 0 {
            head.t_min = if head.t_min == 0 { word } else { head.t_min.min(word) };
            head.t_max = head.t_max.max(word);
        }
    }
    if (head.t_min ^ head.t_max) >> 63 != 0 {
        (head.t_min, head.t_max) = (0, 0);
    }
    head
}
