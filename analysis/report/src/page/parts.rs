//! What several parts of the page have.

use crate::facts::Facts;
use crate::frames::FrameFacts;
use crate::html::text;
use crate::percentiles::percentiles;
use ppt_query::stats::Summary;
use ppt_query::text::measured;

/// The anchor of a kind of frames.
pub fn anchor(at: usize) -> String {
    format!("f{at}")
}

/// The anchor of an interval or a field.
pub fn field_anchor(frame: usize, field: usize) -> String {
    format!("f{frame}-{field}")
}

/// A swatch of an interval's colour.
pub fn swatch(interval: Option<usize>) -> String {
    format!("<i class=\"sw {}\"></i>", crate::chart::colour(interval))
}

/// How many there are.
pub fn counted(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {one}{s}", ppt_query::text::grouped(count))
}

/// Whether a kind has nothing to show.
pub fn is_empty(frame: &FrameFacts) -> bool {
    frame.count == 0
}

/// A way to that time, and for so long, in the timeline.
pub fn into_timeline(
    facts: &Facts,
    (from, length): (i64, i64),
    lane: Option<usize>,
    says: &str,
) -> String {
    let place = facts.timeline.place(from);
    let lane = lane.map_or(-1, |lane| lane as i64);
    format!(
        "<a class=go href=\"#timeline\" data-at=\"{place}\" data-for=\"{length}\" data-lane=\"{lane}\">{}</a>",
        text(says)
    )
}

pub fn number(value: Option<ppt_query::stats::SummaryNumber>) -> Option<f64> {
    value.map(ppt_query::stats::SummaryNumber::float)
}

pub fn value(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| measured(value, unit))
}

/// What stands for a percentile of too few values.
pub const TOO_FEW_VALUES: &str = "too few values";

/// p50, p90, p99 and p99.9 as a page shows them.
pub fn percentile_texts(summary: &Summary, unit: &str) -> [String; 4] {
    let known = percentiles(summary);
    std::array::from_fn(|which| match known[which] {
        None if summary.count > 0 => TOO_FEW_VALUES.to_owned(),
        known => value(known, unit),
    })
}
