//! Builds the index, with several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::block::{self, IndexBlock};
use crate::chunk_reader::ChunkReader;
use crate::error::ViewError;
use crate::index::{TrackIndex, surroundings};
use crate::layout::ViewLayout;
use crate::reach::Reach;
use crate::slice::{ChunkSlices, Slice};

/// The approximate number of frames in a batch of tracks. The rows of a batch appear when all are done.
const BATCH_FRAMES: u64 = 2_000_000;

/// The progress of building an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of frames in finished chunks.
    pub done: u64,
    /// The number of all frames.
    pub frames: u64,
}

/// The work of building an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildCost {
    /// The number of chunks with a valid stored block.
    pub kept: u64,
    /// The number of chunks whose block was built.
    pub built: u64,
    /// The number of times that the frames of a chunk were decoded.
    pub decoded: u64,
}

/// Builds the index of all tracks.
pub(crate) struct Builder<'a> {
    pub layout: &'a ViewLayout,
    pub threads: usize,
    /// The number of all frames.
    pub frames: u64,
    /// The approximate memory of slices in bytes.
    pub memory: usize,
    /// Returns the stored block of a chunk.
    pub stored: &'a (dyn Fn(usize) -> Option<Arc<IndexBlock>> + Sync),
    /// Receives the index of a track.
    pub publish: &'a (dyn Fn(usize, TrackIndex) + Sync),
    pub progress: &'a (dyn Fn(Progress) + Sync),
    pub cancel: &'a AtomicBool,
}

/// A chunk of a track.
#[derive(Clone, Copy)]
struct TrackChunk {
    track: usize,
    /// The index of the chunk in the track.
    place: usize,
}

/// The result of the first step for a chunk.
struct ScannedChunk {
    reach: Option<Reach>,
    /// None for a chunk with a stored block, and after its run.
    slices: Option<Arc<ChunkSlices>>,
    /// The stored block with valid times.
    stored: Option<Arc<IndexBlock>>,
    clocks: block::ClockMark,
}

/// The result of the second step for a chunk.
struct BuiltChunk {
    block: Arc<IndexBlock>,
    /// The number of slices that contain the whole chunk.
    depth: u32,
}

/// The sums of all threads.
#[derive(Default)]
struct BuildSums {
    kept: AtomicU64,
    built: AtomicU64,
    decoded: AtomicU64,
    done: AtomicU64,
}

impl Builder<'_> {
    pub fn run(&self) -> Result<BuildCost, ViewError> {
        let sums = BuildSums::default();
        let tracks = &self.layout.tracks;
        let mut next = 0;
        while next < tracks.len() {
            let first = next;
            let mut frames = 0;
            while next < tracks.len() && (next == first || frames < BATCH_FRAMES) {
                let counts =
                    tracks[next].chunks.iter().map(|&chunk| self.layout.chunks[chunk].share.count);
                frames += counts.map(u64::from).sum::<u64>();
                next += 1;
            }
            self.batch(first..next, &sums)?;
        }
        let sum = |atomic: &AtomicU64| atomic.load(Ordering::Relaxed);
        let (kept, built) = (sum(&sums.kept), sum(&sums.built));
        Ok(BuildCost { kept, built, decoded: sum(&sums.decoded) })
    }

    /// Builds and publishes the indexes of some tracks.
    fn batch(&self, tracks: std::ops::Range<usize>, sums: &BuildSums) -> Result<(), ViewError> {
        let mut chunks: Vec<TrackChunk> = Vec::new();
        let mut starts = Vec::new();
        for track in tracks.clone() {
            starts.push(chunks.len());
            let places = 0..self.layout.tracks[track].chunks.len();
            chunks.extend(places.map(|place| TrackChunk { track, place }));
        }
        let mut scanned: Vec<ScannedChunk> = Vec::new();
        // The chunks of a track that are scanned so far.
        let scanned_of = |scanned: &[ScannedChunk], track: usize| {
            let first = starts[track - tracks.start];
            let end = first + self.layout.tracks[track].chunks.len();
            first..end.min(scanned.len())
        };
        let mut built: Vec<BuiltChunk> = Vec::new();
        let runs = self.runs(&chunks);
        for run in &runs {
            let chunks = &chunks[run.clone()];
            scanned.extend(self.each(chunks.len(), |reader, index| {
                self.scan(reader, self.number(chunks[index]), sums)
            })?);
            built.extend(self.each(chunks.len(), |reader, index| {
                let chunk = chunks[index];
                let scanned = &scanned[scanned_of(&scanned, chunk.track)];
                let stored = scanned[chunk.place].stored.as_ref();
                let block = self.block(reader, chunk, (scanned, stored), sums)?;
                let count = self.layout.chunks[self.number(chunk)].share.count.into();
                let done = sums.done.fetch_add(count, Ordering::Relaxed) + count;
                (self.progress)(Progress { done, frames: self.frames });
                Ok(block)
            })?);
            scanned[run.clone()].iter_mut().for_each(|scanned| scanned.slices = None);
        }
        if runs.len() > 1 {
            // Long slices may contain chunks of an earlier run.
            built = self.each(chunks.len(), |reader, index| {
                let scanned = &scanned[scanned_of(&scanned, chunks[index].track)];
                self.block(reader, chunks[index], (scanned, Some(&built[index].block)), sums)
            })?;
        }
        let mut built = built.into_iter().map(|chunk| (chunk.block, chunk.depth));
        for number in tracks {
            let track = &self.layout.tracks[number];
            let (blocks, depths) = built.by_ref().take(track.chunks.len()).unzip();
            (self.publish)(number, TrackIndex::new(self.layout, track, blocks, depths));
        }
        Ok(())
    }

    /// The number of a chunk in the view.
    fn number(&self, chunk: TrackChunk) -> usize {
        self.layout.tracks[chunk.track].chunks[chunk.place]
    }

    /// Divides chunks so that the slices of each run fit into memory.
    fn runs(&self, chunks: &[TrackChunk]) -> Vec<std::ops::Range<usize>> {
        let mut runs = Vec::new();
        let (mut first, mut held) = (0, 0);
        for (index, &chunk) in chunks.iter().enumerate() {
            let entry = &self.layout.chunks[self.number(chunk)];
            let per_frame = self.layout.kinds(entry).max_slices_per_frame() * size_of::<Slice>();
            let size = entry.share.count as usize * per_frame;
            if index > first && held + size > self.memory {
                runs.push(first..index);
                (first, held) = (index, 0);
            }
            held += size;
        }
        runs.push(first..chunks.len());
        runs
    }

    /// The first step: finds the reach of the slices of a chunk.
    fn scan(
        &self,
        reader: &mut ChunkReader<'_>,
        number: usize,
        sums: &BuildSums,
    ) -> Result<ScannedChunk, ViewError> {
        let entry = &self.layout.chunks[number];
        if let Some(stored) = (self.stored)(number)
            && self.layout.is_current(entry, stored.clocks)
        {
            let (reach, clocks) = (stored.reach.clone(), stored.clocks);
            return Ok(ScannedChunk { reach, slices: None, stored: Some(stored), clocks });
        }
        let slices = self.read(reader, number, sums)?;
        Ok(ScannedChunk {
            reach: Reach::spanning(&slices.slices),
            clocks: self.layout.clock_mark(entry, slices.ticks),
            slices: Some(Arc::new(slices)),
            stored: None,
        })
    }

    fn read(
        &self,
        reader: &mut ChunkReader<'_>,
        number: usize,
        sums: &BuildSums,
    ) -> Result<ChunkSlices, ViewError> {
        sums.decoded.fetch_add(1, Ordering::Relaxed);
        reader.slices(number)
    }

    /// The second step: makes the block of a chunk. `scanned` are the chunks of its track. `stored` is an
    /// earlier block, which is used if it depends on the same slices of other chunks.
    fn block(
        &self,
        reader: &mut ChunkReader<'_>,
        TrackChunk { track, place }: TrackChunk,
        (scanned, stored): (&[ScannedChunk], Option<&Arc<IndexBlock>>),
        sums: &BuildSums,
    ) -> Result<BuiltChunk, ViewError> {
        let track = &self.layout.tracks[track];
        let own = &scanned[place];
        let entry = &self.layout.chunks[track.chunks[place]];
        let mut slices = |place: usize| match &scanned[place].slices {
            Some(slices) => Ok(slices.clone()),
            None => self.read(reader, track.chunks[place], sums).map(Arc::new),
        };
        let reach = |place: usize| scanned.get(place)?.reach.as_ref();
        let around = surroundings(self.layout, track, place, reach, &mut slices)?;
        let inner = block::mark(&around);
        if let Some(stored) = stored.filter(|block| block.inner == inner) {
            sums.kept.fetch_add(1, Ordering::Relaxed);
            return Ok(BuiltChunk { block: stored.clone(), depth: around.depth });
        }
        sums.built.fetch_add(1, Ordering::Relaxed);
        let slices = slices(place)?;
        let depths = around.depths(&slices.slices, |slice| ViewLayout::ordered(entry, *slice));
        let (reach, clocks) = (own.reach.clone(), own.clocks);
        let block = IndexBlock { reach, clocks, inner, rows: IndexBlock::rows(&slices, &depths) };
        Ok(BuiltChunk { block: Arc::new(block), depth: around.depth })
    }

    /// Calls `make` for each number below `count`, in all threads. Returns the results in the order of the
    /// numbers.
    fn each<T: Send + Sync>(
        &self,
        count: usize,
        make: impl Fn(&mut ChunkReader<'_>, usize) -> Result<T, ViewError> + Sync,
    ) -> Result<Vec<T>, ViewError> {
        let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let is_failed = AtomicBool::new(false);
        let work = || {
            let mut reader = ChunkReader::new(self.layout);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count || is_failed.load(Ordering::Relaxed) {
                    return;
                }
                let result = if self.cancel.load(Ordering::Relaxed) {
                    Err(ViewError::Cancelled)
                } else {
                    make(&mut reader, number)
                };
                match result {
                    Ok(result) => _ = made[number].set(result),
                    Err(error) => {
                        is_failed.store(true, Ordering::Relaxed);
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert(error);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..self.threads.clamp(1, count.max(1))).map(|_| scope.spawn(work)).collect();
            work();
            drop(others);
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        made.into_iter().map(|lock| lock.into_inner().ok_or(ViewError::Cancelled)).collect()
    }
}
