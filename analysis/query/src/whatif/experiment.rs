//! The rounds of `ppt whatif --live` in captures, and the values of a metric in each round.

use ppt_causality::experiment::{ExperimentAnswer, ExperimentRefusal, ExperimentRound, answers};
use ppt_causality::retime::{Metric, Resampling};

use super::row::RowView;
use crate::engine::Engine;
use crate::error::QueryError;

/// The buffer of rounds.
const BUFFER: &str = "rounds";
const ROUNDS: &str = "SELECT slowed, metric, ts, \
                      CAST(round_end AS BIGINT) - CAST(round_start AS BIGINT), permutation, \
                      CAST(round(speed * 1e9) AS BIGINT) FROM rounds.round \
                      WHERE ts IS NOT NULL ORDER BY ts";

/// An experiment with running programs.
#[derive(Debug, Clone, Default)]
pub struct Experiment {
    /// Its rounds.
    pub rounds: Vec<ExperimentRound>,
    /// The metric of the experiment, as written; empty if it had none.
    pub metric: String,
}

impl Experiment {
    fn round(&mut self, row: &RowView<'_>) -> Option<()> {
        let slowed = row.text(0).filter(|name| !name.is_empty()).map(str::to_owned);
        self.metric = row.text(1).unwrap_or_default().to_owned();
        let (end, length, permutation) = (row.long(2)?, row.long(3)?, row.long(4)?);
        let start = end.checked_sub(length)?;
        let speed = row.long(5)? as f64 / 1e9;
        self.rounds.push(ExperimentRound { start, end, permutation, speed, slowed });
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
    ) -> Result<Vec<ExperimentAnswer>, ExperimentRefusal> {
        answers(metric, &self.rounds, values, Resampling::default())
    }
}

impl Engine {
    /// The experiment in the captures. None if there is none.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn experiment(&self) -> Result<Option<Experiment>, QueryError> {
        if !self.set().has_rounds() {
            return Ok(None);
        }
        let mut experiment = Experiment::default();
        self.each(ROUNDS, |row| experiment.round(row)).await?;
        Ok(Some(experiment))
    }

    /// The begin and end of each value of a metric, in ns, sorted by end. None for the metric of a whole run.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn values(&self, metric: &Metric) -> Result<Option<Vec<(i64, i64)>>, QueryError> {
        let text = |name: &str| name.replace('\'', "''");
        let query = match metric {
            Metric::Length(name) | Metric::Rate(name) => {
                let name = text(name);
                format!(
                    "SELECT ts, dur FROM slices WHERE ts IS NOT NULL AND dur >= 0 \
                     AND (name = '{name}' OR ends_with(name, '.{name}'))"
                )
            }
            Metric::Path(from, to) => {
                let (from, to) = (text(from), text(to));
                format!("SELECT src_ts, latency FROM paths('{from}', '{to}') WHERE latency >= 0")
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
    }

    /// Metrics for the lengths of all spans, or of all intervals if there are no spans; without ppt's own.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn lengths(&self) -> Result<Vec<Metric>, QueryError> {
        let query =
            format!("SELECT DISTINCT name FROM slices WHERE buffer <> '{BUFFER}' ORDER BY name");
        let mut names = Vec::new();
        self.each(&query, |row| {
            names.push(row.text(0)?.to_owned());
            Some(())
        })
        .await?;
        let spans: Vec<String> = names.iter().filter(|name| !name.contains('.')).cloned().collect();
        let names = if spans.is_empty() { names } else { spans };
        Ok(names.into_iter().map(Metric::Length).collect())
    }
}
