//! The index of a track: the blocks of its chunks, and the rows that these make together.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::block::{BlockKey, IndexBlock, Leaf};
use crate::cell::{BUCKETS, Cell, FramePlace, NO_NAME, SINGLE};
use crate::layout::{Track, ViewLayout};
use crate::reach::{Around, Surroundings};
use crate::slice::{ChunkSlices, Placed};
use crate::tree::{PixelScale, RowTree};

/// A row of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RowKey {
    Depth(u32),
    /// Moments of this name.
    Moments(u32),
}

/// The index of a track.
#[derive(Debug)]
pub(crate) struct TrackIndex {
    /// By the chunks of the track.
    pub blocks: Vec<Arc<IndexBlock>>,
    /// By the chunks of the track: how many slices are around all of it.
    pub depths: Vec<u32>,
    pub rows: BTreeMap<RowKey, RowTree>,
}

impl TrackIndex {
    /// Of all blocks of a track.
    pub fn new(
        layout: &ViewLayout,
        track: &Track,
        blocks: Vec<Arc<IndexBlock>>,
        depths: Vec<u32>,
    ) -> TrackIndex {
        let mut leaves: BTreeMap<RowKey, Vec<(Cell, u32)>> = BTreeMap::new();
        for ((&number, block), depth) in track.chunks.iter().zip(&blocks).zip(&depths) {
            let entry = &layout.chunks[number];
            for row in &block.rows {
                let key = match row.key {
                    BlockKey::Depth(own) => RowKey::Depth(depth.saturating_add(own)),
                    BlockKey::Moments(kind) => RowKey::Moments(layout.name(entry, kind)),
                };
                let cells = (0..).zip(&row.leaves).map(|(place, leaf)| {
                    let name = |kind| layout.name(entry, kind);
                    (cell(leaf, number as u32, name), place)
                });
                leaves.entry(key).or_default().extend(cells);
            }
        }
        let rows = leaves.into_iter().map(|(key, leaves)| (key, RowTree::new(leaves)));
        TrackIndex { rows: rows.collect(), blocks, depths }
    }

    /// How many slices of a row have a length in each bucket, in the chunks of the track that overlap a
    /// window.
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
                leaves.iter().any(|leave| leave.from < scale.to && leave.to >= scale.from)
            };
            let rows = block.rows.iter().filter(|row| is_wanted(row.key) && overlaps(&row.leaves));
            for (bucket, count) in rows.flat_map(|row| &row.lengths) {
                lengths[usize::from(*bucket)] += u64::from(*count);
            }
        }
        lengths
    }
}

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

/// A cell of which nothing is known but how many frames there are.
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

/// What the other chunks of a track have around the slices of the one at `place`. `reach` is that of a
/// chunk, `all` are all slices of one, by its place.
///
/// # Errors
/// Those of `all`.
pub(crate) fn surroundings<'a, E>(
    layout: &ViewLayout,
    track: &Track,
    place: usize,
    reach: impl Fn(usize) -> Option<&'a crate::reach::Reach>,
    mut all: impl FnMut(usize) -> Result<Arc<ChunkSlices>, E>,
) -> Result<Surroundings, E> {
    let Some(own) = reach(place) else { return Ok(Surroundings::default()) };
    let mut others: Vec<Placed> = Vec::new();
    for (other, &number) in track.chunks.iter().enumerate().filter(|entry| entry.0 != place) {
        let Some(reach) = reach(other) else { continue };
        let kept;
        let from = match reach.extent.around(&own.extent) {
            Around::Nothing => continue,
            Around::Early => &reach.early,
            Around::Late => &reach.late,
            Around::All => {
                kept = all(other)?;
                &kept.slices
            }
        };
        let entry = &layout.chunks[number];
        let may = from.iter().filter(|slice| own.extent.may_be_in(slice));
        others.extend(may.map(|slice| ViewLayout::placed(entry, *slice)));
    }
    Ok(Surroundings::around(others, &own.extent))
}
