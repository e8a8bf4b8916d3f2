//! Slow intervals as text.

use std::io::{self, Write};

use ppt_query::plain;
use ppt_query::text::{duration, grouped, time};
use ppt_query::why::{SlowInterval, WhyAnswer};

use super::alike::alike;
use super::summary;

/// Maximum number of parts that are shown; the others are added up.
const MAX_PARTS: usize = 8;

pub(super) fn write(
    answer: &WhyAnswer,
    only_summary: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let slow = &answer.slowest;
    if slow.is_empty() {
        return writeln!(out, "no intervals");
    }
    summary::write(&answer.tails, out)?;
    if only_summary {
        return Ok(());
    }
    let alike = alike(slow);
    let mut is_first = true;
    for (rank, of) in (1..).zip(slow).filter(|(rank, _)| alike[rank - 1] == *rank) {
        if !is_first {
            writeln!(out)?;
        }
        is_first = false;
        one(rank, of, out)?;
        let others =
            (1..).zip(slow).filter(|(other, _)| alike[other - 1] == rank && *other != rank);
        let others: Vec<String> = others.map(|(rank, entry)| brief(rank, entry)).collect();
        if !others.is_empty() {
            writeln!(out, "  for the same reason:")?;
            others.iter().try_for_each(|entry| writeln!(out, "    {entry}"))?;
        }
    }
    Ok(())
}

/// The number and the name of the interval's thread.
fn thread(slow: &SlowInterval) -> String {
    match (slow.tid, &slow.thread) {
        (Some(tid), Some(name)) => format!("{tid} ({name})"),
        (Some(tid), None) => tid.to_string(),
        (None, _) => "?".to_owned(),
    }
}

/// The interval on one line.
fn brief(rank: usize, slow: &SlowInterval) -> String {
    let seqno = slow.seqno.map_or("?".to_owned(), |entry| entry.to_string());
    let tid = thread(slow);
    let length = duration(slow.dur as f64);
    let label = if slow.request.is_empty() { String::new() } else { slow.label() + "   " };
    plain(&format!("{rank}. {length}   {label}thread {tid}, seqno {seqno}"))
}

fn one(rank: usize, slow: &SlowInterval, out: &mut impl Write) -> io::Result<()> {
    let number = |of: Option<i64>| of.map_or("?".to_owned(), |number| number.to_string());
    let pid = slow.pid.map(i64::from);
    let label = if slow.request.is_empty() { String::new() } else { slow.label() + "   " };
    writeln!(
        out,
        "{rank}. {}   {}   {}{}   process {}, thread {}, seqno {}",
        plain(&slow.name),
        duration(slow.dur as f64),
        plain(&label),
        time(slow.ts),
        number(pid),
        plain(&thread(slow)),
        number(slow.seqno)
    )?;
    writeln!(out, "  {}", plain(&slow.sentence()))?;
    let mut lines: Vec<[String; 4]> = Vec::new();
    let percent = |ns: i64| format!("{:.1} %", 100.0 * ns as f64 / slow.dur.max(1) as f64);
    for part in slow.parts.iter().take(MAX_PARTS) {
        let times = match part.spent.times {
            1 => "once".to_owned(),
            times => format!("{} times", grouped(times)),
        };
        let doing = part.waker_slice.as_ref().map_or_else(String::new, |doing| {
            format!(" (in {} for {})", doing.label(), duration(doing.ns as f64))
        });
        let inside = part
            .own_slice
            .as_ref()
            .map_or_else(String::new, |entry| format!(" (for {})", entry.label()));
        let running = part.running_words().map_or_else(String::new, |words| format!(" ({words})"));
        let what = format!("{}{doing}{inside}{running}", part.state.phrase());
        let ns = part.spent.ns;
        lines.push([duration(ns as f64), percent(ns), plain(&what), times]);
    }
    if let Some(others) = slow.parts.get(MAX_PARTS..).filter(|part| !part.is_empty()) {
        let ns = others.iter().map(|part| part.spent.ns).sum();
        let times = others.iter().map(|part| part.spent.times).sum();
        let what = format!("{} others", others.len());
        let times = format!("{} times", grouped(times));
        lines.push([duration(ns as f64), percent(ns), what, times]);
    }
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let (long, share, what) = (width(0), width(1), width(2));
    for line in &lines {
        let [ns, percent, words, times] = line;
        writeln!(out, "  {ns:>long$}  {percent:>share$}  {words:<what$}  {times}")?;
    }
    Ok(())
}
