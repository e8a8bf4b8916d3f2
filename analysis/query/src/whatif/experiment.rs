//! The rounds of `ppt whatif --live` in captures, and the values of a metric in each round.

use std::collections::BTreeSet;

use ppt_causality::experiment::{ExperimentAnswers, ExperimentRefusal, ExperimentRound, answers};
use ppt_causality::pauses::{RoundPauses, judge_pauses, wait_share};
use ppt_causality::retime::{BlockBootstrap, Metric};
use ppt_causality::turns::{ThreadInterval, take_turns};
use ppt_causality::virtual_clock::{VirtualClock, VirtualClockPoint};

use super::row::RowView;
use crate::causality::Numbering;
use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
use crate::sql_quotes::sql_literal;

/// The buffers of rounds and of pauses.
const BUFFER: &str = "rounds";
const CLOCK_BUFFER: &str = "virtual_clock";
/// `slowed` is the interval or span of a round at any speed, also at one above 1.
const ROUNDS: &str = "SELECT slowed, metric, ts, \
                      CAST(round_end AS BIGINT) - CAST(round_start AS BIGINT), permutation, \
                      CAST(round(speed * 1e9) AS BIGINT) FROM rounds.round \
                      WHERE ts IS NOT NULL ORDER BY ts";

const CLOCK: &str = "SELECT ts, CAST(paused AS BIGINT) AS sum, CAST(round(rate * 1e9) AS BIGINT) FROM virtual_clock.virtual_clock \
                     WHERE ts IS NOT NULL ORDER BY ts, sum";
const PAUSES: &str = "SELECT CAST(owed AS BIGINT), CAST(paid AS BIGINT), CAST(look_interval AS BIGINT), \
                      CAST(look AS BIGINT), CAST(in_span AS BIGINT), CAST(waited AS BIGINT) \
                      FROM virtual_clock.pauses";

/// An experiment with running programs.
#[derive(Debug, Clone, Default)]
pub struct LiveExperiment {
    /// The rounds, in the order of their ends.
    pub rounds: Vec<ExperimentRound>,
    /// The metric of the experiment, as written; empty if it had none.
    pub metric: String,
    /// The time without pauses of CPUs.
    pub clock: VirtualClock,
    /// The pauses of rounds in which a span looked faster.
    pub pauses: Vec<RoundPauses>,
    /// The spans that looked faster, and that threads run one at a time.
    pub turns: Vec<String>,
}

impl LiveExperiment {
    fn round(&mut self, row: &RowView<'_>) -> Option<()> {
        let activity = row.text(0).filter(|name| !name.is_empty()).map(str::to_owned);
        self.metric = row.text(1).unwrap_or_default().to_owned();
        let (end, length, permutation) = (row.long(2)?, row.long(3)?, row.long(4)?);
        let start = end.checked_sub(length)?;
        let speed = row.long(5)? as f64 / 1e9;
        self.rounds.push(ExperimentRound { start, end, permutation, speed, activity });
        Some(())
    }

    /// The effects on a metric.
    ///
    /// # Errors
    /// The reason for which the experiment does not show any.
    pub fn answers(
        &self,
        metric: &Metric,
        values: &[(i64, i64)],
    ) -> Result<ExperimentAnswers, ExperimentRefusal> {
        let at = |time| self.clock.at(time);
        let rounds: Vec<_> = self
            .rounds
            .iter()
            .map(|round| ExperimentRound {
                start: at(round.start),
                end: at(round.end),
                ..round.clone()
            })
            .collect();
        let values: Vec<_> = values.iter().map(|&(begin, end)| (at(begin), at(end))).collect();
        let mut found = answers(metric, &rounds, &values, BlockBootstrap::default())?;
        if let Some(answer) = found.answers.first() {
            judge_pauses(metric, answer.base.mean, &self.pauses)?;
        }
        self.turns.iter().for_each(|span| found.leave_out_turns(span));
        found.leave_out_waits(wait_share(&self.pauses));
        Ok(found)
    }

    /// The names of the intervals that looked faster by pauses.
    fn paused(&self) -> BTreeSet<String> {
        let paused = self.rounds.iter().filter(|round| round.speed > 1.0);
        paused.filter_map(|round| round.activity.clone()).collect()
    }

    fn point(&mut self, row: &RowView<'_>) -> Option<()> {
        self.clock.points.push(VirtualClockPoint {
            time: row.long(0)?,
            paused: row.long(1)?,
            pause_rate: row.long(2)? as f64 / 1e9,
        });
        Some(())
    }

    fn round_pauses(&mut self, row: &RowView<'_>) -> Option<()> {
        let ns = |column| row.long(column).map(|ns| ns as f64);
        let (owed, paid, interval, look) = (ns(0)?, ns(1)?, ns(2)?, ns(3)?);
        let (in_span, waited) = (ns(4)?, ns(5)?);
        self.pauses.push(RoundPauses { owed, paid, interval, look, in_span, waited });
        Some(())
    }
}

/// The condition that a slice has this name, perhaps without its buffer.
fn is_named(name: &str) -> String {
    let (whole, end) = (sql_literal(name), sql_literal(&format!(".{name}")));
    format!("(name = {whole} OR ends_with(name, {end}))")
}

/// The rank of each thread, which is a host, a process and a ring. Rows come in any order, but the order of intervals
/// with equal times must not depend on it.
fn ranks(threads: &[(String, i64, i64)]) -> Vec<u64> {
    let mut sorted: Vec<usize> = (0..threads.len()).collect();
    sorted.sort_unstable_by_key(|&number| &threads[number]);
    let mut ranks = vec![0; threads.len()];
    for (rank, number) in (0..).zip(sorted) {
        ranks[number] = rank;
    }
    ranks
}

impl Engine {
    /// The experiment in the captures. None if there is none.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn experiment(&self) -> BoxedAnswer<'_, Option<LiveExperiment>> {
        Box::pin(async move {
            if !self.set().has_rounds() {
                return Ok(None);
            }
            let mut experiment = LiveExperiment::default();
            self.each(ROUNDS, |row| experiment.round(row)).await?;
            if self.set().has_virtual_clock() {
                self.each(CLOCK, |row| experiment.point(row)).await?;
                self.each(PAUSES, |row| experiment.round_pauses(row)).await?;
                for span in experiment.paused() {
                    if self.takes_turns(&span).await? {
                        experiment.turns.push(span);
                    }
                }
            }
            Ok(Some(experiment))
        })
    }

    /// Whether threads run a span one at a time.
    async fn takes_turns(&self, span: &str) -> Result<bool, QueryError> {
        let query = format!(
            "SELECT ts, dur, host, CAST(pid AS BIGINT), CAST(ring AS BIGINT) FROM slices \
             WHERE ts IS NOT NULL AND dur >= 0 AND {}",
            is_named(span)
        );
        let mut threads = Numbering::default();
        let mut intervals = Vec::new();
        self.each(&query, |row| {
            let (begin, length) = (row.long(0)?, row.long(1)?);
            let end = begin.checked_add(length)?;
            let host = row.text(2).unwrap_or_default().to_owned();
            let thread = threads.number((host, row.long(3)?, row.long(4)?)).into();
            intervals.push(ThreadInterval { begin, end, thread });
            Some(())
        })
        .await?;
        let ranks = ranks(threads.all());
        for interval in &mut intervals {
            interval.thread = ranks[interval.thread as usize];
        }
        Ok(take_turns(&mut intervals))
    }

    /// The begin and end of each value of a metric, in ns, sorted by end. None for the metric of a whole run.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn metric_values<'a>(
        &'a self,
        metric: &'a Metric,
    ) -> BoxedAnswer<'a, Option<Vec<(i64, i64)>>> {
        Box::pin(async move {
            let query = match metric {
                Metric::Length(name) | Metric::Rate(name) => {
                    let is_named = is_named(name);
                    format!(
                        "SELECT ts, dur FROM slices WHERE ts IS NOT NULL AND dur >= 0 AND {is_named}"
                    )
                }
                Metric::Path(from, to) => {
                    let (from, to) = (sql_literal(from), sql_literal(to));
                    format!("SELECT src_ts, latency FROM paths({from}, {to}) WHERE latency >= 0")
                }
                Metric::End => return Ok(None),
            };
            let mut values = Vec::new();
            self.each(&query, |row| {
                let (begin, length) = (row.long(0)?, row.long(1)?);
                values.push((begin, begin.checked_add(length)?));
                Some(())
            })
            .await?;
            values.sort_unstable_by_key(|value| value.1);
            Ok(Some(values))
        })
    }

    /// Metrics for the lengths of all spans, or of all intervals if there are no spans; without ppt's own.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn length_metrics(&self) -> BoxedAnswer<'_, Vec<Metric>> {
        Box::pin(async move {
            let query = format!(
                "SELECT DISTINCT name FROM slices WHERE buffer NOT IN ('{BUFFER}', '{CLOCK_BUFFER}') ORDER BY name"
            );
            let mut names = Vec::new();
            self.each(&query, |row| {
                names.push(row.text(0)?.to_owned());
                Some(())
            })
            .await?;
            let spans: Vec<String> =
                names.iter().filter(|name| !name.contains('.')).cloned().collect();
            let names = if spans.is_empty() { names } else { spans };
            Ok(names.into_iter().map(Metric::Length).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_different_hosts_are_different() {
        let thread = |host: &str, pid, ring| (host.to_owned(), pid, ring);
        let threads = [thread("two", 7, 1), thread("one", 7, 1), thread("one", 7, 0)];
        assert_eq!(ranks(&threads), [2, 1, 0]);
    }
}
