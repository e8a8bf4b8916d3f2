//! The contract of matching; `key_matcher.rs` decides, by policy.

use std::sync::Arc;

use crate::entry::{Entry, Side};
use crate::key_limits::{KeyLimits, KeyRefusal};
use crate::key_matcher::KeyMatcher;
use crate::matches::{MatchCounts, Matches};
use crate::rules::Rules;

/// Finds causes and effects, key by key.
///
/// An out `a` caused an in `b` iff `a` happened [before](Entry::before) `b` and the [`Rules`] allow it.
/// All entries between two calls of [`finish`](Matcher::finish) have the same value; they come in their
/// [order](Entry::order), those without a time first. A repeated entry counts once.
///
/// An edge is *certain* if `a` certainly happened before `b`, and
/// - *within*: the [longest](Entry::until) possible time from `a` to `b` is at most `within`. If even the
///   shortest is longer, there is no edge.
/// - *nearest*: no other cause may be nearer: none overlaps with `a`, and no frame of the causing point may
///   be missing between `a` and `b`. Of several causes, the latest by `ts` is taken, even if its `ts` is after
///   that of `b`, as long as its bounds allow it to be before.
/// - *fifo*: the order of `a` among all outs and of `b` among all ins is known, and the queue is in step. It is
///   in step until a frame of either point may be missing. From then on, all edges are possible only, because
///   everything may have shifted by one, until the queue is known to be empty again: a rule has `within`, and
///   an out comes after a longer time without outs, in which none may be missing. What was in the queue
///   before is no longer taken. A queue may have held outs before its points
///   [begin](Matcher::with_begins). An in takes the first out that is not too old; if that one cannot have
///   been before it, the in has no cause.
///
/// An in without a cause is *unmatched*, as is a stated out without an effect. The reason is *loss* if a frame
/// that could match may be missing.
///
/// Memory holds: with *all*, the outs not older than `within`; with *nearest*, outs whose bounds overlap the
/// current or the previous entry; with *fifo*, waiting outs, and the ins of the last `width`. An out that
/// several rules use is kept as long as any of them needs it.
#[derive(Debug)]
pub struct Matcher<T, M> {
    rules: Arc<Rules>,
    key: KeyMatcher<T, M>,
}

impl<T: Copy, M: Fn(u32, i64, i64) -> bool> Matcher<T, M> {
    /// `missing(point, from, to)` returns whether a frame of that point may be missing in the capture between
    /// two times, both included; `i64::MIN` and `i64::MAX` mean no limit. Before a session began, every frame
    /// may be missing.
    pub fn new(rules: Arc<Rules>, limits: KeyLimits, missing: M) -> Self {
        let key = KeyMatcher::new(&rules, limits, missing);
        Matcher { rules, key }
    }

    /// Sets the time from which each point was recorded: before, its program may have written frames that the
    /// matcher does not get. None if the program was recorded from its start. Only queues depend on it, because
    /// in other policies no cause takes the place of another.
    #[must_use]
    pub fn with_begins(mut self, begin: impl Fn(u32) -> Option<i64>) -> Self {
        self.key.set_begins(&self.rules, begin);
        self
    }

    /// Takes the next entry of the key. After an error, the rest of the key is lost.
    ///
    /// # Errors
    /// The key has more edges or waiting outs than [`KeyLimits`] allow.
    pub fn take(&mut self, entry: Entry<T>, found: &mut Matches<T>) -> Result<(), KeyRefusal> {
        self.key.take(&self.rules, entry, found)
    }

    /// Takes an entry whose frame has no time, before any that has one. It is unmatched by loss, as is every
    /// entry that it could have matched.
    pub fn take_untimed(&mut self, point: u32, side: Side, frame: T, found: &mut Matches<T>) {
        self.key.take_untimed(point, side, frame, found);
    }

    /// Ends the key: entries that are left are unmatched. The matcher is ready for the next key.
    pub fn finish(&mut self, found: &mut Matches<T>) -> MatchCounts {
        self.key.finish(&self.rules, found)
    }
}
