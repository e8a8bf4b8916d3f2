//! What a table is to those who read it.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::bounds::{Bounded, Bounds};
use crate::chunk_table::OfChunks;
use crate::error::TableError;

/// A table of a set of captures.
pub trait CaptureTable: Debug + Send + Sync {
    /// Its columns: names, types, and in the metadata of a field its `unit`, `doc` and `role`.
    fn schema(&self) -> &SchemaRef;

    /// What a column is to [`Bounds`], if they bound it.
    fn bounded(&self, column: usize) -> Option<Bounded> {
        let _ = column;
        None
    }

    /// How to read what is asked for. The rows may be more than the bounds ask for, never fewer.
    ///
    /// # Errors
    /// See [`TableError`].
    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError>;

    /// What makes its rows out of chunks, if each row is a frame: such tables can be read
    /// [`JointScan`](crate::JointScan).
    fn chunked(&self) -> Option<Chunked> {
        None
    }
}

/// What makes the rows of a table out of chunks.
#[derive(Debug, Clone)]
pub struct Chunked(pub(crate) Arc<dyn OfChunks>);

/// What is asked for of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableRequest<'a> {
    /// Indices of the columns, in the order in which they are wanted.
    pub columns: &'a [usize],
    /// What need not be read.
    pub bounds: &'a Bounds,
    /// How many rows are enough, where any will do.
    pub limit: Option<usize>,
    /// How many parts may be read side by side.
    pub parts: usize,
    /// Bytes that rows may take in memory which depend on each other; None: any number.
    pub memory: Option<usize>,
}

/// How to read the rows of a table.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The rows as they are read. Without a pass these are the columns that are asked for.
    pub scan: Arc<dyn Scan>,
    /// What makes the columns that are asked for out of them.
    pub pass: Option<Pass>,
    /// More rows with the same columns, which are read apart.
    pub beside: Vec<Planned>,
}

impl<'a> TableRequest<'a> {
    /// All rows, in one part.
    pub(crate) fn of_all(columns: &'a [usize], bounds: &'a Bounds) -> TableRequest<'a> {
        TableRequest { columns, bounds, limit: None, parts: 1, memory: None }
    }
}

impl From<Arc<dyn Scan>> for Planned {
    fn from(scan: Arc<dyn Scan>) -> Self {
        Planned { scan, pass: None, beside: Vec::new() }
    }
}

/// Batches of one part of a scan.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + Send>;

/// Rows that are read in parts.
pub trait Scan: Debug + Send + Sync {
    /// The columns.
    fn schema(&self) -> &SchemaRef;

    /// How many parts there are, at least 1.
    fn parts(&self) -> usize;

    /// Reads part `part`, from its beginning.
    fn read(&self, part: usize) -> Batches;

    /// The exact number of rows of a part (None: of all), where that is known without reading them.
    fn rows(&self, part: Option<usize>) -> Option<usize>;

    /// What EXPLAIN says of it: what is read, and what is not.
    fn explain_text(&self) -> String;

    /// Columns by which the rows of each part ascend, NULLs last, the first one first; may be empty.
    fn order(&self) -> &[usize] {
        &[]
    }

    /// The same rows, of which those of each part ascend by `columns`, NULLs last, and no row of a
    /// part comes after one of the next; None where that takes a sort.
    fn ordered(&self, columns: &[usize]) -> Option<Arc<dyn Scan>> {
        let _ = columns;
        None
    }
}

/// What turns rows into others that depend on each other, in one pass over them.
///
/// Whoever reads the scan brings together the rows that are equal in `together`, sorts them by
/// `order`, and gives each batch to a runner of its own; equal rows come one after the other, and batches
/// may follow each other in one runner.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The columns that come out: those that are asked for.
    pub schema: SchemaRef,
    /// Columns of the scan.
    pub together: Vec<usize>,
    /// Columns of the scan, the first one first, and whether they descend. Begins with `together`.
    pub order: Vec<(usize, bool)>,
    /// Starts a runner.
    pub start: Start,
    /// What EXPLAIN says of it.
    pub told: String,
}

/// Starts a runner.
#[derive(Clone)]
pub struct Start(pub Arc<dyn Fn() -> Box<dyn Runner> + Send + Sync>);

impl Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start")
    }
}

/// A pass on its way.
pub trait Runner: Send {
    /// Takes in rows; gives out those that are done.
    ///
    /// # Errors
    /// See [`TableError`].
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError>;

    /// Gives out the rest.
    ///
    /// # Errors
    /// See [`TableError`].
    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError>;
}
