//! Blocks as bytes. What is read may be anything: it is checked, and takes no more memory than its bytes.

use crate::block::{BlockKey, BlockRow, ClockMark, IndexBlock, LEAF, Leaf};
use crate::cell::BUCKETS;
use crate::reach::{Extent, Reach};
use crate::slice::Slice;

/// Bytes of a slice, and of a leaf.
const SLICE: usize = 22;
const LEAF_LEN: usize = 48;

/// Appends a block to `bytes`.
pub(crate) fn write(block: &IndexBlock, bytes: &mut Vec<u8>) {
    for word in [block.clocks.base, block.clocks.all, block.inner] {
        bytes.extend(word.to_le_bytes());
    }
    match &block.reach {
        None => bytes.push(0),
        Some(reach) => {
            bytes.push(1);
            let Extent { start, end } = reach.extent;
            [start.0, start.1, end.0, end.1]
                .iter()
                .for_each(|number| bytes.extend(number.to_le_bytes()));
            for slices in [&reach.early, &reach.late] {
                bytes.extend((slices.len() as u32).to_le_bytes());
                for slice in slices {
                    bytes.extend(slice.start.to_le_bytes());
                    bytes.extend(slice.len.to_le_bytes());
                    bytes.extend(slice.frame.to_le_bytes());
                    bytes.extend(slice.kind.to_le_bytes());
                }
            }
        }
    }
    bytes.extend((block.rows.len() as u32).to_le_bytes());
    for row in &block.rows {
        let (is_moments, number) = match row.key {
            BlockKey::Depth(depth) => (0, depth),
            BlockKey::Moments(kind) => (1, kind.into()),
        };
        bytes.push(is_moments);
        bytes.extend(number.to_le_bytes());
        bytes.push(row.lengths.len() as u8);
        for (bucket, count) in &row.lengths {
            bytes.push(*bucket);
            bytes.extend(count.to_le_bytes());
        }
        bytes.extend((row.leaves.len() as u32).to_le_bytes());
        for leaf in &row.leaves {
            bytes.extend(leaf.from.to_le_bytes());
            bytes.extend(leaf.to.to_le_bytes());
            bytes.extend(leaf.busy.to_le_bytes());
            bytes.extend(leaf.longest.to_le_bytes());
            bytes.extend(leaf.count.to_le_bytes());
            bytes.extend(leaf.best.to_le_bytes());
            for short in [leaf.best_kind, leaf.kind, leaf.share, leaf.flags] {
                bytes.extend(short.to_le_bytes());
            }
        }
    }
}

/// The block that `bytes` are, of a chunk with `frames` frames and `kinds` kinds of slices; None: they are
/// none.
pub(crate) fn read(bytes: &[u8], frames: u32, kinds: usize) -> Option<IndexBlock> {
    let mut from = UnreadBytes(bytes);
    let clocks = ClockMark { base: from.word()?, all: from.word()? };
    let inner = from.word()?;
    let limits = RecordLimits { frames, kinds };
    let reach = match from.take::<1>()? {
        [0] => None,
        [1] => Some(limits.reach(&mut from)?),
        _ => return None,
    };
    let mut rows = Vec::new();
    let mut counts = [0u64; 2];
    for _ in 0..from.count()? {
        let row = limits.row(&mut from)?;
        if rows.last().is_some_and(|last: &BlockRow| last.key >= row.key) {
            return None;
        }
        let is_moments = usize::from(matches!(row.key, BlockKey::Moments(_)));
        counts[is_moments] += row.leaves.iter().map(|leave| u64::from(leave.count)).sum::<u64>();
        rows.push(row);
    }
    // A frame has as many slices as it has intervals, at most.
    let most = u64::from(frames).checked_mul(kinds as u64)?;
    let fits = counts[0] <= most && counts[1] <= u64::from(frames);
    let agrees = reach.is_some() == (counts[0] > 0);
    (from.0.is_empty() && fits && agrees).then_some(IndexBlock { reach, clocks, inner, rows })
}

struct RecordLimits {
    frames: u32,
    kinds: usize,
}

impl RecordLimits {
    fn has(&self, frame: u32, kind: u16) -> bool {
        frame < self.frames && usize::from(kind) < self.kinds
    }

    fn reach(&self, from: &mut UnreadBytes<'_>) -> Option<Reach> {
        let mut time = || Some(from.word()? as i64);
        let extent = Extent { start: (time()?, time()?), end: (time()?, time()?) };
        let (early, late) = (self.slices(from)?, self.slices(from)?);
        let is_right = extent.start.0 <= extent.start.1 && extent.end.0 <= extent.end.1;
        is_right.then_some(Reach { extent, early, late })
    }

    fn slices(&self, from: &mut UnreadBytes<'_>) -> Option<Vec<Slice>> {
        let count = from.count()?;
        // A length takes memory only if there are as many bytes.
        let mut bytes = UnreadBytes(from.some(count.checked_mul(SLICE)?)?);
        let mut slices = Vec::with_capacity(count);
        for _ in 0..count {
            let (start, len) = (bytes.word()? as i64, bytes.word()? as i64);
            let (frame, kind) = (bytes.number()?, bytes.short()?);
            if !self.has(frame, kind) {
                return None;
            }
            slices.push(Slice { start, len, frame, kind });
        }
        Some(slices)
    }

    fn row(&self, from: &mut UnreadBytes<'_>) -> Option<BlockRow> {
        let [is_moments] = from.take()?;
        let number = from.number()?;
        let key = match is_moments {
            0 => BlockKey::Depth(number),
            1 => BlockKey::Moments(u16::try_from(number).ok()?),
            _ => return None,
        };
        let is_known = match key {
            BlockKey::Depth(_) => true,
            BlockKey::Moments(kind) => usize::from(kind) < self.kinds,
        };
        if !is_known {
            return None;
        }
        let [buckets] = from.take()?;
        let mut lengths: Vec<(u8, u32)> = Vec::new();
        for _ in 0..buckets {
            let ([bucket], count) = (from.take()?, from.number()?);
            let rises = lengths.last().is_none_or(|last| last.0 < bucket);
            if usize::from(bucket) >= BUCKETS || count == 0 || !rises {
                return None;
            }
            lengths.push((bucket, count));
        }
        let count = from.count()?;
        let mut bytes = UnreadBytes(from.some(count.checked_mul(LEAF_LEN)?)?);
        let mut leaves: Vec<Leaf> = Vec::with_capacity(count);
        for _ in 0..count {
            let leaf = Leaf {
                from: bytes.word()? as i64,
                to: bytes.word()? as i64,
                busy: bytes.word()?,
                longest: bytes.word()?,
                count: bytes.number()?,
                best: bytes.number()?,
                best_kind: bytes.short()?,
                kind: bytes.short()?,
                share: bytes.short()?,
                flags: bytes.short()?,
            };
            let is_full = leaf.count as usize == LEAF;
            let is_last = leaves.len() + 1 == count;
            let is_right = self.has(leaf.best, leaf.best_kind)
                && self.has(leaf.best, leaf.kind)
                && (is_full || (is_last && (1..LEAF as u32).contains(&leaf.count)))
                && leaf.from <= leaf.to
                && leaves.last().is_none_or(|last| last.from <= leaf.from);
            if !is_right {
                return None;
            }
            leaves.push(leaf);
        }
        let told: u64 = lengths.iter().map(|length| u64::from(length.1)).sum();
        let there: u64 = leaves.iter().map(|leave| u64::from(leave.count)).sum();
        (told == there && there > 0).then_some(BlockRow { key, leaves, lengths })
    }
}

/// Bytes that are not read yet.
pub(crate) struct UnreadBytes<'a>(pub &'a [u8]);

impl<'a> UnreadBytes<'a> {
    pub fn some(&mut self, count: usize) -> Option<&'a [u8]> {
        let (some, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(some)
    }

    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.some(N)?.try_into().ok()
    }

    pub fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn count(&mut self) -> Option<usize> {
        self.number().map(|number| number as usize)
    }
}
