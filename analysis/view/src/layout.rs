//! The layout of a view: chunks, tracks, names and losses. It is read before slices. Only frames that may be
//! about other threads than the one that wrote them are read for it.

use std::collections::HashMap;
use std::sync::Arc;

use ppt_capture::columns::FrameThreads;
use ppt_capture::{Cause, ChunkFile, SourceInfo};
use ppt_tables::{
    CaptureSet, Contents, FrameChunk, MissingFrames, ProcessRow, Processes, RingOwner,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::block::ClockMark;
use crate::counters::Counters;
use crate::error::ViewError;
use crate::slice::{OrderedSlice, Slice, SourceKinds, TickRange};
use crate::thread_share::{CaptureShares, ChunkId, KnownShares, ThreadShare, shares};

/// The chunks and tracks of a view.
#[derive(Debug)]
pub(crate) struct ViewLayout {
    pub captures: Vec<Contents>,
    pub processes: Vec<ProcessRow>,
    pub chunks: Vec<ChunkEntry>,
    pub tracks: Vec<Track>,
    pub names: Vec<SliceName>,
    /// The sources, indexed by capture and source.
    sources: Vec<Vec<SourceEntry>>,
    /// The clocks of each capture.
    clocks: Vec<ClockMark>,
    pub counters: Counters,
    shares: KnownShares,
}

/// The name of a kind of slices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SliceName {
    /// `job.handle` of an interval, `job` of a frame without an interval.
    pub name: String,
    /// The name of the buffer.
    pub buffer: String,
}

/// A chunk of frames, or the share of a thread in one. Its index is its number in the view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkEntry {
    pub capture: usize,
    pub source: usize,
    /// The number of the ring in the view.
    pub ring: u32,
    pub chunk: FrameChunk,
    /// The frames of the chunk that belong to the entry.
    pub share: ThreadShare,
}

/// A thread, or a ring whose thread is unknown.
#[derive(Debug)]
pub(crate) struct Track {
    pub process: usize,
    pub tid: Option<u32>,
    /// The name of the thread in the capture.
    pub name: Option<String>,
    /// The numbers of its chunks, in the order of the captures.
    pub chunks: Vec<usize>,
    pub losses: Vec<LostFrames>,
}

/// Missing frames with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostFrames {
    /// The earliest time at which they were written, ns since the epoch.
    pub from: i64,
    /// The latest time at which they were written, ns since the epoch.
    pub to: i64,
    /// The number of frames.
    pub count: u64,
    /// The cause. Not every cause is a loss, see [`Cause::is_loss`].
    pub cause: Cause,
}

#[derive(Debug)]
struct SourceEntry {
    kinds: Arc<SourceKinds>,
    other_threads: Option<FrameThreads>,
    /// The name of each kind of slices.
    names: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TrackKey {
    /// A process and a thread id.
    Thread(u32, u32),
    Ring(RingId),
}

/// Identifies a ring in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RingId {
    capture: usize,
    source: usize,
    segment: u64,
    ring: u32,
}

/// The track and the ring of an owner of chunks.
#[derive(Debug, Clone, Copy)]
struct OwnerNumbers {
    track: usize,
    ring: u32,
}

/// The tracks found so far.
#[derive(Debug, Default)]
struct Tracks {
    numbers: HashMap<TrackKey, usize>,
    tracks: Vec<Track>,
}

impl Tracks {
    /// The number of the track of a thread, or of a ring if the thread is unknown.
    fn number(&mut self, process: u32, tid: Option<u32>, ring: RingId) -> usize {
        let key = tid.map_or(TrackKey::Ring(ring), |tid| TrackKey::Thread(process, tid));
        let process = process as usize;
        *self.numbers.entry(key).or_insert_with(|| {
            let (chunks, losses) = (Vec::new(), Vec::new());
            self.tracks.push(Track { process, tid, name: None, chunks, losses });
            self.tracks.len() - 1
        })
    }
}

/// The names of slices found so far.
#[derive(Debug, Default)]
struct SliceNames {
    numbers: HashMap<SliceName, u32>,
    names: Vec<SliceName>,
}

impl SliceNames {
    fn number(&mut self, buffer: &str, name: &str) -> u32 {
        let name = SliceName { name: name.to_owned(), buffer: buffer.to_owned() };
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            self.names.push(name);
            self.names.len() as u32 - 1
        })
    }
}

/// Reads the captures of a layout one after the other.
#[derive(Debug, Default)]
struct LayoutReader {
    tracks: Tracks,
    rings: HashMap<RingId, u32>,
    chunks: Vec<ChunkEntry>,
    names: SliceNames,
    sources: Vec<Vec<SourceEntry>>,
    shares: KnownShares,
    /// The number of processes with a source.
    process_count: usize,
}

impl LayoutReader {
    /// Reads the next capture. `known` are the shares of its chunks that were read before.
    fn read(
        &mut self,
        contents: &Contents,
        known: Option<&CaptureShares>,
    ) -> Result<(), ViewError> {
        let capture = self.sources.len();
        let sources = contents.sources().iter().map(|info| self.source(info)).collect::<Vec<_>>();
        let processes = (0..sources.len()).map(|source| contents.process(source) as usize + 1);
        self.process_count = self.process_count.max(processes.max().unwrap_or(0));
        let owners = contents.owners();
        let mut track_of_ring = HashMap::new();
        let numbers: Vec<OwnerNumbers> = owners
            .iter()
            .map(|owner| {
                let numbers = self.owner(capture, owner);
                track_of_ring.entry(ring_id(capture, owner)).or_insert(numbers.track);
                numbers
            })
            .collect();
        let mut shares_read = CaptureShares::new();
        let mut file = ChunkFile::new(contents.file().clone());
        for chunk in contents.chunks() {
            let owner = &owners[chunk.owner];
            let id = ChunkId { ordinal: chunk.ordinal, crc: chunk.crc };
            let other_threads = &sources[owner.source].other_threads;
            let chunk_shares = match (other_threads, known.and_then(|known| known.get(&id))) {
                (None, _) => vec![ThreadShare::whole(chunk.count)],
                (Some(_), Some(known)) => known.clone(),
                (Some(threads), None) => shares(contents, &mut file, &chunk, (threads, owner.tid))?,
            };
            self.add_chunk(chunk, &chunk_shares, (capture, owner), numbers[chunk.owner]);
            if other_threads.is_some() {
                shares_read.insert(id, chunk_shares);
            }
        }
        for gap in contents.missing() {
            let ring = RingId { capture, source: gap.source, segment: gap.segment, ring: gap.ring };
            let track = match (gap.tid, track_of_ring.get(&ring)) {
                (None, Some(&track)) => track,
                (tid, _) => self.tracks.number(contents.process(gap.source), tid, ring),
            };
            self.tracks.tracks[track].losses.extend(loss(&gap));
        }
        self.sources.push(sources);
        self.shares.insert(contents.id().to_owned(), shares_read);
        Ok(())
    }

    fn source(&mut self, info: &SourceInfo) -> SourceEntry {
        let kinds = SourceKinds::from_schema(&info.schema);
        let number = |name: &str| self.names.number(&info.source.buffer, name);
        let names = kinds.kinds.iter().map(|kind| kind.name.as_str()).map(number).collect();
        let other_threads = FrameThreads::from_schema(&info.schema);
        SourceEntry { kinds: Arc::new(kinds), other_threads, names }
    }

    fn owner(&mut self, capture: usize, owner: &RingOwner) -> OwnerNumbers {
        let id = ring_id(capture, owner);
        let next = self.rings.len() as u32;
        let ring = *self.rings.entry(id).or_insert(next);
        OwnerNumbers { track: self.tracks.number(owner.process, owner.tid, id), ring }
    }

    /// Adds each share of a chunk to the track of its thread.
    fn add_chunk(
        &mut self,
        chunk: FrameChunk,
        shares: &[ThreadShare],
        (capture, owner): (usize, &RingOwner),
        OwnerNumbers { track: own_track, ring }: OwnerNumbers,
    ) {
        for share in shares {
            let track = match share.thread.cast_unsigned() {
                0 => own_track,
                tid => self.tracks.number(owner.process, Some(tid), ring_id(capture, owner)),
            };
            self.tracks.tracks[track].chunks.push(self.chunks.len());
            let source = owner.source;
            self.chunks.push(ChunkEntry { capture, source, ring, chunk, share: *share });
        }
    }
}

fn ring_id(capture: usize, owner: &RingOwner) -> RingId {
    RingId { capture, source: owner.source, segment: owner.segment, ring: owner.ring }
}

impl ViewLayout {
    /// Reads the layout of captures. Takes the shares of unchanged chunks from the layout `before`.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn read(
        set: &Arc<CaptureSet>,
        before: Option<&ViewLayout>,
    ) -> Result<ViewLayout, ViewError> {
        let captures = set.contents();
        let processes = Processes::new(set);
        let mut reader = LayoutReader::default();
        for contents in &captures {
            reader.read(contents, before.and_then(|before| before.shares.get(contents.id())))?;
        }
        let mut tracks = reader.tracks.tracks;
        for track in &mut tracks {
            let tid = track.tid.and_then(|tid| i32::try_from(tid).ok());
            let name = tid.and_then(|tid| processes.thread_name(track.process, tid));
            track.name = name.map(Into::into);
            track.losses.sort_by_key(|loss| (loss.from, loss.to));
        }
        let numbers = 0..reader.process_count;
        Ok(ViewLayout {
            clocks: captures.iter().map(clock_mark).collect(),
            counters: Counters::read(&captures)?,
            shares: reader.shares,
            processes: numbers.map(|number| processes.get(number).clone()).collect(),
            captures,
            chunks: reader.chunks,
            tracks,
            names: reader.names.names,
            sources: reader.sources,
        })
    }

    pub fn kinds(&self, chunk: &ChunkEntry) -> &Arc<SourceKinds> {
        self.source_kinds(chunk.capture, chunk.source)
    }

    /// The kinds of slices of a source.
    pub fn source_kinds(&self, capture: usize, source: usize) -> &Arc<SourceKinds> {
        &self.sources[capture][source].kinds
    }

    /// The field with the thread of a frame. None if all frames of the chunk are about the thread that wrote it.
    pub fn other_threads(&self, chunk: &ChunkEntry) -> Option<&FrameThreads> {
        self.sources[chunk.capture][chunk.source].other_threads.as_ref()
    }

    /// The number of the name of a kind of slices.
    pub fn name(&self, chunk: &ChunkEntry, kind: u16) -> u32 {
        let names = &self.sources[chunk.capture][chunk.source].names;
        names.get(usize::from(kind)).copied().unwrap_or(crate::cell::NO_NAME)
    }

    /// The clocks on which the times of a chunk depend. `ticks` is the range of its stamps.
    pub fn clock_mark(&self, chunk: &ChunkEntry, ticks: Option<TickRange>) -> ClockMark {
        let mark = self.clocks[chunk.capture];
        let clocks = self.captures[chunk.capture].clocks();
        let points = clocks.tick_points();
        let (mut first, mut last) = (None, None);
        points.for_each(|(tick, _, _)| {
            first.get_or_insert(tick);
            last = Some(tick);
        });
        let is_settled = match (ticks, first, last) {
            (None, ..) => true,
            (Some(ticks), Some(first), Some(last)) => {
                first <= ticks.min && ticks.max < last && clocks.tick_steps().is_empty()
            }
            _ => false,
        };
        ClockMark { base: mark.base, all: if is_settled { 0 } else { mark.all } }
    }

    /// Whether times that depend on these clocks are still valid.
    pub fn is_current(&self, chunk: &ChunkEntry, mark: ClockMark) -> bool {
        let now = self.clocks[chunk.capture];
        mark.base == now.base && (mark.all == 0 || mark.all == now.all)
    }

    /// A slice of a chunk, with the numbers that order it.
    pub fn ordered(chunk: &ChunkEntry, slice: Slice) -> OrderedSlice {
        let seqno = chunk.chunk.first_seq.saturating_add(slice.frame.into());
        OrderedSlice { slice, seqno, ring: chunk.ring }
    }
}

/// None if the times of the missing frames are unknown.
fn loss(gap: &MissingFrames) -> Option<LostFrames> {
    let (from, to) = match gap.times {
        (Some(from), Some(to)) => (from, to),
        (Some(time), None) | (None, Some(time)) => (time, time),
        (None, None) => return None,
    };
    Some(LostFrames { from, to, count: gap.count, cause: gap.cause })
}

/// The clocks of a capture.
fn clock_mark(contents: &Contents) -> ClockMark {
    let clocks = contents.clocks();
    let base = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        contents.offset(),
        clocks.epoch_offset(),
        clocks.boottime_offset(),
        clocks.tick_steps(),
        clocks.alignment(),
    );
    let points: Vec<u8> = clocks
        .tick_points()
        .flat_map(|(tick, ns, _)| [tick, ns])
        .flat_map(u64::to_le_bytes)
        .collect();
    let rate: Vec<u8> = contents
        .sources()
        .iter()
        .flat_map(|source| source.source.tick_hz.unwrap_or(0).to_le_bytes())
        .collect();
    let base = xxh3_64(base.as_bytes());
    let all = xxh3_64(&[&base.to_le_bytes()[..], &points, &rate].concat()).max(1);
    ClockMark { base, all }
}
