//! From entries to edges, one key after the other.

use std::sync::Arc;

use thiserror::Error;

use crate::entry::{Certainty, Entry, Side};
use crate::matches::{Edge, MatchCounts, Matches, Unmatched, UnmatchedReason};
use crate::outs::{Out, Outs};
use crate::queue::{QueueBegins, RuleQueue};
use crate::rules::{Policy, Rule, Rules};

/// What a key may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// The most edges that [`Policy::All`] may make of one key.
    pub pairs: u64,
    /// The most outs of one key that are kept at a time.
    pub kept: usize,
    /// How wide the bounds of an entry are at most. Outs are kept so much longer.
    pub width: i64,
}

/// A key that cannot be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyRefusal {
    /// Too many entries have the same value.
    #[error("{outs} outs and {ins} ins have the same value")]
    Hot {
        /// Outs so far.
        outs: u64,
        /// Ins so far.
        ins: u64,
    },
    /// The bounds of an entry are wider than the limit.
    #[error("the time of an entry is uncertain by {width}, more than {limit}")]
    Wide {
        /// How wide they are.
        width: i64,
        /// How wide they may be.
        limit: i64,
    },
}

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
/// In memory are: with *all*, the outs not older than `within`; with *nearest*, those that overlap with
/// now or with the one before; with *fifo*, those that wait, and the ins of the last `width`. An out that
/// several rules name is kept as long as one needs it.
#[derive(Debug)]
pub struct Matcher<T, M> {
    rules: Arc<Rules>,
    limits: KeyLimits,
    missing: M,
    /// By place of the point.
    points: Vec<KeyPoint<T>>,
    /// By rule.
    queues: Vec<RuleQueue<T>>,
    /// Places of points that this key has.
    touched: Vec<usize>,
    untimed: Vec<(u32, Side)>,
    /// Edges of [`Policy::All`].
    pairs: u64,
    kept: usize,
    counts: MatchCounts,
}

/// A point in this key.
#[derive(Debug)]
struct KeyPoint<T> {
    outs: Outs<T>,
    ins: u64,
    /// Thread and sequence number of the last frame, by side.
    last: [Option<(u64, u64)>; 2],
    touched: bool,
    /// When it was last looked which outs can go.
    swept: i64,
}

impl<T: Copy, M: Fn(u32, i64, i64) -> bool> Matcher<T, M> {
    /// `missing(point, from, to)` says whether a frame of that point may be missing in the capture from
    /// one time to another, both included; `i64::MIN` and `i64::MAX` say that there is no limit. Before a
    /// session began everything may be missing.
    pub fn new(rules: Arc<Rules>, limits: KeyLimits, missing: M) -> Self {
        let point = |_| KeyPoint {
            outs: Outs::new(),
            ins: 0,
            last: [None; 2],
            touched: false,
            swept: i64::MIN,
        };
        Matcher {
            limits,
            missing,
            points: (0..rules.places()).map(point).collect(),
            queues: rules.all().iter().map(|_| RuleQueue::new()).collect(),
            rules,
            touched: Vec::new(),
            untimed: Vec::new(),
            pairs: 0,
            kept: 0,
            counts: MatchCounts::default(),
        }
    }

    /// States by which time each point was seen: up to then, its program may have written frames that
    /// the matcher does not get. None: the program was seen from its start. Only queues depend on it,
    /// because what leads to a single effect has no effect on others.
    #[must_use]
    pub fn with_begins(mut self, begin: impl Fn(u32) -> Option<i64>) -> Self {
        for (rule, queue) in self.rules.all().iter().zip(&mut self.queues) {
            queue.begins = QueueBegins { outs: begin(rule.from), ins: begin(rule.to) };
        }
        self
    }

    /// Takes in the next entry of the key. After it was refused, the rest of the key is lost.
    ///
    /// # Errors
    /// The key has more edges or waiting outs than [`KeyLimits`] allow.
    pub fn take(&mut self, entry: Entry<T>, found: &mut Matches<T>) -> Result<(), KeyRefusal> {
        let width = entry.hi.saturating_sub(entry.lo);
        if width > self.limits.width {
            return Err(KeyRefusal::Wide { width, limit: self.limits.width });
        }
        let Some(place) = self.rules.place(entry.point) else {
            self.count(entry.side);
            self.unmatched(&entry, found);
            return Ok(());
        };
        let point = &mut self.points[place];
        if !point.touched {
            point.touched = true;
            self.touched.push(place);
        }
        let frame = Some((entry.thread, entry.seqno));
        if std::mem::replace(&mut point.last[entry.side as usize], frame) == frame {
            return Ok(());
        }
        self.count(entry.side);
        match entry.side {
            Side::Out => self.take_out(place, entry, found),
            Side::In => self.take_in(place, &entry, found),
        }
    }

    /// Takes in an entry whose frame has no time, before any that has one. It is unmatched, and as good
    /// as lost: what it could have matched is unmatched by loss, too.
    pub fn take_untimed(&mut self, point: u32, side: Side, frame: T, found: &mut Matches<T>) {
        self.count(side);
        if !self.untimed.contains(&(point, side)) {
            self.untimed.push((point, side));
        }
        self.note(Unmatched { frame, point, side, reason: UnmatchedReason::Loss }, found);
    }

    /// The key is complete: what is left is unmatched. The matcher is as new.
    pub fn finish(&mut self, found: &mut Matches<T>) -> MatchCounts {
        let rules = self.rules.clone();
        let mut touched = std::mem::take(&mut self.touched);
        for place in touched.drain(..) {
            let at = rules.at(place);
            for &(rule, _) in at.incoming.iter().chain(&at.outgoing) {
                self.settle(rule, None, found);
                self.queues[rule].clear();
            }
            while let Some(out) = self.points[place].outs.drop_front() {
                self.dropped(&out, found);
            }
            let point = &mut self.points[place];
            point.outs.clear();
            (point.ins, point.last, point.touched, point.swept) = (0, [None; 2], false, i64::MIN);
        }
        self.touched = touched;
        self.untimed.clear();
        (self.pairs, self.kept) = (0, 0);
        std::mem::take(&mut self.counts)
    }

    fn take_out(
        &mut self,
        place: usize,
        out: Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<(), KeyRefusal> {
        let rules = self.rules.clone();
        let at = rules.at(place);
        if out.stated || !rules.free() {
            let ins = at.outgoing.iter().map(|&(_, to)| self.points[to].ins);
            self.counts.impossible += ins.sum::<u64>();
        }
        if at.outgoing.is_empty() {
            if out.stated {
                self.unmatched(&out, found);
            }
            return Ok(());
        }
        self.sweep(place, out.lo, found);
        let mut queued = false;
        for &(rule, _) in &at.outgoing {
            let Rule { policy: Policy::Fifo, from, within, .. } = rules.all()[rule] else {
                continue;
            };
            queued = true;
            if !self.queues[rule].is_quiet(&out, within) {
                continue;
            }
            let start = out.lo.saturating_sub(within.unwrap_or(0));
            let begins = self.queues[rule].begins;
            if !begins.lacks_outs(start) && !self.may_miss(from, Side::Out, start, out.lo) {
                self.queues[rule].start(self.points[place].outs.end(), out.lo);
            }
        }
        self.points[place].outs.push(out, queued);
        self.kept += 1;
        if self.kept > self.limits.kept { Err(self.hot()) } else { Ok(()) }
    }

    fn take_in(
        &mut self,
        place: usize,
        by: &Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<(), KeyRefusal> {
        self.points[place].ins += 1;
        let rules = self.rules.clone();
        let mut caused = false;
        for &(rule, from) in &rules.at(place).incoming {
            caused |= match rules.all()[rule].policy {
                Policy::All => self.all(rule, from, by, found)?,
                Policy::Nearest => self.nearest(rule, from, by, found),
                Policy::Fifo => self.first(rule, from, by, found),
            };
        }
        if !caused {
            self.unmatched(by, found);
        }
        Ok(())
    }

    /// All causes of an in. Returns whether there are any.
    fn all(
        &mut self,
        rule: usize,
        from: usize,
        by: &Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<bool, KeyRefusal> {
        let allowed = Allowed::new(&self.rules.all()[rule], by);
        let before = found.edges.len();
        let hot = self.hot();
        for out in self.points[from].outs.reaching_mut(allowed.oldest) {
            let Some(certainty) = allowed.certainty(&out.entry) else { continue };
            out.used = true;
            self.pairs += 1;
            if self.pairs > self.limits.pairs {
                return Err(hot);
            }
            found.edges.push(Edge { src: out.entry, dst: *by, certainty, policy: Policy::All });
        }
        let new = &mut found.edges[before..];
        new.reverse();
        new.iter().for_each(|edge| self.counts.edge(edge.certainty));
        Ok(!new.is_empty())
    }

    /// The nearest cause of an in. Returns whether there is one.
    fn nearest(&mut self, rule: usize, from: usize, by: &Entry<T>, found: &mut Matches<T>) -> bool {
        let rule = &self.rules.all()[rule];
        let allowed = Allowed::new(rule, by);
        let outs = &self.points[from].outs;
        let nearest = outs.nearest(allowed.oldest, |out| allowed.certainty(out).is_some());
        let Some((number, alone)) = nearest else { return false };
        let Some(src) = outs.get(number).map(|out| out.entry) else { return false };
        let known = alone
            && allowed.certainty(&src) == Some(Certainty::Certain)
            && !self.may_miss(rule.from, Side::Out, src.lo, by.hi);
        self.points[from].outs.use_up(number);
        let certainty = if known { Certainty::Certain } else { Certainty::Possible };
        self.edge(Edge { src, dst: *by, certainty, policy: Policy::Nearest }, found);
        true
    }

    /// The first in the queue causes an in. Returns whether there is one.
    fn first(&mut self, rule: usize, from: usize, by: &Entry<T>, found: &mut Matches<T>) -> bool {
        let Rule { from: cause, to: effect, .. } = self.rules.all()[rule];
        let allowed = Allowed::new(&self.rules.all()[rule], by);
        let seen = self.queues[rule].seen;
        let begins = self.queues[rule].begins;
        let shifted = self.queues[rule].shifted
            || begins.lacks_outs(seen)
            || begins.lacks_ins(seen)
            || self.may_miss(cause, Side::Out, seen, by.hi)
            || self.may_miss(effect, Side::In, seen, by.hi);
        let outs = &mut self.points[from].outs;
        let queue = &mut self.queues[rule];
        (queue.shifted, queue.seen) = (shifted, by.hi);
        queue.head = queue.head.max(outs.first());
        while outs.get(queue.head).is_some_and(|out| allowed.is_late(&out.entry)) {
            queue.head += 1;
        }
        let first = outs.get(queue.head);
        let edge = first.and_then(|out| {
            let known = allowed.certainty(&out.entry)? == Certainty::Certain;
            let known = known && !out.unordered && !shifted;
            let certainty = if known { Certainty::Certain } else { Certainty::Possible };
            Some(Edge { src: out.entry, dst: *by, certainty, policy: Policy::Fifo })
        });
        if edge.is_some() {
            outs.use_up(queue.head);
            queue.head += 1;
        }
        queue.take(*by, edge);
        self.settle(rule, Some(by.hi.saturating_sub(self.limits.width)), found);
        edge.is_some()
    }

    /// Hands on the edges of a queue that nothing can change any more from `until` on.
    fn settle(&mut self, rule: usize, until: Option<i64>, found: &mut Matches<T>) {
        while let Some(edge) = self.queues[rule].settle(until) {
            edge.into_iter().for_each(|edge| self.edge(edge, found));
        }
    }

    /// Lets go of the outs that nothing from `now` on can need.
    fn sweep(&mut self, place: usize, now: i64, found: &mut Matches<T>) {
        let rules = self.rules.clone();
        let point = &mut self.points[place];
        if now <= point.swept {
            return;
        }
        point.swept = now;
        let mut settled = None;
        while let Some(out) = self.points[place].outs.front() {
            let (hi, outs) = (out.entry.hi, &self.points[place].outs);
            let gone = |&(index, _): &(usize, usize)| {
                let rule = &rules.all()[index];
                let oldest = |within| now.saturating_sub(self.limits.width).saturating_sub(within);
                let expired = rule.within.is_some_and(|within| hi < oldest(within));
                match rule.policy {
                    Policy::All => expired,
                    Policy::Nearest => {
                        let settled = *settled.get_or_insert_with(|| outs.settled(now));
                        // The nearer one may be too old on its own clock: then so must this one be.
                        let doubt = rule.within.map_or(0, |_| self.limits.width);
                        hi < settled.saturating_sub(doubt)
                    }
                    Policy::Fifo => hi < now && (expired || outs.first() < self.queues[index].head),
                }
            };
            if !rules.at(place).outgoing.iter().all(gone) {
                break;
            }
            if let Some(out) = self.points[place].outs.drop_front() {
                self.kept -= 1;
                self.dropped(&out, found);
            }
        }
    }

    fn dropped(&mut self, out: &Out<T>, found: &mut Matches<T>) {
        if out.entry.stated && !out.used {
            self.unmatched(&out.entry, found);
        }
    }

    fn edge(&mut self, edge: Edge<T>, found: &mut Matches<T>) {
        self.counts.edge(edge.certainty);
        found.edges.push(edge);
    }

    fn unmatched(&mut self, entry: &Entry<T>, found: &mut Matches<T>) {
        let &Entry { point, side, frame, .. } = entry;
        let lost = match (side, self.rules.free()) {
            (Side::Out, true) => self.any_may_miss(Side::In, entry.lo, i64::MAX),
            (Side::In, true) => self.any_may_miss(Side::Out, i64::MIN, entry.hi),
            (Side::Out, false) => self.rules.outgoing(point).any(|rule| {
                let last = rule.within.map_or(i64::MAX, |within| entry.hi.saturating_add(within));
                self.may_miss(rule.to, Side::In, entry.lo, last)
            }),
            (Side::In, false) => self.rules.incoming(point).any(|rule| {
                let first = rule.within.map_or(i64::MIN, |within| entry.lo.saturating_sub(within));
                self.may_miss(rule.from, Side::Out, first, entry.hi)
            }),
        };
        let reason = if lost { UnmatchedReason::Loss } else { UnmatchedReason::None };
        self.note(Unmatched { frame, point, side, reason }, found);
    }

    fn note(&mut self, unmatched: Unmatched<T>, found: &mut Matches<T>) {
        match unmatched.side {
            Side::Out => self.counts.unmatched_outs += 1,
            Side::In => self.counts.unmatched_ins += 1,
        }
        self.counts.lost += u64::from(unmatched.reason == UnmatchedReason::Loss);
        found.unmatched.push(unmatched);
    }

    fn count(&mut self, side: Side) {
        match side {
            Side::Out => self.counts.outs += 1,
            Side::In => self.counts.ins += 1,
        }
    }

    fn any_may_miss(&self, side: Side, from: i64, to: i64) -> bool {
        self.rules.points().iter().any(|&point| self.may_miss(point, side, from, to))
    }

    fn may_miss(&self, point: u32, side: Side, from: i64, to: i64) -> bool {
        self.untimed.contains(&(point, side)) || (self.missing)(point, from, to)
    }

    fn hot(&self) -> KeyRefusal {
        KeyRefusal::Hot { outs: self.counts.outs, ins: self.counts.ins }
    }
}

/// Which outs may have caused an in by a rule.
struct Allowed<'a, T> {
    by: &'a Entry<T>,
    within: Option<i64>,
    /// An out that ended before is too old.
    oldest: i64,
}

impl<'a, T> Allowed<'a, T> {
    fn new(rule: &Rule, by: &'a Entry<T>) -> Self {
        let within = rule.within;
        let oldest = within.map_or(i64::MIN, |within| by.lo.saturating_sub(within));
        Allowed { by, within, oldest }
    }

    /// Whether an out is too old.
    fn is_late(&self, out: &Entry<T>) -> bool {
        self.within.is_some_and(|within| out.until(self.by).0 > within)
    }

    /// Whether an out may have caused the in, and whether time leaves any doubt.
    fn certainty(&self, out: &Entry<T>) -> Option<Certainty> {
        let before = out.before(self.by).filter(|_| !self.is_late(out))?;
        let most = out.until(self.by).1;
        let late = self.within.is_some_and(|within| most > within);
        Some(if late { Certainty::Possible } else { before })
    }
}
