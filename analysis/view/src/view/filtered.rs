//! The rows of a window with nothing but the slices that are wanted. No index knows these: frames are read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::View;
use crate::cell::Cell;
use crate::chunks::ChunkReader;
use crate::error::ViewError;
use crate::filter::{FoundFrames, SliceFilter, WantedSlices};
use crate::index::{RowKey, heads_cell};
use crate::row::RowId;
use crate::tree::{PixelScale, Pixels};
use crate::window::{self, Phase, WindowRequest, WindowRow};

/// Most frames that are read for one window.
const FRAMES: u64 = 1 << 24;
/// Cells that are held before those of a pixel are put together.
const CELLS: usize = 1 << 16;

/// What a window reads, and how many frames it may still read.
struct FrameReading<'a> {
    reader: ChunkReader<'a>,
    left: FrameBudget,
}

struct FrameBudget(u64);

impl FrameBudget {
    fn take(&mut self, frames: u32) -> Result<(), ViewError> {
        let left = self.0.checked_sub(frames.into());
        self.0 = left.ok_or(ViewError::TooManyFrames { most: FRAMES })?;
        Ok(())
    }
}

impl View {
    /// Holds what is wanted against the frames that there are.
    ///
    /// # Errors
    /// The expression fits no kind of frames.
    pub fn filter(&self, wanted: &WantedSlices) -> Result<SliceFilter, ViewError> {
        SliceFilter::new(&self.layout, wanted)
    }

    /// The rows of a window, one after the other, with nothing but what a filter of this view wants: of a thread,
    /// how many of its frames; in the rows below it, slices. Whatever the phase, frames are read.
    pub fn filtered<'a>(
        &'a self,
        request: &'a WindowRequest,
        filter: &'a SliceFilter,
        cancel: &'a AtomicBool,
    ) -> impl Iterator<Item = Result<WindowRow, ViewError>> + 'a {
        let scale = PixelScale::new(request.from, request.to, request.pixels);
        let mut reading =
            FrameReading { reader: ChunkReader::new(&self.layout), left: FrameBudget(FRAMES) };
        request.rows.iter().map(move |&id| {
            let mut row = self.row(id, &scale, Phase::Index, cancel)?;
            row.has_more = false;
            match id {
                RowId::Process(_) | RowId::Counter(_) => {}
                RowId::Thread(thread) => {
                    let thread = thread as usize;
                    row.cells = self.found_frames(thread, &scale, filter, &mut reading, cancel)?;
                }
                RowId::Depth { thread, depth } => {
                    let key = (thread as usize, RowKey::Depth(depth));
                    row.cells = self.found_slices(key, &scale, filter, &mut reading, cancel)?;
                }
                RowId::Moments { thread, name } => {
                    let key = (thread as usize, RowKey::Moments(name));
                    row.cells = self.found_slices(key, &scale, filter, &mut reading, cancel)?;
                }
            }
            window::give_lanes(&mut row.cells);
            Ok(row)
        })
    }

    /// How many frames of a track are wanted, chunk by chunk.
    fn found_frames(
        &self,
        track: usize,
        scale: &PixelScale,
        filter: &SliceFilter,
        reading: &mut FrameReading<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Cell>, ViewError> {
        let mut cells = PixelCells::new(*scale);
        for &chunk in &self.layout.tracks[track].chunks {
            let entry = &self.layout.chunks[chunk];
            let Some((from, to)) = entry.chunk.times.filter(|_| entry.share.count > 0) else {
                continue;
            };
            let mut cell = heads_cell(from, to.max(from), 1, chunk as u32);
            if scale.overlaps(&cell) {
                cell.count = self.found(chunk, filter, reading, cancel)?.count;
                if cell.count > 0 {
                    cells.push(cell);
                }
            }
        }
        Ok(cells.finish())
    }

    /// The slices of a row that are wanted.
    fn found_slices(
        &self,
        (track, key): (usize, RowKey),
        scale: &PixelScale,
        filter: &SliceFilter,
        reading: &mut FrameReading<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Cell>, ViewError> {
        let Some(index) = self.track(track) else { return Ok(Vec::new()) };
        let Some(tree) = index.rows.get(&key) else { return Ok(Vec::new()) };
        let chunks: BTreeSet<u32> = tree.leaves(scale).map(|cell| cell.best.chunk).collect();
        let mut cells = PixelCells::new(*scale);
        for number in chunks {
            let chunk = number as usize;
            let found = self.found(chunk, filter, reading, cancel)?;
            if found.count == 0 {
                continue;
            }
            let entry = &self.layout.chunks[chunk];
            if self.recent.get(chunk).is_none() {
                reading.left.take(entry.chunk.count)?;
            }
            let open = self.open_chunk(&mut reading.reader, track, chunk, &index)?;
            for slice in self.slices_of(&open, (track, chunk), key, &index) {
                let name = self.layout.name(entry, slice.kind);
                let cell = window::single(&slice, number, name);
                if scale.overlaps(&cell) && filter.has(entry, &found, &slice) {
                    cells.push(cell);
                }
            }
        }
        Ok(cells.finish())
    }

    /// The frames of a chunk that are wanted.
    fn found(
        &self,
        chunk: usize,
        filter: &SliceFilter,
        reading: &mut FrameReading<'_>,
        cancel: &AtomicBool,
    ) -> Result<Arc<FoundFrames>, ViewError> {
        if cancel.load(Ordering::Relaxed) {
            return Err(ViewError::Cancelled);
        }
        if let Some(found) = filter.known(chunk) {
            return Ok(found);
        }
        reading.left.take(self.layout.chunks[chunk].chunk.count)?;
        filter.find(&self.layout, &mut reading.reader, chunk)
    }
}

/// Cells that come in any order, of which those of a pixel are put together before there are too many.
struct PixelCells {
    scale: PixelScale,
    cells: Vec<Cell>,
    most: usize,
}

impl PixelCells {
    fn new(scale: PixelScale) -> PixelCells {
        PixelCells { scale, cells: Vec::new(), most: CELLS }
    }

    fn push(&mut self, cell: Cell) {
        self.cells.push(cell);
        if self.cells.len() >= self.most {
            self.put_together();
            // Wide ones stay as they are.
            self.most = self.most.max(2 * self.cells.len());
        }
    }

    fn put_together(&mut self) {
        self.cells.sort_by_key(|cell| (cell.from, cell.best.chunk, cell.best.frame));
        let mut pixels = Pixels::new(self.scale);
        self.cells.iter().for_each(|cell| pixels.push(cell));
        self.cells = pixels.cells;
    }

    fn finish(mut self) -> Vec<Cell> {
        self.put_together();
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_frames_are_refused() {
        let mut left = FrameBudget(10);
        left.take(6).unwrap();
        let refused = left.take(5).unwrap_err().to_string();
        assert!(refused.contains("zoom in"), "{refused}");
        left.take(4).unwrap();
    }

    /// However often they are put together meanwhile: two cells a pixel, and one that begins before.
    #[test]
    fn cells_of_a_pixel_are_one() {
        let scale = PixelScale::new(0, 1000, 10);
        for most in [1, 7, 64, CELLS] {
            let mut cells = PixelCells { most, ..PixelCells::new(scale) };
            let starts = (0..500).map(|number| number * 337 % 990).chain([-3]);
            let mut held = 0;
            for from in starts {
                cells.push(heads_cell(from, from + 5, 1, from as u32));
                held = held.max(cells.cells.len());
            }
            assert!(held <= most.max(50), "{held} cells are held");
            let cells = cells.finish();
            assert!(cells.len() <= 21, "{} cells", cells.len());
            assert!(cells.is_sorted_by_key(|cell| cell.from));
            assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), 501);
        }
    }
}
