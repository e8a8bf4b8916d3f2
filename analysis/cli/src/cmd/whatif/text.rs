//! Predictions as text: a table for each metric.

use std::io::{self, Write};

use ppt_query::plain;
use ppt_query::text::{duration, grouped, three};
use ppt_query::whatif::retime::{Figures, Metric, SpeedVerdict, SpeedWorth};

const HEAD: [&str; 8] = ["", "mean", "from", "to", "p95", "p99", "gain", "critical"];

pub(super) fn write(answers: &[SpeedWorth], out: &mut impl Write) -> io::Result<()> {
    for (at, of_metric) in answers.chunk_by(|one, other| one.metric == other.metric).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let Some(first) = of_metric.first() else { continue };
        let name = plain(&first.metric.to_string());
        write!(out, "{name}   {} of them", grouped(first.was.n as u64))?;
        if first.missing_share > 0.0 {
            let share = percent(first.missing_share);
            write!(out, "; left out: {share} of the time, where frames are missing")?;
        }
        writeln!(out)?;
        let mut lines = vec![HEAD.map(str::to_owned)];
        let metric = &first.metric;
        let mut was = line(metric, "as it was".to_owned(), &first.was);
        [was[2], was[3], was[6], was[7]] = Default::default();
        lines.push(was);
        for answer in of_metric {
            let mut line = line(metric, speeds(answer), &answer.predicted);
            let (low, high) = answer.mean_interval.unzip();
            let end = |option: Option<f64>| option.map_or_else(String::new, |x| value(metric, x));
            (line[2], line[3]) = (end(low), end(high));
            line[6] = match answer.verdict() {
                SpeedVerdict::NoGain => "no gain".to_owned(),
                SpeedVerdict::Gain | SpeedVerdict::Loss => percent(answer.gain()),
            };
            line[7] = percent(answer.critical_share);
            lines.push(line);
        }
        write_table(&lines, out)?;
    }
    Ok(())
}

/// Writes lines as a table, whose first column is aligned on the left.
pub(super) fn write_table<const N: usize>(
    lines: &[[String; N]],
    out: &mut impl Write,
) -> io::Result<()> {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for line in lines {
        let mut text = format!("  {:<1$}", plain(&line[0]), widths[0]);
        for (cell, width) in line.iter().zip(widths).skip(1) {
            text.push_str(&format!("   {cell:>width$}"));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn line(metric: &Metric, name: String, figures: &Figures) -> [String; HEAD.len()] {
    let mut line = <[String; HEAD.len()]>::default();
    line[0] = name;
    for (at, x) in [(1, figures.mean), (4, figures.p95), (5, figures.p99)] {
        line[at] = value(metric, x);
    }
    line
}

pub(super) fn value(metric: &Metric, value: f64) -> String {
    match metric {
        Metric::Rate(_) => format!("{}/s", three(value)),
        _ => duration(value),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The speeds of an answer, as typed.
pub(super) fn speeds(answer: &SpeedWorth) -> String {
    answer.speeds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
