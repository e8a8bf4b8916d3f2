//! What there is before slices are read: chunks, whose they are, and what is missing. Of frames, only those
//! are read that may be about other threads than the one that wrote them.

use std::collections::HashMap;
use std::sync::Arc;

use ppt_capture::columns::FrameThreads;
use ppt_capture::{Cause, ChunkFile};
use ppt_tables::{CaptureSet, Contents, FrameChunk, MissingFrames, ProcessRow, Processes};
use xxhash_rust::xxh3::xxh3_64;

use crate::block::ClockMark;
use crate::counters::Counters;
use crate::error::ViewError;
use crate::share::{KnownShares, ThreadShare, shares};
use crate::slice::{Placed, Slice, SourceKinds};

/// What there is.
#[derive(Debug)]
pub(crate) struct ViewLayout {
    pub captures: Vec<Contents>,
    pub processes: Vec<ProcessRow>,
    pub chunks: Vec<ChunkEntry>,
    pub tracks: Vec<Track>,
    pub names: Vec<SliceName>,
    /// By capture and source.
    sources: Vec<Vec<SourceEntry>>,
    /// By capture.
    clocks: Vec<ClockMark>,
    pub counters: Counters,
    shares: KnownShares,
}

/// What slices are called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SliceName {
    /// `job.handle` of an interval, `job` of a frame that has none.
    pub name: String,
    /// The buffer.
    pub buffer: String,
}

/// A chunk of frames, or the share of a thread in one, by its number in the view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkEntry {
    pub capture: usize,
    pub source: usize,
    /// Number of the ring in the view.
    pub ring: u32,
    pub chunk: FrameChunk,
    /// Which of its frames.
    pub share: ThreadShare,
}

/// A thread, or a ring of which nobody knows whose it was.
#[derive(Debug)]
pub(crate) struct Track {
    pub process: usize,
    pub tid: Option<u32>,
    /// The thread's name, as its process says.
    pub name: Option<String>,
    /// The numbers of its chunks, in the order of the captures.
    pub chunks: Vec<usize>,
    pub losses: Vec<LostFrames>,
}

/// Frames that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostFrames {
    /// When they were written at the earliest, ns since the epoch.
    pub from: i64,
    /// When they were written at the latest.
    pub to: i64,
    /// How many.
    pub count: u64,
    /// Why. Some causes are no losses: see [`Cause::is_loss`].
    pub cause: Cause,
}

#[derive(Debug)]
struct SourceEntry {
    kinds: Arc<SourceKinds>,
    other_threads: Option<FrameThreads>,
    /// By the kind of a slice: its name.
    names: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TrackKey {
    Thread(u32, u32),
    Ring(ViewRing),
}

/// Capture, source, segment, ring.
type ViewRing = (usize, usize, u64, u32);

#[derive(Debug, Default)]
struct Tracks {
    known: HashMap<TrackKey, usize>,
    tracks: Vec<Track>,
}

impl Tracks {
    fn number(&mut self, process: u32, tid: Option<u32>, ring: ViewRing) -> usize {
        let key = tid.map_or(TrackKey::Ring(ring), |tid| TrackKey::Thread(process, tid));
        let process = process as usize;
        *self.known.entry(key).or_insert_with(|| {
            let (chunks, losses) = (Vec::new(), Vec::new());
            self.tracks.push(Track { process, tid, name: None, chunks, losses });
            self.tracks.len() - 1
        })
    }
}

impl ViewLayout {
    /// Reads what there is; what is known of the shares of chunks is taken from the layout `before`.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn read(
        set: &Arc<CaptureSet>,
        before: Option<&ViewLayout>,
    ) -> Result<ViewLayout, ViewError> {
        let captures = set.contents();
        let known = Processes::new(set);
        let (mut tracks, mut rings) = (Tracks::default(), HashMap::new());
        let (mut chunks, mut missing) = (Vec::new(), Vec::new());
        let (mut names, mut name_numbers) = (Vec::new(), HashMap::new());
        let mut sources = Vec::new();
        let mut last_process = None;
        let mut all_shares = KnownShares::new();
        for (capture, contents) in captures.iter().enumerate() {
            let of_source = |info: &ppt_capture::SourceInfo| {
                let kinds = SourceKinds::from_schema(&info.schema);
                let number = |name: &str| {
                    let buffer = info.source.buffer.clone();
                    let name = SliceName { name: name.to_owned(), buffer };
                    *name_numbers.entry(name.clone()).or_insert_with(|| {
                        names.push(name);
                        names.len() as u32 - 1
                    })
                };
                let names = kinds.kinds.iter().map(|kind| kind.name.as_str()).map(number).collect();
                let other_threads = FrameThreads::from_schema(&info.schema);
                SourceEntry { kinds: Arc::new(kinds), other_threads, names }
            };
            sources.push(contents.sources().iter().map(of_source).collect::<Vec<_>>());
            let processes = (0..contents.sources().len()).map(|source| contents.process(source));
            last_process = last_process.max(processes.max());
            let owners = contents.owners();
            let mut of_rings = HashMap::new();
            let placed: Vec<(usize, u32)> = owners
                .iter()
                .map(|owner| {
                    let ring = (capture, owner.source, owner.segment, owner.ring);
                    let next = rings.len() as u32;
                    let number = *rings.entry(ring).or_insert(next);
                    let track = tracks.number(owner.process, owner.tid, ring);
                    of_rings.entry(ring).or_insert(track);
                    (track, number)
                })
                .collect();
            let known = before.and_then(|before| before.shares.get(contents.id()));
            let mut shares_here = HashMap::new();
            let mut file = ChunkFile::new(contents.file().clone());
            for chunk in contents.chunks() {
                let owner = &owners[chunk.owner];
                let (own_track, ring) = placed[chunk.owner];
                let source = owner.source;
                let of_source: &SourceEntry = &sources[capture][source];
                let id = (chunk.ordinal, chunk.crc);
                let of_chunk = match (&of_source.other_threads, known.and_then(|it| it.get(&id))) {
                    (None, _) => vec![ThreadShare::whole(chunk.count)],
                    (Some(_), Some(known)) => known.clone(),
                    (Some(threads), None) => {
                        shares(contents, &mut file, &chunk, (threads, owner.tid))?
                    }
                };
                for share in &of_chunk {
                    let track = match share.thread.cast_unsigned() {
                        0 => own_track,
                        tid => {
                            let ring = (capture, source, owner.segment, owner.ring);
                            tracks.number(owner.process, Some(tid), ring)
                        }
                    };
                    tracks.tracks[track].chunks.push(chunks.len());
                    chunks.push(ChunkEntry { capture, source, ring, chunk, share: *share });
                }
                if of_source.other_threads.is_some() {
                    shares_here.insert(id, of_chunk);
                }
            }
            all_shares.insert(contents.id().to_owned(), shares_here);
            for gap in contents.missing() {
                let ring = (capture, gap.source, gap.segment, gap.ring);
                let process = contents.process(gap.source);
                let track = match (gap.tid, of_rings.get(&ring)) {
                    (None, Some(&track)) => track,
                    (tid, _) => tracks.number(process, tid, ring),
                };
                missing.push((track, gap));
            }
        }
        let mut tracks = tracks.tracks;
        for track in &mut tracks {
            let tid = track.tid.and_then(|tid| i32::try_from(tid).ok());
            track.name = tid.and_then(|tid| known.thread_name(track.process, tid)).map(Into::into);
        }
        for (track, gap) in missing {
            tracks[track].losses.extend(loss(&gap));
        }
        tracks.iter_mut().for_each(|track| track.losses.sort_by_key(|loss| (loss.from, loss.to)));
        let processes = 0..last_process.map_or(0, |last_process| last_process as usize + 1);
        Ok(ViewLayout {
            clocks: captures.iter().map(clock_mark).collect(),
            counters: Counters::read(&captures)?,
            shares: all_shares,
            processes: processes.map(|number| known.get(number).clone()).collect(),
            captures,
            chunks,
            tracks,
            names,
            sources,
        })
    }

    pub fn kinds(&self, chunk: &ChunkEntry) -> &Arc<SourceKinds> {
        self.source_kinds(chunk.capture, chunk.source)
    }

    /// What the slices of a source of a capture are.
    pub fn source_kinds(&self, capture: usize, source: usize) -> &Arc<SourceKinds> {
        &self.sources[capture][source].kinds
    }

    /// Which threads the frames of a chunk are about, if these may be others than the one that wrote them.
    pub fn other_threads(&self, chunk: &ChunkEntry) -> Option<&FrameThreads> {
        self.sources[chunk.capture][chunk.source].other_threads.as_ref()
    }

    /// The name of a kind of slices of a chunk.
    pub fn name(&self, chunk: &ChunkEntry, kind: u16) -> u32 {
        let names = &self.sources[chunk.capture][chunk.source].names;
        names.get(usize::from(kind)).copied().unwrap_or(crate::cell::NO_NAME)
    }

    /// What the times of a chunk depend on, if its stamps of the CPU's counter are these.
    pub fn clock_mark(&self, chunk: &ChunkEntry, ticks: Option<(u64, u64)>) -> ClockMark {
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
            (Some((least, most)), Some(first), Some(last)) => {
                first <= least && most < last && clocks.tick_steps().is_empty()
            }
            _ => false,
        };
        ClockMark { base: mark.base, all: if is_settled { 0 } else { mark.all } }
    }

    /// Whether times that were made by these clocks are still right.
    pub fn is_current(&self, chunk: &ChunkEntry, mark: ClockMark) -> bool {
        let now = self.clocks[chunk.capture];
        mark.base == now.base && (mark.all == 0 || mark.all == now.all)
    }

    /// A slice of a chunk, with what orders it.
    pub fn placed(chunk: &ChunkEntry, slice: Slice) -> Placed {
        let seqno = chunk.chunk.first_seq.saturating_add(slice.frame.into());
        Placed { slice, seqno, ring: chunk.ring }
    }
}

fn loss(gap: &MissingFrames) -> Option<LostFrames> {
    let (from, to) = match gap.times {
        (Some(from), Some(to)) => (from, to),
        (Some(one), None) | (None, Some(one)) => (one, one),
        (None, None) => return None,
    };
    Some(LostFrames { from, to, count: gap.count, cause: gap.cause })
}

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
