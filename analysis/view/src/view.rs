//! The view: what there is, the index, and the answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ppt_tables::{CaptureSet, FrameChunk, Trouble};

use crate::about::{self, About};
use crate::block::{IndexBlock, LEAF};
use crate::build::{BuildCost, Builder, Progress};
use crate::cache::{self, BlockId, Cache};
use crate::cell::{Cell, FramePlace};
use crate::chunks::{ChunkReader, OpenChunk, Recent};
use crate::error::ViewError;
use crate::frame::{self, FrameFields, FrameName};
use crate::index::{RowKey, TrackIndex, heads_cell, surroundings};
use crate::layout::{ChunkEntry, ViewLayout};
use crate::row::RowId;
use crate::slice::Slice;
use crate::tree::{PixelScale, Pixels, RowTree};
use crate::window::{self, Phase, WIDE, WindowRequest, WindowRow};

mod filtered;

/// Captures, as one looks at them over time.
///
/// Several threads may ask it at once, also while one of them builds the index.
#[derive(Debug)]
pub struct View {
    set: Arc<CaptureSet>,
    layout: ViewLayout,
    /// By track, once it is built.
    index: Vec<RwLock<Option<Arc<TrackIndex>>>>,
    /// Blocks that were there before, by capture.
    stored: Mutex<Vec<HashMap<BlockId, Arc<IndexBlock>>>>,
    cache: Option<Cache>,
    recent: Recent,
    progress: Mutex<Progress>,
    memory: usize,
}

impl View {
    /// Opens captures: see [`View::from_set`].
    ///
    /// # Errors
    /// One of them cannot be read, or is none.
    pub fn open(
        captures: &[PathBuf],
        cache: Option<&Path>,
        memory: usize,
    ) -> Result<View, ViewError> {
        View::from_set(CaptureSet::open(captures)?, cache, memory)
    }

    /// Looks at captures, of which only the heads of chunks are read, and frames that may be about another
    /// thread than the one that wrote them. `cache`: the folder where indexes are
    /// kept, which is made if need be; a folder for nothing else. `memory`: how many bytes the frames may
    /// take that are read; it does not bound the index.
    ///
    /// # Errors
    /// Counters cannot be read.
    pub fn from_set(
        set: CaptureSet,
        cache: Option<&Path>,
        memory: usize,
    ) -> Result<View, ViewError> {
        View::from_layout(set, cache, memory, None)
    }

    fn from_layout(
        set: CaptureSet,
        cache: Option<&Path>,
        memory: usize,
        before: Option<&ViewLayout>,
    ) -> Result<View, ViewError> {
        let set = Arc::new(set);
        let layout = ViewLayout::read(&set, before)?;
        let cache = cache.map(Cache::new);
        let mut view = View {
            index: layout.tracks.iter().map(|_| RwLock::new(None)).collect(),
            stored: Mutex::default(),
            recent: Recent::default(),
            progress: Mutex::default(),
            set,
            layout,
            cache,
            memory,
        };
        view.load();
        Ok(view)
    }

    /// The same captures, opened once more because they have grown. What was built of them counts.
    ///
    /// # Errors
    /// As [`View::from_set`].
    pub fn grown(&self, set: CaptureSet) -> Result<View, ViewError> {
        let mut view = View::from_layout(set, None, self.memory, Some(&self.layout))?;
        view.cache.clone_from(&self.cache);
        let own = self.blocks();
        let stored = self.stored();
        let of = |capture: &ppt_tables::Contents| {
            let place =
                self.layout.captures.iter().position(|contents| contents.id() == capture.id());
            let mut blocks = HashMap::new();
            if let Some(place) = place {
                blocks
                    .extend(stored.get(place).into_iter().flatten().map(|(k, v)| (*k, v.clone())));
                blocks.extend(own[place].iter().cloned());
            }
            blocks
        };
        let blocks = view.layout.captures.iter().map(of).collect();
        drop(stored);
        *view.stored() = blocks;
        Ok(view)
    }

    fn load(&mut self) {
        let mut chunks: Vec<HashMap<BlockId, usize>> =
            self.layout.captures.iter().map(|_| HashMap::new()).collect();
        for (number, entry) in self.layout.chunks.iter().enumerate() {
            chunks[entry.capture].insert(block_id(&self.layout, number), number);
        }
        let of = |(capture, chunks): (&ppt_tables::Contents, &HashMap<BlockId, usize>)| {
            let limits = |id: BlockId| {
                let entry = &self.layout.chunks[*chunks.get(&id)?];
                Some((entry.chunk.count, self.layout.kinds(entry).kinds.len()))
            };
            let bytes = self.cache.as_ref().map_or_else(Vec::new, |cache| cache.load(capture.id()));
            cache::decode(&bytes, capture.id(), limits)
        };
        let stored = self.layout.captures.iter().zip(&chunks).map(of).collect();
        self.stored = Mutex::new(stored);
    }

    fn stored(&self) -> MutexGuard<'_, Vec<HashMap<BlockId, Arc<IndexBlock>>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to be seen. Until the index is built, rows are missing within threads.
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

    /// What is wrong with the captures, as far as it is known by now.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.set.troubles()
    }

    /// The captures.
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
            let mut place = self.index[track].write().unwrap_or_else(PoisonError::into_inner);
            *place = Some(Arc::new(index));
        };
        let told = |now: Progress| {
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
            progress: &told,
            cancel,
        };
        builder.run()
    }

    /// Keeps the index in the cache's folder, if there is one.
    ///
    /// # Errors
    /// The folder is not its user's own, or cannot be written.
    pub fn save(&self) -> Result<(), ViewError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        for (number, capture) in self.layout.captures.iter().enumerate() {
            cache.store(capture.id(), &self.index_bytes(number))?;
        }
        Ok(())
    }

    /// The index of a capture, by its number, as a file has it. It follows from the captures alone.
    pub fn index_bytes(&self, capture: usize) -> Vec<u8> {
        let blocks = self.blocks();
        let blocks = blocks[capture].iter().map(|(id, block)| (*id, &**block));
        cache::encode(self.layout.captures[capture].id(), blocks)
    }

    /// The blocks that are built, by capture, in the order of the file.
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

    /// The rows of a window, one after the other.
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
        row.losses = window::losses(&track.losses, scale);
        let Some(key) = key else {
            row.cells = self.heads(number, scale);
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
                wide.push((*cell, leaf));
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
            row.cells = self.open_leaves((number, key), (tree, &wide), &index, scale, cancel)?;
        }
        window::give_lanes(&mut row.cells);
        Ok(row)
    }

    /// How many frames of a track there are, by the heads of its chunks.
    fn heads(&self, track: usize, scale: &PixelScale) -> Vec<Cell> {
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

    /// The cells of a row in which the slices of wide leaves stand for themselves.
    fn open_leaves(
        &self,
        (track, key): (usize, RowKey),
        (tree, wide): (&RowTree, &[(Cell, usize)]),
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
        let mut row: (usize, Vec<Slice>) = (usize::MAX, Vec::new());
        let mut wide = wide.to_vec();
        wide.sort_by_key(|(cell, leaf)| (cell.best.chunk, *leaf));
        for (cell, leaf) in wide {
            if cancel.load(Ordering::Relaxed) {
                return Err(ViewError::Cancelled);
            }
            let chunk = cell.best.chunk as usize;
            if row.0 != chunk {
                let open = self.open_chunk(&mut reader, track, chunk, index)?;
                row = (chunk, self.slices_of(&open, (track, chunk), key, index));
            }
            let entry = &self.layout.chunks[chunk];
            let first = tree.places[leaf] as usize * LEAF;
            // A chunk that was cut off or written over since has other slices, or none: what was known
            // of it stays.
            if row.1.len() <= first {
                cells.push(cell);
            }
            for slice in row.1.iter().skip(first).take(LEAF) {
                let name = self.layout.name(entry, slice.kind);
                let cell = window::single(slice, cell.best.chunk, name);
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

    /// The slices of a chunk that are in a row of its track, in their order.
    fn slices_of(
        &self,
        open: &OpenChunk,
        (track, chunk): (usize, usize),
        key: RowKey,
        index: &TrackIndex,
    ) -> Vec<Slice> {
        let entry = &self.layout.chunks[chunk];
        let place = self.layout.tracks[track].chunks.iter().position(|&index| index == chunk);
        let outer = place.map_or(0, |place| index.depths[place]);
        match key {
            RowKey::Depth(depth) => {
                let all = open.slices.slices.iter().zip(&open.depths);
                all.filter(|entry| outer.saturating_add(*entry.1) == depth)
                    .map(|entry| *entry.0)
                    .collect()
            }
            RowKey::Moments(name) => {
                let all = open.slices.moments.iter();
                all.filter(|slice| self.layout.name(entry, slice.kind) == name).copied().collect()
            }
        }
    }

    /// The slices of a chunk, and how deep they lie.
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
        let of = &self.layout.tracks[track];
        let entry = &self.layout.chunks[chunk];
        let slices = Arc::new(reader.slices(chunk)?);
        let mut depths = vec![0; slices.slices.len()];
        if let Some(place) = of.chunks.iter().position(|&index| index == chunk) {
            let reach = |place: usize| index.blocks[place].reach.as_ref();
            let around = surroundings(&self.layout, of, place, reach, |other| {
                let number = of.chunks[other];
                match self.recent.get(number) {
                    Some(open) => Ok(open.slices.clone()),
                    None => reader.slices(number).map(Arc::new),
                }
            })?;
            depths = around.depths(&slices.slices, |slice| ViewLayout::placed(entry, *slice));
        }
        let open = Arc::new(OpenChunk { slices, depths });
        self.recent.keep(chunk, &open, self.memory);
        Ok(open)
    }

    /// How many slices of a row have a length in each bucket: 0 ns, 1, 2 to 3, 4 to 7, and so on. Chunks
    /// count as a whole if they overlap the window.
    ///
    /// # Errors
    /// There is no such row.
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

    /// What a frame is called; None for a place where no frame is.
    pub fn frame_name(&self, place: FramePlace) -> Option<FrameName> {
        let entry = self.layout.chunks.get(place.chunk as usize)?;
        if place.frame >= entry.chunk.count {
            return None;
        }
        let contents = &self.layout.captures[entry.capture];
        let owner = contents.owners()[entry.chunk.owner];
        Some(FrameName {
            capture: contents.id().to_owned(),
            buffer: contents.sources()[entry.source].source.buffer.clone(),
            segment: owner.segment,
            ring: owner.ring,
            seqno: entry.chunk.first_seq.saturating_add(place.frame.into()),
        })
    }

    /// The fields of a frame.
    ///
    /// # Errors
    /// There is no such frame, or its capture cannot be read.
    pub fn frame(&self, name: &FrameName) -> Result<FrameFields, ViewError> {
        let (chunk, frame) = self.find(name).ok_or(ViewError::NoSuchFrame)?;
        let entry = &self.layout.chunks[chunk];
        let contents = &self.layout.captures[entry.capture];
        let info = &contents.sources()[entry.source];
        let writer = contents.owners()[entry.chunk.owner].tid;
        let threads = self.layout.other_threads(entry);
        let stamps = contents.stamps(&entry.chunk);
        let read = ChunkReader::new(&self.layout).frame(chunk, frame, |bytes| {
            let id = if info.schema.multi() {
                usize::from(ppt_capture::columns::frame_id(bytes))
            } else {
                0
            };
            let kind = info.schema.frames.get(id)?;
            Some(FrameFields {
                name: name.clone(),
                frame: kind.name.clone(),
                tid: threads.and_then(|it| it.of(bytes)).map(i32::cast_unsigned).or(writer),
                pid: info.source.process.pid,
                host: contents.host().to_owned(),
                fields: frame::fields(&info.schema, kind, bytes, &stamps, contents.offset()),
            })
        })?;
        read.flatten().ok_or(ViewError::NoSuchFrame)
    }

    /// The row of the thread that a frame is about; None: there is no such frame.
    pub fn thread_row(&self, name: &FrameName) -> Option<RowId> {
        let (chunk, _) = self.find(name)?;
        let is_its = |track: &crate::layout::Track| track.chunks.contains(&chunk);
        let thread = self.layout.tracks.iter().position(is_its)?;
        Some(RowId::Thread(thread as u32))
    }

    /// Where a frame is; None: there is no such frame.
    pub fn frame_place(&self, name: &FrameName) -> Option<FramePlace> {
        let (chunk, frame) = self.find(name)?;
        Some(FramePlace { chunk: chunk as u32, frame })
    }

    /// The chunk of a frame, and its place in it.
    fn find(&self, name: &FrameName) -> Option<(usize, u32)> {
        let capture =
            self.layout.captures.iter().position(|capture| capture.id() == name.capture)?;
        let contents = &self.layout.captures[capture];
        let owners: Vec<bool> = contents
            .owners()
            .iter()
            .map(|owner| {
                (owner.segment, owner.ring) == (name.segment, name.ring)
                    && contents.sources()[owner.source].source.buffer == name.buffer
            })
            .collect();
        let in_chunk = |chunk: &FrameChunk| {
            let frame = name.seqno.checked_sub(chunk.first_seq)?;
            u32::try_from(frame).ok().filter(|&number| number < chunk.count)
        };
        let mut places = self.layout.chunks.iter().enumerate().filter_map(|(number, entry)| {
            let is_its = entry.capture == capture && owners[entry.chunk.owner];
            Some((number, in_chunk(&entry.chunk).filter(|_| is_its)?))
        });
        let first = places.next()?;
        let Some(threads) = self.layout.other_threads(&self.layout.chunks[first.0]) else {
            return Some(first);
        };
        // The shares of threads follow each other.
        let mut reader = ChunkReader::new(&self.layout);
        let mut shares = std::iter::once(first).chain(places);
        let its = shares.find(|&(number, frame)| {
            let share = self.layout.chunks[number].share;
            let is_its = reader.frame(number, frame, |bytes| share.has(threads, bytes));
            matches!(is_its, Ok(Some(true)))
        });
        its.or(Some(first))
    }
}

fn block_id(layout: &ViewLayout, chunk: usize) -> BlockId {
    let ChunkEntry { chunk, share, .. } = &layout.chunks[chunk];
    (chunk.ordinal, chunk.crc, share.thread.cast_unsigned())
}
