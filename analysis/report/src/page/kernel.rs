//! Kernel activity of the threads, and the causes of slow intervals.

use super::parts::{TOO_FEW_VALUES, counted};
use crate::facts::{Calls, Facts, KernelFacts, STATES};
use crate::frame_facts::FieldFacts;
use crate::html::{HtmlTable, escape_html, escape_long_html};
use crate::page_svg::{self, Share};
use crate::shown_percentiles::MIN_VALUES;
use ppt_query::text::{duration, grouped};
use ppt_query::why::{SlowInterval, SlowPart, Tail, ThreadSlice, TimeUse, WakerHop};

/// CSS classes of the states, which are also their names on the page.
const CLASSES: [&str; 4] = ["run", "wait", "block", "unknown"];

/// The legend of the states.
pub fn legend() -> String {
    let entry =
        |(name, class): (&str, &str)| format!("<span><i class=\"sw {class}\"></i>{name}</span>");
    STATES.into_iter().zip(CLASSES).map(entry).collect()
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

fn threads(kernel: &KernelFacts) -> String {
    let columns = [
        "process", "thread", "watched", "running", "runnable", "blocked", "unknown", "runs",
        "share",
    ];
    let mut table = HtmlTable::new(&columns, 2);
    for thread in &kernel.threads {
        let all: i64 = thread.ns.iter().fold(0, |sum, number| sum.saturating_add(*number));
        let part = |at: usize| thread.ns[at] as f64 / all.max(1) as f64;
        let shares: Vec<Share> = (0..4)
            .map(|at| Share { class: CLASSES[at], part: part(at), tooltip: STATES[at].to_owned() })
            .collect();
        let first = [escape_html(&thread.pid), escape_html(&thread.label), duration(all as f64)];
        let states = thread.ns.map(|number| duration(number as f64));
        let last = [grouped(thread.runs), page_svg::shares(&shares)];
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
    let mut table = HtmlTable::new(&columns, 1);
    for call in all {
        let ns = |ns: Option<f64>| ns.map_or("–".to_owned(), duration);
        let mut cells = vec![
            call.name.clone().unwrap_or_else(|| "not known".to_owned()),
            grouped(call.count),
            duration(call.sum),
            ns(call.p50),
            if call.count < MIN_VALUES[2] { TOO_FEW_VALUES.to_owned() } else { ns(call.p99) },
            ns(call.max),
        ];
        if has_results {
            cells.insert(2, grouped(call.failed));
        }
        table.row(cells);
    }
    format!("<figure><figcaption>{title}</figcaption>{}</figure>\n", table.html(""))
}

fn faults(kernel: &KernelFacts) -> String {
    if kernel.faults.is_empty() {
        return String::new();
    }
    let mut table = HtmlTable::new(&["page faults", "count"], 1);
    kernel.faults.iter().for_each(|(kind, count)| table.row([kind.clone(), grouped(*count)]));
    format!("<figure>{}</figure>\n", table.html(""))
}

fn class(part: &TimeUse) -> &'static str {
    match part {
        TimeUse::Running => "run",
        TimeUse::Preempted { .. } | TimeUse::WokenLate(_) => "wait",
        TimeUse::Blocked { .. } => "block",
        TimeUse::Faulting(_) => "fault",
        TimeUse::Unknown => "unknown",
    }
}

/// The slowest intervals, each as a bar of its parts and a sentence.
pub fn why(facts: &Facts, field: &FieldFacts) -> String {
    if field.why.is_empty() {
        return String::new();
    }
    let longest = field.why.iter().map(|slow| slow.dur).max().unwrap_or(1).max(1) as f64;
    let mut table = HtmlTable::new(&["", "length", "request", "where it went", "in words"], 0);
    let mut sentences: Vec<(String, usize)> = Vec::new();
    for (rank, slow) in (1..).zip(&field.why) {
        let part = |entry: &SlowPart| Share {
            class: class(&entry.state),
            part: entry.spent.ns as f64 / longest,
            tooltip: format!("{}: {}", entry.state.phrase(), duration(entry.spent.ns as f64)),
        };
        let shares: Vec<Share> = slow.parts.iter().map(part).collect();
        let shape = slow.shape();
        // Equal sentences are shown once.
        let words = match sentences.iter().find(|entry| entry.0 == shape) {
            Some((_, first)) => format!("for the same reason as {first}"),
            None => {
                sentences.push((shape, rank));
                format!("{}{}", escape_long_html(&slow.sentence()), timeline_links(facts, slow))
            }
        };
        let length = link(facts, slow);
        let cells = [
            rank.to_string(),
            length,
            escape_html(&slow.label()),
            page_svg::shares(&shares),
            words,
        ];
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

fn link(facts: &Facts, slow: &SlowInterval) -> String {
    let lane = lane(facts, slow, slow.tid);
    super::parts::into_timeline(facts, (slow.ts, slow.dur), lane, &duration(slow.dur as f64))
}

/// The lane of a thread of the interval's process.
fn lane(facts: &Facts, slow: &SlowInterval, tid: Option<i32>) -> Option<usize> {
    let number = |entry: Option<i32>| entry.map_or(String::new(), |entry| entry.to_string());
    facts.timeline.lane(&slow.host, &number(slow.pid), &number(tid))
}

/// Links to the slice in which the thread ran most, and to the activity of threads that it waited for.
fn timeline_links(facts: &Facts, slow: &SlowInterval) -> String {
    let hops = slow.hops().iter().filter_map(|hop| Some((hop, hop.slice.as_ref()?)));
    let link = |(hop, doing): (&WakerHop, &ThreadSlice)| {
        let label = format!("thread {}: {}", hop.label(), doing.name);
        let lane = lane(facts, slow, Some(hop.thread));
        format!(" {}", super::parts::into_timeline(facts, (doing.ts, doing.dur), lane, &label))
    };
    let ran = slow.parts.iter().find_map(|part| part.running_in.first());
    let ran = ran.map_or_else(String::new, |share| {
        let lane = lane(facts, slow, slow.tid);
        let longest = &share.longest;
        let link =
            super::parts::into_timeline(facts, (longest.ts, longest.dur), lane, &longest.name);
        format!(" {link}")
    });
    ran + &hops.map(link).collect::<String>()
}

/// Maximum number of kinds whose tails are shown: those with the most time.
const TAILS: usize = 3;
/// Maximum number of causes; the others are added up.
const CAUSES: usize = 5;

/// Causes of the time above the 99th percentile, the first section of the page.
pub fn causes(facts: &Facts) -> String {
    if facts.tails.is_empty() {
        return String::new();
    }
    let tail = |tail: &Tail| {
        let mut table = HtmlTable::new(&["cause", "time", "share", ""], 1);
        let mut row = |cause: &str, ns: i64| {
            let part = ns as f64 / tail.ns.max(1) as f64;
            let share = format!("{:.1} %", 100.0 * part);
            let cells =
                [escape_html(cause), duration(ns as f64), share, page_svg::share(part, "cx")];
            table.html_row("", cells);
        };
        tail.causes.iter().take(CAUSES).for_each(|entry| row(&entry.cause, entry.ns));
        if let Some(others) = tail.causes.get(CAUSES..).filter(|entry| !entry.is_empty()) {
            let ns = others.iter().map(|entry| entry.ns).sum();
            row(&counted(others.len() as u64, "other cause"), ns);
        }
        format!("<p>{}</p>\n{}", escape_html(&tail.heading()), table.html("bars"))
    };
    let tails: String = facts.tails.iter().take(TAILS).map(tail).collect();
    format!("<section id=causes>\n<h2>Why the slowest were slow</h2>\n{tails}</section>\n")
}
