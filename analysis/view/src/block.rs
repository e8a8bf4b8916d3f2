//! Blocks: the part of the index for one chunk of frames.
//!
//! A block depends only on the bytes of its chunk, the clocks of its capture, and the few slices of other
//! chunks that begin or end within it. Blocks can therefore be built in any order, at the same time, with
//! equal results.

use xxhash_rust::xxh3::Xxh3;

use crate::cell::{BACKWARD, BUCKETS, OVERLAP, bucket, share};
use crate::reach::{Reach, Surroundings};
use crate::slice::{ChunkSlices, OrderedSlice, Slice};

/// The most slices of a leaf.
pub(crate) const MAX_LEAF_SLICES: usize = 256;
/// The number of children of a node.
pub(crate) const CHILDREN: usize = 8;

/// The part of the index for one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexBlock {
    /// The reach of its slices. None without slices.
    pub reach: Option<Reach>,
    pub clocks: ClockMark,
    /// The [`mark`] of the slices of other chunks on which the block depends.
    pub inner: u64,
    /// The rows, ordered by key.
    pub rows: Vec<BlockRow>,
}

/// Hashes of the clocks on which the times of a block depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockMark {
    /// The hash of the values that further readings do not change, unless a clock jumps.
    pub base: u64,
    /// The hash of all readings. 0 if further readings do not change the times of the block.
    pub all: u64,
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockRow {
    pub key: BlockKey,
    pub leaves: Vec<Leaf>,
    /// The numbers of the buckets of lengths, each with its count of slices.
    pub lengths: Vec<(u8, u32)>,
}

/// Identifies a row of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BlockKey {
    /// Slices of this depth. The slices that contain the whole chunk do not count.
    Depth(u32),
    /// Moments of this kind.
    Moments(u16),
}

/// At most [`MAX_LEAF_SLICES`] consecutive slices of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub from: i64,
    pub to: i64,
    pub busy: u64,
    pub longest: u64,
    pub count: u32,
    /// The number of the frame of the longest slice in the chunk.
    pub best: u32,
    /// The kind of the longest slice.
    pub best_kind: u16,
    /// The kind that takes the largest share.
    pub kind: u16,
    /// The share of `kind`, of 65,535.
    pub share: u16,
    pub flags: u16,
}

/// A hash of the inner slices of surroundings. 0 if there are none.
pub(crate) fn mark(around: &Surroundings) -> u64 {
    if around.inner.is_empty() {
        return 0;
    }
    let mut hash = Xxh3::new();
    for OrderedSlice { slice, seqno, ring } in &around.inner {
        hash.update(&slice.start.to_le_bytes());
        hash.update(&slice.len.to_le_bytes());
        hash.update(&slice.kind.to_le_bytes());
        hash.update(&seqno.to_le_bytes());
        hash.update(&ring.to_le_bytes());
    }
    hash.digest().max(1)
}

impl IndexBlock {
    /// The rows of a chunk. `depths` has the depth of each slice.
    pub fn rows(slices: &ChunkSlices, depths: &[u32]) -> Vec<BlockRow> {
        let mut rows: Vec<RowBuilder> = Vec::new();
        for (slice, &depth) in slices.slices.iter().zip(depths) {
            let depth = depth as usize;
            if rows.len() <= depth {
                rows.resize_with(depth + 1, RowBuilder::default);
            }
            rows[depth].push(slice);
        }
        // A row is empty if all slices of its depth are in other chunks.
        let built = (0..).zip(rows).map(|(depth, row)| row.finish(BlockKey::Depth(depth)));
        let mut built: Vec<BlockRow> = built.filter(|row| !row.leaves.is_empty()).collect();
        for moments in slices.moments.chunk_by(|a, b| a.kind == b.kind) {
            let mut row = RowBuilder::default();
            moments.iter().for_each(|moment| row.push(moment));
            built.push(row.finish(BlockKey::Moments(moments[0].kind)));
        }
        built
    }
}

/// Divides the slices of a row into leaves.
#[derive(Debug, Default)]
struct RowBuilder {
    leaves: Vec<Leaf>,
    lengths: [u32; BUCKETS],
    /// The kinds of slices in the open leaf.
    kinds: Vec<KindSums>,
    open: Option<Leaf>,
}

/// The sums of one kind of slices in a leaf.
#[derive(Debug, Clone, Copy)]
struct KindSums {
    kind: u16,
    /// The sum of the lengths, ns.
    busy: u64,
    count: u32,
}

impl RowBuilder {
    #[inline]
    fn push(&mut self, slice: &Slice) {
        let (length, end) = (slice.length(), slice.end());
        self.lengths[bucket(length)] += 1;
        match self.kinds.iter_mut().find(|sums| sums.kind == slice.kind) {
            Some(sums) => {
                (sums.busy, sums.count) = (sums.busy.saturating_add(length), sums.count + 1);
            }
            None => self.kinds.push(KindSums { kind: slice.kind, busy: length, count: 1 }),
        }
        let leaf = self.open.get_or_insert(Leaf {
            from: slice.start,
            to: end,
            busy: 0,
            longest: length,
            count: 0,
            best: slice.frame,
            best_kind: slice.kind,
            kind: slice.kind,
            share: 0,
            flags: 0,
        });
        if slice.len < 0 {
            leaf.flags |= BACKWARD;
        }
        if slice.start < leaf.to && leaf.count > 0 {
            leaf.flags |= OVERLAP;
        }
        if length > leaf.longest {
            (leaf.longest, leaf.best, leaf.best_kind) = (length, slice.frame, slice.kind);
        }
        leaf.to = leaf.to.max(end);
        leaf.busy = leaf.busy.saturating_add(length);
        leaf.count += 1;
        if leaf.count as usize == MAX_LEAF_SLICES {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(mut leaf) = self.open.take() else { return };
        let order = |sums: &&KindSums| (sums.busy, sums.count, std::cmp::Reverse(sums.kind));
        if let Some(largest) = self.kinds.iter().max_by_key(order) {
            leaf.kind = largest.kind;
            leaf.share = match leaf.busy {
                0 => share(largest.count.into(), leaf.count.into()),
                busy => share(largest.busy, busy),
            };
        }
        self.leaves.push(leaf);
        self.kinds.clear();
    }

    fn finish(mut self, key: BlockKey) -> BlockRow {
        self.close();
        let lengths = (0..).zip(self.lengths).filter(|entry| entry.1 > 0);
        BlockRow { key, leaves: self.leaves, lengths: lengths.collect() }
    }
}
