//! From entries to edges, one key after the other.

use std::sync::Arc;

use crate::entry::{Entry, Side};
use crate::key_limits::{KeyLimits, KeyRefusal};
use crate::key_matcher::KeyMatcher;
use crate::matches::{MatchCounts, Matches};
use crate::rules::Rules;

/// Finds what caused what, key by key.
///
/// An out `a` caused an in `b` iff `a` happened [before](Entry::before) `b` and the [`Rules`] allow it.
/// All entries that a matcher gets between two calls of [`finish`](Matcher::finish) have the same value;
/// they come in their [order](Entry::order), those without a time first. An entry that is there twice
/// counts once.
///
/// An edge is *certain* where `a` certainly happened before `b`, and
/// - *within*: `b` is not more than `within` after `a` for all their bounds allow. It is no edge where
///   the bounds rule that out: at [least](Entry::until) more than `within` is between them.
/// - *nearest*: no other cause may be nearer: none overlaps with `a`, and no frame of the causing point
///   may be missing between `a` and `b`. Of several causes the latest by `ts` is taken, also where it is
///   after `b` by `ts` and its bounds allow it to be before.
/// - *fifo*: no other out has an unknown order with `a`, no other in with `b`, and the queue is in step:
///   it is until a frame of either point may be missing. From then on all edges are possible, because
///   everything may have moved by one, until the queue is known to be empty again. That is so where a
///   rule has `within`, and an out comes after a time without outs of more than that, in which none
///   may be missing. A queue may have held outs before its points
///   [begin](Matcher::with_begins). What was in the queue before is not taken any more. An in takes the first
///   out that it does not find too old; if that one cannot have been before it, the in has no cause.
///
/// An in without any cause is *unmatched*, and so is a stated out without any effect: by loss, if a
/// frame that could have been the other one may be missing.
///
/// In memory are: with *all*, the outs not older than `within`; with *nearest*, outs whose bounds
/// overlap the current or the previous entry; with *fifo*, those that wait, and the ins of the last `width`. An out that
/// several rules name is kept as long as one needs it.
#[derive(Debug)]
pub struct Matcher<T, M> {
    rules: Arc<Rules>,
    key: KeyMatcher<T, M>,
}

impl<T: Copy, M: Fn(u32, i64, i64) -> bool> Matcher<T, M> {
    /// `missing(point, from, to)` says whether a frame of that point may be missing in the capture from
    /// one time to another, both included; `i64::MIN` and `i64::MAX` say that there is no limit. Before a
    /// session began everything may be missing.
    pub fn new(rules: Arc<Rules>, limits: KeyLimits, missing: M) -> Self {
        let key = KeyMatcher::new(&rules, limits, missing);
        Matcher { rules, key }
    }

    /// States by which time each point was seen: up to then, its program may have written frames that
    /// the matcher does not get. None: the program was seen from its start. Only queues depend on it,
    /// because what leads to a single effect has no effect on others.
    #[must_use]
    pub fn with_begins(mut self, begin: impl Fn(u32) -> Option<i64>) -> Self {
        self.key.set_begins(&self.rules, begin);
        self
    }

    /// Takes in the next entry of the key. After it was refused, the rest of the key is lost.
    ///
    /// # Errors
    /// The key has more edges or waiting outs than [`KeyLimits`] allow.
    pub fn take(&mut self, entry: Entry<T>, found: &mut Matches<T>) -> Result<(), KeyRefusal> {
        self.key.take(&self.rules, entry, found)
    }

    /// Takes in an entry whose frame has no time, before any that has one. It is unmatched, and as good
    /// as lost: what it could have matched is unmatched by loss, too.
    pub fn take_untimed(&mut self, point: u32, side: Side, frame: T, found: &mut Matches<T>) {
        self.key.take_untimed(point, side, frame, found);
    }

    /// The key is complete: what is left is unmatched. The matcher is as new.
    pub fn finish(&mut self, found: &mut Matches<T>) -> MatchCounts {
        self.key.finish(&self.rules, found)
    }
}
