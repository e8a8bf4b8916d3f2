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
/// `lo ≤ ts ≤ hi`. Within a clock `lo` and `hi` never go back as `ts` goes on, and within a thread none of
/// the three does as `seqno` goes on. Where a clock was set back, causes may be missing, and nothing worse
/// happens.
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
    /// Which clock `ts` was read on. Times of one clock are exact beside each other, whatever bounds them on
    /// others. A thread has one clock.
    pub clock: u32,
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

    /// What entries of a key are sorted by: when, outs first, time, thread, sequence number. The first three
    /// are what matching rests on, the others make it the same every time.
    pub fn order(&self) -> (i64, Side, i64, u64, u64) {
        (self.when(), self.side, self.ts, self.thread, self.seqno)
    }

    /// The least and the most time from this one to another.
    pub fn until(&self, other: &Entry<T>) -> (i64, i64) {
        if self.clock == other.clock {
            let time = other.ts.saturating_sub(self.ts);
            return (time, time);
        }
        (other.lo.saturating_sub(self.hi), other.hi.saturating_sub(self.lo))
    }

    /// Whether it happened before another one; None where that is impossible.
    ///
    /// Within a thread the sequence number decides, and a frame is never before itself. Between threads
    /// of one clock the time decides, and else the bounds of time do: where they touch, it is possible.
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

    /// Whether nobody knows which of the two came first.
    pub(crate) fn unordered(&self, other: &Entry<T>) -> bool {
        let (least, most) = self.until(other);
        self.thread != other.thread && least <= 0 && most >= 0
    }
}
