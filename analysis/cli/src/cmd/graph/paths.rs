//! Paths from one point to another as text and as a table.

use std::io::{self, Write};
use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ppt_query::arrow::error::ArrowError;
use ppt_query::graph::{GraphPath, GraphPaths, PathDisconnection, PathStep, Stage};
use ppt_query::plain;
use ppt_query::text::{duration, grouped, time};

use super::columns::{columns, percent};

/// Maximum number of points of a side that are shown.
const MAX_POINTS: usize = 5;

pub(super) fn write(paths: &GraphPaths, out: &mut impl Write) -> io::Result<()> {
    let (from, to) = (plain(&paths.from), plain(&paths.to));
    writeln!(
        out,
        "{from} -> {to}: {} of {} {to} come from one of {} {from}",
        grouped(paths.reached),
        grouped(paths.ends),
        grouped(paths.beginnings)
    )?;
    if paths.ambiguous > 0 {
        let count = grouped(paths.ambiguous);
        writeln!(out, "{count} of them may come from another one, or on another path")?;
    }
    if paths.reached > 0 {
        let text = |value: Option<f64>| value.map_or("?".to_owned(), duration);
        let [p50, p90, p99, _] = paths.latency.percentiles_as_floats();
        let most = paths.latency.max.map(|max| max.float());
        writeln!(
            out,
            "latency: p50 {}, p90 {}, p99 {}, max {}",
            text(p50),
            text(p90),
            text(p99),
            text(most)
        )?;
        if let Some((mean, sd, most)) = paths.in_flight {
            writeln!(
                out,
                "on their way at a time: {mean:.3} (sd {sd:.3}), at most {}",
                grouped(most)
            )?;
        }
        writeln!(out, "\nwhere the time goes:")?;
        let lines = paths.parts.iter();
        let lines = lines
            .map(|line| vec![plain(&line.place), duration(line.time as f64), percent(line.share)]);
        columns(&lines.collect::<Vec<_>>(), &[0], out)?;
        writeln!(out, "\nstages (`->` an edge, `..` the thread goes on):")?;
        let head = ["stage", "through", "count", "p50", "p99", "in all", "of the time"];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        lines.extend(paths.stages.iter().map(|stage| {
            vec![
                plain(&stage.stage),
                through(stage.place).to_owned(),
                grouped(stage.count),
                duration(stage.p50),
                duration(stage.p99),
                duration(stage.time as f64),
                percent(stage.share),
            ]
        }));
        columns(&lines, &[0, 1], out)?;
        writeln!(out, "\nthe slowest:")?;
        for (rank, path) in (1..).zip(&paths.slowest) {
            one(rank, path, out)?;
        }
    }
    if let Some(disconnection) = &paths.disconnection {
        no_route(paths, disconnection, out)?;
    }
    Ok(())
}

/// The name of a stage for readers.
fn through(place: &str) -> &str {
    match place {
        "thread" => "a thread",
        "process" => "a process",
        "between" => "to another process",
        other => other,
    }
}

fn one(rank: usize, path: &GraphPath, out: &mut impl Write) -> io::Result<()> {
    let doubt = if path.ambiguous { "   (may be another path)" } else { "" };
    writeln!(out, "{rank}. {}   {}{doubt}", duration(path.latency as f64), time(path.ts))?;
    let longest = path.steps.iter().map(|step| step.ns).max();
    let mut lines: Vec<Vec<String>> = Vec::new();
    for step in &path.steps {
        let arrow = if step.kind == "program" { ".." } else { "->" };
        let mark = if Some(step.ns) == longest { "*" } else { "" };
        lines.push(vec![
            duration(step.ns as f64),
            mark.to_owned(),
            format!("{} {arrow} {}", plain(&step.from), plain(&step.to)),
            r#where(step),
            meanwhile(step),
        ]);
    }
    columns(&lines, &[1, 2, 3, 4], out)?;
    if let Some(slow) = &path.why {
        writeln!(out, "     {}", plain(&slow.sentence()))?;
    }
    Ok(())
}

fn r#where(step: &PathStep) -> String {
    let number = |number: Option<i32>| number.map_or("?".to_owned(), |number| number.to_string());
    let on = step.host.as_ref().map(|host| format!(" on {}", plain(host))).unwrap_or_default();
    let to = format!("process {}, thread {}{on}", number(step.pid), number(step.tid));
    match step.place {
        "thread" => format!("in {to}"),
        "queue" => format!("in a queue, to {to}"),
        _ => format!("to {to}"),
    }
}

/// Points that the thread passed instead.
fn meanwhile(step: &PathStep) -> String {
    let points = step.meanwhile.iter().take(3).map(|(point, count)| match count {
        1 => plain(point),
        count => format!("{} × {}", grouped(*count), plain(point)),
    });
    match points.collect::<Vec<_>>() {
        texts if texts.is_empty() => String::new(),
        texts => format!("which meanwhile passed {}", texts.join(", ")),
    }
}

fn no_route(
    paths: &GraphPaths,
    disconnection: &PathDisconnection,
    out: &mut impl Write,
) -> io::Result<()> {
    let (from, to) = (plain(&paths.from), plain(&paths.to));
    writeln!(out, "\nno route to {} {to}:", grouped(disconnection.ends))?;
    let list = |all: &[(String, u64)]| {
        let points = all.iter().filter(|entry| entry.1 > 0).take(MAX_POINTS);
        let points = points.map(|(point, count)| format!("{} × {}", grouped(*count), plain(point)));
        points.collect::<Vec<_>>().join(", ")
    };
    if !disconnection.forward.is_empty() {
        writeln!(out, "  what {from} leads to ends at {}", list(&disconnection.forward))?;
    }
    if !disconnection.backward.is_empty() {
        writeln!(out, "  what leads to {to} begins at {}", list(&disconnection.backward))?;
    }
    match disconnection.open.first() {
        Some(open) => writeln!(
            out,
            "  missing: {} -> {}: no `{}` that leaves the one enters the other {} times",
            plain(&open.from),
            plain(&open.to),
            plain(&open.of),
            grouped(open.count)
        ),
        None => writeln!(out, "  missing: no identity leaves the one side and enters the other"),
    }
}

pub(super) fn rows(paths: &GraphPaths) -> Result<RecordBatch, ArrowError> {
    let all = &paths.stages;
    let text = |of: &dyn Fn(&Stage) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(all.iter().map(of)))
    };
    let long = |of: &dyn Fn(&Stage) -> Option<i64>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<Int64Array>())
    };
    let real = |of: &dyn Fn(&Stage) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(all.iter().map(of)))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("stage", text(&|row| &row.stage)),
        ("kind", text(&|row| row.kind)),
        ("place", text(&|row| row.place)),
        ("count", long(&|row| i64::try_from(row.count).ok())),
        ("time", long(&|row| i64::try_from(row.time).ok())),
        ("share", real(&|row| row.share)),
        ("p50", real(&|row| row.p50)),
        ("p99", real(&|row| row.p99)),
    ];
    RecordBatch::try_from_iter(columns)
}
