//! Counters and histograms: their totals, and their values over time.

use std::collections::{BTreeMap, HashMap};

use ppt_query::stats::{PERCENTILES, Summary, SummaryNumber};
use ppt_query::{Engine, TotalValue};

use crate::error::ReportError;
use crate::span::ChartSpan;
use crate::text_rows;

/// Facts about counters and histograms.
#[derive(Debug, Default)]
pub struct MetricFacts {
    pub counters: Vec<CounterFacts>,
    pub histograms: Vec<HistogramFacts>,
}

/// A counter.
#[derive(Debug)]
pub struct CounterFacts {
    pub label: String,
    pub unit: String,
    pub total: i128,
    /// For each slice of time: the increase or, for a counter that can fall, the value at the end.
    /// Empty if the times are unknown.
    pub over: Vec<f64>,
    pub goes_down: bool,
}

/// A histogram.
#[derive(Debug)]
pub struct HistogramFacts {
    pub label: String,
    pub unit: String,
    /// Whether its values are durations.
    pub is_time: bool,
    pub all: Buckets,
    /// Summary of each slice; each value counts as the middle of its bucket.
    pub over: Vec<Option<Summary>>,
}

/// Buckets in order: lower end, upper end, count.
#[derive(Debug, Clone, Default)]
pub struct Buckets(pub Vec<(Option<i128>, Option<i128>, u64)>);

impl MetricFacts {
    pub(super) async fn gather(
        engine: &Engine,
        readings: &ReadingTimes,
        span: Option<&ChartSpan>,
    ) -> Result<MetricFacts, ReportError> {
        let totals = engine.totals()?;
        let mut metrics = MetricFacts::default();
        let (mut sums, mut buckets) = (HashMap::new(), HashMap::new());
        if let Some(span) = span.filter(|_| !readings.times.is_empty()) {
            sums = counters(engine, readings, span).await?;
            buckets = histograms(engine, readings, span).await?;
        }
        for total in &totals {
            let same = |other: &&ppt_query::Total| other.name == total.name;
            let label = match totals.iter().filter(same).count() {
                1 => total.name.clone(),
                _ => format!("{}.{}", total.buffer, total.name),
            };
            let key = (total.buffer.clone(), total.name.clone());
            match &total.value {
                TotalValue::Counter(sum) => {
                    let (over, goes_down) = sums.remove(&key).unwrap_or_default();
                    let (unit, total) = (total.unit.clone(), *sum);
                    metrics.counters.push(CounterFacts { label, unit, total, over, goes_down });
                }
                TotalValue::Histogram(all, is_time) => metrics.histograms.push(HistogramFacts {
                    label,
                    unit: total.unit.clone(),
                    is_time: *is_time,
                    all: Buckets(all.buckets.clone()),
                    over: buckets.remove(&key).unwrap_or_default(),
                }),
            }
        }
        Ok(metrics)
    }
}

impl Buckets {
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, entry| sum.saturating_add(entry.2))
    }

    /// The bucket of a quantile; `part` is from 0 to 1.
    pub fn quantile(&self, part: f64) -> Option<(Option<i128>, Option<i128>)> {
        let rank = ((self.count() as f64 * part).ceil() as u64).max(1);
        let mut sum = 0u64;
        let found = self.0.iter().find(|entry| {
            sum = sum.saturating_add(entry.2);
            sum >= rank
        });
        found.or(self.0.last()).map(|found| (found.0, found.1))
    }

    /// A summary in which each value counts as the middle of its bucket, or as its known end.
    fn summary(&self) -> Option<Summary> {
        let middle = |entry: (Option<i128>, Option<i128>)| match entry {
            (Some(lo), Some(hi)) => Some((lo as f64 + (hi - 1) as f64) / 2.0),
            (lo, hi) => lo.or(hi).map(|number| number as f64),
        };
        let at = |part: f64| self.quantile(part).and_then(middle).map(SummaryNumber::Real);
        let (first, last) = (self.0.first()?, self.0.last()?);
        let number = |entry: &(Option<i128>, Option<i128>, u64)| {
            middle((entry.0, entry.1)).map(SummaryNumber::Real)
        };
        Some(Summary {
            count: self.count(),
            nulls: 0,
            min: number(first),
            max: number(last),
            sum: SummaryNumber::Whole(0),
            mean: None,
            sd: None,
            percentiles: PERCENTILES.map(at),
            exact: false,
        })
    }
}

/// Times of each capture's readings, ns since the epoch, and when each capture began.
#[derive(Debug)]
pub(super) struct ReadingTimes {
    times: HashMap<String, Vec<i64>>,
    began: HashMap<String, i64>,
    /// The usual time between two readings of a capture, in ns.
    usual: HashMap<String, i64>,
}

impl ReadingTimes {
    pub async fn ask(engine: &Engine) -> Result<ReadingTimes, ReportError> {
        let mut times: HashMap<String, Vec<i64>> = HashMap::new();
        let sql = "SELECT DISTINCT capture, CAST(ts AS BIGINT) AS t FROM (SELECT capture, ts FROM \
                   counters UNION ALL SELECT capture, ts FROM histograms) WHERE ts IS NOT NULL \
                   ORDER BY capture, t";
        for row in text_rows::query(engine, sql).await? {
            let Ok(time) = row[1].parse() else { continue };
            times.entry(row[0].clone()).or_default().push(time);
        }
        let sql = "SELECT capture, CAST(created AS BIGINT) FROM captures";
        let began = text_rows::query(engine, sql).await?.into_iter();
        let began = began.filter_map(|row| Some((row[0].clone(), row[1].parse().ok()?))).collect();
        let usual = |times: &Vec<i64>| {
            let mut all: Vec<i64> = times.windows(2).map(|window| window[1] - window[0]).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(1_000_000_000)
        };
        let usual = times.iter().map(|(capture, times)| (capture.clone(), usual(times))).collect();
        Ok(ReadingTimes { times, began, usual })
    }

    /// The time that the readings cover.
    pub fn during(&self) -> Option<(i64, i64)> {
        let all = self.times.iter().filter_map(|(capture, times)| {
            Some((self.since(capture, *times.first()?), *times.last()?))
        });
        all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The beginning of a reading's period: the previous reading, or the usual distance before, because
    /// a reading without changes is not recorded.
    fn since(&self, capture: &str, time: i64) -> i64 {
        let times = self.times.get(capture).map_or(&[][..], Vec::as_slice);
        let before = times[..times.partition_point(|&number| number < time)].last().copied();
        let before = before.or_else(|| self.began.get(capture).copied()).unwrap_or(time);
        let usual = self.usual.get(capture).copied().unwrap_or(1_000_000_000);
        before.max(time.saturating_sub(usual.saturating_add(usual / 2))).min(time - 1)
    }
}

/// Buffer and name.
type MetricKey = (String, String);

fn key(row: &[String]) -> MetricKey {
    (row[0].clone(), row[1].clone())
}

/// For each counter: its values in the slices, and whether it can fall.
async fn counters(
    engine: &Engine,
    readings: &ReadingTimes,
    span: &ChartSpan,
) -> Result<HashMap<MetricKey, (Vec<f64>, bool)>, ReportError> {
    // DOUBLE, because a sum may exceed BIGINT.
    let sql = "SELECT buffer, name, capture, CAST(ts AS BIGINT) AS t, sum(CAST(delta AS DOUBLE)), \
               min(delta) < 0 FROM counters WHERE ts IS NOT NULL \
               GROUP BY buffer, name, capture, t ORDER BY buffer, name, t";
    let mut all: HashMap<MetricKey, (Vec<f64>, Vec<f64>, bool)> = HashMap::new();
    for row in text_rows::query(engine, sql).await? {
        let (Ok(time), Ok(delta)) = (row[3].parse::<i64>(), row[4].parse::<f64>()) else {
            continue;
        };
        let empty = || (vec![0.0; span.slices], vec![0.0; span.slices], false);
        let (added, level, goes_down) = all.entry(key(&row)).or_insert_with(empty);
        *goes_down |= row[5] == "true";
        let from = readings.since(&row[2], time);
        let place = |time: i64| time.saturating_sub(span.from) as f64 / span.every as f64;
        // The increase between two readings is distributed evenly over that time.
        let (from, to) = (place(from), place(time));
        let each = delta / (to - from);
        let last = (span.slices - 1) as f64;
        let first = from.floor().clamp(0.0, last) as usize;
        for (slice, added) in added.iter_mut().enumerate().skip(first) {
            let inside = to.min((slice + 1) as f64) - from.max(slice as f64);
            if inside <= 0.0 {
                break;
            }
            *added += each * inside;
        }
        level[to.floor().clamp(0.0, last) as usize..].iter_mut().for_each(|value| *value += delta);
    }
    let pick = |(key, (added, level, down))| (key, (if down { level } else { added }, down));
    Ok(all.into_iter().map(pick).collect())
}

/// For each histogram: a summary of each slice.
async fn histograms(
    engine: &Engine,
    readings: &ReadingTimes,
    span: &ChartSpan,
) -> Result<HashMap<MetricKey, Vec<Option<Summary>>>, ReportError> {
    let sql = "SELECT buffer, name, capture, CAST(ts AS BIGINT) AS t, lo, hi, sum(delta) \
               FROM histograms WHERE ts IS NOT NULL AND delta > 0 \
               GROUP BY buffer, name, capture, t, lo, hi \
               ORDER BY buffer, name, capture, t, lo NULLS FIRST";
    let mut all: BTreeMap<MetricKey, BTreeMap<(i64, i64), Buckets>> = BTreeMap::new();
    for row in text_rows::query(engine, sql).await? {
        let (Ok(time), Ok(count)) = (row[3].parse::<i64>(), row[6].parse()) else { continue };
        let during = (time, readings.since(&row[2], time));
        let buckets = all.entry(key(&row)).or_default().entry(during).or_default();
        add(buckets, (row[4].parse().ok(), row[5].parse().ok(), count));
    }
    let over = |readings: &BTreeMap<(i64, i64), Buckets>| {
        let slice = |at: usize| {
            let from = span.from.saturating_add(at as i64 * span.every);
            let to = from.saturating_add(span.every);
            // The readings that end in the slice, or else the one whose period includes it.
            let mut found = Buckets::default();
            for entry in readings.range((from + 1, i64::MIN)..(to + 1, i64::MIN)) {
                entry.1.0.iter().for_each(|bucket| add(&mut found, *bucket));
            }
            let mut later = readings.range((to + 1, i64::MIN)..);
            match later.next().filter(|later| found.0.is_empty() && later.0.1 < to) {
                Some((_, about)) => about.summary(),
                None => found.summary(),
            }
        };
        (0..span.slices).map(slice).collect()
    };
    Ok(all.into_iter().map(|(key, readings)| (key, over(&readings))).collect())
}

/// Adds a bucket. Buckets of one histogram are identical or do not overlap.
fn add(to: &mut Buckets, bucket: (Option<i128>, Option<i128>, u64)) {
    let place = to.0.binary_search_by_key(&(bucket.0, bucket.1), |entry| (entry.0, entry.1));
    match place {
        Ok(at) => to.0[at].2 = to.0[at].2.saturating_add(bucket.2),
        Err(at) => to.0.insert(at, bucket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_buckets() {
        let mut all = Buckets::default();
        let buckets = [(Some(10), Some(20), 89), (None, Some(10), 1), (Some(20), None, 10)];
        buckets.into_iter().for_each(|bucket| add(&mut all, bucket));
        assert_eq!((all.count(), all.0[0].0), (100, None));
        assert_eq!(all.quantile(0.0), Some((None, Some(10))));
        assert_eq!(all.quantile(0.9), Some((Some(10), Some(20))));
        assert_eq!(all.quantile(0.91), Some((Some(20), None)));
        let summary = all.summary().unwrap();
        assert_eq!(summary.percentiles_as_floats()[0], Some(14.5));
        assert_eq!(summary.max, Some(SummaryNumber::Real(20.0)));
        assert!(Buckets::default().summary().is_none());
    }
}
