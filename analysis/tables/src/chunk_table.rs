//! What a table is whose rows are made out of chunks.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::columns::Time;

use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::standard::ChunkRows;

/// A table whose rows are frames, or parts of frames.
pub(crate) trait OfChunks: Debug + Send + Sync + 'static {
    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// The words of a column of words.
    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>>;

    /// What of a source is wanted.
    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted;

    /// Appends rows of these columns; says how many.
    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize;
}

/// Which chunks of a source have rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The kinds of frames: as in the heads of chunks. 0: none.
    pub kinds: u64,
    /// Every frame that carries its number is one row.
    pub each: bool,
    /// What `ts` is; None: NULL in all rows.
    pub ts: Ts,
}

/// What the `ts` of rows is, by the heads of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ts {
    /// NULL in all rows.
    Null,
    /// The times that heads bound.
    At(Time),
    /// Others.
    Other,
}

impl Wanted {
    /// Nothing.
    pub const NOTHING: Wanted = Wanted { kinds: 0, each: false, ts: Ts::Null };
}

/// The bit of a kind in the heads of chunks.
pub(crate) fn kind_bit(id: usize) -> u64 {
    1 << id.min(63)
}
