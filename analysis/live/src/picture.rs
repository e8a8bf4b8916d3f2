//! The state of a tally at one moment.

use std::collections::BTreeSet;

use ppt_capture::frame_dsl::metric::MetricShape;
use ppt_capture::{Cause, HistogramCells};
use ppt_stats::DistinctCount;

use crate::frame_kind::{Field, FrequentValues};
use crate::recent::Recent;
use crate::tally::{Tally, TallyRange};

/// The number of values of a field that are listed.
const WORDS: usize = 12;

/// The state of a capture at one moment. Text comes from the target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    /// The first few processes with their names.
    pub processes: Vec<(u32, String)>,
    /// The number of processes.
    pub process_count: usize,
    /// The host of the capture.
    pub host: String,
    /// From the first drained frames until now, in ns.
    pub elapsed: u64,
    /// Frames captured.
    pub captured: u64,
    /// Frames per second.
    pub rate: f64,
    /// Bytes of frames per second.
    pub bytes: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The largest error of times against CLOCK_REALTIME as it ran from the start of the capture;
    /// None: no buffer has timestamps of a clock that readings convert.
    pub clock: Option<ClockBound>,
    /// Losses by cause; causes without losses are omitted.
    pub missing: Vec<(Cause, u64)>,
    /// Frames lost per second.
    pub losing: f64,
    /// Frames written while no listener was attached; these are not losses.
    pub unattended: u64,
    /// Frame types.
    pub kinds: Vec<KindPicture>,
    /// Counters and histograms.
    pub metrics: Vec<MetricPicture>,
    /// Frames of types that are not listed.
    pub other_kinds: u64,
    /// Threads.
    pub threads: Vec<ThreadPicture>,
    /// Frames of threads that are not listed.
    pub other_threads: u64,
    /// The number of damaged places in the capture.
    pub damages: u64,
}

/// The accuracy of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockBound {
    /// The largest error of a time in ns, from all clock readings so far.
    Within(u64),
    /// Too few readings so far.
    TooFewReadings,
}

/// A frame type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KindPicture {
    /// Its buffer.
    pub buffer: String,
    /// Its name.
    pub name: String,
    /// The number of frames.
    pub count: u64,
    /// Frames per second.
    pub rate: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// Its intervals and fields.
    pub fields: Vec<FieldPicture>,
    /// Its spans, if its frames mark spans.
    pub spans: Option<SpanPicture>,
}

/// Spans, as far as they are known while the capture runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpanPicture {
    /// The number of closed spans.
    pub count: u64,
    /// Closed spans per second.
    pub rate: f64,
    /// The number of open spans.
    pub open: u64,
    /// Durations of the latest spans, in ns.
    pub lengths: Option<NumberSpread>,
}

/// A counter or a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPicture {
    /// Its buffer.
    pub buffer: String,
    /// Its name.
    pub name: String,
    /// Its unit; may be empty.
    pub unit: String,
    /// The amount added, or the number of values, per second.
    pub rate: f64,
    /// The amount added in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The total.
    pub value: MeasuredValues,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasuredValues {
    /// The sum since the capture began.
    Counter(i128),
    /// The number of values since the capture began.
    Histogram {
        /// The number.
        count: u64,
        /// The latest values.
        latest: HistogramCells,
        /// Whether the values are durations.
        is_time: bool,
    },
}

/// A field or an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldPicture {
    /// Its name.
    pub name: String,
    /// For spans and chains: the step reported, `begin`, `end` or a step of a chain. None: all.
    pub step: Option<String>,
    /// The unit of its numbers: `ns` for time.
    pub unit: String,
    /// Whether it is an interval.
    pub is_interval: bool,
    /// The distribution of its numbers, if it has any.
    pub numbers: Option<NumberSpread>,
    /// Its most frequent values, if it has any.
    pub words: Option<WordSample>,
    /// For keys and hashes: the number of distinct values in the latest frames.
    pub distinct: Option<DistinctCount>,
}

impl FieldPicture {
    /// Its display name: `rows (end)`.
    pub fn label(&self) -> String {
        match &self.step {
            None => self.name.clone(),
            Some(step) => format!("{} ({step})", self.name),
        }
    }
}

/// The distribution of numbers. Percentiles have three digits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NumberSpread {
    /// The number of values.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
    /// For an interval: the share of time it takes; 1 is one thread all the time.
    pub busy: Option<f64>,
}

/// The most frequent values in a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordSample {
    /// Values with their shares, most frequent first.
    pub shares: Vec<(String, f64)>,
    /// Whether there are other values.
    pub more: bool,
}

/// A thread, identified by its ring.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadPicture {
    /// Its process.
    pub pid: u32,
    /// The name of the process.
    pub comm: String,
    /// The thread id; 0 = unknown.
    pub tid: u32,
    /// Its last name, if known.
    pub name: Option<String>,
    /// The buffer.
    pub buffer: String,
    /// The number of its ring in the segment.
    pub ring: u32,
    /// The number of frames.
    pub count: u64,
    /// Frames per second.
    pub rate: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// Frames lost.
    pub lost: u64,
}

impl Picture {
    /// The number of missing frames.
    pub fn missing_in_all(&self) -> u64 {
        self.missing.iter().fold(0, |sum, entry| entry.1.saturating_add(sum))
    }
}

impl Tally {
    /// The state at `now` (CLOCK_MONOTONIC of the capture, ns).
    pub fn picture(&self, now: u64) -> Picture {
        const PROCESSES: usize = 8;
        let (first, last) = self.drained.unwrap_or((now, now));
        let now = now.max(last);
        let elapsed = now.saturating_sub(first);
        let whole = self.span == TallyRange::Whole;
        let rate = |of: &crate::rate::Rate| {
            if whole {
                of.total() as f64 * 1e9 / (elapsed.max(1) as f64)
            } else {
                of.per_second(now, first)
            }
        };
        let processes: BTreeSet<(u32, &str)> = self
            .sources
            .values()
            .map(|source| (source.process.pid, source.process.comm.as_str()))
            .collect();
        let (lost, dropped) = (self.lost_by, self.dropped());
        let missing = [
            (Cause::Overrun, lost.overrun),
            (Cause::Disk, lost.disk),
            (Cause::Corrupt, lost.corrupt),
            (Cause::NoRing, dropped.no_ring),
            (Cause::Nested, dropped.nested),
            (Cause::NotMapped, dropped.not_mapped),
        ];
        let kinds = self.kinds.iter().map(|kind| KindPicture {
            buffer: kind.buffer.clone(),
            name: kind.name.clone(),
            count: kind.rate.total(),
            rate: rate(&kind.rate),
            history: kind.rate.history(now),
            fields: kind.shown_fields().map(|shown_field| field(shown_field, now, first)).collect(),
            spans: kind.spans.as_ref().map(|spans| SpanPicture {
                count: spans.rate.total(),
                rate: rate(&spans.rate),
                open: spans.open(),
                lengths: numbers(&spans.lengths, now),
            }),
        });
        let metrics = self.metrics.all.iter().map(|told| {
            let value = match told.shape {
                MetricShape::Counter | MetricShape::UpDownCounter => {
                    MeasuredValues::Counter(told.total())
                }
                MetricShape::Exponential | MetricShape::Linear { .. } => {
                    let (all, is_time) = (told.whole(), told.shape == MetricShape::Exponential);
                    let count = all.count;
                    let latest = if whole { all } else { self.metrics.latest(told, now) };
                    MeasuredValues::Histogram { count, latest, is_time }
                }
            };
            let total = match &value {
                MeasuredValues::Counter(sum) => *sum as f64,
                MeasuredValues::Histogram { count, .. } => *count as f64,
            };
            MetricPicture {
                buffer: told.buffer.clone(),
                name: told.name.clone(),
                unit: told.unit.clone(),
                rate: if whole {
                    total * 1e9 / elapsed.max(1) as f64
                } else {
                    self.metrics.per_second(told, now, first)
                },
                history: told.rate.history(now),
                value,
            }
        });
        let threads = self.threads.iter().filter_map(|(&(source, _, ring), thread)| {
            let source = self.sources.get(&source)?;
            Some(ThreadPicture {
                pid: source.process.pid,
                comm: source.process.comm.clone(),
                tid: thread.tid,
                name: self.names.name(source.process.key(), thread.tid),
                buffer: source.buffer.clone(),
                ring,
                count: thread.rate.total(),
                rate: rate(&thread.rate),
                history: thread.rate.history(now),
                lost: thread.lost,
            })
        });
        Picture {
            process_count: processes.len(),
            processes: processes
                .iter()
                .take(PROCESSES)
                .map(|process| (process.0, process.1.to_owned()))
                .collect(),
            host: self.header.as_ref().map_or_else(String::new, |header| header.host.clone()),
            elapsed,
            captured: self.all.total(),
            rate: rate(&self.all),
            bytes: rate(&self.bytes),
            history: self.all.history(now),
            clock: self.clock_bound(),
            missing: missing.into_iter().filter(|entry| entry.1 > 0).collect(),
            losing: rate(&self.lost),
            unattended: self.unattended,
            kinds: kinds.collect(),
            metrics: metrics.collect(),
            other_kinds: self.other_kinds.total(),
            threads: threads.collect(),
            other_threads: self.other_threads,
            damages: self.damages,
        }
    }

    /// The error by the clocks of timestamps.
    fn clock_bound(&self) -> Option<ClockBound> {
        let (ticks, monotonic) = self.clock_errors();
        let errors = self.sources.values().filter_map(|source| match source.clock.as_str() {
            "tick" => Some(ticks),
            "monotonic" => Some(monotonic),
            _ => None,
        });
        let bound =
            |error: Option<u64>| error.map_or(ClockBound::TooFewReadings, ClockBound::Within);
        let worst = |one, other| match (one, other) {
            (ClockBound::Within(one), ClockBound::Within(other)) => {
                ClockBound::Within(one.max(other))
            }
            _ => ClockBound::TooFewReadings,
        };
        errors.map(bound).reduce(worst)
    }
}

fn numbers(of: &Recent, now: u64) -> Option<NumberSpread> {
    let (all, _) = of.all(now);
    let max = all.max?;
    // The middle of a bucket may lie above all of its values.
    let quantile = |share| Some(all.sketch.quantile(share)?.min(max));
    Some(NumberSpread {
        count: all.sketch.count(),
        p50: quantile(0.5)?,
        p99: quantile(0.99)?,
        max,
        busy: None,
    })
}

fn field(field: &Field, now: u64, first: u64) -> FieldPicture {
    let told = field.values.numbers.as_ref().and_then(|recent| {
        let (all, since) = recent.all(now);
        let span = now.saturating_sub(since.max(first));
        let is_time = field.is_interval && field.unit == "ns";
        let busy = (is_time && span > 0).then(|| all.sum / span as f64);
        Some(NumberSpread { busy, ..numbers(recent, now)? })
    });
    let words = match &field.values.words {
        FrequentValues::Nothing => None,
        FrequentValues::Whole(words) => {
            Some(shares(words.iter().map(|(number, n)| (field.word(*number), n)), words.all()))
        }
        FrequentValues::Text(words) => {
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            Some(shares(words.iter().map(|(bytes, n)| (text(bytes), n)), words.all()))
        }
    };
    FieldPicture {
        name: field.name.clone(),
        // A field that no frame sets stands for all steps.
        step: field.step.as_ref().filter(|_| field.values.is_set).map(|step| step.1.clone()),
        unit: field.unit.clone(),
        is_interval: field.is_interval,
        numbers: told,
        words,
        distinct: field.values.keys.as_ref().map(|keys| keys.count(now)),
    }
}

fn shares(counts: impl Iterator<Item = (String, u64)>, all: u64) -> WordSample {
    let mut counts: Vec<(String, u64)> = counts.collect();
    counts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    let many = counts.len() > WORDS;
    counts.truncate(WORDS);
    let named: u64 = counts.iter().map(|count| count.1).sum();
    // Decayed counts are rounded.
    let more = many || all.saturating_sub(named) > all / 50;
    let share = |(word, count): (String, u64)| (word, count as f64 / all.max(1) as f64);
    WordSample { more, shares: counts.into_iter().map(share).collect() }
}
