//! Predictions as a table: a row for each.

use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ppt_query::arrow::error::ArrowError;
use ppt_query::whatif::retime::Answer;

use super::words::speeds;

pub(super) fn batch(answers: &[Answer]) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&Answer) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(answers.iter().map(of)))
    };
    let real = |of: fn(&Answer) -> Option<f64>| -> ArrayRef {
        Arc::new(answers.iter().map(of).collect::<Float64Array>())
    };
    let n: ArrayRef =
        Arc::new(answers.iter().map(|it| i64::try_from(it.was.n).ok()).collect::<Int64Array>());
    RecordBatch::try_from_iter_with_nullable([
        ("metric", text(|it| it.metric.to_string()), true),
        ("speed", text(speeds), true),
        ("n", n, true),
        ("was_mean", real(|it| Some(it.was.mean)), true),
        ("was_p50", real(|it| Some(it.was.p50)), true),
        ("was_p95", real(|it| Some(it.was.p95)), true),
        ("was_p99", real(|it| Some(it.was.p99)), true),
        ("mean", real(|it| Some(it.predicted.mean)), true),
        ("mean_lo", real(|it| it.mean.map(|it| it.0)), true),
        ("mean_hi", real(|it| it.mean.map(|it| it.1)), true),
        ("p50", real(|it| Some(it.predicted.p50)), true),
        ("p95", real(|it| Some(it.predicted.p95)), true),
        ("p99", real(|it| Some(it.predicted.p99)), true),
        ("gain", real(|it| Some(it.gain())), true),
        ("gain_lo", real(|it| it.gains.map(|it| it.0)), true),
        ("gain_hi", real(|it| it.gains.map(|it| it.1)), true),
        ("critical_share", real(|it| Some(it.critical_share)), true),
    ])
}
