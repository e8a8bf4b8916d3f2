//! `gaps`: runs of sequence numbers that are missing, with their cause and when that was.
//!
//! A gap lies between the chunks beside it in its ring: after the latest time of the one before, and
//! before the earliest of the one behind. Where heads do not tell these, the times count at which the
//! listener had them, as near as that is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ppt_capture::columns::Time;
use ppt_capture::{Gap, Stamps};

use super::named::Named;
use crate::catalog::{Catalog, ChunkAt, GapAt};
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, Kind, Small, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
    let schema = schema([
        ("capture", Kind::Word),
        ("buffer", Kind::Word),
        ("segment", Kind::Word),
        ("ring", Kind::Int),
        ("host", Kind::Word),
        ("pid", Kind::Int),
        ("tid", Kind::Int),
        ("first_seq", Kind::Long),
        ("count", Kind::Long),
        ("cause", Kind::Word),
        ("ts_lo", Kind::Time),
        ("ts_hi", Kind::Time),
    ]);
    Ok(vec![Named::fixed("gaps", Small { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.verified()?;
        let neighbours = Neighbours::of(catalog);
        let sources: HashMap<u16, _> = catalog.sources.iter().map(|it| (it.id, it)).collect();
        for at in &catalog.gaps {
            let gap = &at.gap;
            let Some(info) = sources.get(&gap.source) else { continue };
            let (lo, hi) = neighbours.times(at);
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::word(&info.source.buffer),
                Cell::word(&format!("{:016x}", gap.nonce)),
                Cell::int(gap.ring),
                Cell::word(catalog.host()),
                Cell::int(info.source.process.pid),
                neighbours.tid(gap).map_or(Cell::Null, Cell::int),
                Cell::count(gap.first_seq),
                Cell::count(gap.count),
                Cell::word(gap.cause.name()),
                Cell::Time(lo),
                Cell::Time(hi),
            ]);
        }
    }
    Ok(rows)
}

/// A ring of a capture.
type Ring = (u16, u64, u32);

/// The chunks of each ring by their first number.
struct Neighbours<'a> {
    catalog: &'a Catalog,
    rings: HashMap<Ring, BTreeMap<u64, &'a ChunkAt>>,
    /// By source: what times are read by.
    at: HashMap<u16, Option<Time>>,
}

impl<'a> Neighbours<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        // Only rings that have gaps are asked for.
        let mut rings: HashMap<Ring, BTreeMap<u64, &ChunkAt>> = HashMap::new();
        for GapAt { gap, .. } in &catalog.gaps {
            rings.entry((gap.source, gap.nonce, gap.ring)).or_default();
        }
        for chunk in &catalog.chunks {
            let owner = &catalog.owners[chunk.owner as usize];
            if let Some(ring) = rings.get_mut(&(owner.source, owner.nonce, owner.ring)) {
                ring.insert(chunk.first_seq, chunk);
            }
        }
        let at = catalog.sources.iter().map(|info| {
            let times = info.schema.frames.iter().filter_map(|frame| frame.at());
            (info.id, times.filter_map(Time::of).next())
        });
        Neighbours { catalog, rings, at: at.collect() }
    }

    fn beside(&self, gap: &Gap) -> (Option<&'a ChunkAt>, Option<&'a ChunkAt>) {
        let Some(ring) = self.rings.get(&(gap.source, gap.nonce, gap.ring)) else {
            return (None, None);
        };
        let before = ring.range(..gap.first_seq).next_back();
        let after = ring.range(gap.next_seq()..).next();
        (before.map(|it| *it.1), after.map(|it| *it.1))
    }

    /// The chunk that should have held what is missing.
    fn within(&self, gap: &Gap) -> Option<&'a ChunkAt> {
        let ring = self.rings.get(&(gap.source, gap.nonce, gap.ring))?;
        let (_, chunk) = ring.range(..=gap.first_seq).next_back()?;
        (chunk.first_seq + u64::from(chunk.count) > gap.first_seq).then_some(*chunk)
    }

    /// Whose frames are missing: known where the chunks on both sides agree.
    fn tid(&self, gap: &Gap) -> Option<u32> {
        let tid = |chunk: &ChunkAt| self.catalog.owners[chunk.owner as usize].tid;
        let (before, after) = self.beside(gap);
        let tid = match (before.map(tid), after.map(tid)) {
            (Some(before), Some(after)) => (before == after).then_some(before),
            (one, None) | (None, one) => one,
        };
        tid.filter(|&tid| tid != 0)
    }

    fn times(&self, at: &GapAt) -> (Option<i64>, Option<i64>) {
        let (before, after) = self.beside(&at.gap);
        let epoch = |mono| self.catalog.epoch(mono);
        let lo = match before {
            Some(chunk) => self.bounds(chunk).map(|it| it.1).or(epoch(chunk.drained)),
            None => epoch(self.catalog.header.as_ref().map_or(0, |it| it.created_mono_ns)),
        };
        // Frames that do not carry their number: their chunk is there.
        let within = self.within(&at.gap);
        let lo = match within {
            Some(chunk) => self.bounds(chunk).map(|it| it.0).or(lo),
            None => lo,
        };
        let hi = match (within, after) {
            (Some(chunk), _) => self.bounds(chunk).map(|it| it.1).or(epoch(chunk.drained)),
            (None, Some(chunk)) => self.bounds(chunk).map(|it| it.0).or(epoch(chunk.drained)),
            (None, None) => epoch(at.noticed).or_else(|| self.end()),
        };
        match (lo, hi) {
            // Times of a thread need not rise with its numbers.
            (Some(lo), Some(hi)) if lo > hi => (Some(hi), Some(lo)),
            times => times,
        }
    }

    fn end(&self) -> Option<i64> {
        let end = self.catalog.end.as_ref().map(|end| end.mono_ns);
        self.catalog.epoch(end.unwrap_or_else(|| self.catalog.last_drain()))
    }

    /// Between which times the frames of a chunk are.
    fn bounds(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        let owner = &self.catalog.owners[chunk.owner as usize];
        let at = self.at.get(&owner.source).copied().flatten()?;
        let info = self.catalog.sources.iter().find(|info| info.id == owner.source)?;
        let namespace = info.source.process.time_namespace();
        let stamps = Stamps::new(&self.catalog.clocks, chunk.drained, namespace);
        let (clocks, offset) = (&self.catalog.clocks, self.catalog.offset());
        let (lo, hi) = at.bounds(chunk.t_min..=chunk.t_max, &stamps, clocks, offset)?;
        Some((i64::try_from(lo).ok()?, i64::try_from(hi).ok()?))
    }
}
