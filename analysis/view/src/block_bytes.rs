//! Writes and reads the bytes of blocks. Bytes that are read are untrusted: they are checked, and take no
//! more memory than their length.

use crate::block::{BlockKey, BlockRow, ClockMark, IndexBlock, Leaf, MAX_LEAF_SLICES};
use crate::cell::BUCKETS;
use crate::reach::{Extent, Reach};
use crate::slice::Slice;

/// The number of bytes of a slice.
const SLICE_BYTES: usize = 22;
/// The number of bytes of a leaf.
const LEAF_BYTES: usize = 48;

/// Appends a block to `bytes`.
pub(crate) fn write(block: &IndexBlock, bytes: &mut Vec<u8>) {
    for word in [block.clocks.base, block.clocks.all, block.inner] {
        bytes.extend(word.to_le_bytes());
    }
    match &block.reach {
        None => bytes.push(0),
        Some(reach) => {
            bytes.push(1);
            let Extent { first_start, last_start, first_end, last_end } = reach.extent;
            [first_start, last_start, first_end, last_end]
                .iter()
                .for_each(|time| bytes.extend(time.to_le_bytes()));
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

/// Reads the block of a chunk with `frames` frames and `kinds` kinds of slices. None if `bytes` are not such
/// a block.
pub(crate) fn read(bytes: &[u8], frames: u32, kinds: usize) -> Option<IndexBlock> {
    let mut from = UnreadBytes(bytes);
    let clocks = ClockMark { base: from.word()?, all: from.word()? };
    let inner = from.word()?;
    let limits = BlockLimits { frames, kinds };
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
        counts[is_moments] += row.leaves.iter().map(|leaf| u64::from(leaf.count)).sum::<u64>();
        rows.push(row);
    }
    // A frame has at most one slice of each kind.
    let max_slices = u64::from(frames).checked_mul(kinds as u64)?;
    let fits = counts[0] <= max_slices && counts[1] <= u64::from(frames);
    let agrees = reach.is_some() == (counts[0] > 0);
    (from.0.is_empty() && fits && agrees).then_some(IndexBlock { reach, clocks, inner, rows })
}

/// The limits of the numbers in a block.
struct BlockLimits {
    frames: u32,
    kinds: usize,
}

impl BlockLimits {
    fn has(&self, frame: u32, kind: u16) -> bool {
        frame < self.frames && usize::from(kind) < self.kinds
    }

    fn reach(&self, from: &mut UnreadBytes<'_>) -> Option<Reach> {
        let mut time = || Some(from.word()? as i64);
        let (first_start, last_start) = (time()?, time()?);
        let (first_end, last_end) = (time()?, time()?);
        let extent = Extent { first_start, last_start, first_end, last_end };
        let (early, late) = (self.slices(from)?, self.slices(from)?);
        let is_valid = first_start <= last_start && first_end <= last_end;
        is_valid.then_some(Reach { extent, early, late })
    }

    fn slices(&self, from: &mut UnreadBytes<'_>) -> Option<Vec<Slice>> {
        let count = from.count()?;
        // Memory is reserved only after the bytes of all slices were found.
        let mut bytes = UnreadBytes(from.slice(count.checked_mul(SLICE_BYTES)?)?);
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
        let has_kind = match key {
            BlockKey::Depth(_) => true,
            BlockKey::Moments(kind) => usize::from(kind) < self.kinds,
        };
        if !has_kind {
            return None;
        }
        let lengths = Self::lengths(from)?;
        let leaves = self.leaves(from)?;
        let in_buckets: u64 = lengths.iter().map(|length| u64::from(length.1)).sum();
        let in_leaves: u64 = leaves.iter().map(|leaf| u64::from(leaf.count)).sum();
        (in_buckets == in_leaves && in_leaves > 0).then_some(BlockRow { key, leaves, lengths })
    }

    fn lengths(from: &mut UnreadBytes<'_>) -> Option<Vec<(u8, u32)>> {
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
        Some(lengths)
    }

    fn leaves(&self, from: &mut UnreadBytes<'_>) -> Option<Vec<Leaf>> {
        let count = from.count()?;
        let mut bytes = UnreadBytes(from.slice(count.checked_mul(LEAF_BYTES)?)?);
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
            let is_full = leaf.count as usize == MAX_LEAF_SLICES;
            let is_last = leaves.len() + 1 == count;
            let is_valid = self.has(leaf.best, leaf.best_kind)
                && self.has(leaf.best, leaf.kind)
                && (is_full || (is_last && (1..MAX_LEAF_SLICES as u32).contains(&leaf.count)))
                && leaf.from <= leaf.to
                && leaves.last().is_none_or(|last| last.from <= leaf.from);
            if !is_valid {
                return None;
            }
            leaves.push(leaf);
        }
        Some(leaves)
    }
}

/// Bytes that are not read yet.
pub(crate) struct UnreadBytes<'a>(pub &'a [u8]);

impl<'a> UnreadBytes<'a> {
    /// The next `count` bytes. None if there are fewer.
    pub fn slice(&mut self, count: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(slice)
    }

    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
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
