//! A scan of a table, part by part.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use ppt_tables::Scan;

use super::plan_methods;
use crate::error::external;

/// The order of scans, which is the default of `ORDER BY`.
const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

/// Reads a table.
#[derive(Debug)]
pub(crate) struct ScanExec {
    name: String,
    scan: Arc<dyn Scan>,
    /// Whether to report the number and the order of rows, if they are known without reading.
    reports_statistics: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    pub fn new(name: &str, scan: Arc<dyn Scan>, reports_statistics: bool) -> ScanExec {
        let schema = scan.schema();
        let sort_expr = |&column: &usize| {
            let column = Column::new(schema.field(column).name(), column);
            PhysicalSortExpr::new(Arc::new(column), ASCENDING)
        };
        let order =
            LexOrdering::new(scan.order().iter().filter(|_| reports_statistics).map(sort_expr));
        let mut equal = EquivalenceProperties::new(schema.clone());
        equal.add_orderings(order);
        let properties = PlanProperties::new(
            equal,
            Partitioning::UnknownPartitioning(scan.parts()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        ScanExec {
            name: name.to_owned(),
            scan,
            reports_statistics,
            properties: Arc::new(properties),
            metrics,
        }
    }

    /// A scan has no inputs.
    fn with_inputs(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<Self>> {
        Ok(self)
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.scan.schema();
        let columns: Vec<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "CaptureScan: {}", self.name)?;
        write!(f, ", columns=[{}], parts={}", columns.join(", "), self.scan.parts())?;
        write!(f, ", {}", self.scan.explain_text())
    }
}

impl ExecutionPlan for ScanExec {
    plan_methods!();

    fn name(&self) -> &'static str {
        "CaptureScan"
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn execute(&self, part: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, part);
        let mut batches = self.scan.read(part);
        let next = move || {
            let timer = baseline.elapsed_compute().timer();
            let batch = batches.next()?;
            drop(timer);
            if let Ok(batch) = &batch {
                baseline.record_output(batch.num_rows());
            }
            Some(batch.map_err(external))
        };
        let stream = futures::stream::iter(std::iter::from_fn(next));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows = self.scan.rows(args.partition()).filter(|_| self.reports_statistics);
        let num_rows = rows.map_or(Precision::Absent, Precision::Exact);
        let columns = self.scan.schema().fields().iter();
        Ok(Arc::new(Statistics {
            num_rows,
            total_byte_size: Precision::Absent,
            column_statistics: columns.map(|_| ColumnStatistics::new_unknown()).collect(),
        }))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let column = |by: &PhysicalSortExpr| {
            let column = by.expr.downcast_ref::<Column>().filter(|_| by.options == ASCENDING)?;
            Some(column.index())
        };
        let columns: Option<Vec<usize>> = order.iter().map(column).collect();
        Ok(
            match columns
                .filter(|_| self.reports_statistics)
                .and_then(|columns| self.scan.ordered(&columns))
            {
                Some(scan) => SortOrderPushdownResult::Exact {
                    inner: Arc::new(ScanExec::new(&self.name, scan, self.reports_statistics)),
                },
                None => SortOrderPushdownResult::Unsupported,
            },
        )
    }
}
