//! Loads a recorded run from tables, for `ppt whatif`.

mod experiment;
mod load;
mod loss;
mod row;
mod services;

use std::collections::HashSet;
use std::fmt::Write;

use futures::StreamExt;
pub use ppt_causality::experiment::{ExperimentAnswer, ExperimentRefusal};
pub use ppt_causality::retime;

use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
pub use experiment::LiveExperiment;
pub use load::LoadedRun;
use load::{EDGES, Loader};
use row::{Columns, RowView};
use services::ServiceRows;

/// The queries: intervals, points, data from outside, missing frames, thread states and hosts.
const SLICES: &str = "SELECT name, host, pid, tid, ts, dur, buffer FROM slices \
                      WHERE ts IS NOT NULL AND dur >= 0 AND tid IS NOT NULL";
const POINTS: &str = "SELECT capture, buffer, segment, ring, seqno, host, pid, tid, ts, point, in_type, \
                      in_hash FROM points WHERE ts IS NOT NULL AND tid IS NOT NULL";
const UNMATCHED: &str =
    "SELECT capture, buffer, segment, ring, seqno, point, side, reason FROM unmatched";
/// Periods in which frames are missing.
const GAPS: &str = "SELECT host, pid, tid, buffer, ts_lo, ts_hi FROM gaps \
                    WHERE cause IN ('overrun', 'disk', 'corrupt', 'absent')";
/// Processes with dropped frames, whose times are unknown.
const DROPPED: &str = "SELECT host, pid, buffer FROM account \
                       WHERE count > 0 AND cause IN ('no_ring', 'nested', 'not_mapped')";
const STATES: &str = "SELECT host, pid, tid, ts, dur, state, cpu, woken_by FROM thread_states \
                      WHERE dur IS NOT NULL AND tid IS NOT NULL";
const CAPTURES: &str = "SELECT capture, host FROM captures";

impl Engine {
    /// The run that the captures recorded.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn load_run(&self) -> BoxedAnswer<'_, LoadedRun> {
        Box::pin(async move {
            let mut loader = Loader::default();
            self.each(CAPTURES, |view| loader.capture(view)).await?;
            self.each(POINTS, |view| loader.point(view)).await?;
            let mut services = ServiceRows::default();
            let tables: HashSet<String> = self.tables().into_iter().map(|table| table.0).collect();
            let of_services = services::FRAMES.iter().filter(|frame| tables.contains(frame.table));
            let mut others = SLICES.to_owned();
            for frame in of_services {
                self.each(frame.query, |view| services.interval(frame, view)).await?;
                let _ = write!(others, " AND NOT (buffer = 'net' AND name = '{}')", frame.interval);
            }
            services.finish().for_each(|(name, interval)| loader.service(&name, &interval));
            // Spans belong to no thread, but `edges` has both of their ends.
            self.each(&others, |view| loader.slice(view)).await?;
            self.each(GAPS, |view| loader.loss.gap(view)).await?;
            self.each(DROPPED, |view| loader.loss.dropped(view)).await?;
            self.each(EDGES, |view| loader.edge(view)).await?;
            self.each(UNMATCHED, |view| loader.unmatched(view)).await?;
            if self.set().has_kernel() {
                self.each(STATES, |view| loader.state(view)).await?;
            }
            Ok(loader.finish())
        })
    }

    /// Passes each row of a query to `take`.
    async fn each(
        &self,
        query: &str,
        mut take: impl FnMut(&RowView<'_>) -> Option<()>,
    ) -> Result<(), QueryError> {
        let mut batches = self.sql(query).await?.execute_stream().await?;
        while let Some(batch) = batches.next().await {
            for row in Columns::new(&batch?)?.rows() {
                // A row without an identity is skipped.
                let _ = take(&row);
            }
        }
        Ok(())
    }
}
