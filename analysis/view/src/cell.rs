//! Cells: sums over consecutive slices of a row.

/// The cell begins before the window. Sums over adjacent windows leave it out.
pub const BEGINS_BEFORE: u16 = 1;
/// The cell is one slice. `from`, `to` and `best` are those of the slice.
pub const SINGLE: u16 = 2;
/// Slices of the cell overlap, so that `busy` may exceed the time from `from` to `to`.
pub const OVERLAP: u16 = 4;
/// A slice of the cell ends before its start. Its length counts as 0.
pub const BACKWARD: u16 = 8;
/// The cell is made of heads of chunks. `count` is the number of frames; their lengths are unknown.
pub const HEADS: u16 = 16;

/// The number of an unknown name.
pub const NO_NAME: u32 = u32::MAX;

/// A frame, by the numbers of this view. [`View::frame_name`](crate::View::frame_name) has the name that
/// does not depend on the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FramePlace {
    /// The number of its chunk in the view.
    pub chunk: u32,
    /// The number of the frame in the chunk, from 0.
    pub frame: u32,
}

/// Consecutive slices of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The start of the first slice, ns since the epoch.
    pub from: i64,
    /// The latest end, ns since the epoch.
    pub to: i64,
    /// The sum of the lengths, ns.
    pub busy: u64,
    /// The largest length, ns.
    pub longest: u64,
    /// The number of slices.
    pub count: u64,
    /// The frame of the longest slice, the first one if several are equally long.
    pub best: FramePlace,
    /// The name of the longest slice, an index of [`About::names`](crate::About::names).
    pub best_name: u32,
    /// The name with the largest share of `busy`, or of `count` if `busy` is 0. [`NO_NAME`] if unknown.
    pub name: u32,
    /// A lower bound of the share of `name`, of 65,535.
    pub share: u16,
    /// A set of [`BEGINS_BEFORE`], [`SINGLE`], [`OVERLAP`], [`BACKWARD`] and [`HEADS`].
    pub flags: u16,
    /// The lane of a single slice that overlaps others of its row, otherwise 0.
    pub lane: u16,
}

impl Cell {
    /// Appends the slices of `next`, which does not begin before this cell.
    pub(crate) fn append(&mut self, next: &Cell) {
        if next.from < self.to {
            self.flags |= OVERLAP;
        }
        let (own, other) = (self.weight(), next.weight());
        let (name, most) = match self.name == next.name {
            true => (self.name, own.saturating_add(other)),
            false if other > own => (next.name, other),
            false => (self.name, own),
        };
        if next.longest > self.longest {
            (self.longest, self.best, self.best_name) = (next.longest, next.best, next.best_name);
        }
        self.from = self.from.min(next.from);
        self.to = self.to.max(next.to);
        self.busy = self.busy.saturating_add(next.busy);
        self.count = self.count.saturating_add(next.count);
        let whole = if self.busy == 0 { self.count } else { self.busy };
        (self.name, self.share) = (name, share(most, whole));
        self.flags = (self.flags | next.flags) & !SINGLE;
    }

    /// The part of the name in `busy`, or in `count` if `busy` is 0.
    fn weight(&self) -> u64 {
        let whole = if self.busy == 0 { self.count } else { self.busy };
        (u128::from(whole) * u128::from(self.share) / u128::from(u16::MAX)) as u64
    }

    /// The time from its start to its end, ns.
    pub fn width(&self) -> u64 {
        self.to.saturating_sub(self.from).max(0) as u64
    }
}

/// The share of a part in a whole, of 65,535.
pub(crate) fn share(part: u64, whole: u64) -> u16 {
    match whole {
        0 => 0,
        _ => (u128::from(part.min(whole)) * u128::from(u16::MAX) / u128::from(whole)) as u16,
    }
}

/// The bucket of a length in a histogram. The buckets are 0 ns, 1 ns, 2 to 3 ns, 4 to 7 ns, up to 2^30 ns
/// and more.
pub(crate) fn bucket(length: u64) -> usize {
    (64 - length.leading_zeros() as usize).min(BUCKETS - 1)
}

/// The number of buckets in a histogram of lengths.
pub const BUCKETS: usize = 32;
