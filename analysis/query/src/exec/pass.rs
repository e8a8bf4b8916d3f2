//! A pass over sorted rows. DataFusion groups and sorts them as the pass requires, and spills if they exceed
//! the memory.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
    PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use ppt_tables::Pass;

use super::plan_methods;
use crate::error::external;

/// Runs a pass over the rows of its input.
#[derive(Debug)]
pub(crate) struct PassExec {
    pass: Pass,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PassExec {
    pub fn try_new(pass: Pass, input: Arc<dyn ExecutionPlan>) -> Result<PassExec> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(pass.schema.clone()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(PassExec { pass, input, properties: Arc::new(properties) })
    }

    fn column(&self, column: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(self.input.schema().field(column).name(), column))
    }

    fn with_inputs(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<Self>> {
        match (children.pop(), children.len()) {
            (Some(input), 0) => Ok(Arc::new(PassExec::try_new(self.pass.clone(), input)?)),
            _ => internal_err!("a pass has one input"),
        }
    }
}

impl DisplayAs for PassExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CapturePass: {}", self.pass.explain_text)
    }
}

impl ExecutionPlan for PassExec {
    plan_methods!();

    fn name(&self) -> &'static str {
        "CapturePass"
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let group_by = self.pass.group_by.iter().map(|&column| self.column(column)).collect();
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(group_by)])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let sort_expr = |&(column, descending): &(usize, bool)| {
            let options = SortOptions { descending, nulls_first: !descending };
            PhysicalSortExpr::new(self.column(column), options)
        };
        let order = LexOrdering::new(self.pass.order.iter().map(sort_expr));
        vec![order.map(OrderingRequirements::from)]
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(part, context)?;
        let runner = (self.pass.start.0)();
        // None at the end makes the runner return its remaining rows.
        let input = input.map(|batch| batch.map(Some)).chain(stream::once(async { Ok(None) }));
        let batches = input
            .scan(runner, |runner, batch| {
                let done = batch.and_then(|batch| {
                    let done = match batch {
                        Some(batch) => runner.push(batch),
                        None => runner.finish(),
                    };
                    done.map_err(external)
                });
                futures::future::ready(Some(done))
            })
            .map_ok(|done| stream::iter(done.into_iter().map(Ok)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
