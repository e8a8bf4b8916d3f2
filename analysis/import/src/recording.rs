//! Writes a capture of frames that come from a file, not from a ring.

use std::collections::HashMap;
use std::io::{self, Write};

use ppt_capture::columns::{Time, TimeScale};
use ppt_capture::frame_dsl::schema::{Clock, FRAME_ID_OFFSET, Schema};
use ppt_capture::stamps::Stamps;
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, RingEnd,
    Segment, Source,
};
use rustix::rand::GetRandomFlags;

use crate::host::ImportHost;

/// The size of a full chunk in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// The most bytes of all incomplete chunks, because there may be many rings.
const MAX_BUFFERED: usize = 64 << 20;
/// The number of rings of the first segment. Each further segment has twice as many as the previous one.
const FIRST_RINGS: u32 = 64;
/// The start of an unknown monotonic clock. It is not 0, which marks an unknown time.
const BEGIN: u64 = 1_000_000_000;

/// The origin of the frames.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The host with the clocks of the input.
    pub host: ImportHost,
    /// The largest error of times in the input against these clocks, in ns.
    pub error_ns: u64,
    /// The id of the process; 0 if it is unknown.
    pub pid: u32,
    /// The name of the input, for display.
    pub input: String,
    /// The names and values of the capture's metadata.
    pub tags: Vec<(String, String)>,
    /// The name and version of the importing program.
    pub tool: String,
    /// The current CLOCK_REALTIME in ns, for inputs without a time.
    pub now_ns: u64,
}

/// A capture that is written frame by frame.
///
/// Frames of one thread have consecutive numbers in the order of their arrival. Memory grows with the
/// number of threads, up to 64 MiB, and not with the number of frames.
#[derive(Debug)]
pub struct Recording<W: Write> {
    out: CaptureOut<W>,
    id: [u8; 16],
    source: Source,
    origin: Origin,
    /// For each kind of frame, its time field. All None if their clocks differ.
    times: Vec<Option<Time>>,
    multi: bool,
    /// The size of a frame in words of 8 bytes.
    words: usize,
    stamps: Stamps,
    clock: InputClock,
    /// The rings of threads, by thread id.
    rings: HashMap<u32, RecordedRing>,
    /// The number of used rings in the last segment.
    segment_rings: u32,
    /// The bytes of all incomplete chunks.
    buffered: usize,
    /// The number of all frames.
    frames: u64,
}

/// The output. The capture starts with the first frame, which determines its start time.
#[derive(Debug)]
enum CaptureOut<W: Write> {
    Waiting(W),
    Begun(CaptureWriter<W>),
    Failed,
}

/// The clock of the input, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct InputClock {
    /// The first time in the input.
    first: u64,
    /// The largest time so far.
    latest: u64,
    /// The first time by CLOCK_REALTIME.
    realtime: u64,
    /// The first time by CLOCK_MONOTONIC.
    monotonic: u64,
}

/// The ring of a thread.
#[derive(Debug)]
struct RecordedRing {
    nonce: u64,
    number: u32,
    next_seq: u64,
    /// The words of frames that are not written yet.
    open: Vec<[u8; 8]>,
}

impl<W: Write> Recording<W> {
    /// Starts a capture of frames of `schema`. It is written to `out`, which should not buffer.
    ///
    /// # Errors
    /// Write errors of `out`.
    pub fn new(schema: &Schema, origin: Origin, out: W) -> io::Result<Self> {
        let mut id = [0; 16];
        let random = rustix::rand::getrandom(&mut id, GetRandomFlags::empty())?;
        if random != id.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let json = schema.to_json().into_bytes();
        let fields = schema.frames.iter().map(|frame| frame.at().and_then(Time::from_field));
        let mut times: Vec<Option<Time>> = fields.collect();
        let scale = times.iter().flatten().next().map(|time| time.scale());
        if times.iter().flatten().any(|time| Some(time.scale()) != scale) {
            times.fill(None);
        }
        let source = Source {
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            object: origin.input.clone(),
            process: Process {
                pid: origin.pid,
                ns_pid: origin.pid,
                comm: origin.input.clone(),
                ..Process::default()
            },
            tags: schema.tags.iter().chain(&origin.tags).cloned().collect(),
            ..Source::default()
        };
        Ok(Recording {
            out: CaptureOut::Waiting(out),
            id,
            stamps: Stamps::from_json(&json),
            source: Source { schema_json: json, ..source },
            origin,
            times,
            multi: schema.multi(),
            words: schema.stride as usize / 8,
            clock: InputClock::default(),
            rings: HashMap::new(),
            segment_rings: 0,
            buffered: 0,
            frames: 0,
        })
    }

    /// The size of a frame in bytes.
    pub fn stride(&self) -> usize {
        8 * self.words
    }

    /// The number of frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Adds frame `id` of the schema, written by thread `tid`. `frame` has [`Self::stride`] bytes. This
    /// sets its sequence number and its id.
    ///
    /// # Errors
    /// Write errors of `out`.
    pub fn push(&mut self, tid: u32, id: u16, frame: &mut [u8]) -> io::Result<()> {
        if frame.len() != self.stride() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a frame of another size"));
        }
        let time = self.times.get(usize::from(id)).copied().flatten();
        let word = time.map_or(0, |time| time.word(frame));
        if matches!(self.out, CaptureOut::Waiting(_)) {
            self.begin(time, word)?;
        }
        self.clock.latest = self.clock.latest.max(word);
        if !self.rings.contains_key(&tid) {
            self.open_ring(tid)?;
        }
        let Some(ring) = self.rings.get_mut(&tid) else { return Ok(()) };
        frame[..8].copy_from_slice(&ring.next_seq.to_le_bytes());
        if self.multi {
            let at = FRAME_ID_OFFSET as usize;
            frame[at..at + 2].copy_from_slice(&id.to_le_bytes());
        }
        ring.next_seq += 1;
        ring.open.extend_from_slice(frame.as_chunks::<8>().0);
        self.buffered += frame.len();
        self.frames += 1;
        let is_full = 8 * ring.open.len() + frame.len() > CHUNK_BYTES;
        if is_full {
            self.write(tid)?;
        }
        if self.buffered > MAX_BUFFERED {
            self.write_all()?;
        }
        Ok(())
    }

    /// Ends the capture and returns the output. `message` is the reason of the end.
    ///
    /// # Errors
    /// Write errors of `out`.
    pub fn finish(mut self, message: &str) -> io::Result<W> {
        if matches!(self.out, CaptureOut::Waiting(_)) {
            self.begin(None, 0)?;
        }
        self.write_all()?;
        let mut rings: Vec<RingEnd> = self.rings.values().map(RecordedRing::end).collect();
        rings.sort_by_key(|ring| (ring.nonce, ring.ring));
        let elapsed = self.clock.elapsed();
        let end = End {
            reason: EndReason::Stopped,
            message: message.to_owned(),
            rings,
            drops: Vec::new(),
            realtime_ns: self.clock.realtime.saturating_add(elapsed),
            mono_ns: self.clock.monotonic.saturating_add(elapsed),
        };
        match std::mem::replace(&mut self.out, CaptureOut::Failed) {
            CaptureOut::Begun(writer) => writer.end(&end),
            CaptureOut::Waiting(_) | CaptureOut::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes the chunks before the first frame. `word` is its time, and `time` its field.
    fn begin(&mut self, time: Option<Time>, word: u64) -> io::Result<()> {
        let Origin { host, error_ns, now_ns, .. } = &self.origin;
        let ImportHost { boot_id, epoch_ns, asleep_ns, .. } = host;
        // With an unknown clock, the capture counts from its own start.
        let since = |realtime: u64| match boot_id.as_str() {
            "" => BEGIN,
            _ => realtime.saturating_sub(*epoch_ns).max(1),
        };
        let (realtime, monotonic) = match time.map(Time::scale).filter(|_| word != 0) {
            Some(TimeScale::Ns(Clock::Realtime)) => (word, since(word)),
            Some(TimeScale::Ns(Clock::Monotonic)) => (epoch_ns.saturating_add(word), word),
            Some(TimeScale::Ns(Clock::Boottime)) => {
                let monotonic = word.saturating_sub(*asleep_ns);
                (epoch_ns.saturating_add(monotonic), monotonic)
            }
            _ => (*now_ns, since(*now_ns)),
        };
        self.clock = InputClock { first: word, latest: word, realtime, monotonic };
        let header = FileHeader {
            capture_id: self.id,
            host: host.name.clone(),
            boot_id: boot_id.clone(),
            tool: self.origin.tool.clone(),
            created_realtime_ns: realtime,
            created_mono_ns: monotonic,
        };
        let CaptureOut::Waiting(out) = std::mem::replace(&mut self.out, CaptureOut::Failed) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut writer = CaptureWriter::create(out, &header)?;
        let error = (*error_ns).min(monotonic).min(u64::MAX - monotonic);
        let reading = |b, b_value| ClockReading {
            a: ClockId::Monotonic,
            a_before: monotonic - error,
            b,
            b_value,
            a_after: monotonic + error,
            distrusted: false,
        };
        let clocks = [
            reading(ClockId::Realtime, realtime),
            reading(ClockId::Boottime, monotonic.saturating_add(*asleep_ns)),
        ];
        writer.clock(&clocks)?;
        self.out = CaptureOut::Begun(writer);
        self.open_segment()
    }

    fn writer(&mut self) -> io::Result<&mut CaptureWriter<W>> {
        match &mut self.out {
            CaptureOut::Begun(writer) => Ok(writer),
            CaptureOut::Waiting(_) | CaptureOut::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn open_segment(&mut self) -> io::Result<()> {
        let number = self.source.segments.len() as u32;
        let random = u64::from_le_bytes(self.id[8..].try_into().unwrap_or_default());
        let nonce = random.wrapping_add(u64::from(number)).max(1);
        let (rings, slots) =
            (FIRST_RINGS << number, (CHUNK_BYTES / self.stride()).next_power_of_two() as u32);
        let stride = self.stride() as u32;
        self.source.segments.push(Segment { nonce, rings, slots, stride });
        self.segment_rings = 0;
        let source = self.source.clone();
        self.writer()?.source(0, &source)
    }

    fn open_ring(&mut self, tid: u32) -> io::Result<()> {
        if self.source.segments.last().is_none_or(|segment| segment.rings == self.segment_rings) {
            self.open_segment()?;
        }
        let nonce = self.source.segments.last().map_or(0, |segment| segment.nonce);
        let number = self.segment_rings;
        self.segment_rings += 1;
        self.rings.insert(tid, RecordedRing { nonce, number, next_seq: 1, open: Vec::new() });
        Ok(())
    }

    fn write_all(&mut self) -> io::Result<()> {
        let mut tids: Vec<u32> = self.rings.keys().copied().collect();
        tids.sort_unstable();
        tids.into_iter().try_for_each(|tid| self.write(tid))
    }

    /// Writes the incomplete chunk of a thread.
    fn write(&mut self, tid: u32) -> io::Result<()> {
        let words = self.words;
        let drained = self.clock.monotonic.saturating_add(self.clock.elapsed());
        let Some(ring) = self.rings.get_mut(&tid).filter(|ring| !ring.open.is_empty()) else {
            return Ok(());
        };
        let stamp = self.stamps.stamp(&ring.open, words);
        let count = ring.open.len() / words;
        let head = FramesHead {
            source: 0,
            nonce: ring.nonce,
            ring: ring.number,
            tid,
            first_seq: ring.next_seq - count as u64,
            count: count as u32,
            stride: 8 * words as u32,
            drained_mono_ns: drained,
            t_min: stamp.t_min,
            t_max: stamp.t_max,
            frame_mask: stamp.frame_mask,
            ..FramesHead::default()
        };
        let mut open = std::mem::take(&mut ring.open);
        self.writer()?.frames(&head, open.as_flattened())?;
        self.buffered -= 8 * open.len();
        open.clear();
        // If there are many threads, their buffers are freed.
        let keeps = self.rings.len() * CHUNK_BYTES <= MAX_BUFFERED;
        if let Some(ring) = self.rings.get_mut(&tid).filter(|_| keeps) {
            ring.open = open;
        }
        Ok(())
    }
}

impl InputClock {
    /// The time from the first to the latest time.
    fn elapsed(&self) -> u64 {
        if self.first == 0 { 0 } else { self.latest - self.first }
    }
}

impl RecordedRing {
    fn end(&self) -> RingEnd {
        RingEnd {
            nonce: self.nonce,
            ring: self.number,
            first_seq: 1,
            next_seq: self.next_seq,
            captured: self.next_seq - 1,
            ..RingEnd::default()
        }
    }
}
