//! Elements that several sections share.

use crate::facts::Facts;
use crate::frame_facts::FrameFacts;
use crate::html::escape_html;
use crate::shown_percentiles::shown_percentiles;
use ppt_query::stats::Summary;
use ppt_query::text::measured;

/// The anchor of the section of a kind of frames.
pub fn anchor(at: usize) -> String {
    format!("f{at}")
}

/// The anchor of an interval or a field.
pub fn field_anchor(frame: usize, field: usize) -> String {
    format!("f{frame}-{field}")
}

/// A swatch in the colour of an interval.
pub fn swatch(interval: Option<usize>) -> String {
    format!("<i class=\"sw {}\"></i>", crate::page_svg::colour(interval))
}

/// A count with a noun in the singular or the plural.
pub fn counted(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {one}{s}", ppt_query::text::grouped(count))
}

/// Whether a kind has nothing to show.
pub fn is_empty(frame: &FrameFacts) -> bool {
    frame.count == 0
}

/// A link to a time range of the timeline.
pub fn into_timeline(
    facts: &Facts,
    (from, length): (i64, i64),
    lane: Option<usize>,
    label: &str,
) -> String {
    let place = facts.timeline.place(from);
    let lane = lane.map_or(-1, |lane| lane as i64);
    format!(
        "<a class=go href=\"#timeline\" data-at=\"{place}\" data-for=\"{length}\" data-lane=\"{lane}\">{}</a>",
        escape_html(label)
    )
}

pub fn number(value: Option<ppt_query::stats::SummaryNumber>) -> Option<f64> {
    value.map(ppt_query::stats::SummaryNumber::float)
}

pub fn value(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| measured(value, unit))
}

/// The text for a percentile of too few values.
pub const TOO_FEW_VALUES: &str = "too few values";

/// p50, p90, p99 and p99.9 as text.
pub fn percentile_texts(summary: &Summary, unit: &str) -> [String; 4] {
    let shown = shown_percentiles(summary);
    std::array::from_fn(|index| match shown[index] {
        None if summary.count > 0 => TOO_FEW_VALUES.to_owned(),
        percentile => value(percentile, unit),
    })
}
