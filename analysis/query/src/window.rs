//! The part of captures that is seen: every table is a view of that part.

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

/// The part of captures that is seen: as `--from`, `--to` and `-b` of `ppt dump` say. Times since the
/// start count from where the first of them began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub from: Option<Bound>,
    /// Up to here; what is there belongs to it.
    pub to: Option<Bound>,
    /// Only these buffers; none: all.
    pub buffers: Vec<String>,
}

impl Window {
    pub(crate) fn has_buffer(&self, buffer: &str) -> bool {
        self.buffers.is_empty() || self.buffers.iter().any(|text| text == buffer)
    }

    /// Whether the buffers are there.
    pub(crate) fn check(&self, set: &CaptureSet) -> Result<(), QueryError> {
        let there: BTreeSet<&str> = set.buffers().collect();
        match self.buffers.iter().find(|buffer| !there.contains(buffer.as_str())) {
            None => Ok(()),
            Some(name) => {
                let there: Vec<String> = there.into_iter().map(str::to_owned).collect();
                let nearest = nearest(name, &there).cloned();
                Err(QueryError::NoBuffer { name: name.clone(), nearest, there })
            }
        }
    }

    /// What of `table` is seen.
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

    /// What is true of the rows of `table` that are seen; None: all are.
    pub(crate) fn filter(
        &self,
        table: &dyn CaptureTable,
        set: &CaptureSet,
    ) -> Result<Option<Expr>, QueryError> {
        let schema = table.schema();
        let by_name = |name: &str| schema.index_of(name).ok();
        let bounded =
            |what| (0..schema.fields().len()).find(|&index| table.bounded(index) == Some(what));
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
            // Of slices, when they began.
            (None, None) if by_name("dur").is_some() => by_name("ts").map(column),
            (one, other) => one.or(other).map(column),
        };
        for (bound, is_from) in [(self.from, true), (self.to, false)] {
            let (of, value) = match bound {
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
            let Some(of) = of else { continue };
            all.push(if is_from { of.gt_eq(value) } else { of.lt_eq(value) });
        }
        Ok(all.into_iter().reduce(Expr::and))
    }
}

fn timestamp(ns: i128) -> Expr {
    let ns = ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), Some("UTC".into())), None)
}
