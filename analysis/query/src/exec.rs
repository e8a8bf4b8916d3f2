//! Execution plans in DataFusion: scans of tables, passes over sorted rows, and what plans share.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

mod pass;
mod scan;

pub(crate) use pass::PassExec;
pub(crate) use scan::ScanExec;

/// Methods of an `ExecutionPlan` that has its `properties` in a field, evaluates no expressions, and
/// replaces its inputs by `with_inputs`.
macro_rules! plan_methods {
    () => {
        fn properties(&self) -> &Arc<PlanProperties> {
            &self.properties
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn replace_children(
            self: Arc<Self>,
            inputs: Vec<Arc<dyn ExecutionPlan>>,
            _: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self.with_inputs(inputs)?)
        }

        fn with_new_children(
            self: Arc<Self>,
            inputs: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self.with_inputs(inputs)?)
        }
    };
}
pub(crate) use plan_methods;

/// A plan with some columns of `plan`; None selects all.
pub(crate) fn projected(
    plan: Arc<dyn ExecutionPlan>,
    columns: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(columns) = columns else { return Ok(plan) };
    let schema = plan.schema();
    let expression = |&column: &usize| {
        let alias = schema.field(column).name().clone();
        ProjectionExpr { expr: Arc::new(Column::new(&alias, column)), alias }
    };
    let columns: Vec<ProjectionExpr> = columns.iter().map(expression).collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}
