//! The cells of a row, as a tree: leaves in the order of time, and a parent for each eight cells of a level.

use crate::block::CHILDREN;
use crate::cell::{BEGINS_BEFORE, Cell};

/// The cells of a row.
#[derive(Debug, Default)]
pub(crate) struct RowTree {
    /// The levels, from the leaves to the root. Each is ordered by `from`.
    levels: Vec<Vec<Cell>>,
    /// For each leaf, its index in the row of its block.
    pub places: Vec<u32>,
}

/// The cell of a leaf.
#[derive(Debug)]
pub(crate) struct LeafCell {
    pub cell: Cell,
    /// The index of the leaf in the row of its block.
    pub place: u32,
}

/// A window of time from `from` (included) to `to` (excluded), and the length of a pixel, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelScale {
    pub from: i64,
    pub to: i64,
    pub pixel: u64,
}

impl PixelScale {
    pub fn new(from: i64, to: i64, pixels: u32) -> PixelScale {
        let width = i128::from(to) - i128::from(from);
        let width = u64::try_from(width).unwrap_or(0);
        PixelScale { from, to, pixel: width.div_ceil(pixels.max(1).into()).max(1) }
    }

    pub fn overlaps(&self, cell: &Cell) -> bool {
        cell.from < self.to && cell.to >= self.from
    }

    fn holds(&self, cell: &Cell) -> bool {
        cell.from >= self.from && cell.to < self.to
    }

    /// The pixel of a time that is not before the window.
    pub fn pixel(&self, time: i64) -> u64 {
        let since = i128::from(time) - i128::from(self.from);
        u64::try_from(since).unwrap_or(0) / self.pixel
    }
}

impl RowTree {
    /// The tree of leaves in any order.
    pub fn new(mut leaves: Vec<LeafCell>) -> RowTree {
        leaves.sort_by_key(|LeafCell { cell, place }| (cell.from, cell.best.chunk, *place));
        let leaves = leaves.into_iter().map(|leaf| (leaf.cell, leaf.place));
        let (cells, places): (Vec<Cell>, Vec<u32>) = leaves.unzip();
        let mut levels = vec![cells];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below.chunks(CHILDREN).filter_map(|cells| {
                let (first, rest) = cells.split_first()?;
                let mut sum = *first;
                rest.iter().for_each(|cell| sum.append(cell));
                Some(sum)
            });
            let above = above.collect();
            levels.push(above);
        }
        RowTree { levels, places }
    }

    /// The sum of all cells.
    pub fn whole(&self) -> Option<&Cell> {
        self.levels.last()?.first()
    }

    /// The leaves that overlap a window.
    pub fn leaves<'a>(&'a self, scale: &'a PixelScale) -> impl Iterator<Item = &'a Cell> {
        let leaves = self.levels.first().into_iter().flatten();
        leaves.take_while(|cell| cell.from < scale.to).filter(|cell| scale.overlaps(cell))
    }

    /// Passes cells that overlap the window to `take`, in the order of `from`. A cell within the window that
    /// is no longer than a pixel is passed as a whole. Otherwise its leaves are passed, with their numbers.
    pub fn visit(&self, scale: &PixelScale, take: &mut impl FnMut(&Cell, Option<usize>)) {
        if let Some(top) = self.levels.len().checked_sub(1) {
            self.descend(top, 0, scale, take);
        }
    }

    fn descend(
        &self,
        level: usize,
        first: usize,
        scale: &PixelScale,
        take: &mut impl FnMut(&Cell, Option<usize>),
    ) {
        for (number, cell) in self.levels[level].iter().enumerate().skip(first).take(CHILDREN) {
            if cell.from >= scale.to {
                break;
            }
            if !scale.overlaps(cell) {
                continue;
            }
            match level.checked_sub(1) {
                None => take(cell, Some(number)),
                Some(_) if cell.width() <= scale.pixel && scale.holds(cell) => take(cell, None),
                Some(below) => self.descend(below, number * CHILDREN, scale, take),
            }
        }
    }
}

/// Merges the cells of one pixel.
#[derive(Debug)]
pub(crate) struct Pixels {
    scale: PixelScale,
    pub cells: Vec<Cell>,
}

impl Pixels {
    pub fn new(scale: PixelScale) -> Pixels {
        Pixels { scale, cells: Vec::new() }
    }

    pub fn push(&mut self, cell: &Cell) {
        let scale = &self.scale;
        if cell.from < scale.from {
            let flags = cell.flags | BEGINS_BEFORE;
            self.cells.push(Cell { flags, ..*cell });
            return;
        }
        if let Some(last) = self.cells.last_mut()
            && last.flags & BEGINS_BEFORE == 0
            && last.width() <= scale.pixel
            && cell.width() <= scale.pixel
            && scale.pixel(last.from) == scale.pixel(cell.from)
        {
            last.append(cell);
            return;
        }
        self.cells.push(*cell);
    }
}
