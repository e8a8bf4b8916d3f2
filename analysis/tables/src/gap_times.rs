//! Bounds of the times at which the frames of a gap were written.
//!
//! A gap lies between two chunks of its ring: after the latest time of the previous chunk, and before the
//! earliest time of the next. If their heads have no times, times of draining are used instead.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ppt_capture::columns::Time;
use ppt_capture::{Cause, Gap, Stamps};

use crate::catalog::{Catalog, ChunkAt, ChunkOwner, GapAt};

/// A ring of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct GapRing {
    source: u16,
    nonce: u64,
    ring: u32,
}

impl GapRing {
    fn of_gap(gap: &Gap) -> GapRing {
        GapRing { source: gap.source, nonce: gap.nonce, ring: gap.ring }
    }

    fn of_owner(owner: &ChunkOwner) -> GapRing {
        GapRing { source: owner.source, nonce: owner.nonce, ring: owner.ring }
    }
}

/// The chunks of each ring that has gaps, by the number of their first frame.
pub(crate) struct Neighbours<'a> {
    catalog: &'a Catalog,
    rings: HashMap<GapRing, BTreeMap<u64, &'a ChunkAt>>,
    /// By source.
    times: HashMap<u16, SourceTimes>,
    /// Times of drains that found frames, CLOCK_MONOTONIC ns.
    looks: BTreeSet<u64>,
}

/// The times of a source.
#[derive(Debug, Clone, Copy)]
struct SourceTimes {
    time: Option<Time>,
    /// ppt takes all times when frames begin, so the times of a thread are in the order of its frames.
    is_taken_by_ppt: bool,
}

impl<'a> Neighbours<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        let mut rings: HashMap<GapRing, BTreeMap<u64, &ChunkAt>> = HashMap::new();
        for GapAt { gap, .. } in &catalog.gaps {
            rings.entry(GapRing::of_gap(gap)).or_default();
        }
        for chunk in catalog.left_out.iter().chain(&catalog.chunks) {
            let owner = &catalog.owners[chunk.owner as usize];
            if let Some(ring) = rings.get_mut(&GapRing::of_owner(owner)) {
                ring.insert(chunk.first_seq, chunk);
            }
        }
        let times = catalog.sources.iter().map(|info| {
            let fields = || info.schema.frames.iter().filter_map(|frame| frame.at());
            let is_taken_by_ppt = fields().all(|field| field.is_own_stamp());
            let time = fields().filter_map(Time::from_field).next();
            (info.id, SourceTimes { time, is_taken_by_ppt })
        });
        let chunks = catalog.left_out.iter().chain(&catalog.chunks);
        let looks = chunks.map(|chunk| chunk.drained).filter(|&number| number != 0);
        Neighbours { catalog, rings, times: times.collect(), looks: looks.collect() }
    }

    /// The chunks before and after a gap in its ring.
    fn around(&self, gap: &Gap) -> (Option<&'a ChunkAt>, Option<&'a ChunkAt>) {
        let Some(ring) = self.rings.get(&GapRing::of_gap(gap)) else {
            return (None, None);
        };
        let before = ring.range(..gap.first_seq).next_back();
        let after = ring.range(gap.next_seq()..).next();
        (before.map(|before| *before.1), after.map(|after| *after.1))
    }

    /// The chunk whose range of numbers includes the gap: its frames are damaged.
    fn within(&self, gap: &Gap) -> Option<&'a ChunkAt> {
        let ring = self.rings.get(&GapRing::of_gap(gap))?;
        let (_, chunk) = ring.range(..=gap.first_seq).next_back()?;
        (chunk.first_seq + u64::from(chunk.count) > gap.first_seq).then_some(*chunk)
    }

    /// The thread of the missing frames; known if the chunks on both sides agree.
    pub fn tid(&self, gap: &Gap) -> Option<u32> {
        let tid = |chunk: &ChunkAt| self.catalog.owners[chunk.owner as usize].tid;
        let (before, after) = self.around(gap);
        let tid = match (before.map(tid), after.map(tid)) {
            (Some(before), Some(after)) => (before == after).then_some(before),
            (one, None) | (None, one) => one,
        };
        tid.filter(|&tid| tid != 0)
    }

    /// The likely bounds of the times of a gap's frames, ns since the epoch.
    pub fn times(&self, at: &GapAt) -> (Option<i64>, Option<i64>) {
        let (before, after) = self.around(&at.gap);
        let epoch = |mono| self.catalog.epoch(mono);
        let lo = match before {
            Some(chunk) => self.bounds(chunk).map(|bounds| bounds.1).or(epoch(chunk.drained)),
            None => {
                let created =
                    self.catalog.header.as_ref().map_or(0, |header| header.created_mono_ns);
                epoch(at.since.map_or(created, |since| since.near))
            }
        };
        // Frames that do not carry their number: their chunk exists.
        let within = self.within(&at.gap);
        let lo = match within {
            Some(chunk) => self.bounds(chunk).map(|bounds| bounds.0).or(lo),
            None => lo,
        };
        let hi = match (within, after) {
            (Some(chunk), _) => self.bounds(chunk).map(|bounds| bounds.1).or(epoch(chunk.drained)),
            (None, Some(chunk)) => {
                self.bounds(chunk).map(|bounds| bounds.0).or(epoch(chunk.drained))
            }
            (None, None) => epoch(at.noticed).or_else(|| self.end()),
        };
        match (lo, hi) {
            // Times need not be in the order of sequence numbers.
            (Some(lo), Some(hi)) if lo > hi => (Some(hi), Some(lo)),
            times => times,
        }
    }

    /// Bounds of the times at which missing frames were begun, ns since the epoch; None if unknown.
    ///
    /// The bounds are never too narrow. Times that the program states are ignored. If heads have no
    /// times, a frame was written after the last drain that did not find the previous frame, and before
    /// the first drain after the one that found the next frame.
    pub fn bounds_of_missing(&self, at: &GapAt) -> (Option<i64>, Option<i64>) {
        let gap = &at.gap;
        let (before, after) = self.around(gap);
        let times = self.times.get(&gap.source);
        let is_taken_by_ppt = times.is_some_and(|times| times.is_taken_by_ppt);
        let head_times = |chunk| self.bounds(chunk).filter(|_| is_taken_by_ppt);
        let created = self.catalog.header.as_ref().map_or(0, |header| header.created_mono_ns);
        let within = self.within(gap);
        let lo = match (within, before) {
            // The head of a chunk does not bound its damaged frames.
            (Some(chunk), _) | (None, Some(chunk))
                if within.is_some() || head_times(chunk).is_none() =>
            {
                self.catalog.epoch(self.look_before(chunk, created))
            }
            (_, Some(chunk)) => head_times(chunk).map(|times| times.1),
            // Unattended frames may be older than the capture.
            (_, None) if gap.cause == Cause::Unattended => None,
            (_, None) => self.catalog.epoch(at.since.map_or(created, |since| since.bound)),
        };
        let hi = match (within, after) {
            (Some(chunk), _) => self.look_after(chunk.drained),
            (None, Some(chunk)) => match head_times(chunk) {
                Some(times) => Some(times.0),
                None => self.look_after(chunk.drained),
            },
            (None, None) => {
                self.catalog.end.as_ref().and_then(|end| self.catalog.epoch(end.mono_ns))
            }
        };
        match (lo, hi) {
            (Some(lo), Some(hi)) if lo > hi => (Some(hi), Some(lo)),
            times => times,
        }
    }

    /// The last drain of a chunk's ring that found none of the chunk's frames.
    fn look_before(&self, chunk: &ChunkAt, created: u64) -> u64 {
        let owner = &self.catalog.owners[chunk.owner as usize];
        let ring = self.rings.get(&GapRing::of_owner(owner));
        let before = ring.into_iter().flat_map(|ring| ring.range(..chunk.first_seq).rev());
        let mut looks = before.map(|entry| entry.1.drained).filter(|&number| number != 0);
        looks.find(|&look| look < chunk.drained).unwrap_or(created)
    }

    /// The first drain after `drained`, ns since the epoch.
    fn look_after(&self, drained: u64) -> Option<i64> {
        let later = self.looks.range(drained.checked_add(1)?..).next().copied();
        let end = || self.catalog.end.as_ref().map(|end| end.mono_ns);
        self.catalog.epoch(later.filter(|_| drained != 0).or_else(end)?)
    }

    fn end(&self) -> Option<i64> {
        let end = self.catalog.end.as_ref().map(|end| end.mono_ns);
        self.catalog.epoch(end.unwrap_or_else(|| self.catalog.last_drain()))
    }

    /// Bounds of the times of a chunk's frames, ns since the epoch.
    pub fn bounds(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        let owner = &self.catalog.owners[chunk.owner as usize];
        let at = self.times.get(&owner.source)?.time?;
        let info = self.catalog.sources.iter().find(|info| info.id == owner.source)?;
        let namespace = info.source.process.time_namespace();
        let stamps = Stamps::new(&self.catalog.clocks, chunk.drained, namespace);
        let (clocks, offset) = (&self.catalog.clocks, self.catalog.offset());
        let (lo, hi) = at.bounds(chunk.t_min..=chunk.t_max, &stamps, clocks, offset)?;
        Some((i64::try_from(lo).ok()?, i64::try_from(hi).ok()?))
    }
}
