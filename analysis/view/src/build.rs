//! Builds the index, with several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::block::{self, IndexBlock};
use crate::chunks::ChunkReader;
use crate::error::ViewError;
use crate::index::{TrackIndex, surroundings};
use crate::layout::ViewLayout;
use crate::reach::Reach;
use crate::slice::{ChunkSlices, Slice};

/// Frames of the tracks that are built together, about: rows appear when their track is done.
const TOGETHER: u64 = 2_000_000;

/// How far an index is built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Frames of chunks that are done.
    pub done: u64,
    /// All frames.
    pub frames: u64,
}

/// What building an index took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildCost {
    /// Chunks whose block was there already.
    pub kept: u64,
    /// Chunks whose block was built.
    pub built: u64,
    /// How often frames of a chunk were decoded.
    pub decoded: u64,
}

/// Builds the index of all tracks.
pub(crate) struct Builder<'a> {
    pub layout: &'a ViewLayout,
    pub threads: usize,
    /// All frames.
    pub frames: u64,
    /// Bytes of slices that are held at once, about.
    pub memory: usize,
    /// A block of a chunk that was built before.
    pub stored: &'a (dyn Fn(usize) -> Option<Arc<IndexBlock>> + Sync),
    /// Takes the index of a track.
    pub publish: &'a (dyn Fn(usize, TrackIndex) + Sync),
    pub progress: &'a (dyn Fn(Progress) + Sync),
    pub cancel: &'a AtomicBool,
}

/// What is known of a chunk after the first step.
struct Scanned {
    reach: Option<Reach>,
    slices: Option<Arc<ChunkSlices>>,
    stored: Option<Arc<IndexBlock>>,
    clocks: block::ClockMark,
}

#[derive(Default)]
struct CellSums {
    kept: AtomicU64,
    built: AtomicU64,
    decoded: AtomicU64,
    done: AtomicU64,
}

impl Builder<'_> {
    pub fn run(&self) -> Result<BuildCost, ViewError> {
        let sums = CellSums::default();
        let tracks = &self.layout.tracks;
        let mut next = 0;
        while next < tracks.len() {
            let first = next;
            let mut frames = 0;
            while next < tracks.len() && (next == first || frames < TOGETHER) {
                let counts =
                    tracks[next].chunks.iter().map(|&chunk| self.layout.chunks[chunk].share.count);
                frames += counts.map(u64::from).sum::<u64>();
                next += 1;
            }
            self.batch(first..next, &sums)?;
        }
        let told = |atomic: &AtomicU64| atomic.load(Ordering::Relaxed);
        let (kept, built) = (told(&sums.kept), told(&sums.built));
        Ok(BuildCost { kept, built, decoded: told(&sums.decoded) })
    }

    fn batch(&self, tracks: std::ops::Range<usize>, sums: &CellSums) -> Result<(), ViewError> {
        let mut chunks = Vec::new();
        let mut starts = Vec::new();
        for track in tracks.clone() {
            starts.push(chunks.len());
            chunks.extend((0..self.layout.tracks[track].chunks.len()).map(|index| (track, index)));
        }
        let number = |(track, place): (usize, usize)| self.layout.tracks[track].chunks[place];
        let mut scanned: Vec<Scanned> = Vec::new();
        // The scanned chunks of the track of a chunk, as many as there are by now.
        let beside = |scanned: &[Scanned], (track, _): (usize, usize)| {
            let first = starts[track - tracks.start];
            let end = first + self.layout.tracks[track].chunks.len();
            first..end.min(scanned.len())
        };
        let mut blocks = Vec::new();
        let runs = self.runs(&chunks);
        for run in &runs {
            let chunks = &chunks[run.clone()];
            scanned.extend(self.each(chunks.len(), |reader, index| {
                self.scan(reader, number(chunks[index]), sums)
            })?);
            blocks.extend(self.each(chunks.len(), |reader, index| {
                let own = &scanned[beside(&scanned, chunks[index])];
                let stored = own[chunks[index].1].stored.as_ref();
                let block = self.block(reader, chunks[index], (own, stored), sums)?;
                let count = self.layout.chunks[number(chunks[index])].share.count.into();
                let done = sums.done.fetch_add(count, Ordering::Relaxed) + count;
                (self.progress)(Progress { done, frames: self.frames });
                Ok(block)
            })?);
            scanned[run.clone()].iter_mut().for_each(|scanned| scanned.slices = None);
        }
        if runs.len() > 1 {
            // Slices that begin long before they end may be around chunks of an earlier run.
            blocks = self.each(chunks.len(), |reader, index| {
                let own = &scanned[beside(&scanned, chunks[index])];
                self.block(reader, chunks[index], (own, Some(&blocks[index].0)), sums)
            })?;
        }
        let mut blocks = blocks.into_iter();
        for track in tracks {
            let of = &self.layout.tracks[track];
            let (blocks, depths) = blocks.by_ref().take(of.chunks.len()).unzip();
            (self.publish)(track, TrackIndex::new(self.layout, of, blocks, depths));
        }
        Ok(())
    }

    /// Divides chunks so that the slices of each run fit into memory.
    fn runs(&self, chunks: &[(usize, usize)]) -> Vec<std::ops::Range<usize>> {
        let mut runs = Vec::new();
        let (mut first, mut held) = (0, 0);
        for (index, &(track, place)) in chunks.iter().enumerate() {
            let entry = &self.layout.chunks[self.layout.tracks[track].chunks[place]];
            let most = self.layout.kinds(entry).most_of_a_frame() * size_of::<Slice>();
            let size = entry.share.count as usize * most;
            if index > first && held + size > self.memory {
                runs.push(first..index);
                (first, held) = (index, 0);
            }
            held += size;
        }
        runs.push(first..chunks.len());
        runs
    }

    /// The first step: how far the slices of a chunk reach.
    fn scan(
        &self,
        reader: &mut ChunkReader<'_>,
        number: usize,
        sums: &CellSums,
    ) -> Result<Scanned, ViewError> {
        let entry = &self.layout.chunks[number];
        if let Some(stored) = (self.stored)(number)
            && self.layout.is_current(entry, stored.clocks)
        {
            let (reach, clocks) = (stored.reach.clone(), stored.clocks);
            return Ok(Scanned { reach, slices: None, stored: Some(stored), clocks });
        }
        let slices = self.read(reader, number, sums)?;
        Ok(Scanned {
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
        sums: &CellSums,
    ) -> Result<ChunkSlices, ViewError> {
        sums.decoded.fetch_add(1, Ordering::Relaxed);
        reader.slices(number)
    }

    /// The second step: the block of a chunk, and how many slices are around all of it. `scanned` are the
    /// chunks of its track; `known` is its block, if the slices around it are still those that counted.
    fn block(
        &self,
        reader: &mut ChunkReader<'_>,
        (track, place): (usize, usize),
        (scanned, known): (&[Scanned], Option<&Arc<IndexBlock>>),
        sums: &CellSums,
    ) -> Result<(Arc<IndexBlock>, u32), ViewError> {
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
        if let Some(known) = known.filter(|block| block.inner == inner) {
            sums.kept.fetch_add(1, Ordering::Relaxed);
            return Ok((known.clone(), around.depth));
        }
        sums.built.fetch_add(1, Ordering::Relaxed);
        let slices = slices(place)?;
        let depths = around.depths(&slices.slices, |slice| ViewLayout::placed(entry, *slice));
        let (reach, clocks) = (own.reach.clone(), own.clocks);
        let block = IndexBlock { reach, clocks, inner, rows: IndexBlock::rows(&slices, &depths) };
        Ok((Arc::new(block), around.depth))
    }

    /// Calls `make` for each number below `count`, with as many threads as there are, and returns what it
    /// made in their order.
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
                    Ok(it) => _ = made[number].set(it),
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
