//! The trait of tables whose rows are made from chunks.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::columns::Time;

use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::standard::ChunkRows;

/// Makes rows from the frames of chunks.
pub(crate) trait ChunkRowSource: Debug + Send + Sync + 'static {
    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// The dictionary of a column of words.
    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>>;

    /// Selects the frames of a source that can have rows within `bounds`.
    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted;

    /// Appends the rows of a chunk to the builders of `columns`; returns the number of rows.
    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize;
}

/// The chunks of a source that can have rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The kinds of frames, as a mask like that in the heads of chunks. 0: none.
    pub kinds: u64,
    /// Each frame that carries its number is exactly one row.
    pub frame_is_row: bool,
    /// The relation of the rows' `ts` to the times in heads of chunks.
    pub ts: Ts,
}

/// The relation of the rows' `ts` to the times in heads of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ts {
    /// All rows have NULL.
    Null,
    /// `ts` is the time that heads bound.
    At(Time),
    /// Heads do not bound `ts`.
    Other,
}

impl Wanted {
    /// No rows.
    pub const NOTHING: Wanted = Wanted { kinds: 0, frame_is_row: false, ts: Ts::Null };
}

/// The bit of a kind in the masks of chunk heads.
pub(crate) fn kind_bit(id: usize) -> u64 {
    1 << id.min(63)
}
