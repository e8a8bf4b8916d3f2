//! Blocks: what the index keeps of a chunk of frames.
//!
//! A block follows from the bytes of its chunk, from the clocks of its capture, and from the few slices
//! of other chunks that begin or end within it. So blocks are built side by side, in any order, and are
//! equal whenever these are.

use xxhash_rust::xxh3::Xxh3;

use crate::cell::{BACKWARD, BUCKETS, OVERLAP, bucket, share};
use crate::reach::{Reach, Surroundings};
use crate::slice::{ChunkSlices, Placed, Slice};

/// Slices of a leaf.
pub(crate) const LEAF: usize = 256;
/// Children of a node.
pub(crate) const FAN: usize = 8;

/// What the index keeps of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexBlock {
    /// How far its slices reach; None: it has none.
    pub reach: Option<Reach>,
    pub clocks: ClockMark,
    /// Of the slices of other chunks that counted.
    pub inner: u64,
    /// In the order of their keys.
    pub rows: Vec<BlockRow>,
}

/// What the times of a block depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockMark {
    /// What no further reading of clocks changes, unless they jump.
    pub base: u64,
    /// All readings; 0: no further reading changes the times of the block.
    pub all: u64,
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockRow {
    pub key: BlockKey,
    pub leaves: Vec<Leaf>,
    /// How many slices have a length in each bucket.
    pub lengths: Vec<(u8, u32)>,
}

/// Which row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BlockKey {
    /// Slices that lie so deep, beside what is around the whole chunk.
    Depth(u32),
    /// Moments of a kind.
    Moments(u16),
}

/// Slices that follow each other in a row, at most [`LEAF`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub from: i64,
    pub to: i64,
    pub busy: u64,
    pub longest: u64,
    pub count: u32,
    /// Its longest slice: the frame in the chunk, and the kind.
    pub best: u32,
    pub best_kind: u16,
    /// The kind that takes most of it, and how much that is.
    pub kind: u16,
    pub share: u16,
    pub flags: u16,
}

/// What distinguishes surroundings; 0: nothing but what is around the whole chunk.
pub(crate) fn mark(around: &Surroundings) -> u64 {
    if around.inner.is_empty() {
        return 0;
    }
    let mut hash = Xxh3::new();
    for Placed { slice, seqno, ring } in &around.inner {
        hash.update(&slice.start.to_le_bytes());
        hash.update(&slice.len.to_le_bytes());
        hash.update(&slice.kind.to_le_bytes());
        hash.update(&seqno.to_le_bytes());
        hash.update(&ring.to_le_bytes());
    }
    hash.digest().max(1)
}

impl IndexBlock {
    /// The rows of a chunk whose slices lie so deep.
    pub fn rows(slices: &ChunkSlices, depths: &[u32]) -> Vec<BlockRow> {
        let mut rows: Vec<RowBuilder> = Vec::new();
        for (slice, &depth) in slices.slices.iter().zip(depths) {
            let depth = depth as usize;
            if rows.len() <= depth {
                rows.resize_with(depth + 1, RowBuilder::default);
            }
            rows[depth].push(slice);
        }
        // A row may have none: all slices of that depth are of other chunks.
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

#[derive(Debug, Default)]
struct RowBuilder {
    leaves: Vec<Leaf>,
    lengths: [u32; BUCKETS],
    /// What each kind takes of the leaf that is being built: ns, and how often.
    kinds: Vec<(u16, u64, u32)>,
    open: Option<Leaf>,
}

impl RowBuilder {
    #[inline]
    fn push(&mut self, slice: &Slice) {
        let (length, end) = (slice.length(), slice.end());
        self.lengths[bucket(length)] += 1;
        match self.kinds.iter_mut().find(|kind| kind.0 == slice.kind) {
            Some(kind) => (kind.1, kind.2) = (kind.1.saturating_add(length), kind.2 + 1),
            None => self.kinds.push((slice.kind, length, 1)),
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
        if leaf.count as usize == LEAF {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(mut leaf) = self.open.take() else { return };
        let most = self.kinds.iter().max_by_key(|kind| (kind.1, kind.2, std::cmp::Reverse(kind.0)));
        if let Some(&(kind, busy, count)) = most {
            leaf.kind = kind;
            leaf.share = match leaf.busy {
                0 => share(count.into(), leaf.count.into()),
                all => share(busy, all),
            };
        }
        self.leaves.push(leaf);
        self.kinds.clear();
    }

    fn finish(mut self, key: BlockKey) -> BlockRow {
        self.close();
        let full = (0..).zip(self.lengths).filter(|entry| entry.1 > 0);
        BlockRow { key, leaves: self.leaves, lengths: full.collect() }
    }
}
