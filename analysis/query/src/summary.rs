//! The values of `ppt stat`: summaries of the fields of each kind of frames, by groups and by slices of
//! time. They take one pass over the rows, with a part for each thread.

mod answer;
mod finish;
mod gathered;
mod partial_summary;
mod plan;
mod steps;
mod sweep;

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::TableReference;
use datafusion::common::runtime::JoinSet;
use datafusion::logical_expr::lit;
use datafusion::prelude::ident;
use futures::StreamExt;
use ppt_stats::{Budget, Samples};

use crate::engine::{BoxedAnswer, Engine, FrameTable, KERNEL_BUFFER, RowUnit};
use crate::error::QueryError;
pub use answer::{FieldSummary, FrameSummary, Group, SummaryRequest, SummaryValues};
use gathered::{cast_integers, extend};
use partial_summary::PartialSummary;
use plan::ReadPlan;
pub use plan::{ends, is_identity, step_column};
pub use sweep::{Sweep, Swept, SweptFrames, TimeSlices};

impl Engine {
    /// Summarises every kind of frames that has the requested columns.
    ///
    /// # Errors
    /// The request names an unknown frame or column, a condition is no SQL, a capture cannot be read, or the query
    /// is cancelled or exceeds its memory.
    pub fn summary<'a>(
        &'a self,
        request: &'a SummaryRequest,
    ) -> BoxedAnswer<'a, Vec<FrameSummary>> {
        Box::pin(async move {
            let budget = Budget::new(request.memory);
            let (mut plans, mut missing) = (Vec::new(), Vec::new());
            let mut known: Vec<String> = Vec::new();
            for (table, unit) in self.requested_tables(request)? {
                match ReadPlan::new(self, request, (&table, unit)) {
                    Ok(plan) => {
                        known.extend(plan.fields.iter().cloned());
                        plans.push(plan);
                    }
                    // Another kind may have the column.
                    Err(QueryError::NoColumn { name, available, .. }) => {
                        known.extend(available);
                        missing.push(name);
                    }
                    Err(error) => return Err(error),
                }
            }
            let is_missing = |name: &&String| !plans.iter().any(|plan| plan.fields.contains(name));
            let unknown = request.fields.iter().find(is_missing).cloned();
            // A name that some table has is not a typo.
            let wrong =
                missing.iter().find(|name| !known.contains(name)).or(missing.first()).cloned();
            if let Some(name) = wrong.filter(|_| plans.is_empty()).or(unknown) {
                return Err(plan::no_column(&name, known));
            }
            let mut all = Vec::new();
            for plan in plans {
                all.push(plan.run(self, request, &budget).await?);
            }
            Ok(all)
        })
    }

    /// The requested tables. Frames have precedence over spans and chains of the same name.
    fn requested_tables(
        &self,
        request: &SummaryRequest,
    ) -> Result<Vec<(FrameTable, RowUnit)>, QueryError> {
        if let Some(name) = &request.frame {
            return self.frames_spans_or_chains(name);
        }
        let frames = self.frames(None)?.into_iter().map(|table| (table, RowUnit::Frame));
        let others = if request.includes_spans_and_chains() {
            self.spans_and_chains(None)
        } else {
            Vec::new()
        };
        let mut all: Vec<_> = frames.chain(others).collect();
        // Frames of programs come before those of the kernel.
        all.sort_by_key(|(table, _)| table.buffer == KERNEL_BUFFER);
        Ok(all)
    }
}

impl ReadPlan {
    async fn run(
        self,
        engine: &Engine,
        request: &SummaryRequest,
        budget: &Budget,
    ) -> Result<FrameSummary, QueryError> {
        let mut rows = engine.context().table(self.table.clone()).await?;
        if let Some(filter) = &self.filter {
            rows = rows.filter(filter.clone())?;
        }
        let streams = rows.select(self.select.clone())?.execute_stream_partitioned().await?;
        let plan = Arc::new(self);
        let mut parts = JoinSet::new();
        for stream in streams {
            let (plan, budget, every) = (plan.clone(), budget.clone(), request.every);
            parts.spawn(async move {
                PartialSummary::new(plan, every.map(Into::into), budget).read(stream).await
            });
        }
        let mut all: Option<PartialSummary> = None;
        while let Some(part) = parts.join_next().await {
            let part = part.map_err(|error| QueryError::Failed(error.to_string()))??;
            match &mut all {
                None => all = Some(part),
                Some(all) => all.join(part),
            }
        }
        let groups = match all {
            Some(all) => all.finish(request, engine.threads()).await?,
            None => Vec::new(),
        };
        let (buffer, frame, unit) = (plan.buffer.clone(), plan.frame.clone(), plan.unit);
        let mut summary = FrameSummary { buffer, frame, unit, groups };
        if request.self_time {
            plan.add_self_time(engine, request, budget, &mut summary).await?;
        }
        Ok(summary)
    }

    /// Adds the self time of slices: the time that no inner slice covers.
    async fn add_self_time(
        &self,
        engine: &Engine,
        request: &SummaryRequest,
        budget: &Budget,
        summary: &mut FrameSummary,
    ) -> Result<(), QueryError> {
        if !request.by.is_empty() || request.every.is_some() || request.filter.is_some() {
            let why = "self time is of whole captures: without --by, --every and --where";
            return Err(QueryError::NotHere(why.to_owned()));
        }
        let Some(group) = summary.groups.first_mut() else { return Ok(()) };
        for summarised in self.summarised.iter().filter(|summarised| summarised.ends.is_some()) {
            let name = format!("{}.{}", self.frame, summarised.field.name());
            let is_interval =
                ident("name").eq(lit(name)).and(ident("buffer").eq(lit(&*self.buffer)));
            let slices = engine.context().table(TableReference::bare("slices")).await?;
            let rows = slices.filter(is_interval)?.select(vec![ident("self")])?;
            let mut stream = rows.execute_stream().await?;
            let mut samples = Samples::<i64>::new(budget);
            while let Some(batch) = stream.next().await {
                let values = cast_integers::<Int64Type>(batch?.column(0))?;
                extend(&mut samples, values.as_primitive::<Int64Type>());
            }
            let summary = Box::new(samples.finish());
            group.fields.push(FieldSummary {
                name: format!("{}.self", summarised.field.name()),
                step: None,
                unit: "ns".to_owned(),
                values: SummaryValues::Numbers { summary, busy: None, spread: None },
            });
        }
        Ok(())
    }
}
