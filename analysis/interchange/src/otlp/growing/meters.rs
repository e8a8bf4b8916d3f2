//! Points of metrics of a range, and what counters and histograms were at before it.

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
    /// Requests that are full: by process.
    full: Vec<BTreeMap<usize, Vec<MetricMessage>>>,
    count: u64,
    /// What counters have by now, by process and name.
    totals: HashMap<(String, String), i64>,
}

impl Points {
    /// Takes in a point of a metric of a kind.
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

    /// What follows has other numbers.
    pub fn end_range(&mut self) {
        let last = self.last.take();
        self.full.extend(Some(last).filter(|last| !last.is_empty()));
    }

    /// The sum of a counter since the beginning, of what it is since the beginning of the range.
    pub fn total(&mut self, state: &State, of: (String, String), since: i64) -> i64 {
        let before = state.counter(&of.0, &of.1);
        let total = before.saturating_add(since);
        self.totals.insert(of, total);
        total
    }

    /// What counters have by now, for the next range.
    pub fn keep(&mut self, state: &mut State) {
        for ((process, name), value) in std::mem::take(&mut self.totals) {
            let mut known = state.counters.iter_mut();
            match known.find(|known| known.process == process && known.name == name) {
                Some(known) => known.value = value,
                None => state.counters.push(CounterTotal { process, name, value }),
            }
        }
        state
            .counters
            .sort_by(|one, other| (&one.process, &one.name).cmp(&(&other.process, &other.name)));
    }

    /// Writes all requests; says how many points there are.
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
    fn counter(&self, process: &str, name: &str) -> i64 {
        let mut known = self.counters.iter();
        let known = known.find(|known| known.process == process && known.name == name);
        known.map_or(0, |known| known.value)
    }

    /// What was read of a histogram.
    pub(super) fn histogram(&self, process: &str, name: &str) -> HistogramReadings {
        let mut known = self.histograms.iter();
        let known = known.find(|known| known.process == process && known.name == name);
        known.map_or_else(HistogramReadings::default, HistogramReadings::from_total)
    }

    /// Keeps what was read of a histogram.
    pub(super) fn keep_histogram(
        &mut self,
        process: &str,
        name: &str,
        readings: &HistogramReadings,
    ) {
        self.histograms.retain(|known| known.process != process || known.name != name);
        let (buckets, cells) = readings.total();
        let (process, name) = (process.to_owned(), name.to_owned());
        self.histograms.push(HistogramTotal { process, name, buckets, cells });
        self.histograms
            .sort_by(|one, other| (&one.process, &one.name).cmp(&(&other.process, &other.name)));
    }
}
