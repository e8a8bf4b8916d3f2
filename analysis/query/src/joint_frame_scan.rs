//! Reads several kinds of frames together: each chunk once, in file order.

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

/// Number of batches that are read ahead.
const READ_AHEAD: usize = 2;

/// The wanted columns of a kind of frames.
#[derive(Debug, Clone)]
pub struct FrameColumns {
    /// The kind of frames.
    pub frame: FrameTable,
    /// Indices of the columns of its table, in the wanted order, without duplicates.
    pub columns: Vec<usize>,
}

/// Several kinds of frames that are read together.
#[derive(Debug)]
pub struct JointFrameScan {
    scan: Arc<JointScan>,
    visible: Arc<Vec<VisibleFrames>>,
}

/// The visible part of a kind of frames.
#[derive(Debug)]
struct VisibleFrames {
    /// A filter for the visible rows; None if all rows are visible.
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Number of wanted columns. Columns after them are for the filter.
    columns: usize,
}

impl VisibleFrames {
    /// The visible rows, with the wanted columns.
    fn visible_rows(&self, batch: RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let Some(filter) = &self.filter else { return Ok(batch) };
        let visible = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
        let columns: Vec<usize> = (0..self.columns).collect();
        Ok(filter_record_batch(&batch.project(&columns)?, visible.as_boolean())?)
    }
}

impl Engine {
    /// A joint scan of kinds of frames; None if one of them cannot be read this way.
    ///
    /// # Errors
    /// A table lacks a requested column, or a bound is relative to an unknown start.
    pub fn joint_frame_scan(
        &self,
        kinds: &[FrameColumns],
    ) -> Result<Option<JointFrameScan>, QueryError> {
        let (mut visible, mut read) = (Vec::new(), Vec::new());
        for kind in kinds {
            let table = kind.frame.table.as_ref();
            let mut columns = kind.columns.clone();
            let filter = self.filter(table)?;
            let bounds = filter.as_ref().map_or_else(Bounds::default, |filter| {
                bounds::from_filters(std::slice::from_ref(filter), table)
            });
            let wanted = columns.len();
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
                    // `coalesce` exists in logical plans only; simplifying replaces it.
                    let context = SimplifyContext::builder().with_schema(Arc::new(own.clone()));
                    let simplifier = ExprSimplifier::new(context.build());
                    let filter = simplifier.simplify(simplifier.coerce(filter, &own)?)?;
                    Some(self.context().create_physical_expr(filter, &own)?)
                }
            };
            visible.push(VisibleFrames { filter, columns: wanted });
            read.push((table, columns, bounds));
        }
        let tables: Vec<ScannedTable<'_>> = read
            .iter()
            .map(|(table, columns, bounds)| ScannedTable { table: *table, columns, bounds })
            .collect();
        let scan = JointScan::new(self.set(), &tables).map_err(external)?;
        let visible = Arc::new(visible);
        Ok(scan.map(|scan| JointFrameScan { scan: Arc::new(scan), visible }))
    }
}

impl JointFrameScan {
    /// The number of batches.
    pub fn batch_count(&self) -> usize {
        self.scan.batch_count()
    }

    /// Bounds of the times of the frames.
    pub fn times(&self) -> ChunkTimes {
        self.scan.times()
    }

    /// Whether skipped chunks may hold frames whose kind is not in their schema.
    pub fn may_be_unknown(&self) -> bool {
        self.scan.may_be_unknown()
    }

    /// Reads a range of batches in order, in a separate thread.
    pub fn read(&self, batches: Range<usize>) -> ScanBatches {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let (scan, visible) = (self.scan.clone(), self.visible.clone());
        let task = SpawnedTask::spawn_blocking(move || {
            for batch in scan.read(batches) {
                let batch =
                    batch.map_err(table_error).and_then(|batch| visible_batch(batch, &visible));
                let is_error = batch.is_err();
                if sender.blocking_send(batch).is_err() || is_error {
                    break;
                }
            }
        });
        ScanBatches { receiver, _task: task }
    }
}

/// Batches that a thread reads.
#[derive(Debug)]
pub struct ScanBatches {
    receiver: mpsc::Receiver<Result<ScanBatch, QueryError>>,
    _task: SpawnedTask<()>,
}

impl ScanBatches {
    /// The next batch; None at the end.
    ///
    /// # Errors
    /// A capture cannot be read, or the scan was cancelled.
    pub async fn next(&mut self) -> Option<Result<ScanBatch, QueryError>> {
        self.receiver.recv().await
    }
}

fn table_error(error: TableError) -> QueryError {
    external(error).into()
}

fn visible_batch(batch: ScanBatch, visible: &[VisibleFrames]) -> Result<ScanBatch, QueryError> {
    let batches = batch
        .batches
        .into_iter()
        .map(|(kind, batch)| Ok((kind, visible[kind].visible_rows(batch)?)));
    let batches = batches.collect::<Result<Vec<_>, QueryError>>()?;
    Ok(ScanBatch { batches, ..batch })
}
