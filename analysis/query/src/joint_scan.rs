//! Several kinds of frames, read together: each chunk once, in the order of the files.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::DFSchema;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use ppt_tables::{Bounds, ChunkTimes, JointScan, ScanBatch, ScannedTable, TableError};
use tokio::sync::mpsc;

use crate::bounds;
use crate::engine::{Engine, FrameTable};
use crate::error::{QueryError, external};

/// Batches that are read before somebody takes them.
const AHEAD: usize = 2;

/// What is asked for of a kind of frames.
#[derive(Debug, Clone)]
pub struct FrameColumns {
    /// The kind.
    pub frame: FrameTable,
    /// Indices of the columns of its table, in the order in which they are wanted; each is there once.
    pub columns: Vec<usize>,
}

/// Several kinds of frames that are read together.
#[derive(Debug)]
pub struct JointFrameScan {
    together: Arc<JointScan>,
    seen: Arc<Vec<SeenFrames>>,
}

/// The part of a kind of frames that is seen.
#[derive(Debug)]
struct SeenFrames {
    /// What is true of rows that are seen; None: all are.
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// How many columns were asked for; those behind them are for the filter.
    columns: usize,
}

impl SeenFrames {
    /// The rows that are seen, with the columns that were asked for.
    fn seen_rows(&self, batch: RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let Some(filter) = &self.filter else { return Ok(batch) };
        let seen = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
        let columns: Vec<usize> = (0..self.columns).collect();
        Ok(filter_record_batch(&batch.project(&columns)?, seen.as_boolean())?)
    }
}

impl Engine {
    /// Kinds of frames as they are read together; None: one of them cannot be read so.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn joint_frame_scan(
        &self,
        kinds: &[FrameColumns],
    ) -> Result<Option<JointFrameScan>, QueryError> {
        let (mut seen, mut read) = (Vec::new(), Vec::new());
        for kind in kinds {
            let table = kind.frame.table.as_ref();
            let mut columns = kind.columns.clone();
            let filter = self.filter(table)?;
            let bounds = filter.as_ref().map_or_else(Bounds::default, |filter| {
                bounds::of_filters(std::slice::from_ref(filter), table)
            });
            let asked = columns.len();
            let filter = match filter {
                None => None,
                Some(filter) => {
                    for column in filter.column_refs() {
                        let column = table.schema().index_of(&column.name);
                        let column = column.map_err(DataFusionError::from)?;
                        if !columns.contains(&column) {
                            columns.push(column);
                        }
                    }
                    let own = table.schema().project(&columns).map_err(DataFusionError::from)?;
                    let own = DFSchema::try_from(own)?;
                    // `coalesce` is a function of plans alone.
                    let context = SimplifyContext::builder().with_schema(Arc::new(own.clone()));
                    let simplifier = ExprSimplifier::new(context.build());
                    let filter = simplifier.simplify(simplifier.coerce(filter, &own)?)?;
                    Some(self.context().create_physical_expr(filter, &own)?)
                }
            };
            seen.push(SeenFrames { filter, columns: asked });
            read.push((table, columns, bounds));
        }
        let tables: Vec<ScannedTable<'_>> = read
            .iter()
            .map(|(table, columns, bounds)| ScannedTable { table: *table, columns, bounds })
            .collect();
        let together = JointScan::new(self.set(), &tables).map_err(external)?;
        let seen = Arc::new(seen);
        Ok(together.map(|together| JointFrameScan { together: Arc::new(together), seen }))
    }
}

impl JointFrameScan {
    /// How many batches there are.
    pub fn batch_count(&self) -> usize {
        self.together.batch_count()
    }

    /// Between which times the frames are.
    pub fn times(&self) -> ChunkTimes {
        self.together.times()
    }

    /// Whether chunks that nobody reads may hold frames whose kind their schema does not have.
    pub fn may_be_unknown(&self) -> bool {
        self.together.may_be_unknown()
    }

    /// Reads some batches, in their order, in a thread of their own.
    pub fn read(&self, batches: Range<usize>) -> ScanBatches {
        let (give, take) = mpsc::channel(AHEAD);
        let (together, seen) = (self.together.clone(), self.seen.clone());
        let task = SpawnedTask::spawn_blocking(move || {
            for batch in together.read(batches) {
                let batch = batch.map_err(of_table).and_then(|batch| all_seen(batch, &seen));
                let is_error = batch.is_err();
                if give.blocking_send(batch).is_err() || is_error {
                    break;
                }
            }
        });
        ScanBatches { take, _task: task }
    }
}

/// Batches that a thread reads.
#[derive(Debug)]
pub struct ScanBatches {
    take: mpsc::Receiver<Result<ScanBatch, QueryError>>,
    _task: SpawnedTask<()>,
}

impl ScanBatches {
    /// The next one; None at the end.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn next(&mut self) -> Option<Result<ScanBatch, QueryError>> {
        self.take.recv().await
    }
}

fn of_table(error: TableError) -> QueryError {
    external(error).into()
}

fn all_seen(batch: ScanBatch, seen: &[SeenFrames]) -> Result<ScanBatch, QueryError> {
    let batches =
        batch.batches.into_iter().map(|(kind, batch)| Ok((kind, seen[kind].seen_rows(batch)?)));
    let batches = batches.collect::<Result<Vec<_>, QueryError>>()?;
    Ok(ScanBatch { batches, ..batch })
}
