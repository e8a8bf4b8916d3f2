//! Activity of threads in each bucket of time.

use std::collections::HashMap;

use futures::StreamExt;
use ppt_query::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, RecordBatch, StringArray,
};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Int32Type, Int64Type};
use ppt_query::datafusion::logical_expr::lit;
use ppt_query::datafusion::prelude::ident;
use ppt_query::{Engine, FrameTable, ThreadFrames, ThreadLabels, plain, sql_literal};
use serde_json::Value;

use super::account::FrameGap;
use super::kernel::STATES;
use super::single;
use super::spans;
use super::sweep::{SweptFacts, least};
use super::triggers::Trigger;
use crate::error::ReportError;
use crate::frame_facts::FrameFacts;
use crate::span::ChartSpan;
use crate::text_rows;
use crate::timeline_data::{Bucket, Lane, Timeline, TimelineGap};
use crate::times::{at, standard, time_of};

/// Maximum number of threads on a page: those with most frames.
const LANES: usize = 48;
/// Maximum number of buckets of all threads together.
const BUCKETS: usize = 120_000;
/// Maximum number of characters of a mark.
const MAX_MARK_CHARS: usize = 200;
/// Maximum number of buckets of a thread: more than a screen has pixels.
const MAX_BUCKETS: usize = 3000;

/// The input of a timeline.
pub(super) struct Drawn<'a> {
    /// The tables of `frames`, in the same order.
    pub tables: &'a [&'a FrameTable],
    pub frames: &'a [FrameFacts],
    pub wholes: &'a [FrameFacts],
    pub gaps: &'a [FrameGap],
    pub triggers: &'a [Trigger],
    pub swept: Option<&'a SweptFacts>,
}

/// Names on a timeline. The first `intervals` names are those of intervals, the others those of spans and
/// chains.
pub(super) struct LaneNames {
    pub names: Vec<String>,
    pub intervals: usize,
}

/// Gathers the timeline.
pub(super) async fn gather(
    engine: &Engine,
    drawn: &Drawn<'_>,
    LaneNames { names, intervals }: LaneNames,
    span: Option<&ChartSpan>,
) -> Result<Timeline, ReportError> {
    let Some(span) = span else { return Ok(Timeline::default()) };
    let &Drawn { tables, frames, wholes, gaps, triggers, swept } = drawn;
    let mut lanes = lanes(engine, tables, swept).await?;
    let hidden_threads = lanes.len().saturating_sub(LANES);
    lanes.truncate(LANES);
    let spans = spans::kinds(engine, tables, wholes);
    lanes.extend(spans::lanes(engine, &spans).await?);
    lanes.sort_by_key(|lane| {
        let number = |text: &str| text.parse().unwrap_or(0i64);
        (lane.host.clone(), number(&lane.pid), lane.spans.clone(), number(&lane.tid))
    });
    // Charts begin with their first slice; an interval may have begun earlier. Spans and the kernel
    // have rows in `slices`, too.
    let has_frames_alone = spans.is_empty() && engine.is_unbounded() && !engine.set().has_kernel();
    let first = match swept.and_then(|swept| swept.began(span)).filter(|_| has_frames_alone) {
        Some(first) => first,
        None => began(engine, span).await?,
    };
    let origin = first.unwrap_or(span.from).min(span.from);
    let length = span.last.saturating_sub(origin).max(1);
    let buckets = (BUCKETS / lanes.len().max(1)).clamp(64, MAX_BUCKETS);
    let width = (length / buckets as i64 + 1).max(1);
    let mut timeline = Timeline {
        lanes,
        hidden_threads,
        names,
        intervals,
        origin,
        length,
        width,
        gaps: Vec::new(),
        marks: Vec::new(),
        frames: Value::Null,
        has_all_frames: false,
    };
    let mut numbers = numbers(frames);
    numbers.extend(spans.into_iter().map(|kind| ((kind.buffer, kind.frame), kind.number)));
    slices(&mut timeline, engine, &numbers, buckets).await?;
    states(&mut timeline, engine, buckets).await?;
    instants(&mut timeline, engine, tables, frames, buckets).await?;
    timeline.marks = triggers
        .iter()
        .map(|trigger| (timeline.place(trigger.ts), trigger_text(trigger)))
        .collect();
    timeline.gaps = gaps
        .iter()
        .filter_map(|gap| {
            let (from, to) = (gap.from.or(gap.to)?, gap.to.or(gap.from)?);
            let lane = timeline.lane(&gap.host, &gap.pid, &gap.tid);
            let (from, to) = (timeline.place(from), timeline.place(to));
            Some(TimelineGap { lane, from, to, count: gap.count, cause: gap.cause.clone() })
        })
        .collect();
    (timeline.frames, timeline.has_all_frames) =
        single::gather(engine, tables, frames, &timeline).await?;
    Ok(timeline)
}

/// Reads all rows of `slices` once.
async fn slices(
    timeline: &mut Timeline,
    engine: &Engine,
    numbers: &HashMap<(String, String), usize>,
    buckets: usize,
) -> Result<(), ReportError> {
    let select = ["buffer", "name", "host", "pid", "tid", "ts", "dur"].map(ident);
    let slices = engine.context().table("slices").await?.select(select.to_vec())?;
    let mut stream = slices.execute_stream().await?;
    let mut covers: Vec<Cover> =
        timeline.lanes.iter().map(|_| Cover::new(buckets, timeline.names.len())).collect();
    let finder = Finder::new(timeline);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let (buffers, names) =
            (LaneWords::from_column(batch.column(0)), LaneWords::from_column(batch.column(1)));
        let lanes = finder.lanes(&batch, [2, 3, 4])?;
        let (hosts, pids) = (LaneWords::from_column(batch.column(2)), numbers_of(batch.column(3))?);
        let pids = pids.as_primitive::<Int64Type>();
        let starts = numbers_of(batch.column(5))?;
        let lengths = numbers_of(batch.column(6))?;
        let (starts, lengths) =
            (starts.as_primitive::<Int64Type>(), lengths.as_primitive::<Int64Type>());
        let mut names_of_keys: HashMap<(i32, i32), Option<usize>> = HashMap::new();
        for (row, lane_of_row) in lanes.into_iter().enumerate() {
            if starts.is_null(row) || lengths.is_null(row) || lengths.value(row) < 0 {
                continue;
            }
            let key = (buffers.key(row), names.key(row));
            let name = *names_of_keys.entry(key).or_insert_with(|| {
                let key = (buffers.word(row)?.to_owned(), names.word(row)?.to_owned());
                numbers.get(&key).copied()
            });
            let Some(name) = name else { continue };
            let lane = match timeline.names.get(name) {
                Some(label) if name >= timeline.intervals => {
                    let pid = pids.is_valid(row).then(|| pids.value(row));
                    finder.spans(hosts.word(row), pid, label)
                }
                _ => lane_of_row,
            };
            let Some(lane) = lane else { continue };
            let start = starts.value(row).saturating_sub(timeline.origin);
            let end = start.saturating_add(lengths.value(row));
            if end < 0 || start > timeline.length {
                continue;
            }
            covers[lane].add(name, start.max(0), end.min(timeline.length), timeline.width);
        }
    }
    for (lane, cover) in timeline.lanes.iter_mut().zip(covers) {
        (lane.buckets, lane.busy) = cover.finish(timeline.width);
    }
    Ok(())
}

/// Reads the kernel's states, and keeps for each bucket the one that takes most of it.
async fn states(
    timeline: &mut Timeline,
    engine: &Engine,
    buckets: usize,
) -> Result<(), ReportError> {
    if !engine.set().has_kernel() {
        return Ok(());
    }
    let select = ["state", "host", "pid", "tid", "ts", "dur"].map(ident);
    let states = engine.context().table("thread_states").await?.select(select.to_vec())?;
    let mut stream = states.execute_stream().await?;
    let mut covers: Vec<Cover> =
        timeline.lanes.iter().map(|_| Cover::new(buckets, STATES.len())).collect();
    let finder = Finder::new(timeline);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let words = LaneWords::from_column(batch.column(0));
        let lanes = finder.lanes(&batch, [1, 2, 3])?;
        let (starts, lengths) = (numbers_of(batch.column(4))?, numbers_of(batch.column(5))?);
        let starts = starts.as_primitive::<Int64Type>();
        let lengths = lengths.as_primitive::<Int64Type>();
        for (row, lane) in lanes.into_iter().enumerate() {
            let (Some(lane), Some(state)) = (lane, words.word(row)) else { continue };
            let Some(state) = STATES.iter().position(|text| *text == state) else { continue };
            let start = starts.value(row).saturating_sub(timeline.origin);
            let end = start.saturating_add(lengths.value(row));
            if starts.is_null(row) || end < 0 || start > timeline.length || end < start {
                continue;
            }
            covers[lane].add(state, start.max(0), end.min(timeline.length), timeline.width);
        }
    }
    for (lane, cover) in timeline.lanes.iter_mut().zip(covers) {
        lane.states = cover.finish(timeline.width).0.iter().map(|bucket| bucket.name).collect();
    }
    Ok(())
}

/// The reason for a window, on one line.
fn trigger_text(trigger: &Trigger) -> String {
    let more = [&trigger.expression, &trigger.note].into_iter().filter(|text| !text.is_empty());
    let all: Vec<&str> = [&trigger.why].into_iter().chain(more).map(String::as_str).collect();
    plain(&all.join(": ")).chars().take(MAX_MARK_CHARS).collect()
}

/// Reads the times of frames without intervals.
async fn instants(
    timeline: &mut Timeline,
    engine: &Engine,
    tables: &[&FrameTable],
    frames: &[FrameFacts],
    buckets: usize,
) -> Result<(), ReportError> {
    for lane in &mut timeline.lanes {
        lane.ticks = vec![0; buckets];
    }
    let finder = Finder::new(timeline);
    for (table, facts) in tables.iter().zip(frames) {
        if facts.count == 0 || facts.fields.iter().any(|field| field.interval.is_some()) {
            continue;
        }
        let standard = standard(table.table.as_ref());
        let mut select = vec![time_of(table.table.as_ref()).alias("time")];
        select.extend(standard.map(ident));
        let rows = engine.context().table(table.name.clone()).await?.select(select)?;
        let mut stream = rows.execute_stream().await?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let lanes = finder.lanes(&batch, [1, 2, 3])?;
            let times = numbers_of(batch.column(0))?;
            let times = times.as_primitive::<Int64Type>();
            for (row, lane) in lanes.into_iter().enumerate() {
                let (Some(lane), false) = (lane, times.is_null(row)) else { continue };
                let place = times.value(row).saturating_sub(timeline.origin);
                if (0..=timeline.length).contains(&place) {
                    let ticks = &mut timeline.lanes[lane].ticks;
                    ticks[((place / timeline.width) as usize).min(buckets - 1)] += 1;
                }
            }
        }
    }
    Ok(())
}

/// The number of each interval, by its buffer and its name in `slices`.
fn numbers(frames: &[FrameFacts]) -> HashMap<(String, String), usize> {
    let intervals = frames.iter().flat_map(|frame| {
        frame.fields.iter().filter_map(|field| {
            let name = format!("{}.{}", frame.frame, field.name);
            Some(((frame.buffer.clone(), name), field.interval?))
        })
    });
    intervals.collect()
}

/// All threads, those with most frames first.
async fn lanes(
    engine: &Engine,
    tables: &[&FrameTable],
    swept: Option<&SweptFacts>,
) -> Result<Vec<Lane>, ReportError> {
    let mut buffers: Vec<_> = tables.iter().map(|table| &table.buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    if buffers.is_empty() {
        return Ok(Vec::new());
    }
    // The heads of chunks give the same counts, unless they include frames outside of the selection.
    let has = |buffer: &str| buffers.iter().any(|known| *known == buffer);
    let threads = engine.set().thread_frames(has);
    let labels = ThreadLabels::new(engine.set());
    let all: u64 = threads.iter().map(|thread| thread.frames).sum();
    if swept.is_some_and(|swept| swept.count() == all) && !engine.set().names_threads(has) {
        let shown =
            |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
        let row = |thread: ThreadFrames| {
            let ThreadFrames { host, pid, tid, frames } = thread;
            lane(&labels, vec![host, shown(pid), shown(tid), frames.to_string()])
        };
        return Ok(threads.into_iter().map(row).collect());
    }
    let buffers: Vec<String> = buffers.iter().map(|buffer| sql_literal(buffer)).collect();
    let sql = format!(
        "SELECT host, pid, tid, count(*) AS n FROM frames WHERE buffer IN ({}) \
         GROUP BY host, pid, tid ORDER BY n DESC, host, pid, tid",
        buffers.join(", ")
    );
    Ok(text_rows::query(engine, &sql).await?.into_iter().map(|row| lane(&labels, row)).collect())
}

/// A thread, from a row with host, process, thread and number of frames.
fn lane(labels: &ThreadLabels, row: Vec<String>) -> Lane {
    let [host, pid, tid, frames] = <[String; 4]>::try_from(row).unwrap_or_default();
    let frames = frames.parse().unwrap_or(0);
    let name = match (pid.parse(), tid.parse()) {
        (Ok(pid), Ok(tid)) => labels.name(&host, pid, tid).unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    Lane { host, pid, tid, name, frames, ..Lane::default() }
}

/// The earliest start of a slice within the range to which charts may be extended.
async fn began(engine: &Engine, span: &ChartSpan) -> Result<Option<i64>, ReportError> {
    let least = least(span);
    let slices = engine.context().table("slices").await?;
    let slices = slices.filter(ident("ts").gt_eq(at(least)).and(ident("dur").gt_eq(lit(0))))?;
    let first = ppt_query::datafusion::functions_aggregate::expr_fn::min(ident("ts"));
    let batches = slices.aggregate(vec![], vec![first])?.collect().await?;
    let first = match batches.first() {
        Some(batch) if batch.num_rows() > 0 => {
            let times = numbers_of(batch.column(0))?;
            let times = times.as_primitive::<Int64Type>();
            times.is_valid(0).then(|| times.value(0))
        }
        _ => None,
    };
    Ok(first)
}

fn numbers_of(column: &ArrayRef) -> Result<ArrayRef, ReportError> {
    Ok(cast(column, &DataType::Int64)?)
}

/// A dictionary column of text.
struct LaneWords<'a> {
    column: Option<&'a DictionaryArray<Int32Type>>,
    words: Option<&'a StringArray>,
}

impl<'a> LaneWords<'a> {
    fn from_column(column: &'a ArrayRef) -> LaneWords<'a> {
        let column = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
        let words = column.and_then(|column| column.values().as_string_opt::<i32>());
        LaneWords { column, words }
    }

    fn key(&self, row: usize) -> i32 {
        let valid = self.column.filter(|column| column.keys().is_valid(row));
        valid.map_or(-1, |valid| valid.keys().value(row))
    }

    fn word(&self, row: usize) -> Option<&'a str> {
        let key = usize::try_from(self.key(row)).ok()?;
        Some(self.words?.value(key))
    }
}

/// Finds the lane of a row.
struct Finder {
    lanes: HashMap<(String, i64, i64), usize>,
    /// Lanes of spans, by host, process and name.
    spans: HashMap<(String, i64, String), usize>,
}

impl Finder {
    fn new(timeline: &Timeline) -> Finder {
        let number = |text: &str| text.parse().unwrap_or(-1);
        let mut finder = Finder { lanes: HashMap::new(), spans: HashMap::new() };
        for (at, lane) in timeline.lanes.iter().enumerate() {
            let (host, pid) = (lane.host.clone(), number(&lane.pid));
            match &lane.spans {
                Some(name) => _ = finder.spans.insert((host, pid, name.clone()), at),
                None => _ = finder.lanes.insert((host, pid, number(&lane.tid)), at),
            }
        }
        finder
    }

    /// The lane of the spans of this name that began in a process.
    fn spans(&self, host: Option<&str>, pid: Option<i64>, name: &str) -> Option<usize> {
        let key = (host.unwrap_or_default().to_owned(), pid.unwrap_or(-1), name.to_owned());
        self.spans.get(&key).copied()
    }

    /// The lane of each row, by the columns for host, process and thread.
    fn lanes(
        &self,
        batch: &RecordBatch,
        [host, pid, tid]: [usize; 3],
    ) -> Result<Vec<Option<usize>>, ReportError> {
        let words = LaneWords::from_column(batch.column(host));
        let (pid, tid) = (numbers_of(batch.column(pid))?, numbers_of(batch.column(tid))?);
        let (pid, tid) = (pid.as_primitive::<Int64Type>(), tid.as_primitive::<Int64Type>());
        let mut last: Option<((i32, i64, i64), Option<usize>)> = None;
        let number = |array: &ppt_query::arrow::array::Int64Array, row| {
            if array.is_null(row) { -1 } else { array.value(row) }
        };
        let lane = |row: usize| {
            let key = (words.key(row), number(pid, row), number(tid, row));
            if let Some((known, lane)) = last
                && known == key
            {
                return lane;
            }
            let host = words.word(row).unwrap_or_default().to_owned();
            let lane = self.lanes.get(&(host, key.1, key.2)).copied();
            last = Some((key, lane));
            lane
        };
        Ok((0..batch.num_rows()).map(lane).collect())
    }
}

/// Coverage of buckets, by name. A slice of any length costs two buckets: differences are stored at its
/// ends and summed at the end.
struct Cover {
    /// For each name, the time within the bucket of an end.
    parts: Vec<Vec<i64>>,
    /// For each name, whole buckets as differences.
    whole: Vec<Vec<i32>>,
    count: Vec<u32>,
    longest: Vec<f32>,
}

impl Cover {
    fn new(buckets: usize, names: usize) -> Cover {
        Cover {
            parts: vec![Vec::new(); names],
            whole: vec![Vec::new(); names],
            count: vec![0; buckets],
            longest: vec![0.0; buckets],
        }
    }

    fn add(&mut self, name: usize, start: i64, end: i64, width: i64) {
        let buckets = self.count.len();
        let bucket = |time: i64| ((time / width) as usize).min(buckets - 1);
        let (first, last) = (bucket(start), bucket(end));
        self.count[first] = self.count[first].saturating_add(1);
        self.longest[first] = self.longest[first].max((end - start) as f32);
        let parts = &mut self.parts[name];
        if parts.is_empty() {
            // Names that a thread does not use take no memory.
            parts.resize(buckets, 0);
            self.whole[name].resize(buckets + 1, 0);
        }
        // Slices of length 0 stay visible.
        let least = width / 255 + 1;
        if first == last {
            parts[first] += (end - start).max(least);
            return;
        }
        let edge = |bucket: usize| bucket as i64 * width;
        parts[first] += edge(first + 1) - start;
        parts[last] += end - edge(last);
        self.whole[name][first + 1] += 1;
        self.whole[name][last] -= 1;
    }

    /// The buckets, and the covered time in ns.
    fn finish(self, width: i64) -> (Vec<Bucket>, f64) {
        let buckets = self.count.len();
        let mut all = vec![Bucket::default(); buckets];
        let mut most = vec![0i64; buckets];
        let mut sum = vec![0i64; buckets];
        for (name, (parts, whole)) in self.parts.iter().zip(&self.whole).enumerate() {
            let mut open = 0i64;
            for at in 0..parts.len() {
                open += i64::from(whole[at]);
                let time = parts[at].saturating_add(open.saturating_mul(width));
                sum[at] = sum[at].saturating_add(time);
                if time > most[at] {
                    most[at] = time;
                    all[at].name = (name + 1).min(255) as u8;
                }
            }
        }
        let mut busy = 0.0;
        for (at, bucket) in all.iter_mut().enumerate() {
            // Nested slices cover the same time once.
            let share = (sum[at] as f64 / width as f64).min(1.0);
            busy += share * width as f64;
            bucket.fill = if bucket.name == 0 { 0 } else { (share * 255.0).ceil().max(1.0) as u8 };
            bucket.count = self.count[at];
            bucket.longest = self.longest[at];
        }
        (all, busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_covers_what_it_covers() {
        let mut cover = Cover::new(10, 2);
        cover.add(0, 50, 850, 100);
        cover.add(1, 120, 180, 100);
        let (buckets, busy) = cover.finish(100);
        let fills: Vec<u8> = buckets.iter().map(|bucket| bucket.fill).collect();
        assert_eq!(fills, [128, 255, 255, 255, 255, 255, 255, 255, 128, 0]);
        let names: Vec<u8> = buckets.iter().map(|bucket| bucket.name).collect();
        assert_eq!(names, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!((buckets[0].count, buckets[1].count, buckets[2].count), (1, 1, 0));
        assert_eq!((buckets[0].longest, buckets[1].longest), (800.0, 60.0));
        assert!((busy - 800.0).abs() < 1.0, "{busy}");
    }

    #[test]
    fn what_takes_no_time_is_seen() {
        let mut cover = Cover::new(4, 1);
        cover.add(0, 250, 250, 100);
        cover.add(0, 400, 400, 100);
        let (buckets, _) = cover.finish(100);
        assert!(buckets[2].name == 1 && buckets[2].fill > 0);
        assert_eq!(buckets[3].count, 1, "the very end belongs to the last one");
    }
}
