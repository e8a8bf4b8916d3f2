//! Values that left frames or entered them, and their order in time.

/// The direction of a value. Outs come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The value left: a possible cause.
    Out,
    /// The value entered: a possible effect.
    In,
}

/// Whether a relation is known, or only not ruled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// Known.
    Certain,
    /// Not ruled out.
    Possible,
}

/// A value that left a frame or entered it. All entries of a key have the same value.
///
/// `lo ≤ ts ≤ hi`. Within a clock, `lo` and `hi` never decrease as `ts` increases; within a thread, none of
/// the three decreases as `seqno` increases. If a clock was set back, causes may be missing, but nothing
/// worse happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<T> {
    /// The number of the point.
    pub point: u32,
    /// Whether the value left or entered.
    pub side: Side,
    /// Whether the frame file states it. Without a stated out, the in is also the out: it is implied, and never
    /// unmatched. Ins are always stated.
    pub stated: bool,
    /// The earliest possible time, ns since the epoch.
    pub lo: i64,
    /// The time of the frame, ns since the epoch.
    pub ts: i64,
    /// The latest possible time, ns since the epoch.
    pub hi: i64,
    /// The clock of `ts`. Differences of times of one clock are exact. A thread has one clock.
    pub clock: u32,
    /// The thread: a ring and its owner.
    pub thread: u64,
    /// The number of the frame within the thread.
    pub seqno: u64,
    /// The caller's name for the frame.
    pub frame: T,
}

impl<T> Entry<T> {
    /// The time by which a [`Matcher`](crate::Matcher) must get it: the earliest of an out, the latest of an
    /// in. So every possible cause of an in comes before it.
    pub fn when(&self) -> i64 {
        match self.side {
            Side::Out => self.lo,
            Side::In => self.hi,
        }
    }

    /// The sort key of the entries of one value: when, outs first, time, thread, sequence number. Matching
    /// depends on the first three; the others make the order deterministic.
    pub fn order(&self) -> (i64, Side, i64, u64, u64) {
        (self.when(), self.side, self.ts, self.thread, self.seqno)
    }

    /// The shortest and the longest possible time from this entry to another.
    pub fn until(&self, other: &Entry<T>) -> (i64, i64) {
        if self.clock == other.clock {
            let time = other.ts.saturating_sub(self.ts);
            return (time, time);
        }
        (other.lo.saturating_sub(self.hi), other.hi.saturating_sub(self.lo))
    }

    /// Whether it happened before another entry; None if that is impossible.
    ///
    /// Within a thread, sequence numbers decide, and a frame is never before itself. Between threads of one
    /// clock, times decide; otherwise, bounds do: if they touch, it is possible.
    pub fn before(&self, other: &Entry<T>) -> Option<Certainty> {
        let (least, most) = self.until(other);
        if most < 0 {
            None
        } else if self.thread == other.thread {
            (self.seqno < other.seqno).then_some(Certainty::Certain)
        } else if least > 0 {
            Some(Certainty::Certain)
        } else {
            Some(Certainty::Possible)
        }
    }

    /// Whether the order of the two is unknown.
    pub(crate) fn unordered(&self, other: &Entry<T>) -> bool {
        let (least, most) = self.until(other);
        self.thread != other.thread && least <= 0 && most >= 0
    }
}
