//! Statistics as text.

use std::io::{self, Write};

use ppt_query::summary::{FieldSummary, FrameSummary, Group, SummaryRequest, SummaryValues};
use ppt_query::{CaptureLoss, RowUnit, plain};

use ppt_query::text::{duration, grouped, measured, three, time};

/// Maximum number of values of an enum that are shown; the others are counted.
const MAX_VALUES: usize = 12;

pub(super) fn write(
    frames: &[FrameSummary],
    request: &SummaryRequest,
    loss: CaptureLoss,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut missing = match loss.missing() {
        0 => "nothing lost".to_owned(),
        missing => format!("{} missing in all", grouped(missing)),
    };
    if loss.absent > 0 {
        missing += &format!(", {} absent", grouped(loss.absent));
    }
    let same_name =
        |summary: &FrameSummary| frames.iter().filter(|other| other.frame == summary.frame).count();
    for frame in frames {
        let name = match same_name(frame) {
            1 => frame.frame.clone(),
            _ => format!("{}.{}", frame.buffer, frame.frame),
        };
        if frame.groups.is_empty() {
            let what = unit(frame.unit);
            writeln!(out, "{}   no {what}s, {missing}", plain(&name))?;
        }
        for group in &frame.groups {
            write!(out, "{}", plain(&name))?;
            for (column, value) in request.by.iter().zip(&group.by) {
                write!(out, "   {column}={}", plain(value.as_deref().unwrap_or("NULL")))?;
            }
            if request.every.is_some() {
                write!(out, "   {}", group.slice.map_or("no time".to_owned(), time))?;
            }
            writeln!(out, "   {}", head(group, request, (frame.unit, &missing)))?;
            fields(group, out)?;
        }
    }
    Ok(())
}

fn unit(unit: RowUnit) -> &'static str {
    match unit {
        RowUnit::Frame => "frame",
        RowUnit::Span => "span",
        RowUnit::Chain => "chain",
    }
}

fn head(group: &Group, request: &SummaryRequest, (of, missing): (RowUnit, &str)) -> String {
    let mut text = format!("{} {}{}", grouped(group.count), unit(of), plural(group.count));
    let span = group.time.map(|(first, last)| (last as f64) - (first as f64));
    if let Some(span) = span.filter(|_| request.every.is_none()) {
        text.push_str(&format!(" in {}", duration(span)));
    }
    if let Some(rate) = group.rate(request.every) {
        text.push_str(&format!(" ({}/s)", three(if rate >= 100.0 { rate.round() } else { rate })));
    }
    text.push_str(&format!(", {} thread{}", grouped(group.threads), plural(group.threads)));
    if request.by.is_empty() && request.every.is_none() {
        text.push_str(&format!(", {missing}"));
    }
    text
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn fields(group: &Group, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<(String, Vec<String>)> =
        group.fields.iter().map(|field| (plain(&field.label()), cells(field))).collect();
    let width = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let names = width(&mut rows.iter().map(|row| &row.0));
    let most = rows.iter().map(|row| row.1.len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..most)
        .map(|at| {
            // Lines without columns.
            let of = |entry: &&(String, Vec<String>)| entry.1.len() > 1;
            width(&mut rows.iter().filter(of).filter_map(|row| row.1.get(at)))
        })
        .collect();
    for (name, cells) in &rows {
        let mut line = format!("  {name:<names$}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str(&format!("  {cell:<width$}"));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn cells(field: &FieldSummary) -> Vec<String> {
    match &field.values {
        SummaryValues::Numbers { summary, busy, .. } => {
            let value = |value: Option<f64>| {
                value.map_or("–".to_owned(), |value| measured(value, &plain(&field.unit)))
            };
            let [p50, p90, p99, _] = summary.percentiles_as_floats();
            let mut cells = vec![
                grouped(summary.count),
                format!("p50 {}", value(p50)),
                format!("p90 {}", value(p90)),
                format!("p99 {}", value(p99)),
                format!("max {}", value(summary.max.map(ppt_query::stats::SummaryNumber::float))),
                format!("mean {} ± {}", value(summary.mean_as_float()), value(summary.sd)),
            ];
            let mut rest = Vec::new();
            if let Some(busy) = busy {
                rest.push(format!("busy {} %", three((busy * 1000.0).round() / 10.0)));
            }
            if summary.nulls > 0 {
                rest.push(format!("{} without", grouped(summary.nulls)));
            }
            if !summary.exact {
                rest.push("to 3 digits".to_owned());
            }
            cells.push(rest.join("   "));
            cells
        }
        SummaryValues::Words { counts, nulls } => {
            let word =
                |(word, count): &(String, u64)| format!("{} {}", plain(word), grouped(*count));
            let mut all: Vec<String> = counts.iter().take(MAX_VALUES).map(word).collect();
            if let Some(more) = counts.len().checked_sub(MAX_VALUES + 1) {
                all.push(format!("{} more", grouped(more as u64 + 1)));
            }
            if *nulls > 0 {
                all.push(format!("{} without", grouped(*nulls)));
            }
            vec![all.join(" · ")]
        }
        SummaryValues::Keys { distinct, count, nulls } => {
            let about = if distinct.exact { "" } else { "about " };
            let mut all = vec![format!("{about}{} different", grouped(distinct.count))];
            if *nulls > 0 {
                all.push(format!("{} without", grouped(*nulls)));
            }
            vec![format!("{} values, {}", grouped(*count), all.join(" · "))]
        }
    }
}
