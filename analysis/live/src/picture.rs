//! The state of a tally at one moment.

use std::collections::BTreeSet;

use ppt_capture::frame_dsl::metric::MetricShape;
use ppt_capture::{Cause, HistogramCells};
use ppt_stats::DistinctCount;

use crate::frame_kind::{Field, FrameKind, FrequentValues};
use crate::live_metrics::LiveMetric;
use crate::rate::Rate;
use crate::recent_numbers::RecentNumbers;
use crate::tally::{ClockErrors, DrainedTimes, RingKey, RingShare, Tally, TallyRange};

/// The most values of a field that are listed.
const MAX_WORDS: usize = 12;

/// The state of a capture at one moment. Texts come from the target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    /// The pids and names of the first few processes.
    pub processes: Vec<(u32, String)>,
    /// The number of processes.
    pub process_count: usize,
    /// The host of the capture.
    pub host: String,
    /// The time since the first drained frames, in ns.
    pub elapsed: u64,
    /// The number of captured frames.
    pub captured: u64,
    /// Frames per second.
    pub rate: f64,
    /// Bytes of frames per second.
    pub byte_rate: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The largest error of times. They are in CLOCK_REALTIME as it was set when the capture started. None
    /// if no buffer has stamps of a clock that readings convert.
    pub clock: Option<ClockBound>,
    /// Losses by cause. Causes without losses are omitted.
    pub missing: Vec<(Cause, u64)>,
    /// Frames lost per second.
    pub loss_rate: f64,
    /// Frames that were written while no listener was attached. They are not losses.
    pub unattended: u64,
    /// Kinds of frames, in the order in which their sources arrived.
    pub kinds: Vec<KindPicture>,
    /// Counters and histograms, in the order in which their sources arrived.
    pub metrics: Vec<MetricPicture>,
    /// The number of frames of types that are not listed.
    pub other_kinds: u64,
    /// Threads, in no order.
    pub threads: Vec<ThreadPicture>,
    /// The number of frames of threads that are not listed.
    pub other_threads: u64,
    /// The number of damaged places in the capture.
    pub damages: u64,
}

/// The accuracy of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockBound {
    /// The largest error of a time in ns, from all clock readings so far.
    Within(u64),
    /// There are too few readings so far.
    TooFewReadings,
}

/// A kind of frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KindPicture {
    /// The name of its buffer.
    pub buffer: String,
    /// The name of the kind.
    pub name: String,
    /// The number of frames.
    pub count: u64,
    /// Frames per second.
    pub rate: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The intervals, followed by the other fields.
    pub fields: Vec<FieldPicture>,
    /// The spans of its frames. None if they mark no spans.
    pub spans: Option<SpanPicture>,
}

/// The spans of a kind of frames that could be paired while the capture runs.
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
    /// The name of its buffer.
    pub buffer: String,
    /// The name of the metric.
    pub name: String,
    /// The unit of its values; may be empty.
    pub unit: String,
    /// The amount added, or the number of values, per second.
    pub rate: f64,
    /// The amount added in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The sum of a counter, or the values of a histogram.
    pub value: MeasuredValues,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasuredValues {
    /// The sum of a counter since the capture began.
    Counter(i128),
    /// The values of a histogram.
    Histogram {
        /// The number of values since the capture began.
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
    /// The name of the field or interval.
    pub name: String,
    /// The step of a span or a chain that is reported, such as `begin`. None if all steps are.
    pub step: Option<String>,
    /// The unit of its numbers, `ns` for times.
    pub unit: String,
    /// Whether this is an interval.
    pub is_interval: bool,
    /// The distribution of its numbers. None without numbers.
    pub numbers: Option<NumberSpread>,
    /// The most frequent values. None if they are not counted.
    pub words: Option<WordSample>,
    /// The number of distinct values in the latest frames, for keys and hashes.
    pub distinct: Option<DistinctCount>,
}

impl FieldPicture {
    /// The name for display, with the step: `rows (end)`.
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
    /// The share of time that an interval takes. 1 is one thread all the time.
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
    /// The id of its process.
    pub pid: u32,
    /// The name of its process.
    pub comm: String,
    /// The thread id; 0 if it is unknown.
    pub tid: u32,
    /// The last name. None if it is unknown.
    pub name: Option<String>,
    /// The name of the buffer.
    pub buffer: String,
    /// The number of its ring in the segment.
    pub ring: u32,
    /// The number of frames.
    pub count: u64,
    /// Frames per second.
    pub rate: f64,
    /// Frames in each of the last seconds, oldest first.
    pub history: Vec<u64>,
    /// The number of lost frames.
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
        const MAX_PROCESSES: usize = 8;
        let drained = self.drained.unwrap_or(DrainedTimes { first: now, last: now });
        let moment = Moment { now: now.max(drained.last), first: drained.first, range: self.range };
        let processes: BTreeSet<(u32, &str)> = self
            .sources
            .values()
            .map(|source| (source.process.pid, source.process.comm.as_str()))
            .collect();
        let first_processes = processes.iter().take(MAX_PROCESSES);
        let (lost, dropped) = (self.lost_by, self.dropped());
        let missing = [
            (Cause::Overrun, lost.overrun),
            (Cause::Disk, lost.disk),
            (Cause::Corrupt, lost.corrupt),
            (Cause::NoRing, dropped.no_ring),
            (Cause::Nested, dropped.nested),
            (Cause::NotMapped, dropped.not_mapped),
        ];
        let rings = self.rings.iter();
        Picture {
            process_count: processes.len(),
            processes: first_processes.map(|(pid, comm)| (*pid, (*comm).to_owned())).collect(),
            host: self.header.as_ref().map_or_else(String::new, |header| header.host.clone()),
            elapsed: moment.elapsed(),
            captured: self.frames.total(),
            rate: moment.per_second(&self.frames),
            byte_rate: moment.per_second(&self.bytes),
            history: self.frames.history(moment.now),
            clock: self.clock_bound(),
            missing: missing.into_iter().filter(|entry| entry.1 > 0).collect(),
            loss_rate: moment.per_second(&self.lost),
            unattended: self.unattended,
            kinds: self.kinds.iter().map(|kind| moment.kind(kind)).collect(),
            metrics: self
                .metrics
                .metrics
                .iter()
                .map(|metric| self.metric(metric, &moment))
                .collect(),
            other_kinds: self.other_kinds.total(),
            threads: rings.filter_map(|(key, ring)| self.thread(*key, ring, &moment)).collect(),
            other_threads: self.other_threads,
            damages: self.damages,
        }
    }

    fn metric(&self, metric: &LiveMetric, moment: &Moment) -> MetricPicture {
        let is_whole = moment.range == TallyRange::Whole;
        let value = match metric.shape {
            MetricShape::Counter | MetricShape::UpDownCounter => {
                MeasuredValues::Counter(metric.total())
            }
            MetricShape::Exponential | MetricShape::Linear { .. } => {
                let whole = metric.whole_histogram();
                let is_time = metric.shape == MetricShape::Exponential;
                let count = whole.count;
                let latest = if is_whole { whole } else { self.metrics.latest(metric, moment.now) };
                MeasuredValues::Histogram { count, latest, is_time }
            }
        };
        let total = match &value {
            MeasuredValues::Counter(sum) => *sum as f64,
            MeasuredValues::Histogram { count, .. } => *count as f64,
        };
        MetricPicture {
            buffer: metric.buffer.clone(),
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            rate: if is_whole {
                total * 1e9 / moment.elapsed().max(1) as f64
            } else {
                self.metrics.per_second(metric, moment.now, moment.first)
            },
            history: metric.rate.history(moment.now),
            value,
        }
    }

    /// None if the source of the ring is unknown.
    fn thread(&self, key: RingKey, ring: &RingShare, moment: &Moment) -> Option<ThreadPicture> {
        let source = self.sources.get(&key.source)?;
        Some(ThreadPicture {
            pid: source.process.pid,
            comm: source.process.comm.clone(),
            tid: ring.tid,
            name: self.names.name(source.process.key(), ring.tid),
            buffer: source.buffer.clone(),
            ring: key.ring,
            count: ring.rate.total(),
            rate: moment.per_second(&ring.rate),
            history: ring.rate.history(moment.now),
            lost: ring.lost,
        })
    }

    /// The largest error of the clocks of all sources.
    fn clock_bound(&self) -> Option<ClockBound> {
        let ClockErrors { ticks, monotonic } = self.clock_errors();
        let errors = self.sources.values().filter_map(|source| match source.clock.as_str() {
            "tick" => Some(ticks),
            "monotonic" => Some(monotonic),
            _ => None,
        });
        let bound =
            |error: Option<u64>| error.map_or(ClockBound::TooFewReadings, ClockBound::Within);
        let worst = |bound, other| match (bound, other) {
            (ClockBound::Within(error), ClockBound::Within(other)) => {
                ClockBound::Within(error.max(other))
            }
            _ => ClockBound::TooFewReadings,
        };
        errors.map(bound).reduce(worst)
    }
}

/// The moment of a picture.
struct Moment {
    /// CLOCK_MONOTONIC in ns.
    now: u64,
    /// CLOCK_MONOTONIC of the first frames, in ns.
    first: u64,
    range: TallyRange,
}

impl Moment {
    /// The time since the first frames in ns.
    fn elapsed(&self) -> u64 {
        self.now.saturating_sub(self.first)
    }

    /// The mean rate over the whole capture, or the recent rate.
    fn per_second(&self, rate: &Rate) -> f64 {
        match self.range {
            TallyRange::Whole => rate.total() as f64 * 1e9 / (self.elapsed().max(1) as f64),
            TallyRange::Latest => rate.per_second(self.now, self.first),
        }
    }

    fn kind(&self, kind: &FrameKind) -> KindPicture {
        KindPicture {
            buffer: kind.buffer.clone(),
            name: kind.name.clone(),
            count: kind.rate.total(),
            rate: self.per_second(&kind.rate),
            history: kind.rate.history(self.now),
            fields: kind.shown_fields().map(|field| self.field(field)).collect(),
            spans: kind.spans.as_ref().map(|spans| SpanPicture {
                count: spans.rate.total(),
                rate: self.per_second(&spans.rate),
                open: spans.open(),
                lengths: self.spread(&spans.lengths),
            }),
        }
    }

    fn field(&self, field: &Field) -> FieldPicture {
        let is_time = field.is_interval && field.unit == "ns";
        let numbers = field.values.numbers.as_ref().and_then(|numbers| {
            let since = numbers.remembered_since(self.now).max(self.first);
            let covered = self.now.saturating_sub(since);
            let share = || numbers.remembered(self.now).sum / covered as f64;
            let busy = (is_time && covered > 0).then(share);
            Some(NumberSpread { busy, ..self.spread(numbers)? })
        });
        let words = match &field.values.words {
            FrequentValues::Nothing => None,
            FrequentValues::Whole(words) => {
                let counts = words.iter().map(|(number, count)| (field.word(*number), count));
                Some(shares(counts, words.added()))
            }
            FrequentValues::Text(words) => {
                let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                let counts = words.iter().map(|(bytes, count)| (text(bytes), count));
                Some(shares(counts, words.added()))
            }
        };
        FieldPicture {
            name: field.name.clone(),
            // A field that no frame sets stands for all steps.
            step: field.step.as_ref().filter(|_| field.values.is_set).map(|step| step.name.clone()),
            unit: field.unit.clone(),
            is_interval: field.is_interval,
            numbers,
            words,
            distinct: field.values.keys.as_ref().map(|keys| keys.count(self.now)),
        }
    }

    /// The distribution of the remembered numbers. None without numbers.
    fn spread(&self, numbers: &RecentNumbers) -> Option<NumberSpread> {
        let remembered = numbers.remembered(self.now);
        let max = remembered.max?;
        // The middle of a bucket may lie above all of its values.
        let quantile = |share| Some(remembered.sketch.quantile(share)?.min(max));
        Some(NumberSpread {
            count: remembered.sketch.count(),
            p50: quantile(0.5)?,
            p99: quantile(0.99)?,
            max,
            busy: None,
        })
    }
}

/// The shares of the most frequent values in `added` values.
fn shares(counts: impl Iterator<Item = (String, u64)>, added: u64) -> WordSample {
    let mut counts: Vec<(String, u64)> = counts.collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let is_longer = counts.len() > MAX_WORDS;
    counts.truncate(MAX_WORDS);
    let listed: u64 = counts.iter().map(|count| count.1).sum();
    // Decayed counts are rounded.
    let more = is_longer || added.saturating_sub(listed) > added / 50;
    let share = |(word, count): (String, u64)| (word, count as f64 / added.max(1) as f64);
    WordSample { more, shares: counts.into_iter().map(share).collect() }
}
