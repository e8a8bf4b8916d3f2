//! What matching finds.

use crate::entry::{Certainty, Entry, Side};
use crate::rules::Policy;

/// One frame caused another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<T> {
    /// The cause.
    pub src: Entry<T>,
    /// The effect.
    pub dst: Entry<T>,
    /// Whether it is known.
    pub certainty: Certainty,
    /// By which policy it was found.
    pub policy: Policy,
}

impl<T> Edge<T> {
    /// The time from one to the other.
    pub fn latency(&self) -> i64 {
        self.dst.ts.saturating_sub(self.src.ts)
    }

    /// The least that the bounds allow.
    pub fn latency_lo(&self) -> i64 {
        self.src.until(&self.dst).0
    }

    /// The most that the bounds allow.
    pub fn latency_hi(&self) -> i64 {
        self.src.until(&self.dst).1
    }
}

/// Why something is unmatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnmatchedReason {
    /// What would match may be missing in the capture.
    Loss,
    /// There is none.
    None,
}

/// An in without a cause, or a stated out without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmatched<T> {
    /// What names the frame.
    pub frame: T,
    /// The number of the point.
    pub point: u32,
    /// Whether a cause is missing or an effect.
    pub side: Side,
    /// Why.
    pub reason: UnmatchedReason,
}

/// What a [`Matcher`](crate::Matcher) found; the caller takes it away whenever it likes.
#[derive(Debug)]
pub struct Matches<T> {
    /// What caused what.
    pub edges: Vec<Edge<T>>,
    /// What has no cause, or no effect.
    pub unmatched: Vec<Unmatched<T>>,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Matches { edges: Vec::new(), unmatched: Vec::new() }
    }
}

/// How often what was the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchCounts {
    /// Values that entered.
    pub ins: u64,
    /// Values that left, implied ones too.
    pub outs: u64,
    /// Edges that are known.
    pub certain: u64,
    /// Edges that are not ruled out.
    pub possible: u64,
    /// Pairs that would match, but whose in was before its out. Pairs of an implied out count only where a
    /// rule names the two points: a value that goes from point to point goes back to none of them.
    pub impossible: u64,
    /// Ins without a cause.
    pub unmatched_ins: u64,
    /// Stated outs without an effect.
    pub unmatched_outs: u64,
    /// Those of the unmatched whose other half may be missing in the capture.
    pub lost: u64,
}

impl std::ops::AddAssign for MatchCounts {
    fn add_assign(&mut self, other: MatchCounts) {
        self.ins += other.ins;
        self.outs += other.outs;
        self.certain += other.certain;
        self.possible += other.possible;
        self.impossible += other.impossible;
        self.unmatched_ins += other.unmatched_ins;
        self.unmatched_outs += other.unmatched_outs;
        self.lost += other.lost;
    }
}

impl MatchCounts {
    pub(crate) fn edge(&mut self, certainty: Certainty) {
        match certainty {
            Certainty::Certain => self.certain += 1,
            Certainty::Possible => self.possible += 1,
        }
    }
}
