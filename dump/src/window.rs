//! The selected part of a capture: from one frame or time to another.
//!
//! Both ends are inclusive. A bound of sequence numbers applies in each ring, one of time to all.
//!
//! The time of a frame is its `@at` field, as shown in the table; times of ticks and of the
//! monotonic clock are converted to the epoch. A frame without such a field, or with an unrecorded
//! or unknown time, has the time of its drain. The time of a gap is when it was noticed: when the
//! chunk that states it was drained, or the last one before a gap chunk.

use std::cell::Cell;

use ppt_capture::columns::Time;
use ppt_capture::{Bound, ClockTable, FileHeader, FramesHead, Gap, Stamps};

use crate::error::DumpError;
use crate::plan::TablePlan;

/// The bounds of a table, applied to the clocks of a capture.
#[derive(Debug, Clone)]
pub(crate) struct TableBounds {
    seqs: (u64, u64),
    /// In ns since the epoch. `None`: any time, including an unknown one.
    times: Option<(i128, i128)>,
    /// Realtime − monotonic, ns.
    offset: Option<i128>,
}

impl TableBounds {
    /// The range from `from` to `to` in a capture with this header, if available, and these clocks.
    /// `None` if there are no bounds.
    pub fn new(
        from: Option<Bound>,
        to: Option<Bound>,
        header: Option<&FileHeader>,
        clocks: &ClockTable,
    ) -> Result<Option<TableBounds>, DumpError> {
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        let offset = epoch_offset(header, clocks);
        let start = || Some(i128::from(header?.created_mono_ns) + offset?);
        let time = |bound: Option<Bound>| match bound {
            None | Some(Bound::Seq(_)) => Ok(None),
            Some(Bound::Epoch(ns)) => Ok(Some(i128::from(ns))),
            Some(Bound::Since(since)) => match start() {
                Some(start) => Ok(Some(start + since.as_nanos() as i128)),
                None => Err(DumpError::NoStart),
            },
        };
        let seq = |bound: Option<Bound>| match bound {
            Some(Bound::Seq(seq)) => Some(seq),
            _ => None,
        };
        let seqs = (seq(from).unwrap_or(0), seq(to).unwrap_or(u64::MAX));
        let times = match (time(from)?, time(to)?) {
            (None, None) => None,
            (from, to) => Some((from.unwrap_or(i128::MIN), to.unwrap_or(i128::MAX))),
        };
        if let (Some(from), Some(to)) = (from, to)
            && (seqs.0 > seqs.1 || times.is_some_and(|(from, to)| from > to))
        {
            return Err(DumpError::EmptyWindow { from, to });
        }
        Ok(Some(TableBounds { seqs, times, offset }))
    }

    /// Whether the chunk with this head may contain a wanted frame.
    pub fn may_hold(&self, head: &FramesHead, plan: &TablePlan, clocks: &ClockTable) -> bool {
        let Some(source) = plan.sources.get(&head.source) else { return false };
        if !self.has_seqs(head.first_seq, head.next_seq()) {
            return false;
        }
        let drained = self.drained(head);
        if self.has_time(drained) != Some(false) {
            return true;
        }
        // These frames are selected by their own times, not by their drain.
        let Some(at) = source.frames.iter().find_map(|frame| frame.at) else {
            return false;
        };
        let stamps = Stamps::new(clocks, head.drained_mono_ns, source.namespace);
        match (at.bounds(head.t_min..=head.t_max, &stamps, clocks, self.offset), self.times) {
            (Some((least, greatest)), Some((from, to))) => least <= to && from <= greatest,
            _ => true, // unknown
        }
    }

    /// Whether a frame is wanted. `None` if that depends on its time, which is unknown.
    pub fn has_frame(
        &self,
        seq: u64,
        bytes: &[u8],
        at: Option<Time>,
        head: &FramesHead,
        stamps: &Stamps<'_>,
    ) -> Option<bool> {
        if seq < self.seqs.0 || seq > self.seqs.1 {
            return Some(false);
        }
        if self.times.is_none() {
            return Some(true);
        }
        let own = at.and_then(|at| at.epoch(at.word(bytes), stamps, self.offset));
        self.has_time(own.or_else(|| self.drained(head)))
    }

    fn has_seqs(&self, first: u64, next: u64) -> bool {
        first <= self.seqs.1 && self.seqs.0 < next
    }

    fn has_time(&self, time: Option<i128>) -> Option<bool> {
        let Some((from, to)) = self.times else { return Some(true) };
        Some((from..=to).contains(&time?))
    }

    fn drained(&self, head: &FramesHead) -> Option<i128> {
        self.epoch_of_drain(head.drained_mono_ns)
    }

    fn epoch_of_drain(&self, ns: u64) -> Option<i128> {
        if ns == 0 { None } else { Some(i128::from(ns) + self.offset?) }
    }
}

/// Realtime − monotonic, ns: from the clock readings, or else from the file header.
pub(crate) fn epoch_offset(header: Option<&FileHeader>, clocks: &ClockTable) -> Option<i128> {
    let by_header = header
        .map(|header| i128::from(header.created_realtime_ns) - i128::from(header.created_mono_ns));
    clocks.epoch_offset().or(by_header)
}

/// Selects gaps.
#[derive(Debug)]
pub(crate) struct GapWindow {
    window: Option<TableBounds>,
    /// CLOCK_MONOTONIC of the latest drain, ns; 0: none yet.
    latest: Cell<u64>,
}

impl GapWindow {
    /// For a window of a capture that began at `created` (CLOCK_MONOTONIC, ns; 0: unknown).
    pub fn new(window: Option<TableBounds>, created: u64) -> GapWindow {
        GapWindow { window, latest: Cell::new(created) }
    }

    /// Uses these bounds from here on.
    pub fn set(&mut self, window: Option<TableBounds>) {
        self.window = window;
    }

    /// Whether a chunk of frames may state a wanted gap. Called for each of them, in order.
    pub fn may_hold(&self, head: &FramesHead) -> bool {
        if head.drained_mono_ns != 0 {
            self.latest.set(head.drained_mono_ns);
        }
        let Some(window) = &self.window else { return true };
        let first = head.first_seq.saturating_sub(head.lost_before.total());
        window.has_seqs(first, head.next_seq())
            && window.has_time(window.epoch_of_drain(self.latest.get())) != Some(false)
    }

    /// Whether a gap is wanted. `None` if its time is unknown because of damage.
    pub fn has(&self, gap: &Gap, is_hole: bool) -> Option<bool> {
        let Some(window) = &self.window else { return Some(true) };
        if !window.has_seqs(gap.first_seq, gap.next_seq()) {
            return Some(false);
        }
        let noticed = if is_hole { 0 } else { self.latest.get() };
        window.has_time(window.epoch_of_drain(noticed))
    }
}
