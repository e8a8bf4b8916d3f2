//! When records of the kernel are missing: what a thread did then, nobody knows.

use std::collections::HashMap;

use super::states::Knows;
use crate::whole::{Missing, NOTHING};

/// Numbers that no frame of a capture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    /// The first of them.
    first: u64,
    /// None of them was before that time.
    since: i64,
}

/// What is known of the frames of one session and process.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub knows: Knows,
    /// The time of the last frame: up to there, everything is known, but what is missing.
    pub end: i64,
    /// Ascending.
    holes: Vec<Hole>,
    lost: Missing,
    /// By CPU, with what may be of any.
    lost_of: HashMap<i32, Missing>,
    lost_anywhere: Missing,
}

impl Records {
    /// Since when records of a thread may be missing between two of its frames (number and time each);
    /// None: none are. `cpu`: it ran there from the one to the other.
    pub fn missing(
        &self,
        (from_seq, from): (u64, i64),
        (to_seq, to): (u64, i64),
        cpu: Option<i32>,
    ) -> Option<i64> {
        let next = self.holes.partition_point(|hole| hole.first <= from_seq);
        let hole = self.holes.get(next).filter(|hole| hole.first < to_seq).map(|hole| hole.since);
        // What a CPU lost says nothing of a thread that had another one all the time.
        let lost = match cpu {
            None => &self.lost,
            Some(cpu) => self.lost_of.get(&cpu).unwrap_or(&self.lost_anywhere),
        };
        let since = hole.into_iter().chain(lost.first_within(from, to)).min()?;
        Some(since.clamp(from, to.max(from)))
    }
}

/// A chunk of frames: the first number, how many, how many of them are not there, and their times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameChunk {
    pub first: u64,
    pub count: u64,
    pub has_bad: bool,
    /// The first and the last; None: nobody knows.
    pub times: Option<(i64, i64)>,
}

/// A loss that the kernel's own frames name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelLoss {
    pub seqno: u64,
    /// None: nobody knows.
    pub since: Option<i64>,
    pub at: i64,
    /// −1: of any.
    pub cpu: i32,
    /// 0: of any.
    pub thread: i32,
    pub count: u64,
}

/// Collects what [`Records`] are made of.
#[derive(Debug, Default)]
pub(crate) struct RecordsBuilder {
    pub parts: Vec<FrameChunk>,
    pub losses: Vec<KernelLoss>,
    pub knows: Knows,
}

impl RecordsBuilder {
    pub fn build(mut self) -> Records {
        self.parts.sort_by_key(|part| (part.first, part.count));
        let named: HashMap<u64, u64> =
            self.losses.iter().map(|loss| (loss.seqno, loss.count)).collect();
        // The frames behind say what is missing, and since when.
        let is_named = |first: u64, mut missing: u64| {
            let mut counts = (first..).map_while(|seqno| named.get(&seqno));
            while missing > 0 {
                let rest = counts.next().and_then(|count| missing.checked_sub(*count));
                let Some(rest) = rest else { return false };
                missing = rest;
            }
            true
        };
        let mut records = Records { knows: self.knows, end: i64::MIN, ..Records::default() };
        // What follows the last number that is there; None: none is.
        let (mut next, mut latest) = (None, i64::MIN);
        let mut anywhere = Vec::new();
        for part in self.parts {
            // Copies of one session may overlap.
            let end = part.first.saturating_add(part.count);
            if let Some(next) = next
                && next < part.first
                && !is_named(part.first, part.first - next)
            {
                let since = part.times.map_or(latest, |time| time.0.min(latest));
                records.holes.push(Hole { first: next, since });
            }
            if part.has_bad {
                anywhere.push((Some(latest), part.times.map(|time| time.1)));
            }
            latest = part.times.map_or(latest, |time| time.1.max(latest));
            next = next.max(Some(end));
        }
        records.end = latest;
        let times = |loss: &KernelLoss| (loss.since, Some(loss.at));
        // A switch of one thread lacks what comes with it: the state says so by itself.
        let of_all = || self.losses.iter().filter(|loss| loss.thread == 0);
        anywhere.extend(of_all().filter(|loss| loss.cpu < 0).map(times));
        for cpu in of_all().map(|loss| loss.cpu).filter(|&number| number >= 0) {
            records.lost_of.entry(cpu).or_insert_with(|| {
                let own = of_all().filter(|loss| loss.cpu == cpu).map(times);
                Missing::during(own.chain(anywhere.iter().copied()))
            });
        }
        records.lost = Missing::during(of_all().map(times).chain(anywhere.iter().copied()));
        records.lost_anywhere =
            if anywhere.is_empty() { NOTHING.clone() } else { Missing::during(anywhere) };
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(parts: &[(u64, u64, i64, i64)], losses: &[(u64, i64, i64, i32, u64)]) -> Records {
        let part = |&(first, count, from, to)| FrameChunk {
            first,
            count,
            has_bad: false,
            times: Some((from, to)),
        };
        let loss = |&(seqno, since, at, cpu, count)| KernelLoss {
            seqno,
            since: Some(since),
            at,
            cpu,
            thread: 0,
            count,
        };
        let parts = parts.iter().map(part).collect();
        let losses = losses.iter().map(loss).collect();
        RecordsBuilder { parts, losses, knows: Knows::default() }.build()
    }

    #[test]
    fn a_hole_is_between_the_frames_around_it() {
        let records = records(&[(1, 9, 100, 190), (20, 5, 300, 340), (25, 5, 350, 390)], &[]);
        assert_eq!(records.end, 390);
        let missing = |from, to| records.missing(from, to, Some(0));
        assert_eq!(missing((9, 190), (20, 300)), Some(190));
        assert_eq!(missing((3, 120), (24, 340)), Some(190));
        assert_eq!(missing((3, 120), (9, 190)), None);
        assert_eq!(missing((20, 300), (29, 390)), None);
        assert_eq!(missing((3, 120), (u64::MAX, 390)), Some(190));
    }

    #[test]
    fn a_loss_that_is_named_counts_since_it_says() {
        // Two batches of 10 and 5, named one after the other; another one of 3, of which more are missing.
        let losses = [(25, 150, 300, 1, 10), (26, 160, 300, 0, 5), (40, 500, 600, 1, 3)];
        let parts = [(1, 9, 100, 190), (25, 10, 300, 400), (40, 5, 600, 700)];
        let records = records(&parts, &losses);
        let missing = |from, to, cpu| records.missing(from, to, cpu);
        assert_eq!(missing((2, 110), (9, 190), None), Some(150));
        assert_eq!(missing((2, 110), (9, 190), Some(0)), Some(160), "it had another CPU");
        assert_eq!(missing((2, 110), (9, 190), Some(3)), None);
        assert_eq!(missing((9, 190), (27, 310), Some(3)), None, "no number is missing but those");
        assert_eq!(missing((34, 400), (41, 650), Some(3)), Some(400), "more are");
        assert_eq!(missing((34, 400), (41, 650), Some(1)), Some(400));
        assert_eq!(missing((41, 650), (44, 700), None), None);
    }
}
