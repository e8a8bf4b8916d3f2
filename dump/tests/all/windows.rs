//! Captures in which every frame's time is known independently of the dump.

use std::collections::HashMap;
use std::path::Path;

use ppt_capture::frame_dsl::schema::{
    Clock, Extra, Field, FieldType, Frame, STAMP_IS_MONOTONIC, Schema,
};
use ppt_capture::{
    Capture, CaptureItem, CaptureWriter, Cause, Chunk, ClockId, ClockReading, ClockTable, Codec,
    End, EndReason, FileHeader, FramesHead, Gap, Lost, Packer, Process, Segment, Source,
};
use proptest::prelude::*;

pub const NONCE: u64 = 0xfeed;
pub const SECOND: i64 = 1_000_000_000;
/// The start of captures, by both clocks.
pub const MONO: u64 = 5_000_000_000_000;
pub const REAL: u64 = 1_700_000_000_000_000_000;
/// The counter's value then, and its ticks per ns.
const TICK: u64 = 77_000_000;
const TICKS: u64 = 3;
const STRIDE: u32 = 16;
/// How far the target's monotonic clock is ahead.
const AHEAD: i64 = 250;

/// The time in a frame.
#[derive(Debug, Clone, Copy)]
pub enum FrameTime {
    /// This many ns after the start.
    At(i64),
    /// It was not recorded.
    NotTaken,
}

/// One field `at` of each type that gives a frame its time, and one of another type.
fn types() -> [FieldType; 4] {
    [
        FieldType::Tsc,
        FieldType::Ns { clock: Clock::Monotonic },
        FieldType::Ns { clock: Clock::Realtime },
        FieldType::U64,
    ]
}

fn source(id: u16) -> Source {
    let ty = types()[usize::from(id)].clone();
    let at = Field {
        name: "at".to_owned(),
        at: ty.is_time(),
        ty,
        array: None,
        offset: 8,
        interval: None,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let schema = Schema {
        v: 1,
        buffer: format!("b{id}"),
        slots: 16,
        stride: STRIDE,
        frames: vec![Frame {
            name: "it".to_owned(),
            kind: "plain".to_owned(),
            size: 16,
            fields: vec![at],
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    };
    let time_offsets = vec![("monotonic".to_owned(), AHEAD)];
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer,
        process: Process { pid: 1, time_offsets, ..Process::default() },
        segments: vec![Segment { nonce: NONCE, rings: 2, slots: 16, stride: STRIDE }],
        clock: "tick".to_owned(),
        ..Source::default()
    }
}

/// The word in a field and in a chunk's head.
fn word(id: u16, time: FrameTime, jump: i64) -> u64 {
    let FrameTime::At(since) = time else { return 0 };
    let at = |start: u64| start.saturating_add_signed(since).max(1);
    match id {
        0 => TICK.saturating_add_signed((since + jump) * TICKS as i64).max(1),
        1 => at(MONO).saturating_add_signed(AHEAD),
        2 => at(REAL),
        _ => 7,
    }
}

/// What happens to the clocks during a capture.
#[derive(Debug, Clone, Copy)]
enum ClockCase {
    Steady,
    /// Realtime is stepped by a minute, after 4 s.
    Stepped,
    /// The counter jumps by 3 s, after 4 s.
    Jumped,
    /// Realtime was never read.
    NoRealtime,
    /// Stamps are of the monotonic clock instead of the counter.
    Distrusted,
}

fn readings(second: i64, clocks: ClockCase) -> Vec<ClockReading> {
    let since = second * SECOND;
    let late = second > 4;
    let mono = MONO.checked_add_signed(since).unwrap();
    let real = REAL.checked_add_signed(since).unwrap();
    let stepped = if late && matches!(clocks, ClockCase::Stepped) { 60 * SECOND } else { 0 };
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    let tick = word(0, FrameTime::At(since), jump(since, clocks));
    let mut readings = vec![reading(ClockId::Tick, tick, ClockId::Monotonic, mono)];
    if !matches!(clocks, ClockCase::NoRealtime) {
        let real = real.checked_add_signed(stepped).unwrap();
        readings.push(reading(ClockId::Monotonic, mono, ClockId::Realtime, real));
    }
    readings
}

fn jump(since: i64, clocks: ClockCase) -> i64 {
    if since > 4 * SECOND && matches!(clocks, ClockCase::Jumped) { -3 * SECOND } else { 0 }
}

/// A capture with the known facts about it.
#[derive(Debug, Clone)]
pub struct CaptureModel {
    pub bytes: Vec<u8>,
    /// CLOCK_MONOTONIC when the chunk of a frame was drained, by source, ring and sequence number.
    drained: HashMap<(u16, u32, u64), u64>,
    /// Realtime − monotonic.
    offset: Option<i128>,
    /// The source, if there is only one.
    sole: Option<u16>,
}

#[derive(Debug, Clone)]
struct RingPart {
    source: u16,
    ring: u32,
    lost: u64,
    times: Vec<FrameTime>,
    /// After the start. `None`: unknown.
    drained: Option<i64>,
    /// Whether the head states the range of times.
    stated: bool,
    /// Whether the frames are compressed.
    packed: bool,
}

impl CaptureModel {
    /// Ticks of one ring; a chunk is drained with its last frame.
    pub fn simple(chunks: &[&[FrameTime]]) -> CaptureModel {
        let part = |times: &&[FrameTime]| RingPart {
            source: 0,
            ring: 0,
            lost: 0,
            times: times.to_vec(),
            drained: times.last().map(|&time| if let FrameTime::At(at) = time { at } else { 0 }),
            stated: true,
            packed: false,
        };
        CaptureModel::from_parts(
            &chunks.iter().map(part).collect::<Vec<_>>(),
            ClockCase::Steady,
            &[0],
        )
    }

    /// Frames with the same times by ticks and by the target's monotonic clock.
    pub fn of_two_clocks(times: &[FrameTime]) -> CaptureModel {
        let part = |source| RingPart {
            source,
            ring: 0,
            lost: 0,
            times: times.to_vec(),
            drained: Some(2 * SECOND),
            stated: true,
            packed: false,
        };
        CaptureModel::from_parts(&[0, 1].map(part), ClockCase::Steady, &[0, 1])
    }

    /// The target's monotonic clock when ours shows `mono`.
    pub fn own_monotonic(mono: u64) -> u64 {
        mono.saturating_add_signed(AHEAD)
    }

    /// Ticks of one chunk, drained at 5 s, from a counter that jumped at 4 s.
    pub fn jumped(times: &[FrameTime]) -> CaptureModel {
        let part = RingPart {
            source: 0,
            ring: 0,
            lost: 0,
            times: times.to_vec(),
            drained: Some(5 * SECOND),
            stated: true,
            packed: false,
        };
        // The next chunk is drained late enough for clocks to be read after the jump.
        let after = RingPart {
            drained: Some(9 * SECOND),
            times: vec![FrameTime::At(9 * SECOND)],
            ..part.clone()
        };
        CaptureModel::from_parts(&[part, after], ClockCase::Jumped, &[0])
    }

    fn from_parts(parts: &[RingPart], clocks: ClockCase, sources: &[u16]) -> CaptureModel {
        let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
        for second in 0..2 {
            writer.clock(&readings(second, clocks)).unwrap();
        }
        for &id in sources {
            writer.source(id, &source(id)).unwrap();
        }
        let mut next: HashMap<(u16, u32), u64> = HashMap::new();
        let mut drained = HashMap::new();
        let mut second = 2;
        for part in parts {
            let next = next.entry((part.source, part.ring)).or_insert(1);
            let first_seq = *next + part.lost;
            *next = first_seq + part.times.len() as u64;
            let mono = part.drained.map_or(0, |drained| MONO.checked_add_signed(drained).unwrap());
            let words: Vec<u64> = part
                .times
                .iter()
                .map(|&time| {
                    let since = if let FrameTime::At(since) = time { since } else { 0 };
                    match (part.source, clocks, time) {
                        (0, ClockCase::Distrusted, FrameTime::At(_)) => {
                            STAMP_IS_MONOTONIC | word(1, time, 0)
                        }
                        _ => word(part.source, time, jump(since, clocks)),
                    }
                })
                .collect();
            let mut payload = Vec::new();
            for (seq, word) in (first_seq..).zip(&words) {
                drained.insert((part.source, part.ring, seq), mono);
                payload.extend(seq.to_le_bytes());
                payload.extend(word.to_le_bytes());
                payload.resize(payload.len().next_multiple_of(STRIDE as usize), 0);
            }
            let taken = words.iter().copied().filter(|&word| word != 0 && part.source != 3);
            let stated = |time: Option<u64>| time.filter(|_| part.stated).unwrap_or(0);
            let mut packer = Packer::new(part.packed.then_some(Codec::Lz4));
            writer
                .packed_frames(
                    &FramesHead {
                        source: part.source,
                        nonce: NONCE,
                        ring: part.ring,
                        tid: 1,
                        first_seq,
                        count: part.times.len() as u32,
                        stride: STRIDE,
                        lost_before: Lost { overrun: part.lost, ..Lost::default() },
                        drained_mono_ns: mono,
                        drained_by_mono_ns: 0,
                        t_min: stated(taken.clone().min()),
                        t_max: stated(taken.max()),
                        frame_mask: 1,
                    },
                    &packer.pack(&payload),
                )
                .unwrap();
            while part.drained.is_some_and(|drained| drained > second * SECOND) {
                writer.clock(&readings(second, clocks)).unwrap();
                second += 1;
            }
        }
        let bytes = writer.end(&end()).unwrap();
        let offset = Some(i128::from(REAL) - i128::from(MONO));
        let sole = if let [sole] = sources { Some(*sole) } else { None };
        CaptureModel { bytes, drained, offset, sole }
    }

    /// The number of frames.
    pub fn frames(&self) -> usize {
        self.drained.len()
    }

    /// The readable clocks of the capture at `path`, if it is damaged.
    pub fn as_read(&self, path: &Path) -> CaptureModel {
        let mut survey = Capture::survey(path).unwrap().unwrap();
        let mut clocks = ClockTable::default();
        while let Some(item) = survey.read().unwrap() {
            if let CaptureItem::Chunk(Chunk::Clock(readings)) = item {
                clocks.add(&readings);
            }
        }
        let header = survey.header();
        let by_header = header.map(|header| {
            i128::from(header.created_realtime_ns) - i128::from(header.created_mono_ns)
        });
        let mut sources = survey.sources().map(|source| source.id);
        let sole = sources.next().filter(|_| sources.next().is_none());
        CaptureModel { offset: clocks.epoch_offset().or(by_header), sole, ..self.clone() }
    }

    /// Source and ring of a row of the table.
    pub fn ring_of_row(&self, row: &str) -> (u16, u32) {
        let cells: Vec<&str> = row.split('\t').collect();
        let source = self.sole.unwrap_or_else(|| cells[3].trim_start_matches('b').parse().unwrap());
        (source, cells[1].parse().unwrap())
    }

    /// Sequence number and time (ns since the epoch, as all times are shown) of a row of the table.
    pub fn of_row(&self, row: &str) -> (u64, Option<i128>) {
        let cells: Vec<&str> = row.split('\t').collect();
        let (seq, ring): (u64, u32) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        let at: Option<i128> = cells.last().unwrap().parse().ok();
        let source = self.sole.unwrap_or_else(|| cells[3].trim_start_matches('b').parse().unwrap());
        let drained = self.drained[&(source, ring, seq)];
        let drained = (drained != 0).then(|| Some(i128::from(drained) + self.offset?)).flatten();
        let own = match source {
            0..=2 => at,
            _ => None,
        };
        (seq, own.or(drained))
    }
}

fn header() -> FileHeader {
    FileHeader {
        capture_id: *b"0123456789abcdef",
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    }
}

fn end() -> End {
    End::new(EndReason::Stopped, 0, 0)
}

pub fn model() -> impl Strategy<Value = CaptureModel> {
    let clocks = prop_oneof![
        Just(ClockCase::Steady),
        Just(ClockCase::Stepped),
        Just(ClockCase::Jumped),
        Just(ClockCase::NoRealtime),
        Just(ClockCase::Distrusted)
    ];
    let time =
        prop_oneof![6 => (0..SECOND).prop_map(FrameTime::At), 1 => Just(FrameTime::NotTaken)];
    let part = (
        0u16..4,
        0u32..2,
        prop_oneof![4 => Just(0u64), 1 => 1u64..4],
        prop::collection::vec(time, 1..6),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.8),
        any::<bool>(),
    );
    let parts = prop::collection::vec(part, 1..24);
    (clocks, parts, any::<bool>(), 0u16..4).prop_map(|(clocks, parts, several, only)| {
        let parts: Vec<RingPart> = (0i64..)
            .zip(parts)
            .map(|(n, (source, ring, lost, mut times, drained, stated, packed))| {
                let start = n * SECOND / 2;
                for time in &mut times {
                    if let FrameTime::At(since) = time {
                        *since += start;
                    }
                }
                let source = if several { source } else { only };
                let drained = drained.then_some(start + SECOND);
                RingPart { source, ring, lost, times, drained, stated, packed }
            })
            .collect();
        let sources: &[u16] = if several { &[0, 1, 2, 3] } else { &[only] };
        CaptureModel::from_parts(&parts, clocks, sources)
    })
}

/// Damage to a file.
#[derive(Debug, Clone)]
pub enum Damage {
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    /// Missing bytes, as when a file loses blocks.
    Without(prop::sample::Index, usize),
    /// A range that occurs twice.
    Twice(prop::sample::Index, usize),
}

impl Arbitrary for Damage {
    type Parameters = ();
    type Strategy = BoxedStrategy<Damage>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let at = any::<prop::sample::Index>;
        let blocks = || (1usize..20).prop_map(|index| index * 64);
        prop_oneof![
            at().prop_map(Damage::Cut),
            (at(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
            (at(), blocks()).prop_map(|(at, len)| Damage::Without(at, len)),
            (at(), blocks()).prop_map(|(at, len)| Damage::Twice(at, len)),
        ]
        .boxed()
    }
}

impl Damage {
    pub fn of(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let range = |at: &prop::sample::Index, len: usize| {
            let start = at.index(bytes.len()) / 64 * 64;
            start..(start + len).min(bytes.len())
        };
        match self {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Flip(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Damage::Without(at, len) => {
                let range = range(at, *len);
                bytes.drain(range);
            }
            Damage::Twice(at, len) => {
                let range = range(at, *len);
                let end = range.end;
                let part = bytes[range].to_vec();
                bytes.splice(end..end, part);
            }
        }
        bytes
    }
}

/// Frames 3 to 7, drained at 1 s, and 10 to 13 at 3 s, each after an overrun of two; then a gap of
/// two. Also returns the offset of a byte in the second chunk's frames.
pub fn with_gaps() -> (Vec<u8>, usize) {
    let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
    writer.clock(&readings(0, ClockCase::Steady)).unwrap();
    writer.source(3, &source(3)).unwrap();
    let mut at = 0;
    for (first_seq, count, second) in [(3, 5, 1), (10, 4, 3)] {
        let payload: Vec<u8> = (first_seq..first_seq + u64::from(count))
            .flat_map(|seq| [seq, 7].into_iter().flat_map(u64::to_le_bytes))
            .collect();
        let head = FramesHead {
            source: 3,
            nonce: NONCE,
            first_seq,
            count,
            stride: STRIDE,
            lost_before: Lost { overrun: 2, ..Lost::default() },
            drained_mono_ns: MONO + second * SECOND as u64,
            ..FramesHead::default()
        };
        writer.frames(&head, &payload).unwrap();
        at = writer.bytes() as usize - 70;
    }
    let (source, nonce, ring, cause) = (3, NONCE, 0, Cause::Disk);
    writer.gap(&Gap { source, nonce, ring, first_seq: 14, count: 2, cause }).unwrap();
    (writer.end(&end()).unwrap(), at)
}
