//! A table of captures as DataFusion's [`TableProvider`]. [`Engine::new`](crate::Engine::new) registers it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use ppt_tables::{Bounds, CaptureTable, Pass, Scan, TableRequest};

use crate::bounds;
use crate::error::external;
use crate::exec::{PassExec, ScanExec, projected};

/// A table of captures for DataFusion.
#[derive(Debug)]
pub(crate) struct ProvidedTable {
    name: String,
    table: Arc<dyn CaptureTable>,
    pushdown: bool,
    /// Bytes of memory for rows that depend on each other; None for no limit.
    memory: Option<usize>,
}

impl ProvidedTable {
    pub fn new(
        name: &str,
        table: Arc<dyn CaptureTable>,
        pushdown: bool,
        memory: Option<usize>,
    ) -> ProvidedTable {
        ProvidedTable { name: name.to_owned(), table, pushdown, memory }
    }

    fn plan(
        &self,
        columns: &[usize],
        bounds: &Bounds,
        limit: Option<usize>,
        parts: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Without push-down, matching in memory is off, too: DataFusion sorts the rows.
        let memory = if self.pushdown { self.memory } else { Some(0) };
        let request = TableRequest { columns, bounds, limit, parts, memory };
        let planned = self.table.plan(&request).map_err(external)?;
        let mut all = vec![self.planned(planned.scan, planned.pass)?];
        for more in planned.more {
            all.push(self.planned(more.scan, more.pass)?);
        }
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            (last, _) => UnionExec::try_new(all.into_iter().chain(last).collect()),
        }
    }

    fn planned(&self, scan: Arc<dyn Scan>, pass: Option<Pass>) -> Result<Arc<dyn ExecutionPlan>> {
        let scan: Arc<dyn ExecutionPlan> = Arc::new(ScanExec::new(&self.name, scan, self.pushdown));
        match pass {
            None => Ok(scan),
            Some(pass) => Ok(Arc::new(PassExec::try_new(pass, scan)?)),
        }
    }
}

#[async_trait]
impl TableProvider for ProvidedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.table.schema().fields().len()).collect();
        let columns = projection.unwrap_or(&all);
        let parts = state.config_options().execution.target_partitions;
        if self.pushdown {
            let bounds = bounds::from_filters(filters, self.table.as_ref());
            // DataFusion applies the filter again after the scan.
            return self.plan(columns, &bounds, limit.filter(|_| filters.is_empty()), parts);
        }
        let plan = self.plan(&all, &Bounds::default(), None, parts)?;
        projected(plan, Some(columns))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| {
            let filter = std::slice::from_ref(*filter);
            if self.pushdown && !bounds::from_filters(filter, self.table.as_ref()).is_empty() {
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        Ok(filters.iter().map(support).collect())
    }
}
