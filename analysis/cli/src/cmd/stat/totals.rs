//! Counters and histograms as text.

use std::io::{self, Write};

use ppt_query::text::{bucket, counted_up, grouped};
use ppt_query::{Total, TotalValue, plain};

pub(super) fn write(totals: &[Total], out: &mut impl Write) -> io::Result<()> {
    let same_name = |total: &Total| totals.iter().filter(|other| other.name == total.name).count();
    let name = |total: &Total| match same_name(total) {
        1 => plain(&total.name),
        _ => plain(&format!("{}.{}", total.buffer, total.name)),
    };
    let width = totals.iter().map(|total| name(total).chars().count()).max().unwrap_or_default();
    for total in totals {
        let name = name(total);
        match &total.value {
            TotalValue::Counter(sum) => {
                let sum = counted_up(*sum);
                let line = format!("counter    {name:<width$}  {sum} {}", plain(&total.unit));
                writeln!(out, "{}", line.trim_end())?;
            }
            TotalValue::Histogram(histogram, is_time) => {
                let at = |part: f64| bucket(histogram.quantile(part), &total.unit, *is_time);
                writeln!(
                    out,
                    "histogram  {name:<width$}  {} value{}   p50 {}   p99 {}   max {}",
                    grouped(histogram.count),
                    if histogram.count == 1 { "" } else { "s" },
                    at(0.5),
                    at(0.99),
                    at(1.0)
                )?;
            }
        }
    }
    Ok(())
}
