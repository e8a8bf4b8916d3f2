//! Causes of all time above the 99th percentile.

use std::io::{self, Write};
use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use ppt_query::arrow::error::ArrowError;
use ppt_query::text::{duration, grouped};
use ppt_query::why::{Tail, TailCause};
use ppt_query::{plain, plain_json};
use serde_json::{Value, json};

/// Maximum number of kinds in a text: those whose tails have the most time.
const KINDS: usize = 3;
/// Maximum number of causes in a text; the others are added up.
const CAUSES: usize = 6;

pub(super) fn write(tails: &[Tail], out: &mut impl Write) -> io::Result<()> {
    for tail in tails.iter().take(KINDS) {
        writeln!(out, "{}", plain(&tail.heading()))?;
        let mut lines: Vec<[String; 3]> = Vec::new();
        let line = |ns: i64, cause: String| {
            let share = 100.0 * ns as f64 / tail.ns.max(1) as f64;
            [format!("{share:.1} %"), duration(ns as f64), cause]
        };
        let causes = tail.causes.iter().take(CAUSES);
        lines.extend(causes.map(|entry| line(entry.ns, plain(&entry.cause))));
        if let Some(others) = tail.causes.get(CAUSES..).filter(|entry| !entry.is_empty()) {
            let ns = others.iter().map(|entry| entry.ns).sum();
            lines.push(line(ns, format!("{} other causes", grouped(others.len() as u64))));
        }
        let width =
            |at: usize| lines.iter().map(|entry| entry[at].chars().count()).max().unwrap_or(0);
        let (share, long) = (width(0), width(1));
        for [percent, ns, cause] in &lines {
            writeln!(out, "  {percent:>share$}  {ns:>long$}  {cause}")?;
        }
        if let Some(words) = tail.functions.text() {
            writeln!(out, "  While they ran, {}.", plain(&words))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

pub(super) fn write_json(tails: &[Tail], out: &mut impl Write) -> io::Result<()> {
    let cause = |entry: &TailCause| json!({"cause": entry.cause, "ns": entry.ns, "intervals": entry.intervals});
    let tail = |entry: &Tail| {
        json!({
            "name": entry.name,
            "all": entry.all,
            "p99": entry.p99,
            "above": entry.above,
            "count": entry.count,
            "ns": entry.ns,
            "causes": entry.causes.iter().map(cause).collect::<Vec<_>>(),
            "stacks": super::json::stacks(&entry.functions),
        })
    };
    let all: Vec<Value> = tails.iter().map(tail).collect();
    let text = serde_json::to_string_pretty(&all).map_err(io::Error::other)?;
    writeln!(out, "{}", plain_json(&text))
}

/// A row for each cause.
pub(super) fn batch(tails: &[Tail]) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<(&Tail, &TailCause)> =
        tails.iter().flat_map(|tail| tail.causes.iter().map(move |entry| (tail, entry))).collect();
    let text = |of: &dyn Fn(&(&Tail, &TailCause)) -> String| -> ArrayRef {
        Arc::new(rows.iter().map(|entry| Some(of(entry))).collect::<StringArray>())
    };
    let count = |of: &dyn Fn(&(&Tail, &TailCause)) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|entry| Some(of(entry))).collect::<UInt64Array>())
    };
    let ns = |of: &dyn Fn(&(&Tail, &TailCause)) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("name", text(&|entry| entry.0.name.clone())),
        ("all", count(&|entry| entry.0.all)),
        ("p99", ns(&|entry| entry.0.p99)),
        ("above", count(&|entry| entry.0.above)),
        ("count", count(&|entry| entry.0.count)),
        ("cause", text(&|entry| entry.1.cause.clone())),
        ("ns", ns(&|entry| Some(entry.1.ns))),
        ("intervals", count(&|entry| entry.1.intervals)),
    ];
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
}
