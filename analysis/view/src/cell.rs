//! Cells: what is said of slices that follow each other in a row.

/// The cell begins before the window. A sum over windows side by side leaves it out.
pub const BEGINS_BEFORE: u16 = 1;
/// It is one slice: `from`, `to` and `best` are its own.
pub const SINGLE: u16 = 2;
/// Slices in it overlap: `busy` may be more than the time from `from` to `to`.
pub const OVERLAP: u16 = 4;
/// The end of a slice in it is before its start. It counts as having no length.
pub const BACKWARD: u16 = 8;
/// It is known from heads of chunks alone: `count` is a count of frames, and nothing is known of their
/// lengths.
pub const HEADS: u16 = 16;

/// No name.
pub const NO_NAME: u32 = u32::MAX;

/// A frame, by the numbers that a view gives chunks. [`View::frame_name`](crate::View::frame_name) says
/// what others call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FramePlace {
    /// Number of its chunk in the view.
    pub chunk: u32,
    /// Its place in the chunk.
    pub frame: u32,
}

/// Slices that follow each other in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The start of the first slice, ns since the epoch.
    pub from: i64,
    /// The latest end.
    pub to: i64,
    /// The sum of the lengths, ns.
    pub busy: u64,
    /// The greatest length, ns.
    pub longest: u64,
    /// How many slices.
    pub count: u64,
    /// The frame of the longest slice; of equal ones, the first.
    pub best: FramePlace,
    /// What the longest slice is called: index of [`About::names`](crate::About::names).
    pub best_name: u32,
    /// The name that takes most of `busy`, or of `count` where `busy` is 0. [`NO_NAME`]: unknown.
    pub name: u32,
    /// How much of it at least, of 65,535.
    pub share: u16,
    /// [`BEGINS_BEFORE`], [`SINGLE`], [`OVERLAP`], [`BACKWARD`], [`HEADS`].
    pub flags: u16,
    /// Of a single slice that overlaps others of its row: the lane that keeps it apart. Otherwise 0.
    pub lane: u16,
}

impl Cell {
    /// Puts the slices of `next`, which begins no sooner, behind its own.
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

    /// How much the name takes, of `busy`, or of `count` where that is 0.
    fn weight(&self) -> u64 {
        let whole = if self.busy == 0 { self.count } else { self.busy };
        (u128::from(whole) * u128::from(self.share) / u128::from(u16::MAX)) as u64
    }

    /// From its start to its end, ns.
    pub fn width(&self) -> u64 {
        self.to.saturating_sub(self.from).max(0) as u64
    }
}

/// A part of a whole, of 65,535.
pub(crate) fn share(part: u64, whole: u64) -> u16 {
    match whole {
        0 => 0,
        _ => (u128::from(part.min(whole)) * u128::from(u16::MAX) / u128::from(whole)) as u16,
    }
}

/// The bucket of a length in a histogram: 0 has none, 1 ns, 2 to 3 ns, 4 to 7 ns, up to 2^30 and more.
pub(crate) fn bucket(length: u64) -> usize {
    (64 - length.leading_zeros() as usize).min(BUCKETS - 1)
}

/// Buckets of a histogram of lengths.
pub const BUCKETS: usize = 32;
