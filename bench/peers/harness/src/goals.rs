//! What ppt is meant to reach, beside what was measured.

use std::fmt::Write;

use serde::Serialize;

use crate::cost::{COST, KEPT, label};
use crate::disturbance::{ATTACH, FIRST};
use crate::floor::{FLOOR, RATIO, THREE, TO_FLOOR};
use crate::follow::{FOLLOW, STEADY};
use crate::growth::{GROWTH, cpu_of_idle_threads, stop_with_threads};
use crate::load::{LOAD, RATES};
use crate::pause::{PAUSE, longest};
use crate::questions::{COUNT, EXPORT, INTERVAL, NUMBERS, QUESTIONS, START};
use crate::table::Table;
use crate::text::TEXT;

#[derive(Debug, Serialize)]
pub struct Goal {
    pub what: &'static str,
    pub measured: f64,
    pub goal: f64,
    /// Whether more is better.
    pub at_least: bool,
    pub reached: bool,
}

/// Those whose figures are there.
pub fn goals(table: &Table) -> Vec<Goal> {
    let stamped = label("on", "stamped", 1);
    let cost = |peer| table.median(COST, &stamped, peer);
    let twice = table.median(COST, &label("on", "stamped", 2), "ppt");
    let load = |rate: usize| table.median(LOAD, RATES[rate].1, "ppt");
    let grown = |what: &str, size| table.median(GROWTH, what, size);
    let first = table.median(ATTACH, FIRST, "ppt");
    let pause = |peer| table.median(PAUSE, &longest("p99"), peer);
    let text = |peer| table.median(TEXT, "wall", peer);
    let asked = |what: &str, who| table.median(QUESTIONS, what, who);
    let less = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let all = [
        (
            "block form of 64 bytes, times the floor",
            table.median(FLOOR, RATIO, TO_FLOOR),
            1.6,
            false,
        ),
        ("three ticks, times the floor with three", table.median(FLOOR, RATIO, THREE), 1.1, false),
        ("an event with one time, ns", cost("ppt"), 10.0, false),
        (
            "events of two threads, times those of one",
            over(twice, cost("ppt")).map(|over| 2.0 / over),
            1.9,
            true,
        ),
        (
            "million frames of 40 bytes/s into a file, beside a writer",
            table.median(KEPT, &label("default buffers", "bare", 1), "ppt"),
            15.0,
            true,
        ),
        (
            "lost of 5,000,000 frames/s, 2^20 slots, %",
            table.median(FOLLOW, STEADY, "ppt"),
            0.0,
            false,
        ),
        (
            "an event of LTTng-UST (discard), times ppt's",
            over(cost("lttng-discard"), cost("ppt")),
            8.0,
            true,
        ),
        ("the first event of a thread, µs", first.map(|ns| ns / 1e3), 20.0, false),
        (
            "longest pause while attached to, p99, times LTTng-UST's",
            over(pause("ppt"), pause("lttng-discard")),
            1.0,
            false,
        ),
        ("ppt attach at 2,500 frames/s, % of a CPU", load(0), 0.15, false),
        ("ppt attach at 100,000 frames/s, % of a CPU", load(1), 0.45, false),
        ("ppt attach at 1,000,000 frames/s, % of a CPU", load(2), 2.5, false),
        (
            "ppt attach, 10,000 silent threads more, % of a CPU",
            grown(&cpu_of_idle_threads(), "10000")
                .zip(grown(&cpu_of_idle_threads(), "1"))
                .map(|(many, one)| many - one),
            1.0,
            false,
        ),
        (
            "from Ctrl-C to the end, 10,000 rings, ms",
            grown(&stop_with_threads(), "10000"),
            100.0,
            false,
        ),
        (
            "count(*) of 10,000,000 frames, less the start of the process, ms",
            less(asked(COUNT, "ppt"), asked(START, "ppt")),
            10.0,
            false,
        ),
        (
            "ppt stat of an interval by an enum, times DuckDB",
            over(asked(INTERVAL, "ppt"), asked(INTERVAL, "duckdb")),
            1.3,
            false,
        ),
        (
            "ppt stat of all fields by an enum, times DuckDB",
            over(asked(NUMBERS, "ppt"), asked(NUMBERS, "duckdb")),
            1.3,
            false,
        ),
        (
            "speed of ppt's export to Parquet, times pyarrow's",
            over(asked(EXPORT, "pyarrow"), asked(EXPORT, "ppt")),
            0.8,
            true,
        ),
        (
            "babeltrace2 to text, times ppt dump",
            over(text("lttng-discard"), text("ppt")),
            20.0,
            true,
        ),
    ];
    let found = all.into_iter().filter_map(|(what, measured, goal, at_least)| {
        let measured = measured?;
        let reached = if at_least { measured >= goal } else { measured <= goal };
        Some(Goal { what, measured, goal, at_least, reached })
    });
    found.collect()
}

pub fn print(goals: &[Goal]) -> String {
    if goals.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nGoals of ppt, by medians\n");
    for it in goals {
        let than = if it.at_least { "at least" } else { "at most" };
        let verdict = if it.reached { "reached" } else { "missed" };
        let _ = writeln!(
            text,
            "    {:<58} {:>8.2}, {than} {}: {verdict}",
            it.what, it.measured, it.goal
        );
    }
    text
}
