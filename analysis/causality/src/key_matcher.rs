//! Matching within one key. Each call gets the rules, because cloning an `Arc` for each entry would make
//! threads contend for its count.

use crate::entry::{Certainty, Entry, Side};
use crate::key_limits::{KeyLimits, KeyRefusal};
use crate::matches::{Edge, MatchCounts, Matches, Unmatched, UnmatchedReason};
use crate::outs::{KeptOut, NearestOut, Outs};
use crate::rule_queue::{QueueBegins, RuleQueue};
use crate::rules::{Policy, Rule, Rules};

/// The state of the key that a [`Matcher`](crate::Matcher) is at.
#[derive(Debug)]
pub(crate) struct KeyMatcher<T, M> {
    limits: KeyLimits,
    missing: M,
    /// By index of the point.
    points: Vec<KeyPoint<T>>,
    /// By rule.
    queues: Vec<RuleQueue<T>>,
    /// Indexes of the points that this key has.
    touched: Vec<usize>,
    untimed: Vec<(u32, Side)>,
    /// The number of edges of [`Policy::All`].
    pairs: u64,
    kept: usize,
    counts: MatchCounts,
}

/// The state of a point in this key.
#[derive(Debug)]
struct KeyPoint<T> {
    outs: Outs<T>,
    ins: u64,
    /// For each side, thread and sequence number of the last frame.
    last: [Option<(u64, u64)>; 2],
    touched: bool,
    /// The time of the last [`sweep`](KeyMatcher::sweep).
    last_sweep: i64,
}

impl<T: Copy, M: Fn(u32, i64, i64) -> bool> KeyMatcher<T, M> {
    pub fn new(rules: &Rules, limits: KeyLimits, missing: M) -> Self {
        let point = |_| KeyPoint {
            outs: Outs::new(),
            ins: 0,
            last: [None; 2],
            touched: false,
            last_sweep: i64::MIN,
        };
        KeyMatcher {
            limits,
            missing,
            points: (0..rules.places()).map(point).collect(),
            queues: rules.all().iter().map(|_| RuleQueue::new()).collect(),
            touched: Vec::new(),
            untimed: Vec::new(),
            pairs: 0,
            kept: 0,
            counts: MatchCounts::default(),
        }
    }

    pub fn set_begins(&mut self, rules: &Rules, begin: impl Fn(u32) -> Option<i64>) {
        for (rule, queue) in rules.all().iter().zip(&mut self.queues) {
            queue.begins = QueueBegins { outs: begin(rule.from), ins: begin(rule.to) };
        }
    }

    pub fn take(
        &mut self,
        rules: &Rules,
        entry: Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<(), KeyRefusal> {
        let width = entry.hi.saturating_sub(entry.lo);
        if width > self.limits.width {
            return Err(KeyRefusal::Wide { width, limit: self.limits.width });
        }
        let Some(place) = rules.place(entry.point) else {
            self.count(entry.side);
            self.unmatched(rules, &entry, found);
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
            Side::Out => self.take_out(rules, place, entry, found),
            Side::In => self.take_in(rules, place, &entry, found),
        }
    }

    pub fn take_untimed(&mut self, point: u32, side: Side, frame: T, found: &mut Matches<T>) {
        self.count(side);
        if !self.untimed.contains(&(point, side)) {
            self.untimed.push((point, side));
        }
        self.note(Unmatched { frame, point, side, reason: UnmatchedReason::Loss }, found);
    }

    pub fn finish(&mut self, rules: &Rules, found: &mut Matches<T>) -> MatchCounts {
        let mut touched = std::mem::take(&mut self.touched);
        for place in touched.drain(..) {
            let at = rules.at(place);
            for &(rule, _) in at.incoming.iter().chain(&at.outgoing) {
                self.settle(rule, None, found);
                self.queues[rule].clear();
            }
            while let Some(out) = self.points[place].outs.drop_front() {
                self.dropped(rules, &out, found);
            }
            let point = &mut self.points[place];
            point.outs.clear();
            (point.ins, point.last, point.touched, point.last_sweep) =
                (0, [None; 2], false, i64::MIN);
        }
        self.touched = touched;
        self.untimed.clear();
        (self.pairs, self.kept) = (0, 0);
        std::mem::take(&mut self.counts)
    }

    fn take_out(
        &mut self,
        rules: &Rules,
        place: usize,
        out: Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<(), KeyRefusal> {
        let at = rules.at(place);
        if out.stated || !rules.free() {
            let ins = at.outgoing.iter().map(|&(_, to)| self.points[to].ins);
            self.counts.impossible += ins.sum::<u64>();
        }
        if at.outgoing.is_empty() {
            if out.stated {
                self.unmatched(rules, &out, found);
            }
            return Ok(());
        }
        self.sweep(rules, place, out.lo, found);
        let mut queued = false;
        for &(rule, _) in &at.outgoing {
            let Rule { policy: Policy::Fifo, from, within, .. } = rules.all()[rule] else {
                continue;
            };
            queued = true;
            if !self.queues[rule].note_out(&out, within) {
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
        rules: &Rules,
        place: usize,
        effect: &Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<(), KeyRefusal> {
        self.points[place].ins += 1;
        let mut caused = false;
        for &(index, from) in &rules.at(place).incoming {
            let rule = &rules.all()[index];
            caused |= match rule.policy {
                Policy::All => self.match_all(rule, from, effect, found)?,
                Policy::Nearest => self.match_nearest(rule, from, effect, found),
                Policy::Fifo => self.match_fifo((index, rule), from, effect, found),
            };
        }
        if !caused {
            self.unmatched(rules, effect, found);
        }
        Ok(())
    }

    /// Finds all causes of an in. Returns whether there are any.
    fn match_all(
        &mut self,
        rule: &Rule,
        from: usize,
        effect: &Entry<T>,
        found: &mut Matches<T>,
    ) -> Result<bool, KeyRefusal> {
        let allowed = Allowed::new(rule, effect);
        let before = found.edges.len();
        let hot = self.hot();
        for out in self.points[from].outs.reaching_mut(allowed.oldest) {
            let Some(certainty) = allowed.certainty(&out.entry) else { continue };
            out.used = true;
            self.pairs += 1;
            if self.pairs > self.limits.pairs {
                return Err(hot);
            }
            found.edges.push(Edge { src: out.entry, dst: *effect, certainty, policy: Policy::All });
        }
        let new = &mut found.edges[before..];
        new.reverse();
        new.iter().for_each(|edge| self.counts.edge(edge.certainty));
        Ok(!new.is_empty())
    }

    /// Finds the nearest cause of an in. Returns whether there is one.
    fn match_nearest(
        &mut self,
        rule: &Rule,
        from: usize,
        effect: &Entry<T>,
        found: &mut Matches<T>,
    ) -> bool {
        let allowed = Allowed::new(rule, effect);
        let outs = &self.points[from].outs;
        let nearest = outs.nearest(allowed.oldest, |out| allowed.certainty(out).is_some());
        let Some(NearestOut { number, is_unrivalled }) = nearest else { return false };
        let Some(src) = outs.get(number).map(|out| out.entry) else { return false };
        let is_certain = is_unrivalled
            && allowed.certainty(&src) == Some(Certainty::Certain)
            && !self.may_miss(rule.from, Side::Out, src.lo, effect.hi);
        self.points[from].outs.mark_used(number);
        let certainty = if is_certain { Certainty::Certain } else { Certainty::Possible };
        self.edge(Edge { src, dst: *effect, certainty, policy: Policy::Nearest }, found);
        true
    }

    /// Finds the cause of an in: the first out of the queue. Returns whether there is one.
    fn match_fifo(
        &mut self,
        (index, rule): (usize, &Rule),
        from: usize,
        effect: &Entry<T>,
        found: &mut Matches<T>,
    ) -> bool {
        let allowed = Allowed::new(rule, effect);
        let checked_until = self.queues[index].checked_for_losses_until;
        let begins = self.queues[index].begins;
        let may_be_shifted = self.queues[index].may_be_shifted
            || begins.lacks_outs(checked_until)
            || begins.lacks_ins(checked_until)
            || self.may_miss(rule.from, Side::Out, checked_until, effect.hi)
            || self.may_miss(rule.to, Side::In, checked_until, effect.hi);
        let outs = &mut self.points[from].outs;
        let queue = &mut self.queues[index];
        (queue.may_be_shifted, queue.checked_for_losses_until) = (may_be_shifted, effect.hi);
        queue.head = queue.head.max(outs.first());
        while outs.get(queue.head).is_some_and(|out| allowed.is_late(&out.entry)) {
            queue.head += 1;
        }
        let first = outs.get(queue.head);
        let edge = first.and_then(|out| {
            let is_certain = allowed.certainty(&out.entry)? == Certainty::Certain;
            let is_certain = is_certain && !out.unordered && !may_be_shifted;
            let certainty = if is_certain { Certainty::Certain } else { Certainty::Possible };
            Some(Edge { src: out.entry, dst: *effect, certainty, policy: Policy::Fifo })
        });
        if edge.is_some() {
            outs.mark_used(queue.head);
            queue.head += 1;
        }
        queue.take(*effect, edge);
        self.settle(index, Some(effect.hi.saturating_sub(self.limits.width)), found);
        edge.is_some()
    }

    /// Outputs the edges of a queue that entries from `until` on can no longer change.
    fn settle(&mut self, rule: usize, until: Option<i64>, found: &mut Matches<T>) {
        while let Some(edge) = self.queues[rule].settle(until) {
            edge.into_iter().for_each(|edge| self.edge(edge, found));
        }
    }

    /// Drops the outs that no entry from `now` on can need.
    fn sweep(&mut self, rules: &Rules, place: usize, now: i64, found: &mut Matches<T>) {
        let point = &mut self.points[place];
        if now <= point.last_sweep {
            return;
        }
        point.last_sweep = now;
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
                        // Even the nearer out may be too old, as clocks differ; this one must be, too.
                        let margin = rule.within.map_or(0, |_| self.limits.width);
                        hi < settled.saturating_sub(margin)
                    }
                    Policy::Fifo => hi < now && (expired || outs.first() < self.queues[index].head),
                }
            };
            if !rules.at(place).outgoing.iter().all(gone) {
                break;
            }
            if let Some(out) = self.points[place].outs.drop_front() {
                self.kept -= 1;
                self.dropped(rules, &out, found);
            }
        }
    }

    fn dropped(&mut self, rules: &Rules, out: &KeptOut<T>, found: &mut Matches<T>) {
        if out.entry.stated && !out.used {
            self.unmatched(rules, &out.entry, found);
        }
    }

    fn edge(&mut self, edge: Edge<T>, found: &mut Matches<T>) {
        self.counts.edge(edge.certainty);
        found.edges.push(edge);
    }

    fn unmatched(&mut self, rules: &Rules, entry: &Entry<T>, found: &mut Matches<T>) {
        let &Entry { point, side, frame, .. } = entry;
        let lost = match (side, rules.free()) {
            (Side::Out, true) => self.any_may_miss(rules, Side::In, entry.lo, i64::MAX),
            (Side::In, true) => self.any_may_miss(rules, Side::Out, i64::MIN, entry.hi),
            (Side::Out, false) => rules.outgoing(point).any(|rule| {
                let last = rule.within.map_or(i64::MAX, |within| entry.hi.saturating_add(within));
                self.may_miss(rule.to, Side::In, entry.lo, last)
            }),
            (Side::In, false) => rules.incoming(point).any(|rule| {
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

    fn any_may_miss(&self, rules: &Rules, side: Side, from: i64, to: i64) -> bool {
        rules.points().iter().any(|&point| self.may_miss(point, side, from, to))
    }

    fn may_miss(&self, point: u32, side: Side, from: i64, to: i64) -> bool {
        self.untimed.contains(&(point, side)) || (self.missing)(point, from, to)
    }

    fn hot(&self) -> KeyRefusal {
        KeyRefusal::Hot { outs: self.counts.outs, ins: self.counts.ins }
    }
}

/// Decides which outs may have caused an in by a rule.
struct Allowed<'a, T> {
    effect: &'a Entry<T>,
    within: Option<i64>,
    /// An out whose latest time is earlier is too old.
    oldest: i64,
}

impl<'a, T> Allowed<'a, T> {
    fn new(rule: &Rule, effect: &'a Entry<T>) -> Self {
        let within = rule.within;
        let oldest = within.map_or(i64::MIN, |within| effect.lo.saturating_sub(within));
        Allowed { effect, within, oldest }
    }

    /// Whether an out is too old.
    fn is_late(&self, out: &Entry<T>) -> bool {
        self.within.is_some_and(|within| out.until(self.effect).0 > within)
    }

    /// Whether an out may have caused the in; None if that is impossible.
    fn certainty(&self, out: &Entry<T>) -> Option<Certainty> {
        let before = out.before(self.effect).filter(|_| !self.is_late(out))?;
        let most = out.until(self.effect).1;
        let late = self.within.is_some_and(|within| most > within);
        Some(if late { Certainty::Possible } else { before })
    }
}
