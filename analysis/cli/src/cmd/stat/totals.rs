//! Counters and histograms for people.

use std::io::{self, Write};

use ppt_query::text::{duration, grouped, measured};
use ppt_query::{Total, TotalValue, plain};

pub(super) fn write(totals: &[Total], out: &mut impl Write) -> io::Result<()> {
    let same_name = |it: &Total| totals.iter().filter(|other| other.name == it.name).count();
    let name = |it: &Total| match same_name(it) {
        1 => plain(&it.name),
        _ => plain(&format!("{}.{}", it.buffer, it.name)),
    };
    let width = totals.iter().map(|it| name(it).chars().count()).max().unwrap_or_default();
    for total in totals {
        let name = name(total);
        match &total.value {
            TotalValue::Counter(sum) => {
                let sign = if *sum < 0 { "-" } else { "" };
                let sum = grouped(u64::try_from(sum.unsigned_abs()).unwrap_or(u64::MAX));
                let line = format!("counter    {name:<width$}  {sign}{sum} {}", plain(&total.unit));
                writeln!(out, "{}", line.trim_end())?;
            }
            TotalValue::Histogram(histogram, is_time) => {
                let value = |value: i128| match (total.unit.as_str(), is_time) {
                    ("", true) => duration(value as f64),
                    (unit, _) => measured(value as f64, &plain(unit)),
                };
                let bucket = |part: f64| match histogram.quantile(part) {
                    Some((Some(lo), Some(hi))) if lo + 1 == hi => value(lo),
                    Some((Some(lo), Some(hi))) => format!("{} to {}", value(lo), value(hi)),
                    Some((Some(lo), None)) => format!("{} or more", value(lo)),
                    Some((None, Some(hi))) => format!("below {}", value(hi)),
                    _ => "–".to_owned(),
                };
                writeln!(
                    out,
                    "histogram  {name:<width$}  {} value{}   p50 {}   p99 {}   max {}",
                    grouped(histogram.count),
                    if histogram.count == 1 { "" } else { "s" },
                    bucket(0.5),
                    bucket(0.99),
                    bucket(1.0)
                )?;
            }
        }
    }
    Ok(())
}
