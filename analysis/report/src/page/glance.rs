//! At a glance: a row for each kind of frames and each interval, sorted by cost.

use super::parts::{anchor, field_anchor, is_empty, number, percentile_texts, swatch, value};
use crate::facts::Facts;
use crate::frame_facts::{FieldFacts, FrameFacts};
use crate::html::escape_html;
use crate::page_svg;
use crate::span::ChartSpan;
use ppt_query::text::{grouped, three};

/// Maximum number of rows.
const MAX_ROWS: usize = 200;

/// A row of the table. Rows are sorted by cost, then by the number of frames.
struct GlanceRow {
    cost: f64,
    count: u64,
    html: String,
}

pub fn section(facts: &Facts) -> String {
    let kinds = || facts.frames.iter().chain(&facts.wholes);
    let busiest = facts
        .frames
        .iter()
        .flat_map(|frame| &frame.fields)
        .filter_map(|facts| facts.busy)
        .fold(0.0, f64::max)
        .max(1.0);
    let rows = kinds().enumerate();
    let mut rows: Vec<GlanceRow> =
        rows.flat_map(|(at, frame)| rows_of(frame, at, facts.span.as_ref(), busiest)).collect();
    rows.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(b.count.cmp(&a.count)));
    let more = match rows.len().saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => {
            format!("<p class=note>{more} cheaper entries are not shown; ppt stat lists them.</p>")
        }
    };
    rows.truncate(MAX_ROWS);
    if rows.is_empty() {
        return "<section id=glance><h2>At a glance</h2><p class=note>These captures describe no \
                frames.</p></section>\n"
            .to_owned();
    }
    let rows: String = rows.into_iter().map(|row| row.html).collect();
    // Captures without intervals do not need these columns.
    let mut fields = kinds().flat_map(|frame| &frame.fields);
    let is_timed = fields.any(|facts| facts.interval.is_some());
    let (class, note) = class_and_note(is_timed);
    format!(
        "<section id=glance>\n<h2>At a glance</h2>\n<p class=note>{note}</p>\n\
         <table class=\"{class}\"><thead><tr><th class=w>frame and interval<th>count\
         <th>over time<th>rate<th>p50<th>p99<th>max<th>busy<th>spread<tbody>\n{rows}</table>\n\
         {more}</section>\n"
    )
}

/// The class of the table, and the note above it.
fn class_and_note(is_timed: bool) -> (&'static str, &'static str) {
    if is_timed {
        (
            "glance",
            "A frame is one event, as the program wrote it. What took most time comes first. Busy is the sum of the lengths, divided by the time that passed: at 100 %, one thread was inside \
             all the time. Intervals that follow each other without a pause are always at 100 %.",
        )
    } else {
        (
            "glance untimed",
            "A frame is one event, as the program wrote it. No frame here has an interval of time \
             (<code>interval time NAME;</code> in the frame file), which would add lengths, \
             percentiles and slices.",
        )
    }
}

/// The rows of a kind of frames, `at` is its number on the page: one for each interval, or a single one.
fn rows_of(
    frame: &FrameFacts,
    at: usize,
    span: Option<&ChartSpan>,
    busiest: f64,
) -> Vec<GlanceRow> {
    let rate = frame.rate.map_or(String::new(), |rate| format!("{}/s", rounded(rate)));
    let spark = match span {
        Some(span) if !frame.counts.is_empty() => {
            let rates = page_svg::frames_per_second(&frame.counts, span);
            page_svg::bars(&rates, "cx", "frames over time")
        }
        _ => String::new(),
    };
    let name = |field: &str, link: &str, number| {
        let dot = if field.is_empty() { String::new() } else { format!(".{}", escape_html(field)) };
        format!("{}<a href=\"#{link}\">{}{dot}</a>", swatch(number), escape_html(&frame.label))
    };
    let fields = frame.fields.iter().enumerate().filter(|entry| entry.1.interval.is_some());
    let intervals = fields.map(|(index, field)| {
        let name = name(&field.label, &field_anchor(at, index), field.interval);
        let html = interval(frame, field, &name, &spark, busiest);
        GlanceRow { cost: field.cost(), count: frame.count, html }
    });
    let intervals: Vec<GlanceRow> = intervals.collect();
    if !intervals.is_empty() {
        return intervals;
    }
    let name = if is_empty(frame) {
        format!("{}{}", swatch(None), escape_html(&frame.label))
    } else {
        name("", &anchor(at), None)
    };
    let cells = [grouped(frame.count), spark, rate];
    vec![GlanceRow { cost: 0.0, count: frame.count, html: row(&name, &cells, None) }]
}

/// The row of an interval. `busiest` is the largest `busy` on the page.
fn interval(
    frame: &FrameFacts,
    field: &FieldFacts,
    name: &str,
    spark: &str,
    busiest: f64,
) -> String {
    // Open spans have no length, and frames may lack an end of an interval.
    let share = field.summary.count as f64 / frame.count.max(1) as f64;
    let rate = frame.rate.map_or(String::new(), |rate| format!("{}/s", rounded(rate * share)));
    let cells = [grouped(field.summary.count), spark.to_owned(), rate];
    let [p50, _, p99, _] = percentile_texts(&field.summary, &field.unit);
    let max = value(number(field.summary.max), &field.unit);
    let colour = page_svg::colour(field.interval);
    let busy = field.busy.map_or(String::new(), |busy| {
        format!(
            "{}<span>{} %</span>",
            page_svg::share(busy / busiest, &colour),
            three(busy * 100.0)
        )
    });
    let spread = field.spread.as_ref().map_or(String::new(), |spread| {
        let counts: Vec<f64> = spread.bins.iter().map(|bin| bin.count as f64).collect();
        page_svg::bars(&counts, &colour, "how its lengths are spread")
    });
    let tail = [escape_html(&p50), escape_html(&p99), escape_html(&max), busy, spread];
    row(name, &cells, Some(&tail))
}

fn rounded(rate: f64) -> String {
    three(if rate >= 100.0 { rate.round() } else { rate })
}

fn row(name: &str, cells: &[String; 3], tail: Option<&[String; 5]>) -> String {
    const NAMES: [&str; 8] = ["count", "over time", "rate", "p50", "p99", "max", "busy", "spread"];
    let empty: [String; 5] = Default::default();
    let all = cells.iter().chain(tail.unwrap_or(&empty));
    let cells: String = all
        .zip(NAMES)
        .map(|(cell, name)| {
            let class = if cell.is_empty() { " class=none" } else { "" };
            format!("<td data-l=\"{name}\"{class}>{cell}")
        })
        .collect();
    format!("<tr><th scope=row class=w>{name}{cells}\n")
}
