//! The rows of a window with only the slices that match a filter. They are not in the index, so frames are
//! read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{TrackRow, View};
use crate::cell::Cell;
use crate::chunk_reader::ChunkReader;
use crate::error::ViewError;
use crate::filter::{FoundFrames, SliceFilter, WantedSlices};
use crate::index::{RowKey, heads_cell};
use crate::row::RowId;
use crate::tree::{PixelScale, Pixels};
use crate::window_rows::{self, Phase, WindowRequest, WindowRow};

/// The most frames that are read for one window.
const MAX_FRAMES: u64 = 1 << 24;
/// The number of cells after which those of a pixel are merged.
const MAX_CELLS: usize = 1 << 16;

/// The reader of a window, and the number of frames that it may still read.
struct FrameReading<'a> {
    reader: ChunkReader<'a>,
    budget: FrameBudget,
}

/// The number of frames that may still be read.
struct FrameBudget(u64);

impl FrameBudget {
    fn take(&mut self, frames: u32) -> Result<(), ViewError> {
        let left = self.0.checked_sub(frames.into());
        self.0 = left.ok_or(ViewError::TooManyFrames { max: MAX_FRAMES })?;
        Ok(())
    }
}

impl View {
    /// Compiles a condition for all kinds of frames of this view.
    ///
    /// # Errors
    /// The expression fits no kind of frames.
    pub fn filter(&self, wanted: &WantedSlices) -> Result<SliceFilter, ViewError> {
        SliceFilter::new(&self.layout, wanted)
    }

    /// Returns the requested rows of a window, with only the content that matches a filter of this view. The
    /// row of a thread counts its frames that match. The rows below it have slices. Frames are read in each
    /// phase.
    pub fn filtered<'a>(
        &'a self,
        request: &'a WindowRequest,
        filter: &'a SliceFilter,
        cancel: &'a AtomicBool,
    ) -> impl Iterator<Item = Result<WindowRow, ViewError>> + 'a {
        let scale = PixelScale::new(request.from, request.to, request.pixels);
        let mut reading = FrameReading {
            reader: ChunkReader::new(&self.layout),
            budget: FrameBudget(MAX_FRAMES),
        };
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
                    let track_row = TrackRow { track: thread as usize, key: RowKey::Depth(depth) };
                    row.cells =
                        self.found_slices(track_row, &scale, filter, &mut reading, cancel)?;
                }
                RowId::Moments { thread, name } => {
                    let track_row = TrackRow { track: thread as usize, key: RowKey::Moments(name) };
                    row.cells =
                        self.found_slices(track_row, &scale, filter, &mut reading, cancel)?;
                }
            }
            window_rows::give_lanes(&mut row.cells);
            Ok(row)
        })
    }

    /// A cell for each chunk of a track, with the number of frames that match.
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

    /// The slices of a row that match.
    fn found_slices(
        &self,
        row: TrackRow,
        scale: &PixelScale,
        filter: &SliceFilter,
        reading: &mut FrameReading<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Cell>, ViewError> {
        let Some(index) = self.track(row.track) else { return Ok(Vec::new()) };
        let Some(tree) = index.rows.get(&row.key) else { return Ok(Vec::new()) };
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
                reading.budget.take(entry.chunk.count)?;
            }
            let open = self.open_chunk(&mut reading.reader, row.track, chunk, &index)?;
            for slice in self.slices_of(&open, chunk, row, &index) {
                let name = self.layout.name(entry, slice.kind);
                let cell = window_rows::single(&slice, number, name);
                if scale.overlaps(&cell) && filter.has(entry, &found, &slice) {
                    cells.push(cell);
                }
            }
        }
        Ok(cells.finish())
    }

    /// The frames of a chunk that match.
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
        if let Some(found) = filter.cached(chunk) {
            return Ok(found);
        }
        reading.budget.take(self.layout.chunks[chunk].chunk.count)?;
        filter.find(&self.layout, &mut reading.reader, chunk)
    }
}

/// Collects cells in any order. Merges the cells of a pixel when there are too many.
struct PixelCells {
    scale: PixelScale,
    cells: Vec<Cell>,
    /// The number of cells at which they are merged.
    limit: usize,
}

impl PixelCells {
    fn new(scale: PixelScale) -> PixelCells {
        PixelCells { scale, cells: Vec::new(), limit: MAX_CELLS }
    }

    fn push(&mut self, cell: Cell) {
        self.cells.push(cell);
        if self.cells.len() >= self.limit {
            self.merge();
            // Wide cells are not merged, so the limit grows with their number.
            self.limit = self.limit.max(2 * self.cells.len());
        }
    }

    fn merge(&mut self) {
        self.cells.sort_by_key(|cell| (cell.from, cell.best.chunk, cell.best.frame));
        let mut pixels = Pixels::new(self.scale);
        self.cells.iter().for_each(|cell| pixels.push(cell));
        self.cells = pixels.cells;
    }

    fn finish(mut self) -> Vec<Cell> {
        self.merge();
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_frames_are_refused() {
        let mut budget = FrameBudget(10);
        budget.take(6).unwrap();
        let refused = budget.take(5).unwrap_err().to_string();
        assert!(refused.contains("zoom in"), "{refused}");
        budget.take(4).unwrap();
    }

    /// At most two cells for each pixel, and one that begins before the window, for each limit.
    #[test]
    fn cells_of_a_pixel_are_one() {
        let scale = PixelScale::new(0, 1000, 10);
        for limit in [1, 7, 64, MAX_CELLS] {
            let mut cells = PixelCells { limit, ..PixelCells::new(scale) };
            let starts = (0..500).map(|number| number * 337 % 990).chain([-3]);
            let mut held = 0;
            for from in starts {
                cells.push(heads_cell(from, from + 5, 1, from as u32));
                held = held.max(cells.cells.len());
            }
            assert!(held <= limit.max(50), "{held} cells are held");
            let cells = cells.finish();
            assert!(cells.len() <= 21, "{} cells", cells.len());
            assert!(cells.is_sorted_by_key(|cell| cell.from));
            assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), 501);
        }
    }
}
