//! Spans and chains: their durations, their ends, and the times between steps.

use super::parts::{anchor, counted, field_anchor, is_empty, number, percentile_texts, value};
use super::sections::{Room, fields_table, interval, keys, list_words};
use crate::facts::Facts;
use crate::frame_facts::{FieldFacts, FrameFacts};
use crate::html::{HtmlTable, escape_html};
use crate::page_svg;
use ppt_query::RowUnit;
use ppt_query::text::grouped;

/// `at`: number of kinds of frames before it, for its anchor.
pub fn section(facts: &Facts, whole: &FrameFacts, at: usize, room: &Room) -> String {
    if is_empty(whole) {
        return String::new();
    }
    let (noun, note) = match whole.unit {
        RowUnit::Chain => (
            "chain",
            "A chain is all steps of one thing, through all threads and programs. \
             <code>total</code> is from the first step to the last.",
        ),
        _ => (
            "span",
            "A span begins in one place and ends in another. <code>dur</code> is the time of those \
             that did both.",
        ),
    };
    let mut out = format!(
        "<section id={}>\n<h2>{}</h2>\n<p class=said><span>{}</span></p>\n<p class=note>{note}</p>\n",
        anchor(at),
        escape_html(&whole.label),
        counted(whole.count, noun)
    );
    if !whole.words.is_empty() {
        out.push_str("<div class=pair>");
        whole.words.iter().rev().for_each(|words| out.push_str(&list_words(words)));
        out.push_str("</div>\n");
    }
    out.push_str(&keys(&whole.keys));
    let steps: Vec<&FieldFacts> = whole.fields.iter().filter(|field| field.is_step).collect();
    for (index, field) in whole.fields.iter().enumerate().filter(|entry| entry.1.interval.is_some())
    {
        out.push_str(&interval(facts, whole, field, &field_anchor(at, index), room));
        out.push_str(&from_step_to_step(&steps, &page_svg::colour(field.interval)));
    }
    let is_other = |entry: &(usize, &FieldFacts)| entry.1.interval.is_none() && !entry.1.is_step;
    let others: Vec<_> = whole.fields.iter().enumerate().filter(is_other).collect();
    if !others.is_empty() {
        out.push_str("<h3>Other fields</h3>\n");
        out.push_str(&fields_table(&others));
    }
    out.push_str("</section>\n");
    out
}

/// The times between steps, on one axis.
fn from_step_to_step(steps: &[&FieldFacts], colour: &str) -> String {
    let steps: Vec<_> = steps.iter().filter(|step| step.summary.count > 0).collect();
    if steps.is_empty() {
        return String::new();
    }
    let axis = page_svg::range_axis(steps.iter().map(|facts| &facts.summary));
    let scale = page_svg::range_title(&axis);
    let columns = ["from step to step", "count", "mean", "p50", "p90", "p99", "max", scale];
    let mut table = HtmlTable::new(&columns, 1);
    for step in steps {
        let summary = &step.summary;
        let [p50, p90, p99, _] = percentile_texts(summary, &step.unit);
        let [mean, max] = [summary.mean_as_float(), number(summary.max)];
        let [mean, max] = [mean, max].map(|number| value(number, &step.unit));
        let cells = [mean, p50, p90, p99, max].map(|cell| escape_html(&cell));
        let first = [escape_html(&step.name), grouped(summary.count)];
        let last = [page_svg::range(summary, &axis, colour)];
        table.html_row("", first.into_iter().chain(cells).chain(last));
    }
    format!("<figure><figcaption>From step to step</figcaption>{}</figure>\n", table.html("groups"))
}
