//! A request for a window, and the rows of its answer: single slices, their lanes, and losses. `view.rs` chooses cells.

use crate::cell::{BEGINS_BEFORE, Cell, FramePlace, SINGLE};
use crate::counters::CounterCell;
use crate::layout::LostFrames;
use crate::row::RowId;
use crate::slice::Slice;
use crate::tree::PixelScale;

/// A request for rows of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRequest {
    /// The beginning of the window, ns since the epoch.
    pub from: i64,
    /// The end of the window (excluded), ns since the epoch.
    pub to: i64,
    /// The width of the window in pixels; at least 1.
    pub pixels: u32,
    /// The requested rows.
    pub rows: Vec<RowId>,
    /// Whether frames are read.
    pub phase: Phase,
}

/// Whether frames are read for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The index suffices. No frame is read.
    Index,
    /// The slices of frames replace leaves that are wider than [`WIDE`] pixels.
    Frames,
}

/// The width of a leaf in pixels up to which its frames are not read.
pub const WIDE: u64 = 4;

/// The cells of a row in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRow {
    /// Identifies the row.
    pub row: RowId,
    /// The cells, in the order of `from`. Cells that begin in one pixel and are no wider than a pixel are
    /// merged. So there are at most two cells for each pixel, besides those that begin before the window.
    pub cells: Vec<Cell>,
    /// The cells of a counter. The first one may be before the window.
    pub counters: Vec<CounterCell>,
    /// The missing frames of the thread of the row, in the order of `from`.
    pub losses: Vec<LostFrames>,
    /// Whether the index of the row is built. Otherwise cells are missing.
    pub is_built: bool,
    /// Whether a leaf is wider than [`WIDE`] pixels, so that [`Phase::Frames`] has more cells.
    pub has_more: bool,
}

/// The cell of one slice.
pub(crate) fn single(slice: &Slice, chunk: u32, name: u32) -> Cell {
    Cell {
        from: slice.start,
        to: slice.end(),
        busy: slice.length(),
        longest: slice.length(),
        count: 1,
        best: FramePlace { chunk, frame: slice.frame },
        best_name: name,
        name,
        share: u16::MAX,
        flags: if slice.len < 0 { SINGLE | crate::cell::BACKWARD } else { SINGLE },
        lane: 0,
    }
}

/// Gives overlapping single slices different lanes. `cells` are ordered by their starts.
pub fn give_lanes(cells: &mut [Cell]) {
    let mut ends: Vec<i64> = Vec::new();
    for cell in cells.iter_mut().filter(|cell| cell.flags & SINGLE != 0) {
        let free = ends.iter().position(|&end| end <= cell.from);
        let lane = free.unwrap_or(ends.len());
        match free {
            Some(lane) => ends[lane] = cell.to,
            None => ends.push(cell.to),
        }
        cell.lane = u16::try_from(lane).unwrap_or(u16::MAX);
    }
}

/// The losses in a window. Losses of one pixel and one cause are merged.
pub(crate) fn losses_in(track_losses: &[LostFrames], scale: &PixelScale) -> Vec<LostFrames> {
    let mut losses: Vec<LostFrames> = Vec::new();
    for loss in
        track_losses.iter().filter(|frames| frames.from < scale.to && frames.to >= scale.from)
    {
        let is_narrow = |frames: &LostFrames| {
            frames.from >= scale.from
                && (frames.to.saturating_sub(frames.from) as u64) <= scale.pixel
        };
        let mut latest = losses.iter_mut().rev().take(4);
        let same = latest.find(|frames| {
            frames.cause == loss.cause
                && is_narrow(frames)
                && is_narrow(loss)
                && scale.pixel(frames.from) == scale.pixel(loss.from)
        });
        match same {
            Some(same) => {
                same.to = same.to.max(loss.to);
                same.count = same.count.saturating_add(loss.count);
            }
            None => losses.push(*loss),
        }
    }
    losses
}

/// Whether a cell begins in its window. Sums over adjacent windows leave out the others.
pub fn begins_within(cell: &Cell) -> bool {
    cell.flags & BEGINS_BEFORE == 0
}
