//! Wake-ups between threads, from the kernel's frames.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::DataFusionError;
use futures::StreamExt;
use ppt_stats::{Budget, Samples, SummaryNumber};

use crate::causality::Texts;
use crate::engine::{BoxedAnswer, Engine};

/// Bytes that latencies may take before they are rounded to three digits.
const BUDGET: usize = 64 << 20;

/// The wake-ups of one thread by another one of its process.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadWakes {
    /// The name of the host.
    pub host: String,
    /// The process of both threads.
    pub pid: i64,
    /// The thread that woke.
    pub waker: i64,
    /// The thread that was woken.
    pub woken: i64,
    /// The number of wake-ups.
    pub count: u64,
    /// The median time from a wake-up until the woken thread had a CPU, ns.
    pub p50: f64,
    /// The 99th percentile of that time, ns.
    pub p99: f64,
    /// The longest such time, ns.
    pub max: i64,
}

impl Engine {
    /// The wake-ups between threads, the most frequent pair first. Empty if no capture has frames of the kernel.
    /// The graph of points does not have these edges, which lead from thread to thread.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn thread_wakes(&self) -> BoxedAnswer<'_, Vec<ThreadWakes>> {
        Box::pin(async move {
            if !self.set().has_kernel() {
                return Ok(Vec::new());
            }
            let sql = "SELECT src_host, src_pid, src_tid, dst_tid, latency FROM edges WHERE kind = 'wake'";
            let mut rows = self.sql(sql).await?.execute_stream().await?;
            let budget = Budget::new(BUDGET);
            let mut found: BTreeMap<(String, [i64; 3]), Samples<i64>> = BTreeMap::new();
            while let Some(batch) = rows.next().await.transpose()? {
                let hosts = Texts::new(&batch, 0)?;
                let numbers = (1..5).map(|at| cast(batch.column(at), &DataType::Int64));
                let numbers =
                    numbers.collect::<Result<Vec<_>, _>>().map_err(DataFusionError::from)?;
                let number = |at: usize, row: usize| {
                    let column = numbers[at].as_primitive::<Int64Type>();
                    column.is_valid(row).then(|| column.value(row))
                };
                for row in 0..batch.num_rows() {
                    let Some(latency) = number(3, row) else { continue };
                    let threads = [0, 1, 2].map(|at| number(at, row).unwrap_or(-1));
                    let times = found.entry((hosts.get(row).to_owned(), threads));
                    times.or_insert_with(|| Samples::new(&budget)).extend(&[latency]);
                }
            }
            let wakes = |((host, threads), times): ((String, [i64; 3]), Samples<i64>)| {
                let [pid, waker, woken] = threads;
                let summary = times.finish();
                let [p50, _, p99, _] =
                    summary.percentiles_as_floats().map(|time| time.unwrap_or(0.0));
                let max = match summary.max {
                    Some(SummaryNumber::Whole(max)) => i64::try_from(max).unwrap_or(i64::MAX),
                    _ => 0,
                };
                ThreadWakes { host, pid, waker, woken, count: summary.count, p50, p99, max }
            };
            let mut all: Vec<ThreadWakes> = found.into_iter().map(wakes).collect();
            all.sort_by_key(|wakes| std::cmp::Reverse(wakes.count));
            Ok(all)
        })
    }
}
