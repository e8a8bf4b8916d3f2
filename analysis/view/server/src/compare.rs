//! `/v1/compare`: the total times of intervals in two sets of captures, and the changes of their lengths.
//!
//! Totals come from SQL. `ppt-models` decides about changes, as for `ppt compare`.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use hyper::StatusCode;
use ppt_models::{Comparing, Comparison, MeasuredField, Resampling, Statistic};
use ppt_query::arrow::array::{Array, AsArray, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Int64Type};
use ppt_query::{Engine, QueryError};
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::session::ViewSession;
use crate::slices::{sql_command, within};

/// The most names that are shown.
const MAX_NAMES: usize = 100;
/// The most intervals whose lengths are compared.
const MAX_LENGTHS: u64 = 1_000_000;
/// The number of resamples, the default of `ppt compare`.
const RESAMPLES: usize = 2000;

/// A range of time of each set.
#[derive(Debug, Deserialize)]
pub(crate) struct CompareQuery {
    first: TimeRange,
    second: TimeRange,
}

/// Intervals that begin from `from` (included) to `to` (excluded).
#[derive(Debug, Deserialize)]
struct TimeRange {
    from: String,
    to: String,
}

/// Intervals by name. The name with the largest difference comes first.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedSets {
    rows: Vec<ComparedName>,
    /// The number of all names.
    names: usize,
    note: &'static str,
    /// For each set, the command that prints its totals.
    commands: [String; 2],
}

#[derive(Debug, Serialize)]
struct ComparedName {
    name: String,
    /// None if no interval of this name begins in the range.
    first: Option<NameTotals>,
    second: Option<NameTotals>,
    /// The second total minus the first, ns.
    difference: String,
    /// The changes of the lengths. Empty if they cannot be compared.
    changes: Vec<LengthChange>,
}

#[derive(Debug, Clone, Serialize)]
struct NameTotals {
    count: String,
    /// The sum of the lengths, ns.
    total: String,
}

#[derive(Debug, Clone, Serialize)]
struct LengthChange {
    /// `mean`, `p50` or `p99`.
    statistic: String,
    /// The values of both sets, ns.
    values: [f64; 2],
    /// `higher`, `lower`, `same` or `unclear`.
    verdict: String,
    /// The change in words, with its confidence interval.
    says: String,
}

/// The count and the total length (ns) of each name.
type Totals = BTreeMap<String, (u64, i64)>;
/// The lengths of each name in each capture, ordered by start.
type Lengths = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// Compares the intervals of two sets.
pub(crate) async fn compare(
    sessions: [&ViewSession; 2],
    asked: &CompareQuery,
) -> Result<ComparedSets, HttpRefusal> {
    let windows = [&asked.first, &asked.second].map(|range| within(&range.from, &range.to));
    let [first, second] = windows;
    let windows = [first?, second?];
    let engines = [sessions[0].engine()?, sessions[1].engine()?];
    let mut totals = [Totals::new(), Totals::new()];
    for ((engine, window), totals) in engines.iter().zip(&windows).zip(&mut totals) {
        *totals = totals_of(engine, window).await?;
    }
    let count: u64 = totals.iter().flat_map(Totals::values).map(|name| name.0).sum();
    let is_few = count <= MAX_LENGTHS;
    let mut changes = BTreeMap::new();
    let mut has_one_run = false;
    if is_few {
        let mut lengths = [Lengths::new(), Lengths::new()];
        for ((engine, window), lengths) in engines.iter().zip(&windows).zip(&mut lengths) {
            *lengths = lengths_of(engine, window).await?;
        }
        let [first, second] = lengths;
        let compared = tokio::task::spawn_blocking(move || length_changes(&first, &second)).await;
        let stopped = |error: tokio::task::JoinError| {
            HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        };
        LengthChanges { changes, has_one_run } = compared.map_err(stopped)?;
    }
    let mut rows = rows(&totals, &mut changes);
    let names = rows.len();
    rows.truncate(MAX_NAMES);
    let note = match (is_few, has_one_run) {
        (false, _) => {
            "These are too many intervals to hold their lengths against each other here: mark less, \
             or use `ppt compare`."
        }
        (true, true) => {
            "A set has one run: nothing says how runs differ, and any two runs may differ so."
        }
        (true, false) => "",
    };
    let commands = windows.map(|window| sql_command(&totals_query(&window)));
    Ok(ComparedSets { rows, names, note, commands })
}

fn totals_query(window: &str) -> String {
    format!(
        "SELECT name, count(*) AS count, sum(dur) AS total FROM slices WHERE {window} \
         GROUP BY name ORDER BY total DESC, name"
    )
}

async fn batches(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>, HttpRefusal> {
    let rows = engine.sql(sql).await?.execute_stream().await.map_err(QueryError::from)?;
    Ok(rows.try_collect().await.map_err(QueryError::from)?)
}

async fn totals_of(engine: &Engine, window: &str) -> Result<Totals, HttpRefusal> {
    let mut totals = Totals::new();
    for batch in batches(engine, &totals_query(window)).await? {
        let names = as_type(&batch, 0, &DataType::Utf8)?;
        let (counts, sums) =
            (as_type(&batch, 1, &DataType::Int64)?, as_type(&batch, 2, &DataType::Int64)?);
        let names = names.as_string::<i32>();
        let (counts, sums) = (counts.as_primitive::<Int64Type>(), sums.as_primitive::<Int64Type>());
        for row in (0..batch.num_rows()).filter(|&row| names.is_valid(row)) {
            let sum = if sums.is_valid(row) { sums.value(row) } else { 0 };
            let count = u64::try_from(counts.value(row)).unwrap_or(0);
            totals.insert(names.value(row).to_owned(), (count, sum));
        }
    }
    Ok(totals)
}

async fn lengths_of(engine: &Engine, window: &str) -> Result<Lengths, HttpRefusal> {
    let sql = format!(
        "SELECT name, capture, dur FROM slices WHERE {window} AND dur IS NOT NULL ORDER BY ts"
    );
    let rows = engine.sql(&sql).await?.execute_stream().await.map_err(QueryError::from)?;
    let mut rows = std::pin::pin!(rows);
    let mut lengths = Lengths::new();
    while let Some(batch) = rows.try_next().await.map_err(QueryError::from)? {
        let (names, captures) =
            (as_type(&batch, 0, &DataType::Utf8)?, as_type(&batch, 1, &DataType::Utf8)?);
        let values = as_type(&batch, 2, &DataType::Int64)?;
        let (names, captures) = (names.as_string::<i32>(), captures.as_string::<i32>());
        let values = values.as_primitive::<Int64Type>();
        for row in (0..batch.num_rows()).filter(|&row| names.is_valid(row)) {
            let (name, capture) = (names.value(row), captures.value(row));
            if !lengths.contains_key(name) {
                lengths.insert(name.to_owned(), BTreeMap::new());
            }
            let Some(runs) = lengths.get_mut(name) else { continue };
            match runs.get_mut(capture) {
                Some(run) => run.push(values.value(row) as f64),
                None => _ = runs.insert(capture.to_owned(), vec![values.value(row) as f64]),
            }
        }
    }
    Ok(lengths)
}

fn as_type(
    batch: &RecordBatch,
    column: usize,
    wanted: &DataType,
) -> Result<ppt_query::arrow::array::ArrayRef, HttpRefusal> {
    cast(batch.column(column), wanted).map_err(|error| HttpRefusal::bad(error.to_string()))
}

/// The changes of all names that both sets have.
struct LengthChanges {
    changes: BTreeMap<String, Vec<LengthChange>>,
    /// Whether a set has a single run, so that the variation between runs is unknown.
    has_one_run: bool,
}

fn length_changes(first: &Lengths, second: &Lengths) -> LengthChanges {
    let measure = |runs: &BTreeMap<String, Vec<f64>>| {
        let runs: Vec<Vec<f64>> = runs.values().cloned().collect();
        MeasuredField::measure(&runs, &Statistic::USUAL).ok()
    };
    let pairs: Vec<(&String, MeasuredField, MeasuredField)> = first
        .iter()
        .filter_map(|(name, runs)| Some((name, measure(runs)?, measure(second.get(name)?)?)))
        .collect();
    let options = Comparing {
        family: pairs.len() * Statistic::USUAL.len(),
        resampling: Resampling { count: RESAMPLES, seed: 1 },
        ..Comparing::default()
    };
    let mut changes = BTreeMap::new();
    let mut has_one_run = false;
    for (name, first, second) in &pairs {
        let Ok(comparison) = Comparison::between(first, second, options) else { continue };
        has_one_run |= comparison.one_run();
        let change = |change: &ppt_models::Change| LengthChange {
            statistic: change.statistic.to_string(),
            values: change.values,
            verdict: change.direction.to_string(),
            says: change.to_string(),
        };
        changes.insert((*name).clone(), comparison.changes.iter().map(change).collect());
    }
    LengthChanges { changes, has_one_run }
}

/// The names of both sets. The name with the largest difference comes first.
fn rows(
    [first, second]: &[Totals; 2],
    changes: &mut BTreeMap<String, Vec<LengthChange>>,
) -> Vec<ComparedName> {
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let totals = |totals: &Totals, name: &String| {
        let (count, total) = totals.get(name)?;
        Some(NameTotals { count: count.to_string(), total: total.to_string() })
    };
    let sum = |totals: &Totals, name: &String| totals.get(name).map_or(0, |name| name.1);
    let mut rows: Vec<(i64, ComparedName)> = names
        .into_iter()
        .map(|name| {
            let difference = sum(second, name).saturating_sub(sum(first, name));
            let row = ComparedName {
                name: name.clone(),
                first: totals(first, name),
                second: totals(second, name),
                difference: difference.to_string(),
                changes: changes.remove(name).unwrap_or_default(),
            };
            (difference, row)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.0.unsigned_abs()));
    rows.into_iter().map(|row| row.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_comes_first_and_what_one_set_lacks_is_told() {
        let set = |entries: &[(&str, u64, i64)]| -> Totals {
            entries.iter().map(|&(name, count, sum)| (name.to_owned(), (count, sum))).collect()
        };
        let first = set(&[("a", 2, 100), ("b", 1, 50), ("gone", 1, 7)]);
        let second = set(&[("a", 2, 90), ("b", 3, 400), ("new", 1, 3)]);
        let rows = rows(&[first, second], &mut BTreeMap::new());
        let differences: Vec<_> = rows.iter().map(|row| (&*row.name, &*row.difference)).collect();
        assert_eq!(differences, [("b", "350"), ("a", "-10"), ("gone", "-7"), ("new", "3")]);
        assert!(rows[2].second.is_none() && rows[3].first.is_none());
        assert_eq!(rows[0].second.as_ref().unwrap().count, "3");
    }
}
