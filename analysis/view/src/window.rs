//! The cells of a window.

use crate::cell::{BEGINS_BEFORE, Cell, FramePlace, SINGLE};
use crate::counters::CounterCell;
use crate::layout::LostFrames;
use crate::row::RowId;
use crate::slice::Slice;
use crate::tree::PixelScale;

/// What is asked of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRequest {
    /// The first ns of it, since the epoch.
    pub from: i64,
    /// The ns after its last.
    pub to: i64,
    /// How many pixels it takes; at least 1.
    pub pixels: u32,
    /// The rows that are wanted.
    pub rows: Vec<RowId>,
    /// How closely one looks.
    pub phase: Phase,
}

/// How closely one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// By the index alone: no frame is read.
    Index,
    /// Leaves that are wider than [`WIDE`] pixels are replaced by their frames.
    Frames,
}

/// Pixels that a leaf may take before its frames are read.
pub const WIDE: u64 = 4;

/// What a row has in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRow {
    /// The row.
    pub row: RowId,
    /// In the order of `from`. Those no wider than a pixel that begin in one pixel are one cell, so there are
    /// two for each pixel at most, and those that begin before the window.
    pub cells: Vec<Cell>,
    /// Of a counter; the first one may be before the window.
    pub counters: Vec<CounterCell>,
    /// Of a row of a thread: frames of the thread that are missing, in the order of `from`.
    pub losses: Vec<LostFrames>,
    /// The index of the row is built. If not, cells are missing.
    pub is_built: bool,
    /// There are leaves that are wider than [`WIDE`] pixels: [`Phase::Frames`] has more.
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

/// Gives single slices that overlap lanes of their own. They are in the order of their starts.
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

/// Losses in a window; those of a pixel and a cause are one.
pub(crate) fn losses(all: &[LostFrames], scale: &PixelScale) -> Vec<LostFrames> {
    let mut losses: Vec<LostFrames> = Vec::new();
    for loss in all.iter().filter(|frames| frames.from < scale.to && frames.to >= scale.from) {
        let is_narrow = |frames: &LostFrames| {
            frames.from >= scale.from
                && (frames.to.saturating_sub(frames.from) as u64) <= scale.pixel
        };
        let mut behind = losses.iter_mut().rev().take(4);
        let same = behind.find(|frames| {
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

/// Sums of cells, for windows side by side: what begins before a window is a part of the one before.
pub fn begins_within(cell: &Cell) -> bool {
    cell.flags & BEGINS_BEFORE == 0
}
