//! What the kernel did with the threads, and where the slowest were.

use super::parts::counted;
use crate::chart::{self, Share};
use crate::facts::{Calls, Facts, Kernel, STATES};
use crate::frames::FieldFacts;
use crate::html::{Table, prose, text};
use ppt_query::text::{duration, grouped};
use ppt_query::why::{Part, Slow};

/// What a state is called on the page: classes of colours, too.
const CLASSES: [&str; 4] = ["run", "wait", "block", "unknown"];

/// Names of the states with their colours.
pub fn legend() -> String {
    let one =
        |(name, class): (&str, &str)| format!("<span><i class=\"sw {class}\"></i>{name}</span>");
    STATES.into_iter().zip(CLASSES).map(one).collect()
}

pub fn section(facts: &Facts) -> String {
    let Some(kernel) = &facts.kernel else { return String::new() };
    format!(
        "<section id=kernel>\n<h2>What the kernel did</h2>\n<p class=legend>{}</p>\n{}{}</section>\n",
        legend(),
        threads(kernel),
        [
            calls("Blocked in", &kernel.blocked, false),
            calls("System calls", &kernel.calls, true),
            faults(kernel)
        ]
        .concat()
    )
}

fn threads(kernel: &Kernel) -> String {
    let columns = [
        "process", "thread", "watched", "running", "runnable", "blocked", "unknown", "runs",
        "share",
    ];
    let mut table = Table::new(&columns, 2);
    for thread in &kernel.threads {
        let all: i64 = thread.ns.iter().fold(0, |sum, it| sum.saturating_add(*it));
        let part = |at: usize| thread.ns[at] as f64 / all.max(1) as f64;
        let shares: Vec<Share> = (0..4)
            .map(|at| Share { class: CLASSES[at], part: part(at), says: STATES[at].to_owned() })
            .collect();
        let first = [text(&thread.pid), text(&thread.tid), duration(all as f64)];
        let states = thread.ns.map(|it| duration(it as f64));
        let last = [grouped(thread.runs), chart::shares(&shares)];
        table.html_row("", first.into_iter().chain(states).chain(last));
    }
    let more = match kernel.more {
        0 => String::new(),
        more => format!("<p class=note>{} ran less.</p>", counted(more as u64, "thread")),
    };
    format!("<figure><figcaption>Threads</figcaption>{}</figure>\n{more}", table.html("groups"))
}

fn calls(title: &str, all: &[Calls], has_results: bool) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut columns = vec!["call", "count", "in all", "p50", "p99", "max"];
    if has_results {
        columns.insert(2, "failed");
    }
    let mut table = Table::new(&columns, 1);
    for call in all {
        let ns = |ns: Option<f64>| ns.map_or("–".to_owned(), duration);
        let mut cells = vec![
            call.name.clone().unwrap_or_else(|| "not known".to_owned()),
            grouped(call.count),
            duration(call.sum),
            ns(call.p50),
            ns(call.p99),
            ns(call.max),
        ];
        if has_results {
            cells.insert(2, grouped(call.failed));
        }
        table.row(cells);
    }
    format!("<figure><figcaption>{title}</figcaption>{}</figure>\n", table.html(""))
}

fn faults(kernel: &Kernel) -> String {
    if kernel.faults.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["page faults", "count"], 1);
    kernel.faults.iter().for_each(|(kind, count)| table.row([kind.clone(), grouped(*count)]));
    format!("<figure>{}</figure>\n", table.html(""))
}

fn class(part: &Part) -> &'static str {
    match part {
        Part::Running => "run",
        Part::Preempted { .. } | Part::WokenLate(_) => "wait",
        Part::Blocked { .. } => "block",
        Part::Faulting(_) => "fault",
        Part::Unknown => "unknown",
    }
}

/// Where the slowest were, each a bar of parts that add up to it, and a sentence.
pub fn why(facts: &Facts, field: &FieldFacts) -> String {
    if field.why.is_empty() {
        return String::new();
    }
    let longest = field.why.iter().map(|it| it.dur).max().unwrap_or(1).max(1) as f64;
    let mut table = Table::new(&["length", "where it went", "in words"], 0);
    for slow in &field.why {
        let part = |it: &ppt_query::why::SlowPart| Share {
            class: class(&it.part),
            part: it.spent.ns as f64 / longest,
            says: format!("{}: {}", it.part.words(), duration(it.spent.ns as f64)),
        };
        let shares: Vec<Share> = slow.parts.iter().map(part).collect();
        let cells = [link(facts, slow), chart::shares(&shares), prose(&slow.sentence())];
        table.html_row("", cells);
    }
    let legend: String = [
        ("run", "running"),
        ("wait", "wanted a CPU"),
        ("block", "blocked"),
        ("fault", "waited for a page"),
        ("unknown", "unknown"),
    ]
    .map(|(class, name)| format!("<span><i class=\"sw {class}\"></i>{name}</span>"))
    .concat();
    format!(
        "<figure class=why><figcaption>Where the slowest spent their time</figcaption>\
         <p class=legend>{legend}</p>{}</figure>\n",
        table.html("why")
    )
}

fn link(facts: &Facts, slow: &Slow) -> String {
    let number = |it: Option<i32>| it.map_or(String::new(), |it| it.to_string());
    let lane = facts.timeline.lane(&slow.host, &number(slow.pid), &number(slow.tid));
    super::parts::into_timeline(facts, (slow.ts, slow.dur), lane, &duration(slow.dur as f64))
}
