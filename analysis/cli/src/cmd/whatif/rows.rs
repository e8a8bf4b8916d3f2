//! Predictions as a table.

use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ppt_query::arrow::error::ArrowError;
use ppt_query::whatif::retime::SpeedWorth;

use super::text::speeds;

pub(super) fn batch(answers: &[SpeedWorth]) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&SpeedWorth) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(answers.iter().map(of)))
    };
    let real = |of: fn(&SpeedWorth) -> Option<f64>| -> ArrayRef {
        Arc::new(answers.iter().map(of).collect::<Float64Array>())
    };
    let n: ArrayRef = Arc::new(
        answers.iter().map(|worth| i64::try_from(worth.was.n).ok()).collect::<Int64Array>(),
    );
    RecordBatch::try_from_iter_with_nullable([
        ("metric", text(|worth| worth.metric.to_string()), true),
        ("speed", text(speeds), true),
        ("n", n, true),
        ("was_mean", real(|worth| Some(worth.was.mean)), true),
        ("was_p50", real(|worth| Some(worth.was.p50)), true),
        ("was_p95", real(|worth| Some(worth.was.p95)), true),
        ("was_p99", real(|worth| Some(worth.was.p99)), true),
        ("mean", real(|worth| Some(worth.predicted.mean)), true),
        ("mean_lo", real(|worth| worth.mean_interval.map(|interval| interval.0)), true),
        ("mean_hi", real(|worth| worth.mean_interval.map(|interval| interval.1)), true),
        ("p50", real(|worth| Some(worth.predicted.p50)), true),
        ("p95", real(|worth| Some(worth.predicted.p95)), true),
        ("p99", real(|worth| Some(worth.predicted.p99)), true),
        ("gain", real(|worth| Some(worth.gain())), true),
        ("gain_lo", real(|worth| worth.gain_interval.map(|interval| interval.0)), true),
        ("gain_hi", real(|worth| worth.gain_interval.map(|interval| interval.1)), true),
        ("critical_share", real(|worth| Some(worth.critical_share)), true),
        ("missing_share", real(|worth| Some(worth.missing_share)), true),
    ])
}
