//! The slowest intervals.

use ppt_query::arrow::array::{Array, AsArray, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Field, Int64Type};
use ppt_query::datafusion::prelude::ident;
use ppt_query::summary::ends;
use ppt_query::text::duration;
use ppt_query::{Bounded, BoundedNumber, CaptureTable, Engine, FrameTable, RowUnit};

use super::sweep::SweptFacts;
use crate::error::ReportError;
use crate::frames::{FrameFacts, SLOWEST, Slow};
use crate::{rows, times};

/// Maximum number of other fields that are shown with an interval.
const BESIDE: usize = 5;

pub(super) async fn add(
    engine: &Engine,
    tables: &[&FrameTable],
    frames: &mut [FrameFacts],
    mut swept: Option<&mut SweptFacts>,
) -> Result<(), ReportError> {
    for (table, frame) in tables.iter().zip(frames) {
        let mut known = swept.as_mut().map(|swept| swept.longest(table)).unwrap_or_default();
        let lengths: Vec<String> = frame
            .fields
            .iter()
            .filter(|field| field.interval.is_some())
            .map(|field| field.name.clone())
            .collect();
        for field in frame.fields.iter_mut().filter(|field| field.interval.is_some()) {
            let schema = table.table.schema();
            let own = schema.field_with_name(&field.name).ok();
            let start = own.and_then(|field| match frame.unit {
                RowUnit::Frame => Some(ends(schema, field)?.0),
                // A span begins with its first frame, and a chain with its earliest.
                RowUnit::Span | RowUnit::Chain => when(table.table.as_ref()),
            });
            let standard = |name: &str| schema.index_of(name).ok();
            let Some(start) = start else { continue };
            let Ok(length) = schema.index_of(&field.name) else { continue };
            let beside: Vec<usize> = schema
                .fields()
                .iter()
                .enumerate()
                .filter(|(at, arc)| {
                    let role = arc.metadata().get("role").map_or("", String::as_str);
                    table.table.bounded(*at).is_none()
                        && !["at", "start", "end", "where", "step", "state"].contains(&role)
                        && *arc.name() != field.name
                        && !is_standard(arc.name())
                })
                .map(|entry| entry.0)
                // Text before numbers, and other intervals last.
                .collect();
            let mut beside = beside;
            beside.sort_by_key(|&at| {
                let it = schema.field(at);
                let word = matches!(it.data_type(), DataType::Dictionary(..) | DataType::Utf8);
                (lengths.contains(it.name()), !word, at)
            });
            // The two halves of a span may have equal values.
            beside.truncate(2 * BESIDE);
            field.columns = beside.iter().map(|&at| schema.field(at).name().clone()).collect();
            let longest = match known.remove(&field.name) {
                Some(longest) => longest,
                None => self::longest(engine, table, &field.name).await?,
            };
            for batch in longest {
                let texts = rows::from_batch(&batch)?;
                let number = |column: usize| cast(batch.column(column), &DataType::Int64);
                let (starts, lengths) = (number(start)?, number(length)?);
                let starts = starts.as_primitive::<Int64Type>();
                let lengths = lengths.as_primitive::<Int64Type>();
                for (at, text) in texts.iter().enumerate() {
                    if starts.is_null(at) || lengths.is_null(at) {
                        continue;
                    }
                    let of = |name| {
                        standard(name).map(|standard| text[standard].clone()).unwrap_or_default()
                    };
                    field.slowest.push(Slow {
                        start: starts.value(at),
                        length: lengths.value(at),
                        host: of("host"),
                        pid: of("pid"),
                        tid: of("tid"),
                        seqno: of("seqno"),
                        beside: beside
                            .iter()
                            .map(|&index| value_text(schema.field(index), &text[index]))
                            .collect(),
                        row: batch.slice(at, 1),
                    });
                }
            }
            let rows = field.slowest.iter_mut().map(|slow| &mut slow.beside);
            join_halves(&mut field.columns, &mut rows.collect::<Vec<_>>());
            field.columns.truncate(BESIDE);
            field.slowest.iter_mut().for_each(|slow| slow.beside.truncate(BESIDE));
        }
    }
    Ok(())
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
