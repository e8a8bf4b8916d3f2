//! Reads untrusted indexes, for fuzzers.

use crate::index::cell;
use crate::index_files::{self, BlockId, ChunkLimits, INDEX_VERSION};
use crate::reach::Surroundings;
use crate::slice::OrderedSlice;
use crate::tree::{LeafCell, PixelScale, Pixels, RowTree};

/// Reads `bytes` as the index of a capture whose chunks have these numbers of frames and kinds of slices.
/// Uses its blocks as a view does. Returns the number of blocks.
#[doc(hidden)]
pub fn read_index(bytes: &[u8], frames: u32, kinds: usize) -> usize {
    let blocks = index_files::decode(bytes, "", |_| Some(ChunkLimits { frames, kinds }));
    for block in blocks.values() {
        for row in &block.rows {
            let leaves = (0..).zip(&row.leaves);
            let leaves =
                leaves.map(|(place, leaf)| LeafCell { cell: cell(leaf, 0, u32::from), place });
            let leaves: Vec<LeafCell> = leaves.collect();
            let count: u64 = leaves.iter().map(|leaf| leaf.cell.count).sum();
            let tree = RowTree::new(leaves);
            assert_eq!(tree.whole().map(|cell| cell.count), Some(count));
            for (from, to, pixels) in [(i64::MIN, i64::MAX, 1), (0, 1000, 10), (-1, 0, u32::MAX)] {
                let scale = PixelScale::new(from, to, pixels);
                let mut pixels = Pixels::new(scale);
                tree.visit(&scale, &mut |cell, _| pixels.push(cell));
                assert!(pixels.cells.iter().map(|cell| cell.count).sum::<u64>() <= count);
            }
        }
        if let Some(reach) = &block.reach {
            let ordered = |slice| OrderedSlice { slice, seqno: 1, ring: 0 };
            let others =
                reach.early.iter().chain(&reach.late).filter(|slice| reach.extent.may_be_in(slice));
            let others = others.copied().map(ordered).collect();
            let around = Surroundings::around(others, &reach.extent);
            around.depths(&reach.early, |slice| ordered(*slice));
        }
    }
    blocks.len()
}

/// The bytes of an index file with one block of these bytes, with a valid checksum.
#[doc(hidden)]
pub fn sealed_index(body: &[u8]) -> Vec<u8> {
    let mut bytes = index_files::MAGIC.to_vec();
    bytes.extend(INDEX_VERSION.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    index_files::append(BlockId { ordinal: 0, crc: 0, thread: 0 }, body, &mut bytes);
    bytes
}
