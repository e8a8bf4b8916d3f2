//! The outs of a point that may still have effects.

use std::collections::VecDeque;

use crate::entry::Entry;

/// An out that may still have effects.
#[derive(Debug)]
pub(crate) struct KeptOut<T> {
    pub entry: Entry<T>,
    /// Whether the out already has an effect.
    pub used: bool,
    /// Whether the order of the out relative to another out is unknown.
    pub unordered: bool,
}

/// The nearest cause of an in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NearestOut {
    /// The number of the out.
    pub number: usize,
    /// No other cause could be nearer.
    pub is_unrivalled: bool,
}

/// The outs of a point in their order, numbered from the first one of the key.
#[derive(Debug)]
pub(crate) struct Outs<T> {
    kept: VecDeque<KeptOut<T>>,
    /// The number of the first in `kept`.
    first: usize,
    /// The largest distance of the bounds of an out.
    widest: i64,
}

impl<T: Copy> Outs<T> {
    pub fn new() -> Outs<T> {
        Outs { kept: VecDeque::new(), first: 0, widest: 0 }
    }

    pub fn clear(&mut self) {
        self.kept.clear();
        self.first = 0;
        self.widest = 0;
    }

    /// The number of the first out in memory.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The number of the next out to come.
    pub fn end(&self) -> usize {
        self.first + self.kept.len()
    }

    pub fn front(&self) -> Option<&KeptOut<T>> {
        self.kept.front()
    }

    pub fn get(&self, number: usize) -> Option<&KeptOut<T>> {
        self.kept.get(number.checked_sub(self.first)?)
    }

    pub fn mark_used(&mut self, number: usize) {
        if let Some(out) = number.checked_sub(self.first).and_then(|index| self.kept.get_mut(index))
        {
            out.used = true;
        }
    }

    pub fn drop_front(&mut self) -> Option<KeptOut<T>> {
        let out = self.kept.pop_front()?;
        self.first += 1;
        Some(out)
    }

    /// Adds an out. If it is `queued`, outs of unknown order are marked.
    pub fn push(&mut self, entry: Entry<T>, queued: bool) {
        self.widest = self.widest.max(entry.hi.saturating_sub(entry.lo));
        let mut unordered = false;
        if queued {
            let oldest = entry.lo.saturating_sub(self.widest);
            for other in self.kept.iter_mut().rev().take_while(|out| out.entry.lo >= oldest) {
                if other.entry.unordered(&entry) {
                    other.unordered = true;
                    unordered = true;
                }
            }
        }
        self.kept.push_back(KeptOut { entry, used: false, unordered });
    }

    /// The outs whose bounds may reach a time, the last first.
    pub fn reaching_mut(&mut self, time: i64) -> impl Iterator<Item = &mut KeptOut<T>> {
        let oldest = time.saturating_sub(self.widest);
        self.kept.iter_mut().rev().take_while(move |out| out.entry.lo >= oldest)
    }

    /// The outs whose bounds may reach a time, with their numbers, the last first.
    pub fn reaching(&self, time: i64) -> impl Iterator<Item = (usize, &KeptOut<T>)> {
        let oldest = time.saturating_sub(self.widest);
        let last_first = self.kept.iter().enumerate().rev();
        let reaching = last_first.take_while(move |(_, out)| out.entry.lo >= oldest);
        reaching.map(|(index, out)| (self.first + index, out))
    }

    /// The latest cause of an in, among the outs from `oldest` on that `is_cause` accepts.
    pub fn nearest(&self, oldest: i64, is_cause: impl Fn(&Entry<T>) -> bool) -> Option<NearestOut> {
        let rank = |entry: &Entry<T>| (entry.ts, entry.thread, entry.seqno);
        let mut best: Option<(usize, &Entry<T>)> = None;
        for (number, out) in self.reaching(oldest) {
            let out = &out.entry;
            if let Some((_, best)) = best
                && out.lo.saturating_add(self.widest) < best.ts
            {
                break;
            }
            if is_cause(out) && best.is_none_or(|(_, best)| rank(out) > rank(best)) {
                best = Some((number, out));
            }
        }
        let (number, best) = best?;
        let mut others = self.reaching(best.lo);
        let has_rival = others.any(|(_, out)| out.entry.unordered(best) && is_cause(&out.entry));
        Some(NearestOut { number, is_unrivalled: !has_rival })
    }

    /// The time before which no out can still be the nearest: an out that ended earlier is before another one
    /// that all entries from `now` on follow.
    pub fn settled(&self, now: i64) -> i64 {
        let settled = self.kept.iter().rev().find(|out| out.entry.hi < now);
        settled.map_or(i64::MIN, |settled| settled.entry.lo)
    }
}
