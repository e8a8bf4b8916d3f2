//! Single frames: all of them, or those around the slowest intervals.

use std::collections::{BTreeMap, HashSet};

use ppt_query::arrow::array::{Array, AsArray, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use ppt_query::summary::ends;
use ppt_query::{Engine, FrameTable, plain};
use serde_json::{Value, json};

use crate::error::ReportError;
use crate::frame_facts::{FrameFacts, SLOWEST};
use crate::text_rows;
use crate::timeline_data::Timeline;
use crate::times::{at, order, standard, time_columns, time_of};

/// Maximum numbers of frames on a page; the next one is tried if the frames do not fit into [`MAX_BYTES`].
const MAX_FRAMES: [usize; 4] = [16_000, 4_000, 1_000, 200];
/// Maximum number of bytes of single frames on a page.
const MAX_BYTES: usize = 2_300_000;
/// Maximum number of time ranges with single frames.
const MAX_RANGES: usize = 40;
/// Approximate number of frames on each side of the end of a slow interval.
const AROUND: f64 = 150.0;
/// Maximum number of characters of a text in a frame.
const MAX_CHARS: usize = 80;
/// The largest integer that JavaScript represents exactly.
const EXACT: u64 = 1 << 53;

/// A time range: its ends, ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimeRange {
    from: i64,
    to: i64,
}

/// All times.
const ALL: TimeRange = TimeRange { from: i64::MIN, to: i64::MAX };

/// Frames for the script, and whether they are all frames.
pub(super) async fn gather(
    engine: &Engine,
    tables: &[&FrameTable],
    frames: &[FrameFacts],
    timeline: &Timeline,
) -> Result<(Value, bool), ReportError> {
    let count: u64 = frames.iter().map(|frame| frame.count).sum();
    for most in MAX_FRAMES {
        let all = count <= most as u64;
        let ranges = if all { vec![ALL] } else { slow_ranges(frames, timeline, count, most) };
        let (kinds, ranges) = read(engine, tables, frames, timeline, ranges, most).await?;
        if kinds.to_string().len() <= MAX_BYTES || most == MAX_FRAMES[MAX_FRAMES.len() - 1] {
            let relative =
                |range: &TimeRange| json!([timeline.place(range.from), timeline.place(range.to)]);
            let ranges: Vec<Value> = ranges.iter().map(relative).collect();
            return Ok((json!({ "places": ranges, "kinds": kinds }), all));
        }
    }
    Ok((Value::Null, false))
}

/// Time ranges around the ends of the slowest intervals, the slowest of each interval first.
fn slow_ranges(
    frames: &[FrameFacts],
    timeline: &Timeline,
    count: u64,
    most: usize,
) -> Vec<TimeRange> {
    let slow =
        frames.iter().flat_map(|frame| &frame.fields).filter(|facts| !facts.slowest.is_empty());
    let mut slow: Vec<_> = slow.collect();
    slow.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    let wanted = MAX_RANGES.min((most as f64 / AROUND) as usize).max(1);
    let each_frame = timeline.extent().1 as f64 / count.max(1) as f64;
    let around = (each_frame * AROUND).min(timeline.extent().1 as f64) as i64;
    let mut ranges: Vec<TimeRange> = Vec::new();
    for turn in 0..SLOWEST {
        for field in &slow {
            let Some(slowest) = field.slowest.get(turn) else { continue };
            let end = slowest.start.saturating_add(slowest.length);
            let (from, to) = (end.saturating_sub(around), end.saturating_add(around));
            // A short interval is on the page from its beginning.
            let begins = slowest.start.saturating_sub(around / 4);
            let from = if slowest.length < 4 * around { from.min(begins) } else { from };
            if ranges.len() < wanted {
                ranges.push(TimeRange { from, to });
            }
        }
    }
    ranges.sort_unstable();
    let mut merged: Vec<TimeRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.from <= last.to => last.to = last.to.max(range.to),
            _ => merged.push(range),
        }
    }
    merged
}

/// The frames of these time ranges, and the slowest intervals.
async fn read(
    engine: &Engine,
    tables: &[&FrameTable],
    frames: &[FrameFacts],
    timeline: &Timeline,
    mut ranges: Vec<TimeRange>,
    most: usize,
) -> Result<(Value, Vec<TimeRange>), ReportError> {
    let mut batches: Vec<Vec<RecordBatch>> = Vec::new();
    for facts in frames {
        let slow = facts.fields.iter().flat_map(|field| &field.slowest);
        batches.push(slow.map(|slow| slow.row.clone()).collect());
    }
    let mut left = most;
    for range in &mut ranges {
        let mut found: Vec<(usize, Vec<RecordBatch>)> = Vec::new();
        for (index, (table, facts)) in tables.iter().zip(frames).enumerate() {
            if facts.count == 0 {
                continue;
            }
            let all = engine.context().table(table.name.clone()).await?;
            if *range == ALL {
                let all = all.sort(order(table.table.as_ref()))?;
                found.push((index, all.collect().await?));
                continue;
            }
            let time = time_of(table.table.as_ref());
            let here = time.between(at(range.from), at(range.to));
            // Each kind gets a share; if it has more frames, the time range ends with the last of them.
            let limit = (left / 4).max(16);
            let here = all.filter(here)?.sort(order(table.table.as_ref()))?;
            let rows = here.limit(0, Some(limit + 1))?.collect().await?;
            let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
            if count > limit
                && let Some(last) = last_time(table, &rows)?
            {
                range.to = range.to.min(last);
            }
            found.push((index, rows));
        }
        for (index, rows) in found {
            left = left.saturating_sub(rows.iter().map(RecordBatch::num_rows).sum());
            batches[index].extend(rows);
        }
    }
    let mut kinds = Vec::new();
    for ((table, facts), batches) in tables.iter().zip(frames).zip(&batches) {
        if !batches.is_empty() {
            kinds.push(kind(table, facts, batches, timeline)?);
        }
    }
    Ok((Value::Array(kinds), ranges))
}

fn last_time(table: &FrameTable, rows: &[RecordBatch]) -> Result<Option<i64>, ReportError> {
    let Some(batch) = rows.iter().rfind(|row| row.num_rows() > 0) else { return Ok(None) };
    for name in time_columns(table.table.as_ref()) {
        let Some(column) = batch.column_by_name(&name) else { continue };
        let times = cast(column, &DataType::Int64)?;
        let last = batch.num_rows() - 1;
        if times.is_valid(last) {
            return Ok(Some(times.as_primitive::<Int64Type>().value(last)));
        }
    }
    Ok(None)
}

/// Frames of one kind for the script: names of columns, and the values of each.
fn kind(
    table: &FrameTable,
    facts: &FrameFacts,
    batches: &[RecordBatch],
    timeline: &Timeline,
) -> Result<Value, ReportError> {
    let schema = table.table.schema();
    let identity = ["capture", "buffer", "segment", "ring", "seqno"];
    let [host, pid, tid] = standard(table.table.as_ref());
    let mut identities = HashSet::new();
    let mut columns: Vec<ReportColumn> =
        schema.fields().iter().map(|_| ReportColumn::default()).collect();
    let mut lanes = Vec::new();
    let mut times = Vec::new();
    let time_names: Vec<String> = time_columns(table.table.as_ref()).collect();
    let place = |name: &str| schema.index_of(name).or(schema.index_of(&format!("ppt_{name}"))).ok();
    for batch in batches {
        let texts = text_rows::from_batch(batch)?;
        let rows: Vec<usize> = (0..batch.num_rows())
            .filter(|&row| {
                let key = |name: &&str| place(name).map(|place| texts[row][place].clone());
                identities.insert(identity.iter().map(key).collect::<Vec<_>>())
            })
            .collect();
        for (at, column) in columns.iter_mut().enumerate() {
            column.add(batch, at, &rows, &texts, timeline)?;
        }
        for &row in &rows {
            let text = |name: &str| place(name).map_or("", |place| &texts[row][place]);
            lanes.push(timeline.lane(text(&host), text(&pid), text(&tid)));
            let time = time_names.iter().find_map(|name| {
                let times = cast(batch.column_by_name(name)?, &DataType::Int64).ok()?;
                times.is_valid(row).then(|| times.as_primitive::<Int64Type>().value(row))
            });
            times.push(time.map(|time| time.saturating_sub(timeline.extent().0)));
        }
    }
    let mut fields = Vec::new();
    for (at, (field, column)) in schema.fields().iter().zip(columns).enumerate() {
        let metadata = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
        // The lane shows host, process and thread, and all frames of a kind are in one buffer.
        if [host.as_str(), pid.as_str(), tid.as_str()].contains(&field.name().as_str())
            || (at < 4 && field.name() == "buffer")
        {
            continue;
        }
        fields.push(json!({
            "name": plain(field.name()), "unit": metadata("unit"),
            "role": metadata("role"), "time": matches!(field.data_type(), DataType::Timestamp(..)),
            "words": column.words, "values": column.values,
        }));
    }
    let place = |name: &str| fields.iter().position(|field| field["name"] == plain(name));
    let mut intervals = Vec::new();
    for field in facts.fields.iter().filter(|field| field.interval.is_some()) {
        let Ok(own) = schema.field_with_name(&field.name) else { continue };
        let start = ends(schema, own).and_then(|end| place(schema.field(end.0).name()));
        intervals.push(json!([field.interval, start, place(&field.name)]));
    }
    Ok(json!({
        "label": plain(&facts.label), "intervals": intervals, "lanes": lanes, "times": times,
        "fields": fields,
    }))
}

/// Values of a column.
#[derive(Default)]
struct ReportColumn {
    values: Vec<Value>,
    /// The texts that the values of a column of text are indices of.
    words: Option<Vec<String>>,
    numbers: BTreeMap<String, usize>,
}

impl ReportColumn {
    fn add(
        &mut self,
        batch: &RecordBatch,
        column: usize,
        rows: &[usize],
        texts: &[Vec<String>],
        timeline: &Timeline,
    ) -> Result<(), ReportError> {
        let array = batch.column(column);
        match array.data_type() {
            DataType::Timestamp(..) => {
                let times = cast(array, &DataType::Int64)?;
                let times = times.as_primitive::<Int64Type>();
                let origin = timeline.extent().0;
                let value = |&row: &usize| {
                    if times.is_null(row) {
                        Value::Null
                    } else {
                        whole(times.value(row).saturating_sub(origin))
                    }
                };
                self.values.extend(rows.iter().map(value));
            }
            DataType::UInt64 => {
                let numbers = array.as_primitive::<UInt64Type>();
                let value = |&row: &usize| match numbers.is_null(row) {
                    true => Value::Null,
                    false if numbers.value(row) <= EXACT => json!(numbers.value(row)),
                    false => json!(numbers.value(row).to_string()),
                };
                self.values.extend(rows.iter().map(value));
            }
            ty if ty.is_integer() => {
                let numbers = cast(array, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                let value = |&row: &usize| {
                    if numbers.is_null(row) { Value::Null } else { whole(numbers.value(row)) }
                };
                self.values.extend(rows.iter().map(value));
            }
            ty if ty.is_floating() => {
                let numbers = cast(array, &DataType::Float64)?;
                let numbers = numbers.as_primitive::<Float64Type>();
                let value = |&row: &usize| match numbers.is_null(row) {
                    true => Value::Null,
                    // JSON has no NaN.
                    false if !numbers.value(row).is_finite() => json!(texts[row][column]),
                    false => json!(numbers.value(row)),
                };
                self.values.extend(rows.iter().map(value));
            }
            _ => {
                let words = self.words.get_or_insert_default();
                for &row in rows {
                    if array.is_null(row) || batch.column(column).is_null(row) {
                        self.values.push(Value::Null);
                        continue;
                    }
                    let text: String = plain(&texts[row][column]).chars().take(MAX_CHARS).collect();
                    let next = words.len();
                    let number = *self.numbers.entry(text).or_insert_with_key(|text| {
                        words.push(text.clone());
                        next
                    });
                    self.values.push(json!(number));
                }
            }
        }
        Ok(())
    }
}

/// An integer, as text if JavaScript would round it.
fn whole(number: i64) -> Value {
    if number.unsigned_abs() <= EXACT { json!(number) } else { json!(number.to_string()) }
}
