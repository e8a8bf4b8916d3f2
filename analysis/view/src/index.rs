//! The index of a track: the blocks of its chunks, and the rows made of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::block::{BlockKey, IndexBlock, Leaf};
use crate::cell::{BUCKETS, Cell, FramePlace, NO_NAME, SINGLE};
use crate::layout::{Track, ViewLayout};
use crate::reach::{Around, Surroundings};
use crate::slice::{ChunkSlices, OrderedSlice};
use crate::tree::{LeafCell, PixelScale, RowTree};

/// Identifies a row of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RowKey {
    /// Slices of this depth.
    Depth(u32),
    /// Moments with this number of a name.
    Moments(u32),
}

/// The index of a track.
#[derive(Debug)]
pub(crate) struct TrackIndex {
    /// The block of each chunk of the track.
    pub blocks: Vec<Arc<IndexBlock>>,
    /// For each chunk of the track, the number of slices that contain all of it.
    pub depths: Vec<u32>,
    pub rows: BTreeMap<RowKey, RowTree>,
}

impl TrackIndex {
    /// Makes the rows of all blocks of a track.
    pub fn new(
        layout: &ViewLayout,
        track: &Track,
        blocks: Vec<Arc<IndexBlock>>,
        depths: Vec<u32>,
    ) -> TrackIndex {
        let mut leaves: BTreeMap<RowKey, Vec<LeafCell>> = BTreeMap::new();
        for ((&number, block), depth) in track.chunks.iter().zip(&blocks).zip(&depths) {
            let entry = &layout.chunks[number];
            for row in &block.rows {
                let key = match row.key {
                    BlockKey::Depth(own) => RowKey::Depth(depth.saturating_add(own)),
                    BlockKey::Moments(kind) => RowKey::Moments(layout.name(entry, kind)),
                };
                let cells = (0..).zip(&row.leaves).map(|(place, leaf)| {
                    let name = |kind| layout.name(entry, kind);
                    LeafCell { cell: cell(leaf, number as u32, name), place }
                });
                leaves.entry(key).or_default().extend(cells);
            }
        }
        let rows = leaves.into_iter().map(|(key, leaves)| (key, RowTree::new(leaves)));
        TrackIndex { rows: rows.collect(), blocks, depths }
    }

    /// The number of slices of a row in each bucket of lengths. Counts all slices of the chunks that overlap
    /// the window.
    pub fn lengths(
        &self,
        layout: &ViewLayout,
        track: &Track,
        row: RowKey,
        scale: &PixelScale,
    ) -> Vec<u64> {
        let mut lengths = vec![0; BUCKETS];
        for ((&number, block), &depth) in track.chunks.iter().zip(&self.blocks).zip(&self.depths) {
            let entry = &layout.chunks[number];
            let is_wanted = |key: BlockKey| match (key, row) {
                (BlockKey::Depth(own), RowKey::Depth(wanted)) => {
                    depth.saturating_add(own) == wanted
                }
                (BlockKey::Moments(kind), RowKey::Moments(name)) => {
                    layout.name(entry, kind) == name
                }
                _ => false,
            };
            let overlaps = |leaves: &[Leaf]| {
                leaves.iter().any(|leaf| leaf.from < scale.to && leaf.to >= scale.from)
            };
            let rows = block.rows.iter().filter(|row| is_wanted(row.key) && overlaps(&row.leaves));
            for (bucket, count) in rows.flat_map(|row| &row.lengths) {
                lengths[usize::from(*bucket)] += u64::from(*count);
            }
        }
        lengths
    }
}

/// The cell of a leaf. `name` returns the number of the name of a kind.
pub(crate) fn cell(leaf: &Leaf, chunk: u32, name: impl Fn(u16) -> u32) -> Cell {
    Cell {
        from: leaf.from,
        to: leaf.to,
        busy: leaf.busy,
        longest: leaf.longest,
        count: leaf.count.into(),
        best: FramePlace { chunk, frame: leaf.best },
        best_name: name(leaf.best_kind),
        name: name(leaf.kind),
        share: leaf.share,
        flags: if leaf.count == 1 { leaf.flags | SINGLE } else { leaf.flags },
        lane: 0,
    }
}

/// The cell of a chunk of which only the number of frames is known.
pub(crate) fn heads_cell(from: i64, to: i64, count: u64, chunk: u32) -> Cell {
    Cell {
        from,
        to,
        busy: 0,
        longest: 0,
        count,
        best: FramePlace { chunk, frame: 0 },
        best_name: NO_NAME,
        name: NO_NAME,
        share: 0,
        flags: crate::cell::HEADS,
        lane: 0,
    }
}

/// The slices of the other chunks of a track that may contain slices of the chunk at index `place`. `reach`
/// and `slices` return the reach and the slices of the chunk at an index.
///
/// # Errors
/// The errors of `slices`.
pub(crate) fn surroundings<'a, E>(
    layout: &ViewLayout,
    track: &Track,
    place: usize,
    reach: impl Fn(usize) -> Option<&'a crate::reach::Reach>,
    mut slices: impl FnMut(usize) -> Result<Arc<ChunkSlices>, E>,
) -> Result<Surroundings, E> {
    let Some(own) = reach(place) else { return Ok(Surroundings::default()) };
    let mut others: Vec<OrderedSlice> = Vec::new();
    for (other, &number) in track.chunks.iter().enumerate().filter(|entry| entry.0 != place) {
        let Some(reach) = reach(other) else { continue };
        let chunk_slices;
        let candidates = match reach.extent.around(&own.extent) {
            Around::Nothing => continue,
            Around::Early => &reach.early,
            Around::Late => &reach.late,
            Around::All => {
                chunk_slices = slices(other)?;
                &chunk_slices.slices
            }
        };
        let entry = &layout.chunks[number];
        let possible = candidates.iter().filter(|slice| own.extent.may_be_in(slice));
        others.extend(possible.map(|slice| ViewLayout::ordered(entry, *slice)));
    }
    Ok(Surroundings::around(others, &own.extent))
}
