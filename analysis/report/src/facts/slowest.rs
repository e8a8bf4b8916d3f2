//! The slowest intervals.

use std::sync::Arc;

use ppt_query::arrow::array::{Array, AsArray, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use ppt_query::datafusion::prelude::ident;
use ppt_query::summary::ends;
use ppt_query::text::duration;
use ppt_query::{Bounded, BoundedNumber, CaptureTable, Engine, FrameTable, RowUnit};

use super::sweep::SweptFacts;
use crate::error::ReportError;
use crate::frame_facts::{FrameFacts, SLOWEST, SlowestRow};
use crate::{text_rows, times};

/// Maximum number of other fields that are shown with an interval.
const OTHER_FIELDS: usize = 5;

pub(super) async fn add(
    engine: &Engine,
    tables: &[&FrameTable],
    frames: &mut [FrameFacts],
    mut swept: Option<&mut SweptFacts>,
) -> Result<(), ReportError> {
    for (table, frame) in tables.iter().zip(frames) {
        let mut swept_rows =
            swept.as_mut().map(|swept| swept.take_longest(table)).unwrap_or_default();
        let intervals = frame.fields.iter().filter(|field| field.interval.is_some());
        let intervals: Vec<String> = intervals.map(|field| field.name.clone()).collect();
        for field in frame.fields.iter_mut().filter(|field| field.interval.is_some()) {
            let schema = table.table.schema();
            let column = schema.field_with_name(&field.name).ok();
            let start = column.and_then(|field| match frame.unit {
                RowUnit::Frame => Some(ends(schema, field)?.0),
                // A span begins with its first frame, and a chain with its earliest.
                RowUnit::Span | RowUnit::Chain => when(table.table.as_ref()),
            });
            let Some(start) = start else { continue };
            let Ok(length) = schema.index_of(&field.name) else { continue };
            let others = other_columns(table, &field.name, &intervals);
            field.columns = others.iter().map(|&at| schema.field(at).name().clone()).collect();
            let longest = match swept_rows.remove(&field.name) {
                Some(longest) => longest,
                None => self::longest(engine, table, &field.name).await?,
            };
            for batch in longest {
                field.slowest.extend(slow_intervals(schema, &batch, (start, length), &others)?);
            }
            let rows = field.slowest.iter_mut().map(|slow| &mut slow.cells);
            join_halves(&mut field.columns, &mut rows.collect::<Vec<_>>());
            field.columns.truncate(OTHER_FIELDS);
            field.slowest.iter_mut().for_each(|slow| slow.cells.truncate(OTHER_FIELDS));
        }
    }
    Ok(())
}

/// The fields that describe the frame of an interval: not its times and not its identity.
fn other_columns(table: &FrameTable, interval: &str, intervals: &[String]) -> Vec<usize> {
    let schema = table.table.schema();
    let is_other = |(at, field): &(usize, &Arc<Field>)| {
        let role = field.metadata().get("role").map_or("", String::as_str);
        table.table.bounded(*at).is_none()
            && !["at", "start", "end", "where", "step", "state"].contains(&role)
            && field.name() != interval
            && !is_standard(field.name())
    };
    let fields = schema.fields().iter().enumerate().filter(is_other);
    let mut others: Vec<usize> = fields.map(|(at, _)| at).collect();
    // Text before numbers, and other intervals last.
    others.sort_by_key(|&at| {
        let field = schema.field(at);
        let is_text = matches!(field.data_type(), DataType::Dictionary(..) | DataType::Utf8);
        (intervals.contains(field.name()), !is_text, at)
    });
    // The two halves of a span may have equal values.
    others.truncate(2 * OTHER_FIELDS);
    others
}

/// The intervals of a batch. `start`, `length`: their columns; `others`: the columns of their cells.
fn slow_intervals(
    schema: &Schema,
    batch: &RecordBatch,
    (start, length): (usize, usize),
    others: &[usize],
) -> Result<Vec<SlowestRow>, ReportError> {
    let number = |column: usize| cast(batch.column(column), &DataType::Int64);
    let (starts, lengths) = (number(start)?, number(length)?);
    let (starts, lengths) =
        (starts.as_primitive::<Int64Type>(), lengths.as_primitive::<Int64Type>());
    let mut intervals = Vec::new();
    for (at, texts) in text_rows::from_batch(batch)?.iter().enumerate() {
        if starts.is_null(at) || lengths.is_null(at) {
            continue;
        }
        let text = |name| schema.index_of(name).map(|at| texts[at].clone()).unwrap_or_default();
        intervals.push(SlowestRow {
            start: starts.value(at),
            length: lengths.value(at),
            host: text("host"),
            pid: text("pid"),
            tid: text("tid"),
            seqno: text("seqno"),
            cells: others.iter().map(|&at| value_text(schema.field(at), &texts[at])).collect(),
            row: batch.slice(at, 1),
        });
    }
    Ok(intervals)
}

/// The rows with the longest intervals of this name.
async fn longest(
    engine: &Engine,
    table: &FrameTable,
    name: &str,
) -> Result<Vec<RecordBatch>, ReportError> {
    let column = ident(name);
    let all = engine.context().table(table.name.clone()).await?;
    let all = all.filter(column.clone().is_not_null())?;
    let mut order = vec![column.sort(false, false)];
    order.extend(times::order(table.table.as_ref()));
    Ok(all.sort(order)?.limit(0, Some(SLOWEST))?.collect().await?)
}

/// If begin and end have equal values in all rows, one column without prefix replaces both.
fn join_halves(columns: &mut Vec<String>, rows: &mut [&mut Vec<String>]) {
    for begin in (0..columns.len()).rev() {
        let Some(name) = columns[begin].strip_prefix("begin_").map(str::to_owned) else { continue };
        let end = columns.iter().position(|column| column.strip_prefix("end_") == Some(&name));
        let Some(end) = end.filter(|_| !columns.contains(&name)) else { continue };
        if rows.iter().all(|row| row[begin] == row[end]) {
            columns[begin] = name;
            columns.remove(end);
            rows.iter_mut().for_each(|row| _ = row.remove(end));
        }
    }
}

/// The column for the time of a row.
fn when(table: &dyn CaptureTable) -> Option<usize> {
    let is_ts = |index: &usize| table.bounded(*index) == Some(Bounded::Number(BoundedNumber::Ts));
    (0..table.schema().fields().len()).find(is_ts)
}

/// Formats a value; durations get a unit.
fn value_text(field: &Field, text: &str) -> String {
    let is_ns = field.metadata().get("unit").is_some_and(|metadata| metadata == "ns");
    match text.parse::<f64>() {
        Ok(ns) if is_ns => duration(ns),
        _ => text.to_owned(),
    }
}

/// Whether a column identifies a row rather than describes it.
fn is_standard(name: &str) -> bool {
    let name = name.strip_prefix("ppt_").unwrap_or(name);
    ["capture", "buffer", "segment", "host"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_halves_of_a_span_say_is_told_once() {
        let texts = |row: &[&str]| row.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
        let mut columns = texts(&["begin_sql", "end_sql", "begin_rows", "end_rows", "id"]);
        let mut rows =
            [texts(&["SELECT 1", "SELECT 1", "0", "7", "1"]), texts(&["X", "X", "0", "0", "2"])];
        join_halves(&mut columns, &mut rows.iter_mut().collect::<Vec<_>>());
        assert_eq!(columns, ["sql", "begin_rows", "end_rows", "id"]);
        assert_eq!(rows, [texts(&["SELECT 1", "0", "7", "1"]), texts(&["X", "0", "0", "2"])]);
        // A field of that name exists already.
        let mut columns = texts(&["sql", "begin_sql", "end_sql"]);
        join_halves(&mut columns, &mut []);
        assert_eq!(columns, ["sql", "begin_sql", "end_sql"]);
    }
}
