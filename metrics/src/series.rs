//! Which series there are, and what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::metric::{Metric, Shape};
use ppt_listener::{FeedTally, Tallies};

use crate::names::{Defined, Names};
use crate::source::MOST_TEXT;
use crate::text::{Description, Exposition, Labels, MetricType};
use crate::units::Unit;

/// How long the last numbers of a buffer stay that is no longer captured: several scrapes.
const AFTERWARDS: Duration = Duration::from_secs(300);
/// Most bytes of the series of one buffer. One whose series take more has only its account.
const MOST_OF_BUFFER: usize = 4 << 20;
/// The buckets of durations that are shown: up to powers of two, and half-way between them.
const FIRST_NS: i128 = 1 << 8;
const LAST: i128 = 1 << 36;

const fn describe(
    name: &'static str,
    ty: MetricType,
    unit: &'static str,
    help: &'static str,
) -> Description<'static> {
    Description { name, ty, unit, help }
}

macro_rules! own {
    ($($what:ident = $name:literal, $ty:ident, $unit:literal, $help:literal;)*) => {
        $(const $what: Description<'static> = describe($name, MetricType::$ty, $unit, $help);)*
        /// The series that are there whatever the frame files say.
        const OWN: &[Description<'static>] = &[$($what),*];
    };
}

own! {
    BUILD = "ppt_build", Info, "", "the ppt that captures";
    SESSION = "ppt_session", Info, "", "what captures: a file, or a flight recorder";
    START = "ppt_session_start_time_seconds", Gauge, "seconds", "when the capture began, since the epoch";
    PROCESSES = "ppt_session_processes", Gauge, "", "processes that are captured";
    DRAINED = "ppt_session_drained_frames", Counter, "", "frames that ppt has copied out of rings; its rate is the drain's";
    WAITING = "ppt_session_waiting_frames", Gauge, "", "frames that are copied and wait for the disk";
    WROTE = "ppt_session_capture_bytes", Counter, "bytes", "bytes that ppt has written into the capture";
    NOT_SHOWN = "ppt_session_buffers_not_shown", Gauge, "", "buffers some of whose series are left out, because there are too many";
    ATTACHED = "ppt_buffer_attached", Gauge, "", "1: frames of the buffer are captured; 0: they were";
    WRITTEN = "ppt_frames_written", Counter, "", "frames that the program has written: captured, lost, left out and dropped";
    CAPTURED = "ppt_frames_captured", Counter, "", "frames in the capture, by frame";
    LOST = "ppt_frames_lost", Counter, "", "frames that were written and are not in the capture";
    LEFT_OUT = "ppt_frames_left_out", Counter, "", "frames that --where did not want";
    DROPPED = "ppt_frames_dropped", Counter, "", "frames that the program refused to write";
    NOT_MAPPED = "ppt_adds_not_mapped", Counter, "", "adds and observations that are in no series: the program could not map its segment";
    RINGS = "ppt_rings", Gauge, "", "rings that threads own";
    FILL_MAX = "ppt_ring_fill_max_ratio", Gauge, "ratio", "how full the fullest ring is at this moment";
    FILL_MEAN = "ppt_ring_fill_mean_ratio", Gauge, "ratio", "how full rings are at this moment, on average";
    FILL_PEAK = "ppt_ring_fill_peak_ratio", Gauge, "ratio", "how full the fullest ring was ever found";
}

/// What is said of the session.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// The name of the host.
    pub host: String,
    /// The version of ppt.
    pub version: String,
    /// When it began, ns since the epoch.
    pub began_ns: u64,
    /// It keeps frames in memory until something happens.
    pub is_flight: bool,
}

/// The series of a session. What has a name keeps it.
#[derive(Debug)]
pub struct Series {
    facts: SessionFacts,
    names: Names,
}

impl Series {
    /// Those of a session that begins.
    pub fn new(facts: SessionFacts) -> Series {
        Series { facts, names: Names::new(OWN) }
    }

    /// The numbers of this moment as OpenMetrics text.
    pub fn text(&mut self, tallies: &Tallies) -> String {
        let mut text = Exposition::default();
        let host = Labels::default().with("host", &self.facts.host);
        let mut not_shown = 0;
        let feeds = shown(tallies.feeds());
        let pids = feeds.iter().filter(|(_, feed)| feed.ended_since().is_none());
        let processes = pids.map(|(_, feed)| feed.pid).collect::<BTreeSet<_>>().len();
        self.session(&mut text, &host, processes, tallies);
        for (buffer, feed) in &feeds {
            let labels = host.with("program", &feed.program).with("pid", &feed.pid.to_string());
            let labels = labels.with("buffer", buffer);
            let before = text.mark();
            account(&mut text, &labels, feed);
            if text.bytes() > MOST_TEXT / 2 {
                text.back(&before);
                not_shown += 1;
                continue;
            }
            let before = text.mark();
            if !self.metrics(&mut text, &labels, feed) {
                text.back(&before);
                not_shown += 1;
            }
        }
        let family = text.family(NOT_SHOWN);
        text.sample(family, "", &host, not_shown);
        text.finish()
    }

    fn session(&self, text: &mut Exposition, host: &Labels, processes: usize, tallies: &Tallies) {
        let SessionFacts { version, began_ns, is_flight, .. } = &self.facts;
        let session = tallies.session();
        let mut one = |what: Description<'static>, labels: &Labels, value: String| {
            let family = text.family(what);
            text.sample(family, what.ty.suffixes()[0], labels, value);
        };
        one(BUILD, &host.with("version", version), "1".into());
        let mode = if *is_flight { "flight" } else { "capture" };
        one(SESSION, &host.with("mode", mode), "1".into());
        one(START, host, Unit::NANOSECONDS.decimal((*began_ns).into()));
        one(PROCESSES, host, processes.to_string());
        one(DRAINED, host, session.drained.to_string());
        one(WAITING, host, session.waiting.to_string());
        if !is_flight {
            one(WROTE, host, session.bytes.to_string());
        }
    }

    /// Counters and histograms; false if they have no room.
    fn metrics(&mut self, text: &mut Exposition, labels: &Labels, feed: &FeedTally) -> bool {
        let start = text.bytes();
        for metric in feed.schema.iter().flat_map(Schema::metrics) {
            let unit = match metric.shape {
                Shape::Exponential if metric.unit.is_empty() => Unit::NANOSECONDS,
                _ => Unit::read(&metric.unit),
            };
            let ty = match metric.shape {
                Shape::Counter => MetricType::Counter,
                Shape::UpDownCounter => MetricType::Gauge,
                Shape::Exponential | Shape::Linear { .. } => MetricType::Histogram,
            };
            let defined = Defined::new(&feed.buffer, &metric.name, ty, unit);
            let Some(name) = self.names.give(&defined) else { return false };
            let help = help(&feed.buffer, &metric);
            let family = text.family(Description { name, ty, unit: unit.base, help: &help });
            let first = feed.cell(metric.cells.start);
            match metric.shape {
                Shape::Counter => {
                    text.sample(family, "_total", labels, unit.decimal(first.into()));
                }
                Shape::UpDownCounter => {
                    let value = unit.decimal(first.cast_signed().into());
                    text.sample(family, "", labels, value);
                }
                _ => histogram(text, (family, labels), (&metric, unit), feed),
            }
            let took = text.bytes() - start;
            if took > MOST_OF_BUFFER || text.bytes() > MOST_TEXT * 3 / 4 {
                return false;
            }
        }
        true
    }
}

/// What a frame file says of a counter or a histogram.
fn help(buffer: &str, metric: &Metric) -> String {
    let Metric { name, shape, unit, doc, .. } = metric;
    let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
    let text = format!("{} {name} of buffer {buffer}{unit}", shape.kind());
    // One line; the rest is in the frame file.
    match doc.lines().next() {
        Some(doc) => format!("{doc} ({text})"),
        None => text,
    }
}

/// The feeds that are shown, and the label of the buffer of each. No two have the same labels.
fn shown(feeds: Vec<std::sync::Arc<FeedTally>>) -> Vec<(String, std::sync::Arc<FeedTally>)> {
    let mut latest: BTreeMap<(u32, String, String), usize> = BTreeMap::new();
    let mut shown: Vec<Option<(String, std::sync::Arc<FeedTally>)>> = Vec::new();
    for feed in feeds {
        if feed.ended_since().is_some_and(|since| since > AFTERWARDS) {
            continue;
        }
        let key = |buffer: String| (feed.pid, feed.program.clone(), buffer);
        let numbered = (2u32..).map(|number| format!("{}-{number}", feed.buffer));
        for buffer in std::iter::once(feed.buffer.clone()).chain(numbered) {
            let place = latest.get(&key(buffer.clone())).copied();
            let is_taken = place.and_then(|place| shown[place].as_ref());
            if is_taken.is_some_and(|(_, other)| other.ended_since().is_none()) {
                continue;
            }
            // One that has ended makes room for one that goes on under its name.
            if let Some(place) = place {
                shown[place] = None;
            }
            latest.insert(key(buffer.clone()), shown.len());
            shown.push(Some((buffer, feed)));
            break;
        }
    }
    shown.into_iter().flatten().collect()
}

/// The account of a buffer. What is written is the sum of all else, so it always adds up.
fn account(text: &mut Exposition, labels: &Labels, feed: &FeedTally) {
    let (captured, lost, dropped) = (feed.captured(), feed.lost(), feed.dropped());
    let (left_out, fill) = (feed.left_out(), feed.ring_fill());
    let refused = [
        ("no_ring", dropped.no_ring),
        ("nested", dropped.nested),
        ("not_mapped", dropped.not_mapped),
    ];
    let settled = captured.iter().copied().chain(refused.map(|it| it.1));
    let written: u64 = settled.fold(lost.total().saturating_add(left_out), u64::saturating_add);

    let mut one = |what: Description<'static>, labels: &Labels, value: String| {
        let family = text.family(what);
        text.sample(family, what.ty.suffixes()[0], labels, value);
    };
    one(ATTACHED, labels, u8::from(feed.ended_since().is_none()).to_string());
    one(WRITTEN, labels, written.to_string());
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    let frames = feed.schema.iter().flat_map(|schema| &schema.frames);
    for (frame, &count) in frames.zip(&captured) {
        if !frame.is_hidden() || count > 0 {
            *by_name.entry(&frame.name).or_default() += count;
        }
    }
    let unknown = captured.last().copied().unwrap_or_default();
    for (name, count) in by_name.into_iter().chain((unknown > 0).then_some(("?", unknown))) {
        one(CAPTURED, &labels.with("frame", name), count.to_string());
    }
    for (cause, count) in lost.by_cause() {
        one(LOST, &labels.with("cause", cause.name()), count.to_string());
    }
    for (cause, count) in refused {
        one(DROPPED, &labels.with("cause", cause), count.to_string());
    }
    one(LEFT_OUT, labels, left_out.to_string());
    one(NOT_MAPPED, labels, feed.adds_not_mapped().to_string());
    one(RINGS, labels, fill.rings.to_string());
    one(FILL_MAX, labels, fill.most.to_string());
    one(FILL_MEAN, labels, fill.mean.to_string());
    one(FILL_PEAK, labels, fill.peak.to_string());
}

/// The classic buckets of a histogram: each counts all values up to its bound.
fn histogram(
    text: &mut Exposition,
    (family, labels): (usize, &Labels),
    (metric, unit): (&Metric, Unit),
    feed: &FeedTally,
) {
    let first = if unit == Unit::NANOSECONDS { FIRST_NS } else { 1 };
    let is_shown = |end: i128| match metric.shape {
        // Of 16 buckets for each power of two, two.
        Shape::Exponential => {
            let part = end >> (end.ilog2().saturating_sub(1));
            (first..=LAST).contains(&end) && end == part << (end.ilog2().saturating_sub(1))
        }
        // Values are not negative.
        _ => end > 0,
    };
    let mut count = 0u64;
    for (cell, place) in metric.cells.clone().enumerate() {
        let Some((_, end)) = metric.shape.bucket(cell as u32) else { continue };
        count = count.saturating_add(feed.cell(place));
        if let Some(end) = end.filter(|&end| end > 0 && is_shown(end)) {
            // Values are whole numbers, and a bound belongs to its bucket.
            let bound = labels.with("le", &unit.bound(end - 1));
            text.sample(family, "_bucket", &bound, count);
        }
    }
    text.sample(family, "_bucket", &labels.with("le", "+Inf"), count);
    let sum = feed.cell(metric.cells.start);
    let sum = match metric.shape {
        Shape::Exponential => i128::from(sum.cast_signed()),
        _ => i128::from(sum),
    };
    // OpenMetrics knows no sum that may go down.
    if sum >= 0 {
        text.sample(family, "_count", labels, count);
        text.sample(family, "_sum", labels, unit.decimal(sum));
    }
}
