//! Charts as SVG in a page: drawn without a script, as wide as the page, in its colours.
//!
//! Horizontal lengths are percentages, so only curves are distorted: they lie in an inner picture that
//! is stretched.

use std::fmt::Write;

use ppt_query::stats::{Bin, BinScale, Histogram, Summary};

use crate::axis::{Axis, label};
use crate::html::escape_html;
use crate::shown_percentiles::{filled_percentiles, shown_percentiles};
use crate::span::ChartSpan;

/// Pixels below a chart for its labels.
const FOOT: f64 = 20.0;
/// Pixels above a chart.
const HEAD: f64 = 8.0;

/// A horizontal position in percent.
fn percent(share: f64) -> String {
    short(share * 100.0)
}

/// A number with at most two decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Number of colours of intervals; intervals after these share one.
pub const COLOURS: usize = 8;

/// The class of a colour: an interval's by its number, or a grey one if there is no interval.
pub fn colour(interval: Option<usize>) -> String {
    match interval {
        Some(number) if number < COLOURS => format!("c{number}"),
        Some(_) => "c8".to_owned(),
        None => "cx".to_owned(),
    }
}

/// The frame of a chart: grid lines, labels of values, labels of the horizontal axis.
struct Board {
    svg: String,
    height: f64,
}

impl Board {
    fn new(title: &str, class: &str, attributes: &str, height: f64) -> Board {
        let title = escape_html(title);
        let svg = format!(
            "<svg class=\"chart {class}\" width=\"100%\" height=\"{}\" role=\"img\" \
             aria-label=\"{title}\"{attributes}>",
            short(height + HEAD + FOOT)
        );
        Board { svg, height }
    }

    fn y(&self, share: f64) -> f64 {
        HEAD + self.height * (1.0 - share)
    }

    /// Draws grid lines and returns their labels, which are drawn last, above everything.
    fn lines(&mut self, axis: &Axis, unit: &str) -> String {
        let mut labels = String::new();
        for tick in axis.ticks(3) {
            let y = short(self.y(axis.place(tick)));
            let _ = write!(self.svg, "<line class=g x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
            let above = short(self.y(axis.place(tick)) - 3.0);
            let name = escape_html(&label(tick, unit));
            let is_ground = axis.place(tick) <= 0.001;
            if !is_ground {
                let _ = write!(labels, "<text class=h x=\"0\" y=\"{above}\">{name}</text>");
            }
        }
        labels
    }

    /// Draws labels below the chart: their positions and texts.
    fn foot(&mut self, labels: impl Iterator<Item = (f64, String)>) {
        let y = short(self.height + HEAD + 15.0);
        let ground = short(self.y(0.0));
        let _ = write!(
            self.svg,
            "<line class=a x1=\"0\" x2=\"100%\" y1=\"{ground}\" y2=\"{ground}\"/>"
        );
        for (share, name) in labels {
            let anchor = match share {
                ..0.03 => "",
                0.94.. => " text-anchor=\"end\"",
                _ => " text-anchor=\"middle\"",
            };
            let _ = write!(
                self.svg,
                "<text x=\"{}%\" y=\"{y}\"{anchor}>{}</text>",
                percent(share),
                escape_html(&name)
            );
        }
    }

    /// Adds an inner picture that is stretched: 1,000 units wide, as high as the chart.
    fn stretched(&mut self, paths: &str) {
        let height = short(self.height);
        let _ = write!(
            self.svg,
            "<svg x=\"0\" y=\"{HEAD}\" width=\"100%\" height=\"{height}\" \
             viewBox=\"0 0 1000 {height}\" preserveAspectRatio=\"none\">{paths}</svg>"
        );
    }

    fn finish(mut self, labels: &str) -> String {
        self.svg.push_str(labels);
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Ticks of the time axis: positions and labels.
fn times(span: &ChartSpan) -> impl Iterator<Item = (f64, String)> {
    let length = span.slices as f64 * span.every as f64;
    let axis = Axis::linear(0.0, length);
    axis.ticks(5).into_iter().map(move |tick| (tick / length, label(tick, "ns")))
}

/// The horizontal position of a time in a stretched picture; `at` counts slices.
fn x(span: &ChartSpan, at: f64) -> String {
    short(1000.0 * at / span.slices as f64)
}

/// Percentiles over time as bands: from the median to p90, to p99, to the maximum.
pub fn bands(
    title: &str,
    over: &[Option<Summary>],
    span: &ChartSpan,
    unit: &str,
    colour: &str,
) -> String {
    // If a slice lacks a percentile, the next lower one replaces it: the band above then reaches up to
    // the maximum.
    let value = |summary: &Summary, which: usize| match which {
        3 => summary.max.map(ppt_query::stats::SummaryNumber::float),
        which => filled_percentiles(summary)[which],
    };
    let least = over.iter().flatten().filter_map(|summary| summary.percentiles_as_floats()[0]);
    let most = over.iter().flatten().filter_map(|summary| value(summary, 3));
    let axis = Axis::covering(least.chain(most));
    let slices = format!(" data-chart=\"time\" data-slices=\"{}\"", span.slices);
    let mut board = Board::new(title, &format!("over {colour}"), &slices, 150.0);
    let mut labels = board.lines(&axis, unit);
    if axis.is_log() {
        labels.push_str("<text class=h x=\"100%\" y=\"10\" text-anchor=\"end\">logarithmic</text>");
    }
    let y = |value: f64| short(150.0 * (1.0 - axis.place(value)));
    let has_p99 = |summary: &Option<Summary>| shown_percentiles(summary.as_ref()?)[2];
    let mut paths = String::new();
    for run in runs(over) {
        let corner = |at: usize, which: usize| {
            let number = over[at].as_ref().and_then(|over| value(over, which)).unwrap_or_default();
            let (from, to) = span.part(at);
            format!("{},{} {},{}", x(span, from), y(number), x(span, to), y(number))
        };
        let line = |which: usize| {
            let corners: Vec<String> = run.clone().map(|at| corner(at, which)).collect();
            corners.join(" ")
        };
        let back = |which: usize| {
            let corners: Vec<String> = run
                .clone()
                .rev()
                .map(|at| {
                    let text = corner(at, which);
                    let (left, right) = text.split_once(' ').unwrap_or(("", ""));
                    format!("{right} {left}")
                })
                .collect();
            corners.join(" ")
        };
        for (class, which) in [("b3", 3), ("b2", 2), ("b1", 1)] {
            let (above, below) = (line(which), back(which - 1));
            let _ = write!(paths, "<polygon class={class} points=\"{above} {below}\"/>");
        }
        // Outlines stay visible where the fill is faint.
        let _ = write!(paths, "<polyline class=e points=\"{}\"/>", line(3));
        for part in runs(&over[run.clone()].iter().map(has_p99).collect::<Vec<_>>()) {
            let corners = part.map(|at| corner(run.start + at, 2)).collect::<Vec<_>>().join(" ");
            let _ = write!(paths, "<polyline class=\"e dotted\" points=\"{corners}\"/>");
        }
        let _ = write!(paths, "<polyline class=m points=\"{}\"/>", line(0));
    }
    board.stretched(&paths);
    board.foot(times(span));
    board.finish(&labels)
}

/// Runs of consecutive slices that have values.
fn runs<T>(over: &[Option<T>]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in over.iter().enumerate().filter(|entry| entry.1.is_some()) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Frames per second over time. The rate of a partly recorded slice refers to the recorded part.
pub fn rates(title: &str, counts: &[u64], span: &ChartSpan, colour: &str) -> String {
    area(title, &frames_per_second(counts, span), span, "/s", colour)
}

/// Frames per second in each slice, over its recorded part.
pub fn frames_per_second(counts: &[u64], span: &ChartSpan) -> Vec<f64> {
    let counts: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    per_second(&counts, span)
}

/// The sum of each slice per second, over its recorded part.
pub fn per_second(added: &[f64], span: &ChartSpan) -> Vec<f64> {
    let length = |part: (f64, f64)| part.1 - part.0;
    let rate = |at: usize| {
        let (mut sum, mut seen) = (added[at], length(span.part(at)));
        // A very short slice has a random count: it is counted together with its neighbour.
        let neighbour = if at == 0 { 1 } else { at - 1 };
        if seen < 0.5 && neighbour < added.len() {
            sum += added[neighbour];
            seen += length(span.part(neighbour));
        }
        // A single moment has no rate.
        sum * 1e9 / (if seen > 0.0 { seen } else { 1.0 } * span.every as f64)
    };
    (0..added.len()).map(rate).collect()
}

/// One value for each slice over time, on an axis that includes 0.
pub fn area(title: &str, values: &[f64], span: &ChartSpan, unit: &str, colour: &str) -> String {
    let edge = |pick: fn(f64, f64) -> f64| values.iter().copied().fold(0.0, pick);
    let axis = Axis::linear(edge(f64::min), edge(f64::max));
    let slices = format!(" data-chart=\"time\" data-slices=\"{}\"", span.slices);
    let mut board = Board::new(title, &format!("over {colour}"), &slices, 64.0);
    let labels = board.lines(&axis, unit);
    let y = |value: f64| short(64.0 * (1.0 - axis.place(value)));
    let ground = y(0.0);
    let mut path = format!("M{},{ground}", x(span, span.part(0).0));
    for (at, &value) in values.iter().enumerate() {
        let ((from, to), y) = (span.part(at), y(value));
        let _ = write!(path, "L{},{y} {},{y}", x(span, from), x(span, to));
    }
    board.stretched(&format!("<path class=b1 d=\"{path}V{ground}Z\"/>"));
    board.foot(times(span));
    board.finish(&labels)
}

/// Buckets of a histogram, drawn with their widths; the underflow and the overflow bucket have a fixed
/// width. The area of a bar is proportional to its count.
pub fn buckets(
    title: &str,
    all: &[(Option<i128>, Option<i128>, u64)],
    unit: &str,
    logarithmic: bool,
) -> String {
    let ends = all.iter().flat_map(|entry| [entry.0, entry.1]).flatten();
    let (low, high) = (ends.clone().min().unwrap_or(0) as f64, ends.max().unwrap_or(1) as f64);
    // Values below 1 share one bucket, because a logarithmic axis cannot show 0.
    let axis = if logarithmic && low >= 0.0 {
        Axis::log(low.max(0.5), high.max(1.0))
    } else {
        Axis::linear(low, high)
    };
    const EDGE: f64 = 0.03;
    let inner = 1.0 - 2.0 * EDGE;
    let place = |number: Option<i128>, open: f64| {
        number.map_or(open, |number| EDGE + inner * axis.place(number as f64))
    };
    let bars: Vec<(f64, f64, f64)> = all
        .iter()
        .map(|&(lo, hi, count)| {
            let (from, to) = (place(lo, 0.0), place(hi, 1.0));
            let width = (to - from).max(1e-4);
            (from, width, count as f64 / width)
        })
        .collect();
    let most = bars.iter().map(|bar| bar.2).fold(f64::MIN_POSITIVE, f64::max);
    let mut board = Board::new(title, "spread cx", "", 150.0);
    for ((from, width, dense), &(lo, hi, count)) in bars.into_iter().zip(all) {
        let height = (150.0 * dense / most).max(1.5);
        let value = |number: i128| label(number as f64, unit);
        let tooltip = match (lo, hi) {
            (Some(lo), Some(hi)) if lo + 1 == hi => value(lo),
            (Some(lo), Some(hi)) => format!("{} – {}", value(lo), value(hi - 1)),
            (Some(lo), None) => format!("{} or more", value(lo)),
            (None, Some(hi)) => format!("below {}", value(hi)),
            (None, None) => String::new(),
        };
        let tooltip = format!("{tooltip}: {}", ppt_query::text::grouped(count));
        let _ = write!(
            board.svg,
            "<rect x=\"{}%\" width=\"{}%\" y=\"{}\" height=\"{}\"><title>{}</title></rect>",
            percent(from),
            percent(width * 0.95),
            short(HEAD + 150.0 - height),
            short(height),
            escape_html(&tooltip)
        );
    }
    let ticks = axis.ticks(4).into_iter();
    board.foot(ticks.map(|tick| (EDGE + inner * axis.place(tick), label(tick, unit))));
    board.finish("")
}

/// A part of a bar.
pub struct Share {
    /// The CSS class.
    pub class: &'static str,
    /// Fraction of the whole width.
    pub part: f64,
    /// Text of the tooltip.
    pub tooltip: String,
}

/// A bar divided into parts.
pub fn shares(parts: &[Share]) -> String {
    let mut out = String::from("<svg class=shares width=\"100%\" height=\"14\">");
    let mut from = 0.0;
    for share in parts.iter().filter(|part| part.part > 0.0) {
        let _ = write!(
            out,
            "<rect class={} x=\"{}%\" width=\"{}%\" height=\"100%\"><title>{}</title></rect>",
            share.class,
            percent(from),
            percent(share.part),
            escape_html(&share.tooltip)
        );
        from += share.part;
    }
    out + "</svg>"
}

/// A histogram of values.
pub fn spread(title: &str, histogram: &Histogram, unit: &str, colour: &str) -> String {
    let bins = &histogram.bins;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let mut board = Board::new(title, &format!("spread {colour}"), "", 150.0);
    let width = 1.0 / bins.len().max(1) as f64;
    for (at, bin) in bins.iter().enumerate().filter(|entry| entry.1.count > 0) {
        // Rare values stay visible.
        let height = (150.0 * bin.count as f64 / most as f64).max(1.5);
        let last = last_of(histogram, bin);
        let tooltip = if last == bin.from {
            label(bin.from, unit)
        } else {
            format!("{} – {}", label(bin.from, unit), label(last, unit))
        };
        let tooltip = format!("{tooltip}: {}", ppt_query::text::grouped(bin.count));
        let _ = write!(
            board.svg,
            "<rect x=\"{}%\" width=\"{}%\" y=\"{}\" height=\"{}\"><title>{}</title></rect>",
            percent(at as f64 * width),
            percent(width * 0.9),
            short(HEAD + 150.0 - height),
            short(height),
            escape_html(&tooltip)
        );
    }
    if let (Some(first), Some(last)) = (bins.first(), bins.last()) {
        let axis = match histogram.scale {
            BinScale::Logarithmic => Axis::log(first.from, last.to),
            BinScale::Linear => Axis::linear(first.from, last.to),
        };
        let mut ticks: Vec<f64> = axis.ticks(4);
        if ticks.len() < 2 {
            ticks = vec![first.from, last.to];
        }
        // The label of an integer is centred below its bin.
        let single = last_of(histogram, first) == first.from;
        let aside = if single { width / 2.0 } else { 0.0 };
        ticks.retain(|&tick| !single || tick < last.to);
        board.foot(ticks.into_iter().map(|tick| (axis.place(tick) + aside, label(tick, unit))));
    }
    board.finish("")
}

/// The last value of a bin: for integers, the one before the next bin.
pub fn last_of(histogram: &Histogram, bin: &Bin) -> f64 {
    if histogram.whole { bin.to - 1.0 } else { bin.to }
}

/// A few bars without text, for a table cell. A bar shows the mean of its values; the last bar has
/// fewer values.
pub fn bars(values: &[f64], colour: &str, title: &str) -> String {
    const BARS: usize = 40;
    let each = values.len().div_ceil(BARS).max(1);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means: Vec<f64> = values.chunks(each).map(mean).collect();
    let most = means.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut path = String::new();
    for (at, &mean) in means.iter().enumerate().filter(|entry| *entry.1 > 0.0) {
        let top = short(24.0 - (23.0 * mean / most).max(1.0));
        let _ = write!(path, "M{at},24V{top}h.85V24z");
    }
    format!(
        "<svg class=\"spark {colour}\" viewBox=\"0 0 {} 24\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{}\"><path d=\"{path}\"/></svg>",
        means.len().max(1),
        escape_html(title)
    )
}

/// A fraction of the maximum, as a bar in the background of a number.
pub fn share(value: f64, colour: &str) -> String {
    format!(
        "<svg class=\"share {colour}\" aria-hidden=\"true\"><rect width=\"{}%\" height=\"100%\" \
         rx=\"2\"/></svg>",
        percent(value.clamp(0.0, 1.0))
    )
}

/// The distribution of a group on one line, from minimum to maximum; p50 to p99 is emphasised.
pub fn range(summary: &Summary, axis: &Axis, colour: &str) -> String {
    let number = |number: Option<ppt_query::stats::SummaryNumber>| {
        number.map(ppt_query::stats::SummaryNumber::float)
    };
    let place = |value: Option<f64>| axis.place(value.unwrap_or_default());
    let [p50, p90, p99, _] = filled_percentiles(summary).map(place);
    let (min, max) = (place(number(summary.min)), place(number(summary.max)));
    let bar = |class: &str, from: f64, to: f64, y: f64, height: f64| {
        format!(
            "<rect class=\"{class}\" x=\"{}%\" width=\"{}%\" y=\"{y}\" height=\"{height}\"/>",
            percent(from),
            percent((to - from).max(0.002))
        )
    };
    format!(
        "<svg class=\"range {colour}\" width=\"100%\" height=\"18\" aria-hidden=\"true\">{}{}{}{}</svg>",
        bar("b3", min, max, 8.0, 2.0),
        bar("b2", p50, p99, 5.0, 8.0),
        bar("b1", p50, p90, 5.0, 8.0),
        format_args!("<circle cx=\"{}%\" cy=\"9\" r=\"4\"/>", percent(p50)),
    )
}

/// The heading of a column of ranges.
pub fn range_title(axis: &Axis) -> &'static str {
    if axis.is_log() {
        "least – p50 – p90 – p99 – most, logarithmic"
    } else {
        "least – p50 – p90 – p99 – most"
    }
}

/// An axis for several ranges.
pub fn range_axis<'a>(of: impl Iterator<Item = &'a Summary> + Clone) -> Axis {
    let ends = |summary: &Summary| {
        [
            summary.percentiles_as_floats()[0],
            summary.min.map(ppt_query::stats::SummaryNumber::float),
            summary.max.map(ppt_query::stats::SummaryNumber::float),
        ]
    };
    Axis::covering(
        of.flat_map(move |summary| ends(summary).into_iter().flatten().collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .into_iter(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_no_holes() {
        let over = [None, Some(1), Some(2), None, Some(3)];
        assert_eq!(runs(&over), [1..3, 4..5]);
        assert!(runs::<()>(&[]).is_empty());
    }

    #[test]
    fn a_slice_that_was_seen_in_part_has_the_rate_of_that_part() {
        let span = ChartSpan { first: 900, last: 2750, from: 0, every: 1000, slices: 3 };
        // One frame every 10 ns: the first slice is too short for a rate of its own.
        let chart = rates("", &[10, 100, 75], &span, "c0");
        assert!(
            chart.contains("d=\"M300,64L300,0 333.33,0L333.33,0 666.67,0L666.67,0 916.67,0V64Z\"")
        );
        // A counter that grows steadily has one rate, also in the partial slices at both ends.
        let span = ChartSpan { first: 999, last: 3005, from: 0, every: 1000, slices: 4 };
        let rates_of = per_second(&[0.001, 1.0, 1.0, 0.005], &span);
        assert!(rates_of.iter().all(|rate| (rate - 1e6).abs() < 1.0), "{rates_of:?}");
        // 41 slices become 21 bars; the last one has one slice and is as high as the others.
        let even = bars(&[7.0; 41], "c0", "");
        assert_eq!(even.matches("V1h").count(), 21, "{even}");
        let once = ChartSpan { first: 5, last: 5, from: 5, every: 1, slices: 1 };
        assert!(rates("", &[1], &once, "c0").contains("d=\"M0,64L0,0 0,0V64Z\""));
    }

    fn summary(count: u64, percentiles: [f64; 4]) -> Summary {
        let max = Some(ppt_query::stats::SummaryNumber::Real(percentiles[3]));
        Summary {
            count,
            nulls: 0,
            min: max,
            max,
            sum: ppt_query::stats::SummaryNumber::Real(0.0),
            mean: None,
            sd: None,
            percentiles: percentiles
                .map(|percentile| Some(ppt_query::stats::SummaryNumber::Real(percentile))),
            exact: true,
        }
    }

    #[test]
    fn a_percentile_needs_values() {
        let of = |count| shown_percentiles(&summary(count, [1.0, 2.0, 3.0, 4.0]));
        assert_eq!(of(5), [Some(1.0), None, None, None]);
        assert_eq!(of(10), [Some(1.0), Some(2.0), None, None]);
        assert_eq!(of(100), [Some(1.0), Some(2.0), Some(3.0), None]);
        assert_eq!(of(1000), [1.0, 2.0, 3.0, 4.0].map(Some));
        let span = ChartSpan { first: 0, last: 2000, from: 0, every: 1000, slices: 2 };
        let drawn = |counts: [u64; 2]| {
            let over = counts.map(|count| Some(summary(count, [1.0, 2.0, 3.0, 4.0])));
            bands("", &over, &span, "", "c0")
        };
        assert!(
            drawn([100, 100])
                .contains("class=\"e dotted\" points=\"0,37.5 500,37.5 500,37.5 1000,37.5\"")
        );
        assert!(drawn([100, 99]).contains("class=\"e dotted\" points=\"0,37.5 500,37.5\""));
        assert!(!drawn([5, 5]).contains("dotted"));
    }

    #[test]
    fn bands_end_where_the_capture_ends() {
        let span = ChartSpan { first: 900, last: 1500, from: 0, every: 1000, slices: 2 };
        let over = [Some(summary(9, [1.0; 4])), Some(summary(9, [1.0; 4]))];
        let chart = bands("", &over, &span, "", "c0");
        assert!(chart.contains("<polyline class=m points=\"450,0 500,0 500,0 750,0\""), "{chart}");
    }

    #[test]
    fn a_bin_of_one_whole_number_is_named_by_it() {
        let bin = |from: f64, count| Bin { from, to: from + 1.0, count };
        let bins = vec![bin(-1.0, 4), bin(0.0, 9), bin(1.0, 2)];
        let mut of = Histogram {
            scale: BinScale::Linear,
            whole: true,
            bins,
            infinite: 0,
            modes: Vec::new(),
        };
        let chart = spread("of kinds", &of, "", "cx");
        assert!(chart.contains("<title>-1: 4</title>") && chart.contains("<title>1: 2</title>"));
        assert!(
            chart.contains("<text x=\"50%\" y=\"173\" text-anchor=\"middle\">0</text>"),
            "{chart}"
        );
        assert!(!chart.contains(">2</text>"), "nothing begins there: {chart}");
        of.whole = false;
        assert!(spread("of lengths", &of, "", "cx").contains("<title>-1 – 0: 4</title>"));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(12.0), "12");
        assert_eq!(short(0.126), "0.13");
        assert_eq!(percent(1.0 / 3.0), "33.33");
    }
}
