//! Where a value left a frame or entered one, and which of two came first.

/// Whether a value leaves or enters. Outs come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// It left: a possible cause.
    Out,
    /// It entered: a possible effect.
    In,
}

/// Whether something is known, or only not ruled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It is so.
    Certain,
    /// It may be so.
    Possible,
}

/// A value that left a frame or entered it. All entries of a key have the same value.
///
/// `lo ≤ ts ≤ hi`, and within a thread none of the three goes back as `seqno` goes on. Where a clock was
/// set back, causes may be missing, and nothing worse happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<T> {
    /// The number of the point.
    pub point: u32,
    /// Whether the value left or entered.
    pub side: Side,
    /// Whether the frame file says so: an out that is left away is the in, and implied. An implied out is
    /// never unmatched. Ins are always stated.
    pub stated: bool,
    /// The earliest time at which it may have been.
    pub lo: i64,
    /// The time of the frame.
    pub ts: i64,
    /// The latest time at which it may have been.
    pub hi: i64,
    /// Which thread: a ring and its owner.
    pub thread: u64,
    /// The place within the thread.
    pub seqno: u64,
    /// What names the frame.
    pub frame: T,
}

impl<T> Entry<T> {
    /// The time at which a [`Matcher`](crate::Matcher) must get it: an out when it may have been, an in
    /// when it must have been. So whatever may have caused an in comes before it.
    pub fn when(&self) -> i64 {
        match self.side {
            Side::Out => self.lo,
            Side::In => self.hi,
        }
    }

    /// What entries of a key are sorted by: when, outs first, thread, sequence number. The first two are
    /// what matching rests on, the others make it the same every time.
    pub fn order(&self) -> (i64, Side, u64, u64) {
        (self.when(), self.side, self.thread, self.seqno)
    }

    /// Whether it happened before another one; None where that is impossible.
    ///
    /// Within a thread the sequence number decides, and a frame is never before itself. Between threads
    /// the bounds of time decide: where they touch, it is possible.
    pub fn before(&self, other: &Entry<T>) -> Option<Certainty> {
        if self.lo > other.hi {
            None
        } else if self.thread == other.thread {
            (self.seqno < other.seqno).then_some(Certainty::Certain)
        } else if self.hi < other.lo {
            Some(Certainty::Certain)
        } else {
            Some(Certainty::Possible)
        }
    }

    /// Whether nobody knows which of the two came first.
    pub(crate) fn unordered(&self, other: &Entry<T>) -> bool {
        self.thread != other.thread && self.lo <= other.hi && other.lo <= self.hi
    }
}
