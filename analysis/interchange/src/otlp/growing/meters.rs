//! Points of metrics of a range, and the totals of counters and histograms before it.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::super::histograms::HistogramReadings;
use super::super::message::MetricMessage;
use super::super::points::{self, MetricId, MetricPoint};
use super::state::{CounterTotal, HistogramTotal, State};
use crate::event::EventSchema;

/// The points of a range.
#[derive(Debug, Default)]
pub(super) struct Points {
    last: points::Points,
    /// Full requests, by process.
    full: Vec<BTreeMap<usize, Vec<MetricMessage>>>,
    count: u64,
    /// The totals of counters, by process and name.
    totals: HashMap<(String, String), i64>,
}

impl Points {
    /// Adds a point of a metric of a kind.
    pub fn push(&mut self, of: MetricId, kind: &EventSchema, point: MetricPoint) {
        let name = || {
            let unit = kind.fields[of.2].metadata().get("unit").cloned();
            [kind.curve(of.2), unit.unwrap_or_default()]
        };
        self.count += 1;
        if self.last.push(of, name, point) {
            self.end_range();
        }
    }

    /// Ends a request: later points may number their metrics differently.
    pub fn end_range(&mut self) {
        let last = self.last.take();
        self.full.extend(Some(last).filter(|last| !last.is_empty()));
    }

    /// The total of a counter since the start of the export, from its sum since the start of the range.
    pub fn total(&mut self, state: &State, of: (String, String), since: i64) -> i64 {
        let before = state.counter(&of.0, &of.1);
        let total = before.saturating_add(since);
        self.totals.insert(of, total);
        total
    }

    /// Stores the totals of counters for the next range.
    pub fn keep(&mut self, state: &mut State) {
        let mut new = Vec::new();
        for ((process, name), value) in std::mem::take(&mut self.totals) {
            match state.counter_at(&process, &name) {
                Ok(at) => state.counters[at].value = value,
                Err(_) => new.push(CounterTotal { process, name, value }),
            }
        }
        state.counters.extend(new);
        state.counters.sort_by(|one, other| one.key().cmp(&other.key()));
    }

    /// Writes all requests, and returns the number of points.
    pub fn write(
        &mut self,
        mut write: impl FnMut(BTreeMap<usize, Vec<MetricMessage>>) -> io::Result<()>,
    ) -> io::Result<u64> {
        for metrics in self.full.drain(..) {
            write(metrics)?;
        }
        Ok(std::mem::take(&mut self.count))
    }
}

impl State {
    /// The index of a counter, or the one at which to insert it.
    fn counter_at(&self, process: &str, name: &str) -> Result<usize, usize> {
        self.counters.binary_search_by(|known| known.key().cmp(&(process, name)))
    }

    /// The index of a histogram, or the one at which to insert it.
    fn histogram_at(&self, process: &str, name: &str) -> Result<usize, usize> {
        self.histograms.binary_search_by(|known| known.key().cmp(&(process, name)))
    }

    fn counter(&self, process: &str, name: &str) -> i64 {
        self.counter_at(process, name).map_or(0, |at| self.counters[at].value)
    }

    /// The readings of a histogram.
    pub(super) fn histogram(&self, process: &str, name: &str) -> HistogramReadings {
        let at = self.histogram_at(process, name).ok();
        at.map(|at| HistogramReadings::from_total(&self.histograms[at])).unwrap_or_default()
    }

    /// Stores the readings of a histogram.
    pub(super) fn keep_histogram(
        &mut self,
        process: &str,
        name: &str,
        readings: &HistogramReadings,
    ) {
        let (buckets, cells) = readings.total();
        let at = self.histogram_at(process, name);
        let (process, name) = (process.to_owned(), name.to_owned());
        let total = HistogramTotal { process, name, buckets, cells };
        match at {
            Ok(at) => self.histograms[at] = total,
            Err(at) => self.histograms.insert(at, total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(process: &str, name: &str) -> (String, String) {
        (process.to_owned(), name.to_owned())
    }

    #[test]
    fn totals_go_on_from_range_to_range() {
        let mut state = State::default();
        let mut sums = HashMap::new();
        for range in 0..50_i64 {
            let mut points = Points::default();
            for number in (0..20).filter(|number| (number + range) % 3 != 0) {
                let of = id(&format!("p{}", number % 4), &format!("c{number}"));
                let sum = sums.entry(of.clone()).or_insert(0);
                *sum += number + range;
                assert_eq!(points.total(&state, of, number + range), *sum);
            }
            points.keep(&mut state);
            assert!(state.is_sound(), "totals are in order");
        }
        assert_eq!(state.counters.len(), 20);
    }

    #[test]
    fn histograms_are_found_by_process_and_name() {
        let mut state = State::default();
        for of in ["b", "a", "c", "a"] {
            state.keep_histogram(of, "h", &HistogramReadings::default());
        }
        let kept: Vec<_> = state.histograms.iter().map(HistogramTotal::key).collect();
        assert_eq!(kept, [("a", "h"), ("b", "h"), ("c", "h")]);
        assert!(state.is_sound());
        state.histograms.swap(0, 1);
        assert!(!state.is_sound());
    }
}
