//! The outs of a point that may still cause something.

use std::collections::VecDeque;

use crate::entry::Entry;

/// An out, and what became of it.
#[derive(Debug)]
pub(crate) struct KeptOut<T> {
    pub entry: Entry<T>,
    /// It has an effect.
    pub used: bool,
    /// Nobody knows whether another out came before it.
    pub unordered: bool,
}

/// The outs of a point in the order in which they came, numbered from the first one of the key.
#[derive(Debug)]
pub(crate) struct Outs<T> {
    kept: VecDeque<KeptOut<T>>,
    /// The number of the first that is kept.
    first: usize,
    /// How wide their bounds are at most.
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

    /// The number of the first that is kept.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The number of the next one.
    pub fn end(&self) -> usize {
        self.first + self.kept.len()
    }

    pub fn front(&self) -> Option<&KeptOut<T>> {
        self.kept.front()
    }

    pub fn get(&self, number: usize) -> Option<&KeptOut<T>> {
        self.kept.get(number.checked_sub(self.first)?)
    }

    pub fn use_up(&mut self, number: usize) {
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

    /// Takes one in. `queued`: what is unordered matters.
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

    /// Outs, the last first, as long as their bounds may reach a time.
    pub fn reaching_mut(&mut self, time: i64) -> impl Iterator<Item = &mut KeptOut<T>> {
        let oldest = time.saturating_sub(self.widest);
        self.kept.iter_mut().rev().take_while(move |out| out.entry.lo >= oldest)
    }

    /// Numbers and outs, the last first, as long as their bounds may reach a time.
    pub fn reaching(&self, time: i64) -> impl Iterator<Item = (usize, &KeptOut<T>)> {
        let oldest = time.saturating_sub(self.widest);
        let last_first = self.kept.iter().enumerate().rev();
        let reaching = last_first.take_while(move |(_, out)| out.entry.lo >= oldest);
        reaching.map(|(index, out)| (self.first + index, out))
    }

    /// The latest cause of an in: its number, and whether no other one could be nearer. `may` says which
    /// outs are causes at all, `oldest` from when on.
    pub fn nearest(&self, oldest: i64, may: impl Fn(&Entry<T>) -> bool) -> Option<(usize, bool)> {
        let rank = |entry: &Entry<T>| (entry.ts, entry.thread, entry.seqno);
        let mut best: Option<(usize, &Entry<T>)> = None;
        for (number, out) in self.reaching(oldest) {
            let out = &out.entry;
            if let Some((_, best)) = best
                && out.lo.saturating_add(self.widest) < best.ts
            {
                break;
            }
            if may(out) && best.is_none_or(|(_, best)| rank(out) > rank(best)) {
                best = Some((number, out));
            }
        }
        let (number, best) = best?;
        let mut others = self.reaching(best.lo);
        Some((number, !others.any(|(_, out)| out.entry.unordered(best) && may(&out.entry))))
    }

    /// Up to when nothing can be the nearest any more: an out that ended before is behind another one, and
    /// whatever comes from `now` on is after that one.
    pub fn settled(&self, now: i64) -> i64 {
        let settled = self.kept.iter().rev().find(|out| out.entry.hi < now);
        settled.map_or(i64::MIN, |settled| settled.entry.lo)
    }
}
