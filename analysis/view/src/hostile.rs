//! An index of nobody knows whom, for fuzzers.

use crate::cache::{self, INDEX_VERSION};
use crate::cell::Cell;
use crate::index::cell;
use crate::reach::Surroundings;
use crate::slice::Placed;
use crate::tree::{PixelScale, Pixels, RowTree};

/// Reads `bytes` as an index of a capture whose chunks have these numbers of frames and kinds of slices, and
/// what it holds as a view does. Says how many blocks there are. For fuzzers.
#[doc(hidden)]
pub fn read_index(bytes: &[u8], frames: u32, kinds: usize) -> usize {
    let blocks = cache::decode(bytes, "", |_| Some((frames, kinds)));
    for block in blocks.values() {
        for row in &block.rows {
            let leaves = (0..).zip(&row.leaves);
            let cells: Vec<(Cell, u32)> =
                leaves.map(|(place, leaf)| (cell(leaf, 0, u32::from), place)).collect();
            let count: u64 = cells.iter().map(|cell| cell.0.count).sum();
            let tree = RowTree::new(cells);
            assert_eq!(tree.whole().map(|it| it.count), Some(count));
            for (from, to, pixels) in [(i64::MIN, i64::MAX, 1), (0, 1000, 10), (-1, 0, u32::MAX)] {
                let scale = PixelScale::new(from, to, pixels);
                let mut seen = Pixels::new(scale);
                tree.visit(&scale, &mut |cell, _| seen.push(cell));
                assert!(seen.cells.iter().map(|it| it.count).sum::<u64>() <= count);
            }
        }
        if let Some(reach) = &block.reach {
            let place = |slice| Placed { slice, seqno: 1, ring: 0 };
            let others =
                reach.early.iter().chain(&reach.late).filter(|slice| reach.extent.may_be_in(slice));
            let around = Surroundings::around(others.copied().map(place).collect(), &reach.extent);
            around.depths(&reach.early, |slice| place(*slice));
        }
    }
    blocks.len()
}

/// The file of an index with one block of these bytes, under a checksum that is right.
#[doc(hidden)]
pub fn sealed_index(body: &[u8]) -> Vec<u8> {
    let mut bytes = cache::MAGIC.to_vec();
    bytes.extend(INDEX_VERSION.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    cache::append((0, 0, 0), body, &mut bytes);
    bytes
}
