//! Statistics as a table: a row for each frame and field, for each word of an enum one.

use std::sync::Arc;

use ppt_query::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use ppt_query::arrow::error::ArrowError;
use ppt_query::stats::Number;
use ppt_query::summary::{Ask, FrameSummary, Group, Values};

/// A row; what is not said is NULL.
#[derive(Default)]
struct Row<'a> {
    buffer: &'a str,
    frame: &'a str,
    field: Option<&'a str>,
    by: Vec<Option<&'a str>>,
    slice: Option<i64>,
    value: Option<&'a str>,
    count: u64,
    threads: Option<u64>,
    first: Option<i64>,
    last: Option<i64>,
    nulls: Option<u64>,
    /// rate min mean sd p50 p90 p99 p999 max busy
    numbers: [Option<f64>; 10],
    unit: Option<&'a str>,
    exact: Option<bool>,
}

const NUMBERS: [&str; 10] =
    ["rate", "min", "mean", "sd", "p50", "p90", "p99", "p999", "max", "busy"];

pub(super) fn batch(frames: &[FrameSummary], ask: &Ask) -> Result<RecordBatch, ArrowError> {
    let mut rows = Vec::new();
    for frame in frames {
        for group in &frame.groups {
            of_group(frame, group, ask, &mut rows);
        }
    }
    let text = |of: &dyn Fn(&Row<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let long = |of: &dyn Fn(&Row<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let count = |of: &dyn Fn(&Row<'_>) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt64Array>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("buffer".into(), text(&|row| Some(row.buffer.to_owned()))),
        ("frame".into(), text(&|row| Some(row.frame.to_owned()))),
        ("field".into(), text(&|row| row.field.map(str::to_owned))),
    ];
    for (at, name) in ask.by.iter().enumerate() {
        columns.push((format!("by_{name}"), text(&|row| row.by[at].map(str::to_owned))));
    }
    columns.extend([
        ("slice".to_owned(), long(&|row| row.slice)),
        ("value".to_owned(), text(&|row| row.value.map(str::to_owned))),
        ("count".to_owned(), count(&|row| Some(row.count))),
        ("threads".to_owned(), count(&|row| row.threads)),
        ("first".to_owned(), long(&|row| row.first)),
        ("last".to_owned(), long(&|row| row.last)),
        ("nulls".to_owned(), count(&|row| row.nulls)),
    ]);
    for (at, name) in NUMBERS.iter().enumerate() {
        let numbers: Float64Array = rows.iter().map(|row| row.numbers[at]).collect();
        columns.push(((*name).to_owned(), Arc::new(numbers)));
    }
    let exact: BooleanArray = rows.iter().map(|row| row.exact).collect();
    columns.push(("unit".to_owned(), text(&|row| row.unit.map(str::to_owned))));
    columns.push(("exact".to_owned(), Arc::new(exact)));
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
}

fn of_group<'a>(frame: &'a FrameSummary, group: &'a Group, ask: &Ask, rows: &mut Vec<Row<'a>>) {
    let row = || Row {
        buffer: &frame.buffer,
        frame: &frame.frame,
        by: group.by.iter().map(Option::as_deref).collect(),
        slice: group.slice,
        ..Row::default()
    };
    let mut all = Row { count: group.count, threads: Some(group.threads), ..row() };
    (all.first, all.last) = group.time.unzip();
    all.numbers[0] = group.rate(ask.every);
    rows.push(all);
    for field in &group.fields {
        let of_field = || Row { field: Some(&field.name), ..row() };
        match &field.values {
            Values::Numbers { summary, busy, .. } => {
                let [p50, p90, p99, p999] = summary.percentiles;
                let (min, max) = (summary.min.map(Number::float), summary.max.map(Number::float));
                rows.push(Row {
                    count: summary.count,
                    nulls: Some(summary.nulls),
                    numbers: [None, min, summary.mean, summary.sd, p50, p90, p99, p999, max, *busy],
                    unit: Some(field.unit.as_str()).filter(|it| !it.is_empty()),
                    exact: Some(summary.exact),
                    ..of_field()
                });
            }
            Values::Words { counts, nulls } => {
                for (word, count) in counts {
                    rows.push(Row { value: Some(word), count: *count, ..of_field() });
                }
                if *nulls > 0 {
                    rows.push(Row { count: *nulls, ..of_field() });
                }
            }
        }
    }
}
