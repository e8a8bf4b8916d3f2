//! The results of matching.

use crate::entry::{Certainty, Entry, Side};
use crate::rules::Policy;

/// A cause and its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<T> {
    /// The cause.
    pub src: Entry<T>,
    /// The effect.
    pub dst: Entry<T>,
    /// Whether it is known.
    pub certainty: Certainty,
    /// The policy that found it.
    pub policy: Policy,
}

impl<T> Edge<T> {
    /// The time from cause to effect.
    pub fn latency(&self) -> i64 {
        self.dst.ts.saturating_sub(self.src.ts)
    }

    /// The shortest time that the bounds allow.
    pub fn latency_lo(&self) -> i64 {
        self.src.until(&self.dst).0
    }

    /// The longest time that the bounds allow.
    pub fn latency_hi(&self) -> i64 {
        self.src.until(&self.dst).1
    }
}

/// Why an entry is unmatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnmatchedReason {
    /// A frame that would match may be missing in the capture.
    Loss,
    /// No frame matches.
    None,
}

/// An in without a cause, or a stated out without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmatched<T> {
    /// The caller's name for the frame.
    pub frame: T,
    /// The number of the point.
    pub point: u32,
    /// `In` lacks a cause, `Out` an effect.
    pub side: Side,
    /// The reason.
    pub reason: UnmatchedReason,
}

/// The results of a [`Matcher`](crate::Matcher). The caller may empty it at any time.
#[derive(Debug)]
pub struct Matches<T> {
    /// Causes and effects.
    pub edges: Vec<Edge<T>>,
    /// Entries without a cause or an effect.
    pub unmatched: Vec<Unmatched<T>>,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Matches { edges: Vec::new(), unmatched: Vec::new() }
    }
}

/// Numbers of entries and edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchCounts {
    /// Values that entered.
    pub ins: u64,
    /// Values that left, including implied ones.
    pub outs: u64,
    /// Certain edges.
    pub certain: u64,
    /// Possible edges.
    pub possible: u64,
    /// Pairs that would match, but whose in was before its out. Pairs with an implied out count only if a rule
    /// names the two points: a value that passes from point to point returns to none of them.
    pub impossible: u64,
    /// Ins without a cause.
    pub unmatched_ins: u64,
    /// Stated outs without an effect.
    pub unmatched_outs: u64,
    /// Unmatched hashes whose partner may be missing in the capture.
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
