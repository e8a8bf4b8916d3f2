//! When the frames of a gap were written.
//!
//! A gap lies between the chunks beside it in its ring: after the latest time of the one before, and before the
//! earliest of the next. Where heads do not have these, the times count at which the listener had them, as near
//! as that is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ppt_capture::columns::Time;
use ppt_capture::{Cause, Gap, Stamps};

use crate::catalog::{Catalog, ChunkAt, GapAt};

/// A ring of a capture.
type GapRing = (u16, u64, u32);

/// The chunks of each ring by their first number.
pub(crate) struct Neighbours<'a> {
    catalog: &'a Catalog,
    rings: HashMap<GapRing, BTreeMap<u64, &'a ChunkAt>>,
    /// By source: what times are read by.
    at: HashMap<u16, SourceTimes>,
    /// When the listener looked and found frames, CLOCK_MONOTONIC.
    looks: BTreeSet<u64>,
}

/// The times of a source.
#[derive(Debug, Clone, Copy)]
struct SourceTimes {
    time: Option<Time>,
    /// ppt takes all of them itself, as frames begin: those of a thread are in the order of its frames.
    own: bool,
}

impl<'a> Neighbours<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        // Only rings that have gaps are asked for.
        let mut rings: HashMap<GapRing, BTreeMap<u64, &ChunkAt>> = HashMap::new();
        for GapAt { gap, .. } in &catalog.gaps {
            rings.entry((gap.source, gap.nonce, gap.ring)).or_default();
        }
        for chunk in catalog.left_out.iter().chain(&catalog.chunks) {
            let owner = &catalog.owners[chunk.owner as usize];
            if let Some(ring) = rings.get_mut(&(owner.source, owner.nonce, owner.ring)) {
                ring.insert(chunk.first_seq, chunk);
            }
        }
        let at = catalog.sources.iter().map(|info| {
            let fields = || info.schema.frames.iter().filter_map(|frame| frame.at());
            let own = fields().all(|field| field.is_own_stamp());
            (info.id, SourceTimes { time: fields().filter_map(Time::from_field).next(), own })
        });
        let chunks = catalog.left_out.iter().chain(&catalog.chunks);
        let looks = chunks.map(|chunk| chunk.drained).filter(|&number| number != 0);
        Neighbours { catalog, rings, at: at.collect(), looks: looks.collect() }
    }

    fn beside(&self, gap: &Gap) -> (Option<&'a ChunkAt>, Option<&'a ChunkAt>) {
        let Some(ring) = self.rings.get(&(gap.source, gap.nonce, gap.ring)) else {
            return (None, None);
        };
        let before = ring.range(..gap.first_seq).next_back();
        let after = ring.range(gap.next_seq()..).next();
        (before.map(|before| *before.1), after.map(|after| *after.1))
    }

    /// The chunk that should have held what is missing.
    fn within(&self, gap: &Gap) -> Option<&'a ChunkAt> {
        let ring = self.rings.get(&(gap.source, gap.nonce, gap.ring))?;
        let (_, chunk) = ring.range(..=gap.first_seq).next_back()?;
        (chunk.first_seq + u64::from(chunk.count) > gap.first_seq).then_some(*chunk)
    }

    /// Whose frames are missing: known where the chunks on both sides agree.
    pub fn tid(&self, gap: &Gap) -> Option<u32> {
        let tid = |chunk: &ChunkAt| self.catalog.owners[chunk.owner as usize].tid;
        let (before, after) = self.beside(gap);
        let tid = match (before.map(tid), after.map(tid)) {
            (Some(before), Some(after)) => (before == after).then_some(before),
            (one, None) | (None, one) => one,
        };
        tid.filter(|&tid| tid != 0)
    }

    pub fn times(&self, at: &GapAt) -> (Option<i64>, Option<i64>) {
        let (before, after) = self.beside(&at.gap);
        let epoch = |mono| self.catalog.epoch(mono);
        let lo = match before {
            Some(chunk) => self.bounds(chunk).map(|bounds| bounds.1).or(epoch(chunk.drained)),
            None => {
                let created =
                    self.catalog.header.as_ref().map_or(0, |header| header.created_mono_ns);
                epoch(at.since.map_or(created, |since| since.near))
            }
        };
        // Frames that do not carry their number: their chunk is there.
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
            // Times of a thread need not rise with its numbers.
            (Some(lo), Some(hi)) if lo > hi => (Some(hi), Some(lo)),
            times => times,
        }
    }

    /// Between which times a missing frame was begun, whatever the program says in its own times; None:
    /// unknown. Never too narrow: where heads do not have times, a frame was written after the last look at its
    /// ring that did not find the frame before, and before the look after the one that found the next frame.
    pub fn bounds_of_missing(&self, at: &GapAt) -> (Option<i64>, Option<i64>) {
        let gap = &at.gap;
        let (before, after) = self.beside(gap);
        let is_own = self.at.get(&gap.source).is_some_and(|at| at.own);
        let told = |chunk| self.bounds(chunk).filter(|_| is_own);
        let created = self.catalog.header.as_ref().map_or(0, |header| header.created_mono_ns);
        let within = self.within(gap);
        let lo = match (within, before) {
            // What a chunk says of the frames that are there says nothing of the others.
            (Some(chunk), _) | (None, Some(chunk)) if within.is_some() || told(chunk).is_none() => {
                self.catalog.epoch(self.look_before(chunk, created))
            }
            (_, Some(chunk)) => told(chunk).map(|entry| entry.1),
            // Frames that nobody attended may be older than the capture.
            (_, None) if gap.cause == Cause::Unattended => None,
            (_, None) => self.catalog.epoch(at.since.map_or(created, |since| since.bound)),
        };
        let hi = match (within, after) {
            (Some(chunk), _) => self.look_after(chunk.drained),
            (None, Some(chunk)) => match told(chunk) {
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

    /// The last look at the ring of a chunk that found none of its frames.
    fn look_before(&self, chunk: &ChunkAt, created: u64) -> u64 {
        let owner = &self.catalog.owners[chunk.owner as usize];
        let ring = self.rings.get(&(owner.source, owner.nonce, owner.ring));
        let before = ring.into_iter().flat_map(|ring| ring.range(..chunk.first_seq).rev());
        let mut looks = before.map(|entry| entry.1.drained).filter(|&number| number != 0);
        looks.find(|&look| look < chunk.drained).unwrap_or(created)
    }

    /// The first look after the one at `drained`.
    fn look_after(&self, drained: u64) -> Option<i64> {
        let later = self.looks.range(drained.checked_add(1)?..).next().copied();
        let end = || self.catalog.end.as_ref().map(|end| end.mono_ns);
        self.catalog.epoch(later.filter(|_| drained != 0).or_else(end)?)
    }

    fn end(&self) -> Option<i64> {
        let end = self.catalog.end.as_ref().map(|end| end.mono_ns);
        self.catalog.epoch(end.unwrap_or_else(|| self.catalog.last_drain()))
    }

    /// Between which times the frames of a chunk are.
    pub fn bounds(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        let owner = &self.catalog.owners[chunk.owner as usize];
        let at = self.at.get(&owner.source)?.time?;
        let info = self.catalog.sources.iter().find(|info| info.id == owner.source)?;
        let namespace = info.source.process.time_namespace();
        let stamps = Stamps::new(&self.catalog.clocks, chunk.drained, namespace);
        let (clocks, offset) = (&self.catalog.clocks, self.catalog.offset());
        let (lo, hi) = at.bounds(chunk.t_min..=chunk.t_max, &stamps, clocks, offset)?;
        Some((i64::try_from(lo).ok()?, i64::try_from(hi).ok()?))
    }
}
