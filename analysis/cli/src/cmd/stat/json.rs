//! Statistics as JSON: an array of objects, one for each frame and field, counter and histogram.

use std::io::{self, Write};

use ppt_query::stats::SummaryNumber;
use ppt_query::summary::{FieldSummary, FrameSummary, Group, SummaryRequest, SummaryValues};
use ppt_query::{Total, TotalValue, plain_json};
use serde_json::{Map, Value, json};

pub(super) fn write(
    (frames, totals): (&[FrameSummary], &[Total]),
    request: &SummaryRequest,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut before = "[\n";
    for frame in frames {
        for group in &frame.groups {
            let of_frame = std::iter::once(of_frame(group, request));
            for (field, values) in of_frame.chain(group.fields.iter().map(of_field)) {
                let mut object = Map::new();
                object.insert("buffer".into(), json!(frame.buffer));
                object.insert("frame".into(), json!(frame.frame));
                object.insert("field".into(), field);
                let by = request
                    .by
                    .iter()
                    .zip(&group.by)
                    .map(|(name, value)| (name.clone(), json!(value)));
                object.insert("by".into(), Value::Object(by.collect()));
                object.insert("slice".into(), json!(group.slice));
                object.extend(values);
                let object = plain_json(&Value::Object(object).to_string());
                write!(out, "{before}{object}")?;
                before = ",\n";
            }
        }
    }
    for total in totals {
        write!(out, "{before}{}", plain_json(&of_total(total).to_string()))?;
        before = ",\n";
    }
    let empty = before == "[\n";
    out.write_all(if empty { b"[]\n" } else { b"\n]\n" })
}

type JsonRow = (Value, Map<String, Value>);

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn of_frame(group: &Group, request: &SummaryRequest) -> JsonRow {
    let fields = json!({
        "count": group.count,
        "rate": group.rate(request.every),
        "first": group.time.map(|time| time.0),
        "last": group.time.map(|time| time.1),
        "threads": group.threads,
    });
    (Value::Null, object(fields))
}

fn of_field(field: &FieldSummary) -> JsonRow {
    let values = match &field.values {
        SummaryValues::Numbers { summary, busy, .. } => {
            let [p50, p90, p99, p999] = summary.percentiles;
            json!({
                "count": summary.count,
                "nulls": summary.nulls,
                "min": summary.min.map(number),
                "mean": summary.mean.map(number),
                "sd": summary.sd,
                "p50": p50.map(number),
                "p90": p90.map(number),
                "p99": p99.map(number),
                "p999": p999.map(number),
                "max": summary.max.map(number),
                "busy": busy,
                "unit": field.unit,
                "exact": summary.exact,
            })
        }
        SummaryValues::Words { counts, nulls } => {
            let count: u64 = counts.iter().map(|count| count.1).sum();
            let values: Map<String, Value> =
                counts.iter().map(|(word, count)| (word.clone(), json!(count))).collect();
            json!({"count": count, "nulls": nulls, "values": values})
        }
        SummaryValues::Keys { distinct, count, nulls } => json!({
            "count": count, "nulls": nulls, "distinct": distinct.count, "exact": distinct.exact,
        }),
    };
    let mut values = object(values);
    values.insert("step".into(), json!(field.step));
    (json!(field.name), values)
}

/// A counter or a histogram. A bucket contains values from `lo` on and below `hi`; an open bucket lacks
/// one of them.
fn of_total(total: &Total) -> Value {
    let (buffer, name, unit) = (&total.buffer, &total.name, &total.unit);
    match &total.value {
        TotalValue::Counter(sum) => {
            let sum = number(SummaryNumber::Whole(*sum));
            json!({"buffer": buffer, "counter": name, "unit": unit, "value": sum})
        }
        TotalValue::Histogram(histogram, is_time) => {
            let bucket = |part: f64| {
                let end = |end: Option<i128>| end.map(|end| number(SummaryNumber::Whole(end)));
                histogram.quantile(part).map(|(lo, hi)| json!({"lo": end(lo), "hi": end(hi)}))
            };
            let sum = sum_of(histogram.sum, *is_time);
            json!({
                "buffer": buffer,
                "histogram": name,
                "unit": if unit.is_empty() && *is_time { "ns" } else { unit },
                "count": histogram.count,
                "sum": number(SummaryNumber::Whole(sum)),
                "mean": mean_of(sum, histogram.count),
                "p50": bucket(0.5),
                "p90": bucket(0.9),
                "p99": bucket(0.99),
                "p999": bucket(0.999),
                "max": bucket(1.0),
            })
        }
    }
}

/// The sum of the values of a histogram: durations may be negative.
pub(super) fn sum_of(sum: u64, is_time: bool) -> i128 {
    if is_time { (sum as i64).into() } else { sum.into() }
}

/// The mean, which does not depend on buckets; None without values.
pub(super) fn mean_of(sum: i128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// 64-bit integers keep all digits.
fn number(number: SummaryNumber) -> Value {
    match number {
        SummaryNumber::Whole(whole) => match (i64::try_from(whole), u64::try_from(whole)) {
            (Ok(whole), _) => json!(whole),
            (_, Ok(whole)) => json!(whole),
            _ => json!(whole as f64),
        },
        SummaryNumber::Real(number) => real(number),
    }
}

/// A float; NaN and infinities are text, as in `ppt dump`.
fn real(number: f64) -> Value {
    if number.is_finite() {
        return json!(number);
    }
    json!(if number.is_nan() { "NaN" } else { ["-inf", "inf"][usize::from(number > 0.0)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_objects() {
        let total = |name: &str, unit: &str, value| Total {
            buffer: "net".into(),
            name: name.into(),
            unit: unit.into(),
            value,
        };
        let histogram = ppt_capture::HistogramCells {
            count: 3,
            sum: 2107,
            buckets: vec![(None, Some(0), 1), (Some(7), Some(8), 1), (Some(2048), None, 1)],
        };
        let totals = [
            total("bytes_in", "B", TotalValue::Counter(-5)),
            total("handling", "", TotalValue::Histogram(histogram, true)),
        ];
        let mut out = Vec::new();
        write((&[], &totals), &SummaryRequest::default(), &mut out).unwrap();
        let written: Value = serde_json::from_slice(&out).unwrap();
        let expected = json!([
            {"buffer": "net", "counter": "bytes_in", "unit": "B", "value": -5},
            {"buffer": "net", "histogram": "handling", "unit": "ns", "count": 3,
             "sum": 2107, "mean": 2107.0 / 3.0, "p50": {"lo": 7, "hi": 8}, "p90": {"lo": 2048, "hi": null},
             "p99": {"lo": 2048, "hi": null}, "p999": {"lo": 2048, "hi": null},
             "max": {"lo": 2048, "hi": null}},
        ]);
        assert_eq!(written, expected);
    }
}
