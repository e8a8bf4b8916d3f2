//! The view: its layout, its index, and its answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ppt_tables::{CaptureSet, Contents, Trouble};

use crate::about::{self, About};
use crate::block::{IndexBlock, MAX_LEAF_SLICES};
use crate::build::{BuildCost, Builder, Progress};
use crate::cell::Cell;
use crate::chunk_reader::{ChunkCache, ChunkReader, OpenChunk};
use crate::error::ViewError;
use crate::index::{RowKey, TrackIndex, heads_cell, surroundings};
use crate::index_files::{self, BlockId, ChunkLimits, IndexFolder};
use crate::layout::{ChunkEntry, ViewLayout};
use crate::row::RowId;
use crate::slice::Slice;
use crate::tree::{PixelScale, Pixels, RowTree};
use crate::window_rows::{self, Phase, WIDE, WindowRequest, WindowRow};

mod filtered;
mod frame_lookup;

/// A view of captures over time.
///
/// Several threads may use it at once, also while one of them builds the index.
#[derive(Debug)]
pub struct View {
    set: Arc<CaptureSet>,
    layout: ViewLayout,
    /// The index of each track. None before it is built.
    index: Vec<RwLock<Option<Arc<TrackIndex>>>>,
    /// The blocks of each capture that were built before.
    stored: Mutex<Vec<HashMap<BlockId, Arc<IndexBlock>>>>,
    index_folder: Option<IndexFolder>,
    recent: ChunkCache,
    progress: Mutex<Progress>,
    /// The most bytes of cached slices.
    memory: usize,
}

/// A leaf that is wider than [`WIDE`] pixels.
#[derive(Clone, Copy)]
struct WideLeaf {
    cell: Cell,
    /// The number of the leaf in the tree of its row.
    number: usize,
}

/// A row of a track.
#[derive(Clone, Copy)]
struct TrackRow {
    track: usize,
    key: RowKey,
}

impl View {
    /// Opens captures, as [`View::from_set`] does.
    ///
    /// # Errors
    /// A file cannot be read, or is not a capture.
    pub fn open(
        captures: &[PathBuf],
        index_folder: Option<&Path>,
        memory: usize,
    ) -> Result<View, ViewError> {
        View::from_set(CaptureSet::open(captures)?, index_folder, memory)
    }

    /// Makes a view of captures. Reads only the heads of chunks, and frames that may be about another thread
    /// than the one that wrote them. `index_folder` is a folder for indexes alone, which is created if it does
    /// not exist. `memory` limits the bytes of frames that are read; it does not limit the index.
    ///
    /// # Errors
    /// Counters cannot be read.
    pub fn from_set(
        set: CaptureSet,
        index_folder: Option<&Path>,
        memory: usize,
    ) -> Result<View, ViewError> {
        View::from_layout(set, index_folder, memory, None)
    }

    fn from_layout(
        set: CaptureSet,
        index_folder: Option<&Path>,
        memory: usize,
        before: Option<&ViewLayout>,
    ) -> Result<View, ViewError> {
        let set = Arc::new(set);
        let layout = ViewLayout::read(&set, before)?;
        let index_folder = index_folder.map(IndexFolder::new);
        let mut view = View {
            index: layout.tracks.iter().map(|_| RwLock::new(None)).collect(),
            stored: Mutex::default(),
            recent: ChunkCache::default(),
            progress: Mutex::default(),
            set,
            layout,
            index_folder,
            memory,
        };
        view.load_stored();
        Ok(view)
    }

    /// A view of the same captures after they have grown. It uses the blocks of this view.
    ///
    /// # Errors
    /// Counters cannot be read.
    pub fn grown(&self, set: CaptureSet) -> Result<View, ViewError> {
        let mut view = View::from_layout(set, None, self.memory, Some(&self.layout))?;
        view.index_folder.clone_from(&self.index_folder);
        let built = self.blocks();
        let stored = self.stored();
        let blocks_of = |capture: &Contents| {
            let number =
                self.layout.captures.iter().position(|contents| contents.id() == capture.id());
            let mut blocks = HashMap::new();
            if let Some(number) = number {
                let stored = stored.get(number).into_iter().flatten();
                blocks.extend(stored.map(|(id, block)| (*id, block.clone())));
                blocks.extend(built[number].iter().cloned());
            }
            blocks
        };
        let blocks = view.layout.captures.iter().map(blocks_of).collect();
        drop(stored);
        *view.stored() = blocks;
        Ok(view)
    }

    /// Loads the blocks of all captures from the folder of indexes.
    fn load_stored(&mut self) {
        let mut chunks: Vec<HashMap<BlockId, usize>> =
            self.layout.captures.iter().map(|_| HashMap::new()).collect();
        for (number, entry) in self.layout.chunks.iter().enumerate() {
            chunks[entry.capture].insert(block_id(&self.layout, number), number);
        }
        let load = |(capture, chunks): (&Contents, &HashMap<BlockId, usize>)| {
            let limits = |id: BlockId| {
                let entry = &self.layout.chunks[*chunks.get(&id)?];
                let kinds = self.layout.kinds(entry).kinds.len();
                Some(ChunkLimits { frames: entry.chunk.count, kinds })
            };
            let bytes = self
                .index_folder
                .as_ref()
                .map_or_else(Vec::new, |folder| folder.load(capture.id()));
            index_files::decode(&bytes, capture.id(), limits)
        };
        let stored = self.layout.captures.iter().zip(&chunks).map(load).collect();
        self.stored = Mutex::new(stored);
    }

    fn stored(&self) -> MutexGuard<'_, Vec<HashMap<BlockId, Arc<IndexBlock>>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content of the view. Rows within threads are missing until the index is built.
    pub fn about(&self) -> About {
        let rows = about::rows(&self.layout, |track| self.track(track));
        About {
            captures: about::captures(&self.layout),
            processes: self.layout.processes.clone(),
            from: rows.iter().filter_map(|row| row.from).min(),
            to: rows.iter().filter_map(|row| row.to).max(),
            rows,
            names: self.layout.names.clone(),
            progress: *self.progress.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The faults of the captures that were found so far.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.set.troubles()
    }

    /// The captures of the view.
    pub fn captures(&self) -> &Arc<CaptureSet> {
        &self.set
    }

    /// Builds the index with this many threads. Each of them calls `progress`. Rows appear thread by thread.
    /// The result does not depend on the number of threads.
    ///
    /// # Errors
    /// A capture cannot be read, or `cancel` was set.
    pub fn build(
        &self,
        threads: usize,
        progress: &(dyn Fn(Progress) + Sync),
        cancel: &AtomicBool,
    ) -> Result<BuildCost, ViewError> {
        let stored = |number: usize| {
            let id = block_id(&self.layout, number);
            self.stored().get(self.layout.chunks[number].capture)?.get(&id).cloned()
        };
        let publish = |track: usize, index: TrackIndex| {
            let mut slot = self.index[track].write().unwrap_or_else(PoisonError::into_inner);
            *slot = Some(Arc::new(index));
        };
        let report = |now: Progress| {
            let mut last = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if now.done >= last.done {
                *last = now;
            }
            drop(last);
            progress(now);
        };
        let frames = self.layout.chunks.iter().map(|chunk| u64::from(chunk.share.count)).sum();
        let builder = Builder {
            layout: &self.layout,
            threads,
            frames,
            memory: self.memory,
            stored: &stored,
            publish: &publish,
            progress: &report,
            cancel,
        };
        builder.run()
    }

    /// Writes the index into the folder of indexes, if the view has one.
    ///
    /// # Errors
    /// Other users can access the folder, or it cannot be written.
    pub fn save(&self) -> Result<(), ViewError> {
        let Some(folder) = &self.index_folder else { return Ok(()) };
        for (number, capture) in self.layout.captures.iter().enumerate() {
            folder.store(capture.id(), &self.index_bytes(number))?;
        }
        Ok(())
    }

    /// The bytes of the index file of the capture with this number. They depend only on the captures.
    pub fn index_bytes(&self, capture: usize) -> Vec<u8> {
        let blocks = self.blocks();
        let blocks = blocks[capture].iter().map(|(id, block)| (*id, &**block));
        index_files::encode(self.layout.captures[capture].id(), blocks)
    }

    /// The built blocks of each capture, in the order of its file.
    fn blocks(&self) -> Vec<Vec<(BlockId, Arc<IndexBlock>)>> {
        let mut blocks: Vec<Vec<(BlockId, Arc<IndexBlock>)>> =
            self.layout.captures.iter().map(|_| Vec::new()).collect();
        for (number, track) in self.layout.tracks.iter().enumerate() {
            let Some(index) = self.track(number) else { continue };
            for (&chunk, block) in track.chunks.iter().zip(&index.blocks) {
                let capture = self.layout.chunks[chunk].capture;
                blocks[capture].push((block_id(&self.layout, chunk), block.clone()));
            }
        }
        blocks.iter_mut().for_each(|block| block.sort_by_key(|entry| entry.0));
        blocks
    }

    fn track(&self, number: usize) -> Option<Arc<TrackIndex>> {
        self.index[number].read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the requested rows of a window, in the order of the request.
    pub fn window<'a>(
        &'a self,
        request: &'a WindowRequest,
        cancel: &'a AtomicBool,
    ) -> impl Iterator<Item = Result<WindowRow, ViewError>> + 'a {
        let scale = PixelScale::new(request.from, request.to, request.pixels);
        request.rows.iter().map(move |&row| self.row(row, &scale, request.phase, cancel))
    }

    fn row(
        &self,
        id: RowId,
        scale: &PixelScale,
        phase: Phase,
        cancel: &AtomicBool,
    ) -> Result<WindowRow, ViewError> {
        let unknown = || ViewError::NoSuchRow(id.to_string());
        let (cells, counters) = (Vec::new(), Vec::new());
        let losses = Vec::new();
        let mut row =
            WindowRow { row: id, cells, counters, losses, is_built: true, has_more: false };
        let (thread, key) = match id {
            RowId::Process(number) => {
                self.layout.processes.get(number as usize).ok_or_else(unknown)?;
                return Ok(row);
            }
            RowId::Counter(number) => {
                let counter = self.layout.counters.0.get(number as usize).ok_or_else(unknown)?;
                row.counters = counter.cells(scale);
                return Ok(row);
            }
            RowId::Thread(thread) => (thread, None),
            RowId::Depth { thread, depth } => (thread, Some(RowKey::Depth(depth))),
            RowId::Moments { thread, name } => (thread, Some(RowKey::Moments(name))),
        };
        let number = thread as usize;
        let track = self.layout.tracks.get(number).ok_or_else(unknown)?;
        row.losses = window_rows::losses_in(&track.losses, scale);
        let Some(key) = key else {
            row.cells = self.head_cells(number, scale);
            return Ok(row);
        };
        let Some(index) = self.track(number) else {
            row.is_built = false;
            return Ok(row);
        };
        let tree = index.rows.get(&key).ok_or_else(unknown)?;
        let mut pixels = Pixels::new(*scale);
        let mut wide = Vec::new();
        tree.visit(scale, &mut |cell, leaf| match leaf {
            Some(leaf) if cell.count > 1 && cell.width() > WIDE.saturating_mul(scale.pixel) => {
                wide.push(WideLeaf { cell: *cell, number: leaf });
                if phase == Phase::Index {
                    pixels.push(cell);
                }
            }
            _ => pixels.push(cell),
        });
        row.cells = pixels.cells;
        if phase == Phase::Index {
            row.has_more = !wide.is_empty();
        } else if !wide.is_empty() {
            let track_row = TrackRow { track: number, key };
            row.cells = self.open_leaves(track_row, (tree, wide), &index, scale, cancel)?;
        }
        window_rows::give_lanes(&mut row.cells);
        Ok(row)
    }

    /// The cells of a thread, which count frames, from the heads of its chunks.
    fn head_cells(&self, track: usize, scale: &PixelScale) -> Vec<Cell> {
        let chunks = self.layout.tracks[track].chunks.iter();
        let cells = chunks.filter_map(|&number| {
            let entry = &self.layout.chunks[number];
            let (from, to) = entry.chunk.times.filter(|_| entry.share.count > 0)?;
            Some(heads_cell(from, to.max(from), entry.share.count.into(), number as u32))
        });
        let mut cells: Vec<Cell> = cells.filter(|cell| scale.overlaps(cell)).collect();
        cells.sort_by_key(|cell| cell.from);
        let mut pixels = Pixels::new(*scale);
        cells.iter().for_each(|cell| pixels.push(cell));
        pixels.cells
    }

    /// The cells of a row with single slices in place of the wide leaves.
    fn open_leaves(
        &self,
        row: TrackRow,
        (tree, mut wide): (&RowTree, Vec<WideLeaf>),
        index: &TrackIndex,
        scale: &PixelScale,
        cancel: &AtomicBool,
    ) -> Result<Vec<Cell>, ViewError> {
        let mut cells = Vec::new();
        tree.visit(scale, &mut |cell, leaf| {
            let is_wide = cell.width() > WIDE.saturating_mul(scale.pixel);
            if leaf.is_none() || cell.count == 1 || !is_wide {
                cells.push(*cell);
            }
        });
        let mut reader = ChunkReader::new(&self.layout);
        let (mut open_number, mut slices) = (usize::MAX, Vec::new());
        wide.sort_by_key(|leaf| (leaf.cell.best.chunk, leaf.number));
        for WideLeaf { cell, number } in wide {
            if cancel.load(Ordering::Relaxed) {
                return Err(ViewError::Cancelled);
            }
            let chunk = cell.best.chunk as usize;
            if open_number != chunk {
                let open = self.open_chunk(&mut reader, row.track, chunk, index)?;
                (open_number, slices) = (chunk, self.slices_of(&open, chunk, row, index));
            }
            let entry = &self.layout.chunks[chunk];
            let first = tree.places[number] as usize * MAX_LEAF_SLICES;
            // A chunk that was cut off or overwritten lacks the slices of the leaf. Its cell stays.
            if slices.len() <= first {
                cells.push(cell);
            }
            for slice in slices.iter().skip(first).take(MAX_LEAF_SLICES) {
                let name = self.layout.name(entry, slice.kind);
                let cell = window_rows::single(slice, cell.best.chunk, name);
                if scale.overlaps(&cell) {
                    cells.push(cell);
                }
            }
        }
        cells.sort_by_key(|cell| (cell.from, cell.best.chunk, cell.best.frame));
        let mut pixels = Pixels::new(*scale);
        cells.iter().for_each(|cell| pixels.push(cell));
        Ok(pixels.cells)
    }

    /// The slices of a chunk that are in a row of its track, in nesting order.
    fn slices_of(
        &self,
        open: &OpenChunk,
        chunk: usize,
        row: TrackRow,
        index: &TrackIndex,
    ) -> Vec<Slice> {
        let entry = &self.layout.chunks[chunk];
        let mut chunks = self.layout.tracks[row.track].chunks.iter();
        let outer =
            chunks.position(|&number| number == chunk).map_or(0, |place| index.depths[place]);
        match row.key {
            RowKey::Depth(depth) => {
                let slices = open.slices.slices.iter().zip(&open.depths);
                let in_row = slices.filter(|entry| outer.saturating_add(*entry.1) == depth);
                in_row.map(|entry| *entry.0).collect()
            }
            RowKey::Moments(name) => {
                let is_in_row = |slice: &&Slice| self.layout.name(entry, slice.kind) == name;
                open.slices.moments.iter().filter(is_in_row).copied().collect()
            }
        }
    }

    /// The slices of a chunk with their depths, from the cache or the file.
    fn open_chunk(
        &self,
        reader: &mut ChunkReader<'_>,
        track: usize,
        chunk: usize,
        index: &TrackIndex,
    ) -> Result<Arc<OpenChunk>, ViewError> {
        if let Some(open) = self.recent.get(chunk) {
            return Ok(open);
        }
        let track = &self.layout.tracks[track];
        let entry = &self.layout.chunks[chunk];
        let slices = Arc::new(reader.slices(chunk)?);
        let mut depths = vec![0; slices.slices.len()];
        if let Some(place) = track.chunks.iter().position(|&number| number == chunk) {
            let reach = |place: usize| index.blocks[place].reach.as_ref();
            let around = surroundings(&self.layout, track, place, reach, |other| {
                let number = track.chunks[other];
                match self.recent.get(number) {
                    Some(open) => Ok(open.slices.clone()),
                    None => reader.slices(number).map(Arc::new),
                }
            })?;
            depths = around.depths(&slices.slices, |slice| ViewLayout::ordered(entry, *slice));
        }
        let open = Arc::new(OpenChunk { slices, depths });
        self.recent.insert(chunk, &open, self.memory);
        Ok(open)
    }

    /// The number of slices of a row in each bucket of lengths: 0 ns, 1, 2 to 3, 4 to 7, and so on. Counts all
    /// slices of the chunks that overlap the window. Empty until the index is built.
    ///
    /// # Errors
    /// The view has no such row.
    pub fn lengths(&self, row: RowId, from: i64, to: i64) -> Result<Vec<u64>, ViewError> {
        let (thread, key) = match row {
            RowId::Depth { thread, depth } => (thread as usize, RowKey::Depth(depth)),
            RowId::Moments { thread, name } => (thread as usize, RowKey::Moments(name)),
            _ => return Err(ViewError::NoSuchRow(row.to_string())),
        };
        let track = self.layout.tracks.get(thread);
        let Some(track) = track else { return Err(ViewError::NoSuchRow(row.to_string())) };
        let scale = PixelScale::new(from, to, 1);
        let index = self.track(thread);
        Ok(index.map_or_else(Vec::new, |index| index.lengths(&self.layout, track, key, &scale)))
    }
}

fn block_id(layout: &ViewLayout, chunk: usize) -> BlockId {
    let ChunkEntry { chunk, share, .. } = &layout.chunks[chunk];
    BlockId { ordinal: chunk.ordinal, crc: chunk.crc, thread: share.thread.cast_unsigned() }
}
