//! The graph of points as text and as a table.

use std::io::{self, Write};
use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ppt_query::arrow::error::ArrowError;
use ppt_query::causality::short;
use ppt_query::graph::{PointEdge, PointGraph, ThreadWakes, Unmatched};
use ppt_query::plain;
use ppt_query::text::{duration, grouped};

use super::columns::{columns, percent};

/// Maximum number of pairs of threads in a text.
const WAKES: usize = 20;

pub(super) fn write(
    graph: &PointGraph,
    wakes: &[ThreadWakes],
    out: &mut impl Write,
) -> io::Result<()> {
    if graph.points.is_empty() {
        writeln!(out, "no points: a frame with @point has what enters and leaves it")?;
    }
    for point in &graph.points {
        let processes = match point.processes {
            1 => "1 process".to_owned(),
            count => format!("{} processes", grouped(count)),
        };
        writeln!(out, "{}: {} in {processes}", plain(&point.name), grouped(point.frames))?;
    }
    if !graph.edges.is_empty() {
        writeln!(out)?;
        write_edges(&graph.edges, out)?;
    }
    if !graph.unmatched.is_empty() {
        writeln!(out, "\nunmatched:")?;
        write_unmatched(&graph.unmatched, out)?;
    }
    if !wakes.is_empty() {
        writeln!(out, "\nwho woke whom, and how long the woken thread then waited for a CPU:")?;
        write_wakes(wakes, out)?;
    }
    let impossible: u64 = graph.types.iter().map(|matching| matching.impossible).sum();
    let possible = graph.possible();
    if possible + impossible > 0 {
        writeln!(
            out,
            "\n{} edges are possible, not certain; {} pairs are impossible: the effect came first",
            grouped(possible),
            grouped(impossible)
        )?;
    }
    Ok(())
}

fn write_edges(edges: &[PointEdge], out: &mut impl Write) -> io::Result<()> {
    let head = ["from", "to", "by", "count", "possible", "p50", "p99", "max", "of the time"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(edges.iter().map(|edge| {
        vec![
            plain(short(&edge.from)),
            plain(short(&edge.to)),
            plain(&by(edge)),
            grouped(edge.count),
            grouped(edge.possible),
            duration(edge.p50),
            duration(edge.p99),
            duration(edge.max as f64),
            percent(edge.share),
        ]
    }));
    columns(&lines, &[0, 1, 2], out)
}

fn write_unmatched(unmatched: &[Unmatched], out: &mut impl Write) -> io::Result<()> {
    let lines = unmatched.iter().map(|unmatched| {
        let side = match unmatched.side.as_str() {
            "in" => "in: nothing led to it",
            _ => "out: it led to nothing",
        };
        let reason = match unmatched.reason.as_str() {
            "loss" => "frames are missing, or nobody knows when they were",
            _ => "there is none",
        };
        vec![
            plain(&unmatched.point),
            plain(&unmatched.of),
            side.to_owned(),
            reason.to_owned(),
            grouped(unmatched.count),
        ]
    });
    columns(&lines.collect::<Vec<_>>(), &[0, 1, 2, 3], out)
}

fn write_wakes(wakes: &[ThreadWakes], out: &mut impl Write) -> io::Result<()> {
    let head = ["process", "thread", "woke", "count", "p50", "p99", "max"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(wakes.iter().take(WAKES).map(|wakes| {
        vec![
            wakes.pid.to_string(),
            wakes.waker.to_string(),
            wakes.woken.to_string(),
            grouped(wakes.count),
            duration(wakes.p50),
            duration(wakes.p99),
            duration(wakes.max as f64),
        ]
    }));
    columns(&lines, &[0, 1, 2], out)?;
    let more = wakes.len().saturating_sub(WAKES);
    if more > 0 {
        writeln!(out, "{more} more pairs of threads: `--format json` has all")?;
    }
    Ok(())
}

/// The origin of an edge: hash type with policy, or kind.
fn by(edge: &PointEdge) -> String {
    match (&edge.of, edge.policy.as_deref()) {
        (Some(of), None | Some("all")) => of.clone(),
        (Some(of), Some(policy)) => format!("{of}, {policy}"),
        (None, _) => edge.kind.clone(),
    }
}

pub(super) fn rows(graph: &PointGraph) -> Result<RecordBatch, ArrowError> {
    let all = &graph.edges;
    let text = |of: &dyn Fn(&PointEdge) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<StringArray>())
    };
    let long = |of: &dyn Fn(&PointEdge) -> Option<i64>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<Int64Array>())
    };
    let real = |of: &dyn Fn(&PointEdge) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(all.iter().map(of)))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("from", text(&|edge| Some(edge.from.clone()))),
        ("to", text(&|edge| Some(edge.to.clone()))),
        ("kind", text(&|edge| Some(edge.kind.clone()))),
        ("type", text(&|edge| edge.of.clone())),
        ("policy", text(&|edge| edge.policy.clone())),
        ("count", long(&|edge| i64::try_from(edge.count).ok())),
        ("possible", long(&|edge| i64::try_from(edge.possible).ok())),
        ("time", long(&|edge| i64::try_from(edge.time).ok())),
        ("share", real(&|edge| edge.share)),
        ("min", long(&|edge| Some(edge.min))),
        ("p50", real(&|edge| edge.p50)),
        ("p99", real(&|edge| edge.p99)),
        ("max", long(&|edge| Some(edge.max))),
    ];
    RecordBatch::try_from_iter(columns)
}
