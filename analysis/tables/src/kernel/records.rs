//! Periods in which records of the kernel are missing. The state of threads is unknown then.

use std::collections::HashMap;

use super::states::Recorded;
use crate::spans_and_chains::{Missing, NOTHING};

/// A run of sequence numbers that no frame has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    /// The first number.
    first: u64,
    /// Earliest time of the missing frames, ns since the epoch.
    since: i64,
}

/// The completeness of the frames of one session and process.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub recorded: Recorded,
    /// Time of the last frame, ns since the epoch.
    pub end: i64,
    /// In ascending order.
    holes: Vec<Hole>,
    /// Losses of all CPUs.
    lost: Missing,
    /// By CPU: its losses, and those of unknown CPUs.
    lost_by_cpu: HashMap<i32, Missing>,
    /// Losses of unknown CPUs.
    lost_anywhere: Missing,
}

/// The position of a frame in its ring and in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FramePosition {
    pub seqno: u64,
    /// ns since the epoch.
    pub ts: i64,
}

impl FramePosition {
    /// Before all frames.
    pub const BEGIN: FramePosition = FramePosition { seqno: 0, ts: i64::MIN };
}

impl Records {
    /// The earliest time at which records of a thread may be missing between two of its frames; None if no
    /// records are missing. `cpu`: the CPU on which it ran all the time, if it did.
    pub fn missing(
        &self,
        after: FramePosition,
        before: FramePosition,
        cpu: Option<i32>,
    ) -> Option<i64> {
        let (from, to) = (after.ts, before.ts);
        let next = self.holes.partition_point(|hole| hole.first <= after.seqno);
        let hole = self.holes.get(next).filter(|hole| hole.first < before.seqno);
        let hole = hole.map(|hole| hole.since);
        // A thread that ran on one CPU all the time is not affected by losses of other CPUs.
        let lost = match cpu {
            None => &self.lost,
            Some(cpu) => self.lost_by_cpu.get(&cpu).unwrap_or(&self.lost_anywhere),
        };
        let since = hole.into_iter().chain(lost.first_within(from, to)).min()?;
        Some(since.clamp(from, to.max(from)))
    }
}

/// A chunk of the kernel's frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelChunk {
    /// Number of the first frame.
    pub first: u64,
    /// Number of frames.
    pub count: u64,
    /// Whether some frames are damaged.
    pub has_bad: bool,
    /// The earliest and the latest time; None if unknown.
    pub times: Option<(i64, i64)>,
}

/// A loss that a frame of the kernel reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelLoss {
    /// Sequence number of the frame.
    pub seqno: u64,
    /// Begin of the loss; None if unknown.
    pub since: Option<i64>,
    /// End of the loss.
    pub at: i64,
    /// −1: any CPU.
    pub cpu: i32,
    /// 0: any thread.
    pub thread: i32,
    pub count: u64,
}

/// Collects the input of [`Records`].
#[derive(Debug, Default)]
pub(crate) struct RecordsBuilder {
    pub parts: Vec<KernelChunk>,
    pub losses: Vec<KernelLoss>,
    pub recorded: Recorded,
}

impl RecordsBuilder {
    pub fn build(mut self) -> Records {
        self.parts.sort_by_key(|part| (part.first, part.count));
        let reported: HashMap<u64, u64> =
            self.losses.iter().map(|loss| (loss.seqno, loss.count)).collect();
        // The frames after the hole report it, with its begin.
        let is_reported = |first: u64, mut missing: u64| {
            let mut counts = (first..).map_while(|seqno| reported.get(&seqno));
            while missing > 0 {
                let remaining = counts.next().and_then(|count| missing.checked_sub(*count));
                let Some(remaining) = remaining else { return false };
                missing = remaining;
            }
            true
        };
        let mut records = Records { recorded: self.recorded, end: i64::MIN, ..Records::default() };
        // The number after the last frame so far; None before the first frame.
        let (mut next, mut latest) = (None, i64::MIN);
        let mut anywhere = Vec::new();
        for part in self.parts {
            // Copies of one session may overlap.
            let end = part.first.saturating_add(part.count);
            if let Some(next) = next
                && next < part.first
                && !is_reported(part.first, part.first - next)
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
        // A loss of one thread is a switch without its details; the state of the thread reflects that.
        let of_all = || self.losses.iter().filter(|loss| loss.thread == 0);
        anywhere.extend(of_all().filter(|loss| loss.cpu < 0).map(times));
        for cpu in of_all().map(|loss| loss.cpu).filter(|&number| number >= 0) {
            records.lost_by_cpu.entry(cpu).or_insert_with(|| {
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
        let part = |&(first, count, from, to)| KernelChunk {
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
        RecordsBuilder { parts, losses, recorded: Recorded::default() }.build()
    }

    fn at((seqno, ts): (u64, i64)) -> FramePosition {
        FramePosition { seqno, ts }
    }

    #[test]
    fn a_hole_is_between_the_frames_around_it() {
        let records = records(&[(1, 9, 100, 190), (20, 5, 300, 340), (25, 5, 350, 390)], &[]);
        assert_eq!(records.end, 390);
        let missing = |after, before| records.missing(at(after), at(before), Some(0));
        assert_eq!(missing((9, 190), (20, 300)), Some(190));
        assert_eq!(missing((3, 120), (24, 340)), Some(190));
        assert_eq!(missing((3, 120), (9, 190)), None);
        assert_eq!(missing((20, 300), (29, 390)), None);
        assert_eq!(missing((3, 120), (u64::MAX, 390)), Some(190));
    }

    #[test]
    fn a_reported_loss_begins_at_its_time() {
        // Two reported losses of 10 and 5 frames in succession; one of 3 in a hole of more frames.
        let losses = [(25, 150, 300, 1, 10), (26, 160, 300, 0, 5), (40, 500, 600, 1, 3)];
        let parts = [(1, 9, 100, 190), (25, 10, 300, 400), (40, 5, 600, 700)];
        let records = records(&parts, &losses);
        let missing = |after, before, cpu| records.missing(at(after), at(before), cpu);
        assert_eq!(missing((2, 110), (9, 190), None), Some(150));
        assert_eq!(missing((2, 110), (9, 190), Some(0)), Some(160), "it had another CPU");
        assert_eq!(missing((2, 110), (9, 190), Some(3)), None);
        assert_eq!(missing((9, 190), (27, 310), Some(3)), None, "no other number is missing");
        assert_eq!(missing((34, 400), (41, 650), Some(3)), Some(400), "more are missing");
        assert_eq!(missing((34, 400), (41, 650), Some(1)), Some(400));
        assert_eq!(missing((41, 650), (44, 700), None), None);
    }
}
