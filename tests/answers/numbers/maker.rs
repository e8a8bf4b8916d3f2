//! Makes captures with the capture writer, from explicit fields of frames.

use std::collections::BTreeMap;

use ppt_capture::frame_dsl::schema::{Field, Schema};
use ppt_capture::stamps::Stamps;
use ppt_capture::{
    CaptureWriter, Cause, CellRows, CellsHead, ClockId, ClockReading, Dropped, Drops, End,
    EndReason, FileHeader, Flip, FramesHead, Gap, Lost, Process, RingEnd, Segment, Source, Trigger,
};
use serde_json::{Value, json};

pub const SECOND: u64 = 1_000_000_000;
/// CLOCK_MONOTONIC and CLOCK_REALTIME when each capture begins, ns.
pub const MONO: u64 = 7_000 * SECOND;
pub const REAL: u64 = 1_795_238_091 * SECOND;
/// The tick clock: three ticks in two nanoseconds.
pub const TICKS: u64 = MONO / 2 * 3;
/// Frames of a chunk.
const CHUNK: usize = 40;
const RINGS: u32 = 8;

/// The value of a field, or of one element of an array.
#[derive(Debug, Clone)]
pub enum MakerWord {
    Integer(i128),
    Single(f32),
    Double(f64),
    Bytes(Vec<u8>),
    /// Seconds, and microseconds or nanoseconds.
    Pair(i64, i64),
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl From<$type> for MakerWord {
            fn from(value: $type) -> MakerWord { MakerWord::Integer(value.into()) }
        }
    )*};
}
integers!(i32 i64 u32 u64);

impl From<f64> for MakerWord {
    fn from(value: f64) -> MakerWord {
        MakerWord::Double(value)
    }
}

impl From<f32> for MakerWord {
    fn from(value: f32) -> MakerWord {
        MakerWord::Single(value)
    }
}

impl From<&[u8]> for MakerWord {
    fn from(value: &[u8]) -> MakerWord {
        MakerWord::Bytes(value.to_vec())
    }
}

impl From<&str> for MakerWord {
    fn from(value: &str) -> MakerWord {
        MakerWord::Bytes(value.as_bytes().to_vec())
    }
}

/// One ring of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MakerRing {
    pub source: u16,
    pub ring: u32,
    pub tid: u32,
}

#[derive(Debug, Default)]
struct MakerState {
    first_seq: u64,
    next_seq: u64,
    captured: u64,
    lost: Lost,
    /// Frames lost before the frames that are not written yet.
    before: Lost,
    frames: Vec<u8>,
    count: u32,
    /// CLOCK_MONOTONIC of the latest frame, for the head of the chunk.
    latest: u64,
}

/// The facts about a source.
#[derive(Debug, Clone, Copy)]
pub struct MakerProgram<'a> {
    /// A frame file.
    pub frames: &'a str,
    pub pid: u32,
    /// Empty, or `kernel`.
    pub kind: &'a str,
}

/// The cells of a ring in a reading, by their numbers; without a ring, the shared ones.
#[derive(Debug, Clone)]
pub struct RowOfCells {
    pub ring: Option<u32>,
    pub tid: u32,
    pub cells: Vec<(u32, u64)>,
}

/// A capture, or a series, that is being made.
pub struct Maker {
    header: FileHeader,
    writer: CaptureWriter<Vec<u8>>,
    sources: Vec<(Source, Schema)>,
    rings: BTreeMap<MakerRing, MakerState>,
    dropped: BTreeMap<u16, Dropped>,
    now: u64,
    files: Vec<Vec<u8>>,
    /// Facts that no dump shows, about the current file, and about earlier ones.
    told: Vec<Value>,
    told_before: Vec<Vec<Value>>,
}

impl Maker {
    /// `id` distinguishes captures.
    pub fn begin(id: u8) -> Maker {
        let header = FileHeader {
            capture_id: [id; 16],
            host: "till".to_owned(),
            boot_id: "boot".to_owned(),
            tool: "ppt 0.1.0".to_owned(),
            created_realtime_ns: REAL,
            created_mono_ns: MONO,
        };
        let mut maker = Maker {
            writer: CaptureWriter::create(Vec::new(), &header).unwrap(),
            header,
            sources: Vec::new(),
            rings: BTreeMap::new(),
            dropped: BTreeMap::new(),
            now: MONO,
            files: Vec::new(),
            told: Vec::new(),
            told_before: Vec::new(),
        };
        maker.clocks();
        maker
    }

    fn clocks(&mut self) {
        let reading = |a, b, a_at, b_value| ClockReading {
            a,
            a_before: a_at,
            b,
            b_value,
            a_after: a_at,
            distrusted: false,
        };
        let ticks = |second: u64| {
            let at = MONO + second * SECOND;
            reading(ClockId::Tick, ClockId::Monotonic, TICKS + second * SECOND / 2 * 3, at)
        };
        let real = reading(ClockId::Monotonic, ClockId::Realtime, MONO, REAL);
        self.writer.clock(&[real, ticks(0), ticks(2), ticks(60)]).unwrap();
    }

    pub fn source(&mut self, program: MakerProgram<'_>) -> u16 {
        let schema = ppt_frame_dsl::compile(program.frames.as_bytes(), "made.frame");
        let schema = schema.unwrap_or_else(|error| panic!("{error:?}")).schema;
        let segment =
            Segment { nonce: nonce(program.pid), rings: RINGS, slots: 64, stride: schema.stride };
        let process = Process {
            pid: program.pid,
            start_time: u64::from(program.pid) * 10,
            exe: "/opt/shopd".to_owned(),
            ..Process::default()
        };
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            kind: program.kind.to_owned(),
            buffer: schema.buffer.clone(),
            process,
            segments: vec![segment],
            clock: "tick".to_owned(),
            ..Source::default()
        };
        let number = self.sources.len() as u16;
        self.writer.source(number, &source).unwrap();
        self.sources.push((source, schema));
        number
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.sources.iter().map(|source| &source.1)
    }

    pub fn schema(&self, source: u16) -> &Schema {
        &self.sources[usize::from(source)].1
    }

    pub fn ring(&mut self, source: u16, ring: u32, tid: u32) -> MakerRing {
        let key = MakerRing { source, ring, tid };
        self.rings.insert(key, MakerState { first_seq: 1, next_seq: 1, ..MakerState::default() });
        key
    }

    /// Sets the first sequence number of a ring.
    pub fn begins_at(&mut self, ring: MakerRing, seqno: u64) {
        let state = self.rings.get_mut(&ring).unwrap();
        (state.first_seq, state.next_seq) = (seqno, seqno);
    }

    /// Sets the listener's clock: later frames are drained at this time.
    pub fn at(&mut self, mono_ns: u64) {
        self.now = mono_ns;
    }

    /// Adds a frame; fields without a value are 0.
    pub fn frame(&mut self, ring: MakerRing, kind: &str, fields: &[(&str, MakerWord)]) {
        let schema = &self.sources[usize::from(ring.source)].1;
        let id = schema.frames.iter().position(|frame| frame.name == kind);
        let id = id.unwrap_or_else(|| panic!("no frame {kind}"));
        let state = self.rings.get_mut(&ring).unwrap();
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&state.next_seq.to_le_bytes());
        if schema.frames.len() > 1 {
            bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
        }
        for (name, word) in fields {
            put(&mut bytes, schema, &schema.frames[id].fields, name, word);
        }
        state.frames.extend(bytes);
        state.count += 1;
        state.next_seq += 1;
        state.latest = self.now;
        if state.count as usize == CHUNK {
            self.flush(ring);
        }
    }

    /// Writes the pending frames of a ring.
    pub fn flush(&mut self, ring: MakerRing) {
        let (source, schema) = &self.sources[usize::from(ring.source)];
        let state = self.rings.get_mut(&ring).unwrap();
        if state.count == 0 {
            return;
        }
        let words = state.frames.as_chunks::<8>().0;
        let stamps = Stamps::from_json(&source.schema_json);
        let stamp = stamps.stamp(words, schema.stride as usize / 8);
        let head = FramesHead {
            source: ring.source,
            nonce: source.segments[0].nonce,
            ring: ring.ring,
            tid: ring.tid,
            first_seq: state.next_seq - u64::from(state.count),
            count: state.count,
            stride: schema.stride,
            lost_before: std::mem::take(&mut state.before),
            drained_mono_ns: state.latest,
            drained_by_mono_ns: 0,
            t_min: stamp.t_min,
            t_max: stamp.t_max,
            frame_mask: stamp.frame_mask,
        };
        self.writer.frames(&head, &state.frames).unwrap();
        state.captured += u64::from(state.count);
        state.count = 0;
        state.frames.clear();
    }

    /// Adds lost frames before the next frame; the head of its chunk states them.
    pub fn lose(&mut self, ring: MakerRing, lost: Lost) {
        self.flush(ring);
        let state = self.rings.get_mut(&ring).unwrap();
        state.before = lost;
        state.lost += lost;
        state.next_seq += lost.total();
    }

    /// Adds missing frames in a chunk of their own.
    pub fn gap(&mut self, ring: MakerRing, count: u64, cause: Cause) {
        self.flush(ring);
        let nonce = self.sources[usize::from(ring.source)].0.segments[0].nonce;
        let state = self.rings.get_mut(&ring).unwrap();
        let gap = Gap {
            source: ring.source,
            nonce,
            ring: ring.ring,
            first_seq: state.next_seq,
            count,
            cause,
        };
        self.writer.gap(&gap).unwrap();
        if cause == Cause::Unattended && state.captured == 0 {
            state.first_seq += count;
        }
        state.lost.add(cause, count);
        state.next_seq += count;
    }

    /// Adds frames of a source that never got a number, as a total since it began.
    pub fn drops(&mut self, source: u16, dropped: Dropped) {
        self.writer.drops(&Drops { source, dropped, mono_ns: self.now }).unwrap();
        self.dropped.insert(source, dropped);
        let Dropped { no_ring, nested, not_mapped } = dropped;
        let causes = json!({ "no_ring": no_ring, "nested": nested, "not_mapped": not_mapped });
        self.told.push(json!({ "told": "drops", "source": source, "dropped": causes }));
    }

    /// Adds a reading of counters and histograms: rings, their threads, cells and values.
    pub fn cells(&mut self, source: u16, base: bool, rows: &[RowOfCells]) {
        let mut packed = CellRows::default();
        for row in rows {
            packed.push(row.ring, row.tid, row.cells.iter().copied());
        }
        let nonce = self.sources[usize::from(source)].0.segments[0].nonce;
        let head =
            CellsHead { source, nonce, mono_ns: self.now, is_base: base, ..CellsHead::default() };
        self.writer.cells(&head, &packed).unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.ring, row.tid, &row.cells)).collect();
        self.told.push(json!({
            "told": "cells", "source": source, "mono": self.now, "base": base, "rows": told,
        }));
    }

    pub fn masks(&mut self, flip: &Flip) {
        self.writer.masks(flip).unwrap();
        let changes: Vec<_> = flip.changes.iter().map(|change| (change.0.0, change.1)).collect();
        let rings: Vec<_> = flip
            .rings
            .iter()
            .map(|ring| (ring.ring, ring.first_enabled, ring.first_disabled))
            .collect();
        self.told.push(json!({
            "told": "masks", "source": flip.source, "mono": flip.mono_ns,
            "changes": changes, "rings": rings,
        }));
    }

    pub fn trigger(&mut self, trigger: &Trigger) {
        self.writer.trigger(trigger).unwrap();
        self.told.push(json!({
            "told": "trigger", "why": trigger.why.name(), "mono": trigger.mono_ns,
            "seqno": trigger.seqno, "expression": trigger.expression,
        }));
    }

    fn finish(&mut self, reason: EndReason, header: &FileHeader) -> Vec<u8> {
        for ring in self.rings.keys().copied().collect::<Vec<_>>() {
            self.flush(ring);
        }
        let rings = self.rings.iter().map(|(ring, state)| RingEnd {
            source: ring.source,
            nonce: self.sources[usize::from(ring.source)].0.segments[0].nonce,
            ring: ring.ring,
            first_seq: state.first_seq,
            next_seq: state.next_seq,
            captured: state.captured,
            lost: state.lost,
        });
        let end = End {
            reason,
            message: String::new(),
            rings: rings.collect(),
            drops: self.dropped.iter().map(|(source, dropped)| (*source, *dropped)).collect(),
            realtime_ns: REAL + (self.now - MONO),
            mono_ns: self.now,
        };
        let next = CaptureWriter::create(Vec::new(), header).unwrap();
        std::mem::replace(&mut self.writer, next).end(&end).unwrap()
    }

    /// Continues in the next file of a series.
    pub fn rotate(&mut self) {
        self.header.capture_id = self.header.capture_id.map(|byte| byte + 20);
        self.header.created_mono_ns = self.now;
        self.header.created_realtime_ns = REAL + (self.now - MONO);
        let file = self.finish(EndReason::Rotated, &self.header.clone());
        self.files.push(file);
        self.told_before.push(std::mem::take(&mut self.told));
        self.clocks();
        for (number, (source, _)) in (0..).zip(&self.sources) {
            self.writer.source(number, source).unwrap();
        }
        self.dropped.clear();
        for state in self.rings.values_mut() {
            let next_seq = state.next_seq;
            *state = MakerState { first_seq: next_seq, next_seq, ..MakerState::default() };
        }
    }

    /// The files, and the recorded facts about each.
    pub fn end(mut self, reason: EndReason) -> (Vec<Vec<u8>>, Vec<Vec<Value>>) {
        let last = self.finish(reason, &self.header.clone());
        self.files.push(last);
        self.told_before.push(self.told);
        (self.files, self.told_before)
    }
}

pub fn nonce(pid: u32) -> u64 {
    0x5e90_0000_0000_0000 | u64::from(pid)
}

fn put(bytes: &mut [u8], schema: &Schema, fields: &[Field], name: &str, word: &MakerWord) {
    let (field, index) = place(fields, name);
    let size = field.ty.size(schema) as usize;
    let to = &mut bytes[field.offset as usize + index * size..][..size];
    match word {
        MakerWord::Integer(value) => to.copy_from_slice(&value.to_le_bytes()[..size]),
        MakerWord::Single(value) => to.copy_from_slice(&value.to_le_bytes()),
        MakerWord::Double(value) => to.copy_from_slice(&value.to_le_bytes()),
        MakerWord::Bytes(value) => {
            to[..value.len()].copy_from_slice(value);
        }
        MakerWord::Pair(seconds, rest) => {
            to[..8].copy_from_slice(&seconds.to_le_bytes());
            to[8..].copy_from_slice(&rest.to_le_bytes());
        }
    }
}

/// A field by its name, or an element of an array by `name_0`.
fn place<'a>(fields: &'a [Field], name: &str) -> (&'a Field, usize) {
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return (field, 0);
    }
    let (array, index) = name.rsplit_once('_').unwrap_or_else(|| panic!("no field {name}"));
    let field = fields.iter().find(|field| field.name == array && field.array.is_some());
    (field.unwrap_or_else(|| panic!("no field {name}")), index.parse().unwrap())
}
