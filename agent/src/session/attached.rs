//! An attached buffer and its stage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ppt_segment::abi::Claim;
use ppt_segment::handle::SegmentKind;
use ppt_segment::{Masks, RefusedFrames, Segment};

use super::options::{Allow, SegmentChoice};
use super::wanted::Flip;
use crate::allowance::{RingBound, RingPromise};
use crate::buffer::Buffer;
use crate::claim::Holder;
use crate::clock::StampClock;
use crate::control::TargetCounters;
use crate::plan::GeometryPlan;
use crate::target::Target;

/// More frames per nanosecond than all threads of a target together can refuse.
const REFUSED_PER_NS: u64 = 1 << 12;

/// The target, and the right to write into it.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) target: &'a Target,
    pub(super) claim: Claim,
    pub(super) allow: Allow,
}

/// One attached buffer.
#[derive(Debug)]
pub struct AttachedBuffer {
    /// The buffer.
    pub buffer: Buffer,
    /// The segment. If the target makes it, it is empty until ppt has fetched it.
    pub segment: Arc<Segment>,
    /// The kind of its segment.
    pub kind: SegmentKind,
    pub(super) wanted: SegmentChoice,
    /// The chosen geometry.
    pub plan: GeometryPlan,
    /// What bounded the memory of its rings.
    pub bound: RingBound,
    pub(super) promise: RingPromise,
    /// Whether the segment comes from an earlier session.
    pub adopted: bool,
    /// The dead agent whose claim was taken over.
    pub took_over: Option<Holder>,
    /// The clock that stamps of `option time tsc` count. `None` if the buffer has none.
    pub clock: Option<StampClock>,
    /// Cursor of each ring at the start of the session.
    pub first: Vec<u64>,
    /// Frames in its segment that were written after the last session and before this one.
    pub unattended: Vec<Unattended>,
    /// The cells of its segment at the start of the session.
    pub cells: FoundCells,
    /// Adds and observations of this session that were lost because the segment could not be
    /// mapped, as last read.
    pub adds_not_mapped: u64,
    /// Other segments that hold unattended frames.
    pub leftovers: Vec<Leftover>,
    /// The frames that the target has refused in this session, as last read.
    pub dropped: Dropped,
    /// The masks of this session: the disabled frames, counters and histograms.
    pub(super) masks: Masks,
    /// Flips that no caller has taken yet.
    pub(super) flips: Vec<Flip>,
    /// The masks in the control page since before a gate named the segment, if the target makes the
    /// segment.
    pub(super) asked: Option<RequestedMasks>,
    /// The state of its rings when the claim was last known to be ours.
    pub(super) noted: Noted,
    pub(super) gate: u64,
    pub(super) follow: Option<u64>,
    /// The numbers of refused frames in the target and in the segment at the start of the session.
    pub(super) base: (TargetCounters, RefusedFrames),
    /// The time of that count.
    pub(super) since: Instant,
    /// The counters of the target, as last accepted.
    pub(super) counted: TargetCounters,
    /// Whether these counters are no longer accepted.
    pub(super) miscounts: bool,
    pub(super) former: Vec<Former>,
    pub(super) stage: Stage,
    /// Whether the segment was offered a second time, because the target could not map it.
    pub(super) retried: bool,
    /// Whether the rings can no longer grow.
    pub(super) cannot_grow: bool,
    /// Whether the end of the buffer has been reported.
    pub(super) is_end_reported: bool,
}

/// The masks in the control page, unchanged since before a gate named the segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedMasks {
    /// CLOCK_MONOTONIC in ns, before that gate.
    pub(super) mono_ns: u64,
    /// The disabled frames, counters and histograms.
    pub(super) masks: Masks,
}

/// The state of rings before a check of the claim.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    /// CLOCK_MONOTONIC in ns.
    pub(super) mono_ns: u64,
    /// By nonce of their segment. Empty if nothing was disabled.
    pub(super) rings: Vec<(u64, Firsts)>,
}

/// The cursors of claimed rings, in the order of the rings.
pub(super) type Firsts = Vec<(u32, u64)>;

/// The stage of an attached buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The target is to make the segment, which is not fetched yet.
    Awaiting,
    /// The segment exists; the target maps it at its next frame, if it has not yet.
    Ready,
    /// The buffer can no longer be captured.
    Failed,
    /// The session has ended for the buffer.
    Ended {
        /// Why.
        end: BufferEnd,
        /// Whether the segment was never fetched.
        awaiting: bool,
    },
}

/// Why a session has ended for a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferEnd {
    /// The process ended.
    Exited,
    /// The process started another program (exec).
    Exec,
    /// The library that held the buffer was unloaded.
    Unloaded,
    /// Another process switched it off: `ppt detach`.
    SwitchedOff,
    /// Another ppt took it over.
    TakenOver,
}

/// Number of frames that the target refused in this session, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// No ring was free.
    pub no_ring: u64,
    /// Written while another frame of the same thread was being written.
    pub nested: u64,
    /// The segment could not be mapped.
    pub not_mapped: u64,
}

/// Frames of a ring that were written between sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unattended {
    /// The ring.
    pub ring: u32,
    /// Sequence number of the first one.
    pub first: u64,
    /// The number of frames.
    pub count: u64,
}

/// The cells at the start of a session, by row. Missing rows were 0.
pub type FoundCells = BTreeMap<u32, Box<[u64]>>;

/// A segment of earlier sessions with frames that no session accounted for.
#[derive(Debug)]
pub struct Leftover {
    /// The segment.
    pub segment: Arc<Segment>,
    /// The frames.
    pub unattended: Vec<Unattended>,
}

/// A segment that this session used earlier.
#[derive(Debug)]
pub(super) struct Former {
    pub(super) segment: Arc<Segment>,
    /// The refused frames that it had counted when the session started to use it.
    pub(super) base: RefusedFrames,
    pub(super) kind: SegmentKind,
    pub(super) plan: GeometryPlan,
    /// Whether the memory has been given back.
    pub(super) given_back: bool,
    /// Whether no thread owns one of its rings any more.
    pub(super) vacated: bool,
}

impl AttachedBuffer {
    /// Why the session has ended for this buffer, if it has.
    pub fn end(&self) -> Option<BufferEnd> {
        match self.stage {
            Stage::Ended { end, .. } => Some(end),
            _ => None,
        }
    }

    /// Whether the target has not made its segment yet, or ppt has not fetched it.
    pub fn is_awaiting(&self) -> bool {
        self.stage == Stage::Awaiting
    }

    /// Whether a thread has claimed a ring, which it does after the first system calls. Threads
    /// take the lowest free ring.
    pub(super) fn has_begun(&self) -> bool {
        self.adopted || !self.former.is_empty() || self.segment.ring(0).owner().epoch > 0
    }

    /// Whether the target ended before ppt could fetch the segment that it made.
    pub fn was_never_fetched(&self) -> bool {
        let gone = [BufferEnd::Exited, BufferEnd::Exec];
        matches!(self.stage, Stage::Ended { end, awaiting: true } if gone.contains(&end))
    }

    /// Whether the state of its rings is unknown, because their segment was not fetched.
    pub(super) fn is_unseen(&self) -> bool {
        matches!(self.stage, Stage::Awaiting | Stage::Ended { awaiting: true, .. })
    }

    /// The masks of this session: the disabled frames, counters and histograms.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// The segments that this session used earlier. They may still be drained.
    pub fn former(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.former.iter().map(|former| &former.segment)
    }

    /// Records that its part of the session is over.
    pub(super) fn ends(&mut self, end: BufferEnd) {
        let awaiting = self.is_awaiting();
        self.stage = Stage::Ended { end, awaiting };
    }

    /// Gives back the memory of all its segments.
    pub(super) fn give_back(&self) {
        let leftovers = self.leftovers.iter().map(|leftover| &leftover.segment);
        for segment in leftovers.chain(self.former()) {
            let _ = segment.give_back();
        }
        let _ = if self.adopted || !self.former.is_empty() {
            self.segment.give_back()
        } else {
            self.segment.give_back_new(self.plan.populate)
        };
    }

    /// How far this session has stated a ring of its segment before it started to use that segment:
    /// rings may grow into a segment of earlier sessions.
    pub(super) fn stated(&self, ring: u32) -> u64 {
        let nonce = self.segment.nonce();
        let leftovers = self.leftovers.iter().filter(|leftover| leftover.segment.nonce() == nonce);
        let of_ring = leftovers
            .flat_map(|leftover| &leftover.unattended)
            .filter(|unattended| unattended.ring == ring);
        of_ring.map(|unattended| unattended.first - 1 + unattended.count).max().unwrap_or(0)
    }

    /// The frames refused in this session, if the target's own counters are `now`.
    pub(super) fn dropped_by(&self, now: TargetCounters) -> Dropped {
        let (base, refused_base) = self.base;
        let rise = |now: u64, base: u64| now.saturating_sub(base);
        let mut dropped = Dropped {
            no_ring: rise(now.no_ring, base.no_ring),
            nested: rise(now.nested, base.nested),
            not_mapped: rise(now.not_mapped, base.not_mapped),
        };
        let former = self.former.iter().map(|former| (&former.segment, former.base));
        for (segment, base) in former.chain([(&self.segment, refused_base)]) {
            let refused = segment.refused();
            let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
            add(&mut dropped.no_ring, rise(refused.no_ring, base.no_ring));
            add(&mut dropped.nested, rise(refused.nested, base.nested));
        }
        dropped
    }

    /// Counts the frames refused in this session, if the counters are plausible: the target's
    /// counters never decrease, and rise no faster than frames can be written. Returns false from
    /// the first implausible value on.
    pub(super) fn count(&mut self, now: TargetCounters) -> bool {
        let dropped = self.dropped_by(now);
        let possible = (self.since.elapsed().as_nanos() as u64).saturating_mul(REFUSED_PER_NS);
        let last = self.counted;
        let falls = now.no_ring < last.no_ring
            || now.nested < last.nested
            || now.not_mapped < last.not_mapped
            || now.adds_not_mapped < last.adds_not_mapped;
        let sum = dropped.no_ring.saturating_add(dropped.nested).saturating_add(dropped.not_mapped);
        let adds = now.adds_not_mapped.saturating_sub(self.base.0.adds_not_mapped);
        if self.miscounts || falls || sum > possible || adds > possible {
            return false;
        }
        (self.counted, self.dropped, self.adds_not_mapped) = (now, dropped, adds);
        true
    }
}
