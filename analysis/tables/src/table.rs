//! The interface of tables to their readers.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::bounds::{Bounded, Bounds};
use crate::chunk_row_source::ChunkRowSource;
use crate::error::TableError;

/// The number of rows at which a batch is full, where rows are made one by one.
pub(crate) const ROWS_PER_BATCH: usize = 8192;

/// A table of a set of captures.
pub trait CaptureTable: Debug + Send + Sync {
    /// The columns. The metadata of a field has its `unit`, `doc` and `role`.
    fn schema(&self) -> &SchemaRef;

    /// The kind of [`Bounds`] that apply to a column, if any do.
    fn bounded(&self, column: usize) -> Option<Bounded> {
        let _ = column;
        None
    }

    /// Plans how to read the requested rows. Rows outside of the bounds may remain, none within is missing.
    ///
    /// # Errors
    /// The clocks of hosts cannot be compared, or a capture cannot be read.
    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError>;

    /// The source of the rows, if each row is a frame: a [`JointScan`](crate::JointScan) can read such
    /// tables.
    fn chunked(&self) -> Option<Chunked> {
        None
    }
}

/// Makes the rows of a table from chunks.
#[derive(Debug, Clone)]
pub struct Chunked(pub(crate) Arc<dyn ChunkRowSource>);

/// The rows and columns that a reader wants of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableRequest<'a> {
    /// Indices of the columns, in the wanted order.
    pub columns: &'a [usize],
    /// Bounds of the wanted rows.
    pub bounds: &'a Bounds,
    /// Number of rows after which a scan may stop.
    pub limit: Option<usize>,
    /// Number of parts that may be read in parallel.
    pub parts: usize,
    /// Bytes of memory for rows that depend on each other; None for no limit.
    pub memory: Option<usize>,
}

/// The plan of reading the rows of a table.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Reads rows: with the requested columns if there is no pass.
    pub scan: Arc<dyn Scan>,
    /// Turns the rows of the scan into rows with the requested columns.
    pub pass: Option<Pass>,
    /// Further rows with the same columns, each read by a plan of its own.
    pub more: Vec<Planned>,
}

impl<'a> TableRequest<'a> {
    /// A request for all rows of these columns, in one part.
    pub(crate) fn all_rows(columns: &'a [usize], bounds: &'a Bounds) -> TableRequest<'a> {
        TableRequest { columns, bounds, limit: None, parts: 1, memory: None }
    }
}

impl From<Arc<dyn Scan>> for Planned {
    fn from(scan: Arc<dyn Scan>) -> Self {
        Planned { scan, pass: None, more: Vec::new() }
    }
}

/// Batches of one part of a scan.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + Send>;

/// Rows that are read in parts.
pub trait Scan: Debug + Send + Sync {
    /// The columns.
    fn schema(&self) -> &SchemaRef;

    /// The number of parts, at least 1.
    fn parts(&self) -> usize;

    /// Reads part `part`, from its beginning.
    fn read(&self, part: usize) -> Batches;

    /// The exact number of rows of a part (None for all parts), if it is known without reading them.
    fn rows(&self, part: Option<usize>) -> Option<usize>;

    /// The text for EXPLAIN: what the scan reads, and what it skips.
    fn explain_text(&self) -> String;

    /// Columns by which the rows of each part are sorted, ascending, NULLs last; may be empty.
    fn order(&self) -> &[usize] {
        &[]
    }

    /// A scan of the same rows that is sorted by `columns` over all parts, ascending, NULLs last;
    /// None if this needs a sort.
    fn ordered(&self, columns: &[usize]) -> Option<Arc<dyn Scan>> {
        let _ = columns;
        None
    }
}

/// Turns rows into other rows, in one pass over sorted rows.
///
/// The reader of the scan groups its rows by `group_by`, sorts them by `order`, and gives the batches to a
/// runner. All rows of a group go to the same runner; a runner may get several groups.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The requested columns, which the pass produces.
    pub schema: SchemaRef,
    /// Indices of columns of the scan.
    pub group_by: Vec<usize>,
    /// Indices of columns of the scan, each with whether it descends. Begins with `group_by`.
    pub order: Vec<(usize, bool)>,
    /// Starts a runner.
    pub start: Start,
    /// The text for EXPLAIN.
    pub explain_text: String,
}

/// Starts a runner.
#[derive(Clone)]
pub struct Start(pub Arc<dyn Fn() -> Box<dyn Runner> + Send + Sync>);

impl Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start")
    }
}

/// Runs a pass over batches.
pub trait Runner: Send {
    /// Takes rows; returns the finished ones.
    ///
    /// # Errors
    /// A time is too uncertain, an identity has too many edges, or columns do not fit.
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError>;

    /// Returns the remaining rows.
    ///
    /// # Errors
    /// As for [`Self::push`].
    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError>;
}
