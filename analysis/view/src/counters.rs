//! Counters: the values of their readings, summed over the rings of a process.

use std::collections::{BTreeMap, HashMap};

use ppt_tables::{Contents, TableError};

use crate::tree::PixelScale;

/// The readings of a counter in a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterCell {
    /// The time of the first reading, ns since the epoch.
    pub from: i64,
    /// The time of the last reading, ns since the epoch.
    pub to: i64,
    /// The value of the first reading.
    pub first: i64,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The value of the last reading.
    pub last: i64,
    /// The number of readings.
    pub count: u64,
}

/// The counters of all captures.
#[derive(Debug, Default)]
pub(crate) struct Counters(pub Vec<CounterTrack>);

/// A counter of a process in a capture.
#[derive(Debug)]
pub(crate) struct CounterTrack {
    pub process: usize,
    pub buffer: String,
    pub name: String,
    pub unit: String,
    /// The time (ns since the epoch) and the value of each reading, in order of time.
    pub points: Vec<(i64, i64)>,
}

impl Counters {
    pub fn read(captures: &[Contents]) -> Result<Counters, TableError> {
        let mut counters = Counters::default();
        for contents in captures {
            // The number of a counter in this capture, by source and metric.
            let mut numbers: HashMap<(usize, usize), usize> = HashMap::new();
            let mut values: BTreeMap<(usize, u64, Option<u32>), i64> = BTreeMap::new();
            let mut sums: Vec<i64> = Vec::new();
            let first = counters.0.len();
            for reading in contents.counters()? {
                let info = &contents.sources()[reading.source];
                let metric = &info.metrics[reading.metric];
                let next = numbers.len();
                let number = *numbers.entry((reading.source, reading.metric)).or_insert(next);
                if number == next {
                    sums.push(0);
                    counters.0.push(CounterTrack {
                        process: contents.process(reading.source) as usize,
                        buffer: info.source.buffer.clone(),
                        name: metric.name.clone(),
                        unit: metric.unit.clone(),
                        points: Vec::new(),
                    });
                }
                let cell = (number, reading.segment, reading.ring);
                let before = values.insert(cell, reading.value).unwrap_or(0);
                let sum = &mut sums[number];
                *sum = sum.wrapping_add(reading.value.wrapping_sub(before));
                let Some(ts) = reading.ts else { continue };
                let points = &mut counters.0[first + number].points;
                match points.last_mut() {
                    // Cells of one reading have one time.
                    Some(last) if last.0 == ts => last.1 = *sum,
                    _ => points.push((ts, *sum)),
                }
            }
        }
        counters.0.iter_mut().for_each(|track| track.points.sort_by_key(|point| point.0));
        Ok(counters)
    }
}

impl CounterTrack {
    /// The readings in a window. A cell has all readings of a pixel. The first cell may be the last reading
    /// before the window, which has the value at its beginning.
    pub fn cells(&self, scale: &PixelScale) -> Vec<CounterCell> {
        let first = self.points.partition_point(|point| point.0 < scale.from);
        let last = self.points.partition_point(|point| point.0 < scale.to);
        let mut cells: Vec<CounterCell> = Vec::new();
        for &(ts, value) in &self.points[first.saturating_sub(1)..last] {
            let cell = CounterCell {
                from: ts,
                to: ts,
                first: value,
                min: value,
                max: value,
                last: value,
                count: 1,
            };
            match cells.last_mut() {
                Some(last)
                    if last.from >= scale.from && scale.pixel(last.from) == scale.pixel(ts) =>
                {
                    (last.to, last.last, last.count) = (ts, value, last.count + 1);
                    (last.min, last.max) = (last.min.min(value), last.max.max(value));
                }
                _ => cells.push(cell),
            }
        }
        cells
    }
}
