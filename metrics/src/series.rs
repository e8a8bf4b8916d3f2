//! The series and their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::metric::{Metric, MetricShape};
use ppt_listener::{FeedTally, SessionTally};

use crate::names::{Defined, SeriesNames};
use crate::source::MAX_TEXT_BYTES;
use crate::text::{Description, Exposition, Labels, MetricType};
use crate::units::BaseUnit;

/// The time for which the last numbers of a buffer are kept after its capture ended: several scrapes.
const AFTERWARDS: Duration = Duration::from_secs(300);
/// Most bytes of the series of one buffer. Above that, only its account is shown.
const MAX_BUFFER_BYTES: usize = 4 << 20;
/// The shown buckets of durations: up to powers of two, and half-way between them.
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
        /// The series that do not depend on frame files.
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

/// The facts about the session.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// The name of the host.
    pub host: String,
    /// The version of ppt.
    pub version: String,
    /// The begin of the session, ns since the epoch.
    pub began_ns: u64,
    /// Whether it is a flight recorder.
    pub is_flight: bool,
}

/// The series of a session. A name, once assigned, stays.
#[derive(Debug)]
pub struct Series {
    facts: SessionFacts,
    names: SeriesNames,
}

impl Series {
    /// The series of a new session.
    pub fn new(facts: SessionFacts) -> Series {
        Series { facts, names: SeriesNames::new(OWN) }
    }

    /// Writes the numbers as OpenMetrics text.
    pub fn text(&mut self, session: SessionTally, feeds: Vec<Arc<FeedTally>>) -> String {
        let mut text = Exposition::default();
        let host = Labels::default().with("host", &self.facts.host);
        let mut not_shown = 0;
        let labels = buffer_labels(feeds.iter().map(|feed| FeedName {
            pid: feed.pid,
            program: &feed.program,
            buffer: &feed.buffer,
            ended: feed.ended_since(),
        }));
        let pids = feeds.iter().filter(|feed| feed.ended_since().is_none());
        let processes = pids.map(|feed| feed.pid).collect::<BTreeSet<_>>().len();
        self.session(&mut text, &host, processes, session);
        for (buffer, feed) in labels.iter().zip(&feeds) {
            let Some(buffer) = buffer else { continue };
            let labels = host.with("program", &feed.program).with("pid", &feed.pid.to_string());
            let labels = labels.with("buffer", buffer);
            if text.bytes() > MAX_TEXT_BYTES / 2 {
                not_shown += 1;
                continue;
            }
            account(&mut text, &labels, feed);
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

    fn session(
        &self,
        text: &mut Exposition,
        host: &Labels,
        processes: usize,
        session: SessionTally,
    ) {
        let SessionFacts { version, began_ns, is_flight, .. } = &self.facts;
        let mut sample = |what: Description<'static>, labels: &Labels, value: String| {
            let family = text.family(what);
            text.sample(family, what.ty.suffixes()[0], labels, value);
        };
        sample(BUILD, &host.with("version", version), "1".into());
        let mode = if *is_flight { "flight" } else { "capture" };
        sample(SESSION, &host.with("mode", mode), "1".into());
        sample(START, host, BaseUnit::NANOSECONDS.decimal((*began_ns).into()));
        sample(PROCESSES, host, processes.to_string());
        sample(DRAINED, host, session.drained.to_string());
        sample(WAITING, host, session.waiting.to_string());
        if !is_flight {
            sample(WROTE, host, session.bytes.to_string());
        }
    }

    /// Writes counters and histograms. Returns false if they have no room.
    fn metrics(&mut self, text: &mut Exposition, labels: &Labels, feed: &FeedTally) -> bool {
        let start = text.bytes();
        for metric in feed.schema.iter().flat_map(Schema::metrics) {
            let unit = match metric.shape {
                MetricShape::Exponential if metric.unit.is_empty() => BaseUnit::NANOSECONDS,
                _ => BaseUnit::read(&metric.unit),
            };
            let ty = match metric.shape {
                MetricShape::Counter => MetricType::Counter,
                MetricShape::UpDownCounter => MetricType::Gauge,
                MetricShape::Exponential | MetricShape::Linear { .. } => MetricType::Histogram,
            };
            let defined = Defined::new(&feed.buffer, &metric.name, ty, unit);
            let Some(name) = self.names.give(&defined) else { return false };
            let help = help(&feed.buffer, &metric);
            let family = text.family(Description { name, ty, unit: unit.base, help: &help });
            let first = feed.cell(metric.cells.start);
            match metric.shape {
                MetricShape::Counter => {
                    text.sample(family, "_total", labels, unit.decimal(first.into()));
                }
                MetricShape::UpDownCounter => {
                    let value = unit.decimal(first.cast_signed().into());
                    text.sample(family, "", labels, value);
                }
                _ => histogram(text, (family, labels), (&metric, unit), feed),
            }
            let took = text.bytes() - start;
            if took > MAX_BUFFER_BYTES || text.bytes() > MAX_TEXT_BYTES * 3 / 4 {
                return false;
            }
        }
        true
    }
}

/// The description of a counter or a histogram from the frame file.
fn help(buffer: &str, metric: &Metric) -> String {
    let Metric { name, shape, unit, doc, .. } = metric;
    let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
    let text = format!("{} {name} of buffer {buffer}{unit}", shape.kind());
    // Only one line; the rest is in the frame file.
    match doc.lines().next() {
        Some(doc) => format!("{doc} ({text})"),
        None => text,
    }
}

/// The parts that distinguish the series of a feed from those of others.
struct FeedName<'a> {
    pid: u32,
    program: &'a str,
    buffer: &'a str,
    /// The time since the end of the feed. None if it has not ended.
    ended: Option<Duration>,
}

/// The label of the buffer of each feed. `None` if it is not shown. No two have the same labels.
fn buffer_labels<'a>(feeds: impl Iterator<Item = FeedName<'a>>) -> Vec<Option<String>> {
    // By name, the number of running feeds, and the index of the last one that has ended.
    let mut named: BTreeMap<(u32, &str, &str), (usize, Option<usize>)> = BTreeMap::new();
    let mut labels: Vec<Option<String>> = Vec::new();
    for (place, FeedName { pid, program, buffer, ended }) in feeds.enumerate() {
        labels.push(None);
        if ended.is_some_and(|since| since > AFTERWARDS) {
            continue;
        }
        let (going_on, last) = named.entry((pid, program, buffer)).or_default();
        // An ended feed is replaced by a later one with the same name.
        if let Some(before) = last.take() {
            labels[before] = None;
        }
        labels[place] = Some(match *going_on {
            0 => buffer.to_owned(),
            others => format!("{buffer}-{}", others + 1),
        });
        match ended {
            None => *going_on += 1,
            Some(_) => *last = Some(place),
        }
    }
    labels
}

/// Writes the account of a buffer. The number of written frames is the sum of the others, so the
/// account always adds up.
fn account(text: &mut Exposition, labels: &Labels, feed: &FeedTally) {
    let (captured, lost, dropped) = (feed.captured(), feed.lost(), feed.dropped());
    let (left_out, fill) = (feed.left_out(), feed.ring_fill());
    let refused = [
        ("no_ring", dropped.no_ring),
        ("nested", dropped.nested),
        ("not_mapped", dropped.not_mapped),
    ];
    let settled = captured.iter().copied().chain(refused.map(|entry| entry.1));
    let written: u64 = settled.fold(lost.total().saturating_add(left_out), u64::saturating_add);

    let mut sample = |what: Description<'static>, labels: &Labels, value: String| {
        let family = text.family(what);
        text.sample(family, what.ty.suffixes()[0], labels, value);
    };
    sample(ATTACHED, labels, u8::from(feed.ended_since().is_none()).to_string());
    sample(WRITTEN, labels, written.to_string());
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    let frames = feed.schema.iter().flat_map(|schema| &schema.frames);
    for (frame, &count) in frames.zip(&captured) {
        if !frame.is_hidden() || count > 0 {
            *by_name.entry(&frame.name).or_default() += count;
        }
    }
    let unknown = captured.last().copied().unwrap_or_default();
    for (name, count) in by_name.into_iter().chain((unknown > 0).then_some(("?", unknown))) {
        sample(CAPTURED, &labels.with("frame", name), count.to_string());
    }
    for (cause, count) in lost.by_cause() {
        sample(LOST, &labels.with("cause", cause.name()), count.to_string());
    }
    for (cause, count) in refused {
        sample(DROPPED, &labels.with("cause", cause), count.to_string());
    }
    sample(LEFT_OUT, labels, left_out.to_string());
    sample(NOT_MAPPED, labels, feed.adds_not_mapped().to_string());
    sample(RINGS, labels, fill.rings.to_string());
    sample(FILL_MAX, labels, fill.most.to_string());
    sample(FILL_MEAN, labels, fill.mean.to_string());
    sample(FILL_PEAK, labels, fill.peak.to_string());
}

/// Writes the classic buckets of a histogram: each counts all values up to its bound.
fn histogram(
    text: &mut Exposition,
    (family, labels): (usize, &Labels),
    (metric, unit): (&Metric, BaseUnit),
    feed: &FeedTally,
) {
    let first = if unit == BaseUnit::NANOSECONDS { FIRST_NS } else { 1 };
    let is_shown = |end: i128| match metric.shape {
        // Two of the 16 buckets per power of two.
        MetricShape::Exponential => {
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
            // Values are integers, and a bound belongs to its bucket.
            let bound = labels.with("le", &unit.bound(end - 1));
            text.sample(family, "_bucket", &bound, count);
        }
    }
    text.sample(family, "_bucket", &labels.with("le", "+Inf"), count);
    let sum = feed.cell(metric.cells.start);
    let sum = match metric.shape {
        MetricShape::Exponential => i128::from(sum.cast_signed()),
        _ => i128::from(sum),
    };
    // OpenMetrics has no sum that may decrease.
    if sum >= 0 {
        text.sample(family, "_count", labels, count);
        text.sample(family, "_sum", labels, unit.decimal(sum));
    }
}

#[cfg(test)]
mod tests {
    use ppt_listener::Source;

    use super::*;

    const EMPTY: SessionTally = SessionTally { drained: 0, waiting: 0, bytes: 0 };

    fn series() -> Series {
        let (host, version) = ("h".to_owned(), "1".to_owned());
        Series::new(SessionFacts { host, version, began_ns: 0, is_flight: false })
    }

    /// A feed with these counters and histograms.
    fn feed(metrics: &str) -> Arc<FeedTally> {
        let schema = format!(
            r#"{{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[{{"name":"ppt_none","kind":"plain","size":16,"fields":[{{"name":"nothing","type":"u64","offset":8}}],"hidden":true}}],"metrics":[{metrics}]}}"#
        );
        let source = Source {
            schema_json: schema.into_bytes(),
            buffer: "b".to_owned(),
            ..Source::default()
        };
        Arc::new(FeedTally::new(&source))
    }

    fn lines(text: &str, name: &str) -> Vec<String> {
        let of = |line: &&str| line.starts_with(&format!("{name}{{"));
        let bare = |line: &str| line.replace(r#"host="h",program="",pid="0",buffer="b""#, "");
        text.lines().filter(of).map(bare).collect()
    }

    #[test]
    fn every_bucket_counts_all_values_up_to_its_bound() {
        let feed = feed(
            r#"{"name":"wait","kind":"histogram","type":"duration"},{"name":"size","kind":"histogram","type":"u32","from":10,"to":20,"buckets":2}"#,
        );
        let metrics = feed.schema.as_ref().unwrap().metrics();
        let [wait, size] = &metrics[..] else { panic!("two") };
        let mut observed = 0;
        for cell in 1..wait.cells.len() as u32 {
            feed.add([(wait.cells.start + cell, 1), (wait.cells.start, 3)]);
            observed += 1;
        }
        feed.add((0..5).map(|cell| (size.cells.start + cell, [100, 1, 2, 4, 8][cell as usize])));
        let text = series().text(EMPTY, vec![feed.clone()]);
        let buckets = lines(&text, "ppt_b_wait_seconds_bucket");
        // 2^8 ns to 2^36 ns, and half-way between.
        assert_eq!(buckets.len(), 57 + 1);
        for line in &buckets[..57] {
            let (bound, count) = line.split_once("\"} ").unwrap();
            let bound: f64 = bound.split_once("le=\"").unwrap().1.parse().unwrap();
            let below = |cell: u32| {
                wait.shape.bucket(cell).is_some_and(|(_, end)| {
                    end.is_some_and(|end| end as f64 <= (bound * 1e9).round() + 1.0)
                })
            };
            let expected = (1..wait.cells.len() as u32).filter(|&cell| below(cell)).count();
            assert_eq!(count.parse::<usize>().unwrap(), expected, "{line}");
        }
        assert!(buckets[57].ends_with(&format!("le=\"+Inf\"}} {observed}")), "{buckets:?}");
        let sum =
            format!("ppt_b_wait_seconds_sum{{}} {}", BaseUnit::NANOSECONDS.decimal(3 * observed));
        assert_eq!(lines(&text, "ppt_b_wait_seconds_sum"), [sum]);
        let bounds = [("9.0", 1), ("14.0", 3), ("19.0", 7), ("+Inf", 15)];
        let expected =
            bounds.map(|(le, count)| format!("ppt_b_size_bucket{{,le=\"{le}\"}} {count}"));
        assert_eq!(lines(&text, "ppt_b_size_bucket"), expected);
        assert_eq!(lines(&text, "ppt_b_size_sum"), ["ppt_b_size_sum{} 100"]);
    }

    #[test]
    fn a_sum_that_may_fall_is_left_out_with_its_count() {
        let feed = feed(r#"{"name":"wait","kind":"histogram","type":"duration"}"#);
        feed.add([(0, (-5i64).cast_unsigned()), (1, 2)]);
        let text = series().text(EMPTY, vec![feed]);
        assert_eq!(
            lines(&text, "ppt_b_wait_seconds_bucket")[0],
            "ppt_b_wait_seconds_bucket{,le=\"2.55e-07\"} 2"
        );
        for name in ["ppt_b_wait_seconds_sum", "ppt_b_wait_seconds_count"] {
            assert!(lines(&text, name).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_program_that_defines_too_much_has_its_account_only() {
        let one = |number: u32| {
            format!(
                r#"{{"name":"h{number}","kind":"histogram","type":"u32","from":0,"to":9999,"buckets":4096}}"#
            )
        };
        let all: Vec<String> = (0..256).map(one).collect();
        let mut feeds =
            vec![feed(&all.join(",")), feed(r#"{"name":"c","kind":"counter","type":"u64"}"#)];
        let text = series().text(EMPTY, feeds.clone());
        assert!(lines(&text, "ppt_b_h0_bucket").is_empty());
        assert_eq!(lines(&text, "ppt_session_buffers_not_shown").len(), 1);
        assert!(text.contains("ppt_session_buffers_not_shown{host=\"h\"} 1\n"), "{text}");
        assert!(text.contains("buffer=\"b-2\"} 0\n"), "others are shown: {text}");
        // For any number of feeds.
        let many = feeds[1].clone();
        feeds.extend((0..8_000).map(|_| many.clone()));
        let text = series().text(EMPTY, feeds);
        assert!(text.len() < MAX_TEXT_BYTES, "{}", text.len());
        assert!(text.contains("ppt_session_buffers_not_shown{"), "{}", text.len());
    }

    #[test]
    fn no_two_buffers_have_the_same_labels() {
        let named = |pid, buffer, ended: Option<u64>| FeedName {
            pid,
            program: "p",
            buffer,
            ended: ended.map(Duration::from_secs),
        };
        let labels = |feeds: Vec<FeedName<'_>>| {
            let labels = buffer_labels(feeds.into_iter()).into_iter();
            labels.map(|label| label.unwrap_or("-".into())).collect::<Vec<_>>().join(" ")
        };
        // Two libraries of one process; two processes.
        let all = vec![named(1, "b", None), named(1, "b", None), named(2, "b", None)];
        assert_eq!(labels(all), "b b-2 b");
        // The pid of an ended process is reused.
        let all = vec![named(1, "b", Some(9)), named(1, "b", None), named(2, "b", Some(9))];
        assert_eq!(labels(all), "- b b");
        let all = vec![named(1, "b", Some(9)), named(1, "b", Some(5)), named(2, "b", Some(301))];
        assert_eq!(labels(all), "- b -");
    }
}
