//! Statistics as a table: a row for each frame and field, for each value of an enum, for each counter
//! and histogram.

use std::sync::Arc;

use ppt_query::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    StringArray, UInt64Array,
};
use ppt_query::arrow::datatypes::{Field, Schema};
use ppt_query::arrow::error::ArrowError;
use ppt_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_query::stats::{PERCENTILES, Summary, SummaryNumber};
use ppt_query::summary::{FrameSummary, Group, SummaryRequest, SummaryValues};
use ppt_query::{Total, TotalValue, spelled_numbers};

use super::json::{mean_of, sum_of};

/// A row; None is NULL.
#[derive(Default)]
struct StatRow<'a> {
    buffer: &'a str,
    frame: Option<&'a str>,
    field: Option<&'a str>,
    by: Vec<Option<&'a str>>,
    slice: Option<i64>,
    value: Option<&'a str>,
    count: Option<u64>,
    threads: Option<u64>,
    first: Option<i64>,
    last: Option<i64>,
    nulls: Option<u64>,
    /// rate min mean sd p50 p90 p99 p999 max busy
    numbers: [Option<SummaryNumber>; 10],
    unit: Option<&'a str>,
    exact: Option<bool>,
    step: Option<&'a str>,
    distinct: Option<u64>,
    counter: Option<&'a str>,
    histogram: Option<&'a str>,
    /// Sum of a counter or a histogram.
    sum: Option<i128>,
}

const NUMBERS: [&str; 10] =
    ["rate", "min", "mean", "sd", "p50", "p90", "p99", "p999", "max", "busy"];

/// Maximum digits of a sum in binary formats.
const SUM_DIGITS: u8 = 38;

/// The rows of statistics. Binary formats have numbers as floats, and sums as decimals; text formats
/// keep all digits of larger ones.
pub(super) fn batch(
    (frames, totals): (&[FrameSummary], &[Total]),
    request: &SummaryRequest,
    is_binary: bool,
) -> Result<RecordBatch, ArrowError> {
    let mut rows = Vec::new();
    for frame in frames {
        for group in &frame.groups {
            of_group(frame, group, request, &mut rows);
        }
    }
    rows.extend(totals.iter().map(of_total));
    let text = |of: &dyn Fn(&StatRow<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let long = |of: &dyn Fn(&StatRow<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let count = |of: &dyn Fn(&StatRow<'_>) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt64Array>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("buffer".into(), text(&|row| Some(row.buffer.to_owned()))),
        ("frame".into(), text(&|row| row.frame.map(str::to_owned))),
        ("field".into(), text(&|row| row.field.map(str::to_owned))),
    ];
    for (at, name) in request.by.iter().enumerate() {
        columns.push((
            format!("by_{name}"),
            text(&|row| row.by.get(at).copied().flatten().map(str::to_owned)),
        ));
    }
    columns.extend([
        ("slice".to_owned(), long(&|row| row.slice)),
        ("value".to_owned(), text(&|row| row.value.map(str::to_owned))),
        ("count".to_owned(), count(&|row| row.count)),
        ("threads".to_owned(), count(&|row| row.threads)),
        ("first".to_owned(), long(&|row| row.first)),
        ("last".to_owned(), long(&|row| row.last)),
        ("nulls".to_owned(), count(&|row| row.nulls)),
    ]);
    for (at, name) in NUMBERS.iter().enumerate() {
        let numbers = rows.iter().map(|row| row.numbers[at].map(SummaryNumber::float));
        columns.push(((*name).to_owned(), Arc::new(numbers.collect::<Float64Array>())));
    }
    let exact: BooleanArray = rows.iter().map(|row| row.exact).collect();
    columns.push(("unit".to_owned(), text(&|row| row.unit.map(str::to_owned))));
    columns.push(("exact".to_owned(), Arc::new(exact)));
    columns.extend([
        ("step".to_owned(), text(&|row| row.step.map(str::to_owned))),
        ("distinct".to_owned(), count(&|row| row.distinct)),
        ("counter".to_owned(), text(&|row| row.counter.map(str::to_owned))),
        ("histogram".to_owned(), text(&|row| row.histogram.map(str::to_owned))),
        ("sum".to_owned(), long(&|row| row.sum.and_then(|sum| i64::try_from(sum).ok()))),
    ]);
    let columns = columns.into_iter().map(|(name, column)| {
        let (name, column) = match without_room(&name, &rows) {
            _ if is_binary && name == SUM => (name, decimals(&rows)?),
            Some(spelled) if !is_binary => {
                return Ok((spelled_numbers(&name), with_digits(&column, &spelled)?));
            }
            _ => (name, column),
        };
        Ok((Field::new(name, column.data_type().clone(), true), column))
    });
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) =
        columns.collect::<Result<Vec<_>, ArrowError>>()?.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Name of the column of [`StatRow::sum`].
const SUM: &str = "sum";

/// For each row, the integer that its column cannot hold; None: the column holds all.
fn without_room(column: &str, rows: &[StatRow<'_>]) -> Option<Vec<Option<i128>>> {
    let spelled: Vec<_> = match NUMBERS.iter().position(|name| *name == column) {
        Some(at) => rows.iter().map(|row| row.numbers[at]?.beyond_floats()).collect(),
        None if column == SUM => {
            rows.iter().map(|row| row.sum.filter(|sum| i64::try_from(*sum).is_err())).collect()
        }
        None => return None,
    };
    spelled.iter().any(Option::is_some).then_some(spelled)
}

fn decimals(rows: &[StatRow<'_>]) -> Result<ArrayRef, ArrowError> {
    let sums = rows.iter().map(|row| row.sum).collect::<Decimal128Array>();
    Ok(Arc::new(sums.with_precision_and_scale(SUM_DIGITS, 0)?))
}

/// The numbers as text, with all digits of those that the column cannot hold.
fn with_digits(numbers: &ArrayRef, whole: &[Option<i128>]) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::new();
    let text = ArrayFormatter::try_new(numbers, &options)?;
    let spelled = whole.iter().enumerate().map(|(row, whole)| match whole {
        Some(whole) => Some(whole.to_string()),
        None => (!numbers.is_null(row)).then(|| text.value(row).to_string()),
    });
    Ok(Arc::new(spelled.collect::<StringArray>()))
}

fn of_group<'a>(
    frame: &'a FrameSummary,
    group: &'a Group,
    request: &SummaryRequest,
    rows: &mut Vec<StatRow<'a>>,
) {
    let row = || StatRow {
        buffer: &frame.buffer,
        frame: Some(&frame.frame),
        by: group.by.iter().map(Option::as_deref).collect(),
        slice: group.slice,
        ..StatRow::default()
    };
    let mut all = StatRow { count: Some(group.count), threads: Some(group.threads), ..row() };
    (all.first, all.last) = group.time.unzip();
    all.numbers[0] = group.rate(request.every).map(SummaryNumber::Real);
    rows.push(all);
    for field in &group.fields {
        let of_field =
            || StatRow { field: Some(&field.name), step: field.step.as_deref(), ..row() };
        match &field.values {
            SummaryValues::Numbers { summary, busy, .. } => {
                let [p50, p90, p99, p999] = summary.percentiles;
                let (sd, busy) =
                    (summary.sd.map(SummaryNumber::Real), busy.map(SummaryNumber::Real));
                let Summary { min, mean, max, .. } = **summary;
                rows.push(StatRow {
                    count: Some(summary.count),
                    nulls: Some(summary.nulls),
                    numbers: [None, min, mean, sd, p50, p90, p99, p999, max, busy],
                    unit: Some(field.unit.as_str()).filter(|text| !text.is_empty()),
                    exact: Some(summary.exact),
                    ..of_field()
                });
            }
            SummaryValues::Words { counts, nulls } => {
                for (word, count) in counts {
                    rows.push(StatRow { value: Some(word), count: Some(*count), ..of_field() });
                }
                if *nulls > 0 {
                    rows.push(StatRow { count: Some(*nulls), ..of_field() });
                }
            }
            SummaryValues::Keys { distinct, count, nulls } => rows.push(StatRow {
                count: Some(*count),
                nulls: Some(*nulls),
                distinct: Some(distinct.count),
                exact: Some(distinct.exact),
                ..of_field()
            }),
        }
    }
}

/// A row of a counter or a histogram. A percentile is the upper end of its bucket; NULL: the bucket is
/// open.
fn of_total(total: &Total) -> StatRow<'_> {
    let unit = Some(total.unit.as_str()).filter(|unit| !unit.is_empty());
    let row = StatRow { buffer: &total.buffer, unit, ..StatRow::default() };
    match &total.value {
        TotalValue::Counter(sum) => StatRow { counter: Some(&total.name), sum: Some(*sum), ..row },
        TotalValue::Histogram(histogram, is_time) => {
            let end = |part: f64| histogram.quantile(part)?.1.map(SummaryNumber::Whole);
            let [p50, p90, p99, p999] = PERCENTILES.map(end);
            let sum = sum_of(histogram.sum, *is_time);
            StatRow {
                histogram: Some(&total.name),
                count: Some(histogram.count),
                sum: Some(sum),
                numbers: [
                    None,
                    None,
                    mean_of(sum, histogram.count).map(SummaryNumber::Real),
                    None,
                    p50,
                    p90,
                    p99,
                    p999,
                    end(1.0),
                    None,
                ],
                unit: unit.or(is_time.then_some("ns")),
                exact: Some(false),
                ..row
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ppt_query::arrow::array::AsArray;
    use ppt_query::arrow::datatypes::{DataType, Decimal128Type};

    use super::*;

    #[test]
    fn sums_keep_their_digits() {
        let value = |name: &str, sum| Total {
            buffer: "net".into(),
            name: name.into(),
            unit: String::new(),
            value: TotalValue::Counter(sum),
        };
        let most = i128::from(u64::MAX) + 5;
        let totals = [value("few", 7), value("many", most)];
        let sums = |totals: &[Total], is_binary| {
            let batch = batch((&[], totals), &SummaryRequest::default(), is_binary).unwrap();
            batch.column_by_name("sum").unwrap().clone()
        };
        let text = sums(&totals, false);
        let text: Vec<_> = text.as_string::<i32>().iter().flatten().collect();
        assert_eq!(text, ["7", "18446744073709551620"]);
        let decimals = sums(&totals, true);
        assert_eq!(*decimals.data_type(), DataType::Decimal128(SUM_DIGITS, 0));
        assert_eq!(decimals.as_primitive::<Decimal128Type>().values()[..], [7, most]);
        let types =
            [false, true].map(|is_binary| sums(&totals[..1], is_binary).data_type().clone());
        assert_eq!(types, [DataType::Int64, DataType::Decimal128(SUM_DIGITS, 0)]);
    }
}
