//! The visible part of captures: every table is a view of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::prelude::ident;
use ppt_tables::{Bound, Bounded, BoundedNumber, BoundedText, CaptureSet, CaptureTable};
use ppt_text::nearest;

use crate::error::QueryError;

/// The visible part of captures, as `--from`, `--to` and `-b` of `ppt dump` select it. Times since the start
/// are relative to the beginning of the first capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// The beginning, included.
    pub from: Option<Bound>,
    /// The end, included.
    pub to: Option<Bound>,
    /// The visible buffers; empty: all.
    pub buffers: Vec<String>,
}

impl Window {
    pub(crate) fn has_buffer(&self, buffer: &str) -> bool {
        self.buffers.is_empty() || self.buffers.iter().any(|text| text == buffer)
    }

    /// Fails if a buffer does not exist.
    pub(crate) fn check(&self, set: &CaptureSet) -> Result<(), QueryError> {
        let available: BTreeSet<&str> = set.buffers().collect();
        match self.buffers.iter().find(|buffer| !available.contains(buffer.as_str())) {
            None => Ok(()),
            Some(name) => {
                let available: Vec<String> = available.into_iter().map(str::to_owned).collect();
                let nearest = nearest(name, &available).cloned();
                Err(QueryError::NoBuffer { name: name.clone(), nearest, available })
            }
        }
    }

    /// A view of the visible rows of `table`.
    pub(crate) fn applied(
        &self,
        provided: Arc<dyn TableProvider>,
        table: &dyn CaptureTable,
        set: &CaptureSet,
    ) -> Result<Arc<dyn TableProvider>, QueryError> {
        let Some(filter) = self.filter(table, set)? else { return Ok(provided) };
        let name = TableReference::bare("captured");
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(provided), None)?;
        Ok(Arc::new(ViewTable::new(plan.filter(filter)?.build()?, None)))
    }

    /// A filter for the visible rows of `table`; None if all rows are visible.
    pub(crate) fn filter(
        &self,
        table: &dyn CaptureTable,
        set: &CaptureSet,
    ) -> Result<Option<Expr>, QueryError> {
        let schema = table.schema();
        let by_name = |name: &str| schema.index_of(name).ok();
        let bounded =
            |wanted| (0..schema.fields().len()).find(|&index| table.bounded(index) == Some(wanted));
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let mut all = Vec::new();
        let buffer = bounded(Bounded::Word(BoundedText::Buffer)).or_else(|| by_name("buffer"));
        if let (false, Some(buffer)) = (self.buffers.is_empty(), buffer) {
            let words = self.buffers.iter().map(|buffer| lit(buffer.as_str())).collect();
            all.push(column(buffer).in_list(words, false));
        }
        let number = |number| bounded(Bounded::Number(number));
        let time = match (number(BoundedNumber::Ts), number(BoundedNumber::Drained)) {
            (Some(ts), Some(drained)) => Some(coalesce(vec![column(ts), column(drained)])),
            // The begin of slices.
            (None, None) if by_name("dur").is_some() => by_name("ts").map(column),
            (one, other) => one.or(other).map(column),
        };
        for (bound, is_from) in [(self.from, true), (self.to, false)] {
            let (column, value) = match bound {
                None => continue,
                Some(Bound::Seq(seq)) => {
                    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
                    (number(BoundedNumber::Seqno).map(column), lit(seq))
                }
                Some(Bound::Epoch(ns)) => (time.clone(), timestamp(i128::from(ns))),
                Some(Bound::Since(since)) => {
                    let began = set.began().ok_or(QueryError::NoBeginning)?;
                    let ns = i128::from(began).saturating_add(since.as_nanos() as i128);
                    (time.clone(), timestamp(ns))
                }
            };
            let Some(column) = column else { continue };
            all.push(if is_from { column.gt_eq(value) } else { column.lt_eq(value) });
        }
        Ok(all.into_iter().reduce(Expr::and))
    }
}

fn timestamp(ns: i128) -> Expr {
    let ns = ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), Some("UTC".into())), None)
}
