//! Slow intervals as a table: a row for each part.

use std::sync::Arc;

use ppt_query::arrow::array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use ppt_query::arrow::error::ArrowError;
use ppt_query::why::{SlowInterval, SlowPart};

use super::alike::alike;
use super::part_text::PartText;

struct WhyRow<'a> {
    rank: i64,
    alike: i64,
    slow: &'a SlowInterval,
    part: &'a SlowPart,
    description: PartText<'a>,
}

pub(super) fn batch(slow: &[SlowInterval]) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<WhyRow<'_>> = (1..)
        .zip(slow.iter().zip(alike(slow)))
        .flat_map(|(rank, (slow, alike))| {
            let alike = alike as i64;
            let row = move |part| WhyRow {
                rank,
                alike,
                slow,
                part,
                description: PartText::new(&part.state),
            };
            slow.parts.iter().map(row)
        })
        .collect();
    let text = |of: &dyn Fn(&WhyRow<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let long = |of: &dyn Fn(&WhyRow<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let int = |of: &dyn Fn(&WhyRow<'_>) -> Option<i32>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int32Array>())
    };
    let ts = TimestampNanosecondArray::from_iter_values(rows.iter().map(|row| row.slow.ts));
    let owned = |text: &str| Some(text.to_owned());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("rank", long(&|row| Some(row.rank))),
        ("name", text(&|row| owned(&row.slow.name))),
        ("capture", text(&|row| owned(&row.slow.capture))),
        ("buffer", text(&|row| owned(&row.slow.buffer))),
        ("segment", text(&|row| owned(&row.slow.segment))),
        ("ring", long(&|row| row.slow.ring)),
        ("seqno", long(&|row| row.slow.seqno)),
        ("host", text(&|row| owned(&row.slow.host))),
        ("pid", int(&|row| row.slow.pid)),
        ("tid", int(&|row| row.slow.tid)),
        ("ts", Arc::new(ts.with_timezone("UTC"))),
        ("dur", long(&|row| Some(row.slow.dur))),
        ("part", text(&|row| owned(row.description.part))),
        ("ns", long(&|row| Some(row.part.spent.ns))),
        ("times", long(&|row| i64::try_from(row.part.spent.times).ok())),
        ("longest", long(&|row| Some(row.part.spent.longest.1 - row.part.spent.longest.0))),
        ("call", text(&|row| row.description.call.and_then(owned))),
        ("woken_by", text(&|row| row.description.woken_by.and_then(owned))),
        ("waker", int(&|row| row.description.waker)),
        ("doing", text(&|row| row.part.waker_slice.as_ref().and_then(|doing| owned(&doing.name)))),
        ("doing_ns", long(&|row| row.part.waker_slice.as_ref().map(|doing| doing.ns))),
        ("successor", int(&|row| row.description.successor)),
        ("successor_name", text(&|row| row.description.successor_name.and_then(owned))),
        ("request", text(&|row| Some(row.slow.label()).filter(|entry| !entry.is_empty()))),
        ("inside", text(&|row| row.part.own_slice.as_ref().and_then(|entry| owned(&entry.name)))),
        ("alike", long(&|row| Some(row.alike))),
        ("thread", text(&|row| row.slow.thread.clone())),
        ("waker_name", text(&|row| row.description.waker_name.and_then(owned))),
        (
            "running_in",
            text(&|row| row.part.running_in.first().and_then(|share| owned(&share.name))),
        ),
        ("running_in_ns", long(&|row| row.part.running_in.first().map(|share| share.ns))),
    ];
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
}
