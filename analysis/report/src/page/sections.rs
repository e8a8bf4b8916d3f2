//! A section for each kind of frames, and for each view.

use std::cell::Cell;

use super::kernel::why;
use super::parts::{
    anchor, counted, field_anchor, into_timeline, is_empty, number, percentile_texts, swatch, value,
};
use crate::facts::Facts;
use crate::frame_facts::{FieldFacts, FieldKeys, FieldWords, FrameFacts, GroupFacts, Groups};
use crate::html::{HtmlTable, escape_html};
use crate::page_svg;
use crate::shown_percentiles::shown_percentiles;
use crate::views::{MAX_ROWS, ReportView};
use ppt_query::text::{duration, grouped, measured, three};

/// Number of charts that a page still has room for.
pub struct Room(Cell<usize>);

impl Default for Room {
    fn default() -> Self {
        Room(Cell::new(60))
    }
}

impl Room {
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

pub fn frame(facts: &Facts, frame: &FrameFacts, at: usize, room: &Room) -> String {
    if is_empty(frame) {
        return String::new();
    }
    let label = escape_html(&frame.label);
    let mut details = vec![counted(frame.count, "frame")];
    if let Some(rate) = frame.rate {
        details.push(format!("{}/s", three(if rate >= 100.0 { rate.round() } else { rate })));
    }
    details.push(counted(frame.threads, "thread"));
    let mut out = format!(
        "<section id={}>\n<h2>{label}</h2>\n<p class=said>{}</p>\n",
        anchor(at),
        details.iter().map(|text| format!("<span>{text}</span>")).collect::<String>()
    );
    if let Some(span) = &facts.span
        && room.take()
    {
        let title = format!("{} over time, per second", frame.label);
        out.push_str("<figure>");
        out.push_str("<figcaption>Rate</figcaption>");
        out.push_str(&page_svg::rates(&title, &frame.counts, span, "cx"));
        let mut table = HtmlTable::new(&["from", "frames"], 0);
        for (slice, &count) in frame.counts.iter().enumerate().filter(|entry| *entry.1 > 0) {
            let place = format!(" data-i=\"{slice}\"");
            table.html_row(&place, [span.named(slice), grouped(count)]);
        }
        let every = duration(span.every as f64);
        out.push_str(&folded(&format!("Rate as a table, every {every}"), &table));
        out.push_str("</figure>\n");
    }
    if !frame.words.is_empty() {
        out.push_str("<div class=pair>");
        frame.words.iter().for_each(|words| out.push_str(&list_words(words)));
        out.push_str("</div>\n");
    }
    out.push_str(&keys(&frame.keys));
    for (index, field) in frame.fields.iter().enumerate().filter(|entry| entry.1.interval.is_some())
    {
        out.push_str(&interval(facts, frame, field, &field_anchor(at, index), room));
    }
    let numbers: Vec<_> =
        frame.fields.iter().enumerate().filter(|entry| entry.1.interval.is_none()).collect();
    if !numbers.is_empty() {
        out.push_str(if numbers.len() == frame.fields.len() {
            "<h3>Fields</h3>\n"
        } else {
            "<h3>Other fields</h3>\n"
        });
        out.push_str(&fields_table(&numbers));
        for (index, field) in numbers {
            if !field.over.is_empty() && room.take() {
                let name = escape_html(&field.label);
                let id = field_anchor(at, index);
                out.push_str(&format!("<h4 id={id}>{name}</h4>\n"));
                out.push_str(&charts(facts, frame, field));
            }
        }
    }
    out.push_str("</section>\n");
    out
}

pub fn folded(title: &str, table: &HtmlTable) -> String {
    format!("<details><summary>{}</summary>{}</details>\n", escape_html(title), table.html(""))
}

/// A table of the counts of each value.
pub fn list_words(words: &FieldWords) -> String {
    let most = words.counts.iter().map(|count| count.1).max().unwrap_or(0).max(1) as f64;
    let mut table = HtmlTable::new(&[&words.name, "count", ""], 1);
    let none = (words.nulls > 0).then(|| ("none".to_owned(), words.nulls));
    for (word, count) in words.counts.iter().chain(none.as_ref()) {
        let share = page_svg::share(*count as f64 / most, "cx");
        table.html_row("", [escape_html(word), grouped(*count), share]);
    }
    format!("<figure class=words>{}</figure>\n", table.html("bars"))
}

/// A table of the counts of distinct keys and hashes; empty if there are none.
pub fn keys(keys: &[FieldKeys]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let mut table = HtmlTable::new(&["key", "count", "different"], 1);
    for key in keys {
        let about = if key.distinct.exact { "" } else { "about " };
        let different = format!("{about}{}", grouped(key.distinct.count));
        table.row([key.label.clone(), grouped(key.count), different]);
    }
    format!("<figure class=words>{}</figure>\n", table.html(""))
}

pub fn interval(
    facts: &Facts,
    frame: &FrameFacts,
    field: &FieldFacts,
    id: &str,
    room: &Room,
) -> String {
    let summary = &field.summary;
    let unit = &field.unit;
    let [p50, p90, p99, p999] = percentile_texts(summary, unit);
    let mut details = vec![
        ("count", grouped(summary.count)),
        ("p50", p50),
        ("p90", p90),
        ("p99", p99),
        ("p99.9", p999),
        ("max", value(number(summary.max), unit)),
        ("mean", value(summary.mean_as_float(), unit)),
    ];
    if let Some(busy) = field.busy {
        details.push(("busy", format!("{} %", three(busy * 100.0))));
    }
    if summary.nulls > 0 {
        details.push(("no value", grouped(summary.nulls)));
    }
    let details: String = details
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}<dd>{}</div>", escape_html(value)))
        .collect();
    let name = format!("{}.{}", frame.label, field.label);
    let mut out = format!(
        "<h3 id={id}>{}{}</h3>\n<dl class=said>{details}</dl>\n{}",
        swatch(field.interval),
        escape_html(&name),
        exactness(field)
    );
    if !field.over.is_empty() && room.take() {
        out.push_str(&charts(facts, frame, field));
    }
    if let Some(of) = &field.groups {
        out.push_str(&groups(of, field));
    }
    out.push_str(&slowest(facts, field));
    out.push_str(&why(facts, field));
    out
}

fn exactness(field: &FieldFacts) -> String {
    let mut notes = Vec::new();
    if !field.summary.exact {
        notes.push("Percentiles are exact to three digits.".to_owned());
    }
    if let Some(spread) = field.spread.as_ref().filter(|spread| spread.modes.len() > 1) {
        let modes: Vec<String> = spread
            .modes
            .iter()
            .map(|mode| format!("about {}", measured(*mode, &field.unit)))
            .collect();
        notes.push(format!(
            "Its values crowd at {} places: {}. A mean says little here.",
            modes.len(),
            escape_html(&modes.join(", "))
        ));
    }
    if notes.is_empty() {
        String::new()
    } else {
        format!("<p class=note>{}</p>\n", notes.join(" "))
    }
}

/// Of slices with too few values for all percentiles.
const FEW_IN_SLICE: &str = "<p class=note>A slice has a p90 if it has 10 values, and a p99 if it has 100: of fewer values \
                   a percentile would be a guess.</p>";

/// Charts over time, and histograms.
fn charts(facts: &Facts, frame: &FrameFacts, field: &FieldFacts) -> String {
    let name = format!("{}.{}", frame.label, field.label);
    let colour = page_svg::colour(field.interval);
    let unit = &field.unit;
    let mut out = String::from("<div class=pair>");
    if let Some(span) = &facts.span {
        out.push_str(&format!(
            "<figure class=main><figcaption>Over time <span class=\"keys {colour}\"><i class=m></i>p50\
             <i class=b1></i>p90<i class=\"b2 dotted\"></i>p99<i class=\"b3 e\"></i>max</span></figcaption>"
        ));
        let title = format!("percentiles of {name} over time");
        out.push_str(&page_svg::bands(&title, &field.over, span, unit, &colour));
        let mut table = HtmlTable::new(&["from", "count", "p50", "p90", "p99", "max"], 0);
        for (slice, summary) in field.over.iter().enumerate() {
            let Some(summary) = summary else { continue };
            let [p50, p90, p99, _] = shown_percentiles(summary);
            let cells = [p50, p90, p99, number(summary.max)]
                .map(|option| escape_html(&value(option, unit)));
            let place = format!(" data-i=\"{slice}\"");
            let first = [span.named(slice), grouped(summary.count)];
            table.html_row(&place, first.into_iter().chain(cells));
        }
        let lacks_one =
            |summary: &ppt_query::stats::Summary| shown_percentiles(summary)[..3].contains(&None);
        if field.over.iter().flatten().any(lacks_one) {
            out.push_str(FEW_IN_SLICE);
        }
        let every = duration(span.every as f64);
        out.push_str(&folded(&format!("As a table, every {every}"), &table));
        out.push_str("</figure>");
    }
    if let Some(histogram) = &field.spread {
        let scale = match histogram.scale {
            ppt_query::stats::BinScale::Linear => "",
            ppt_query::stats::BinScale::Logarithmic => " <span class=keys>logarithmic</span>",
        };
        let infinite = match histogram.infinite {
            0 => String::new(),
            count => format!(" <span class=keys>{} infinite not drawn</span>", grouped(count)),
        };
        out.push_str(&format!("<figure><figcaption>Distribution{scale}{infinite}</figcaption>"));
        out.push_str(&page_svg::spread(
            &format!("distribution of {name}"),
            histogram,
            unit,
            &colour,
        ));
        let mut table = HtmlTable::new(&["from", "to", "count"], 0);
        for bin in histogram.bins.iter().filter(|bin| bin.count > 0) {
            let last = page_svg::last_of(histogram, bin);
            table.row([measured(bin.from, unit), measured(last, unit), grouped(bin.count)]);
        }
        out.push_str(&folded("As a table", &table));
        out.push_str("</figure>");
    }
    out.push_str("</div>\n");
    out
}

/// Groups on one axis.
fn groups(groups: &Groups, field: &FieldFacts) -> String {
    let axis = page_svg::range_axis(groups.rows.iter().map(|group| &group.summary));
    let colour = page_svg::colour(field.interval);
    let scale = page_svg::range_title(&axis);
    let mut table =
        HtmlTable::new(&[&groups.column, "count", "p50", "p90", "p99", "max", "busy", scale], 1);
    for GroupFacts { value: name, summary, busy } in &groups.rows {
        let [p50, p90, p99, _] = percentile_texts(summary, &field.unit);
        let max = value(number(summary.max), &field.unit);
        let cells = [p50, p90, p99, max].map(|cell| escape_html(&cell));
        let busy = busy.map_or(String::new(), |value| format!("{} %", three(value * 100.0)));
        let first = [escape_html(name), grouped(summary.count)];
        let last = [busy, page_svg::range(summary, &axis, &colour)];
        table.html_row("", first.into_iter().chain(cells).chain(last));
    }
    format!(
        "<figure><figcaption>By {}</figcaption>{}</figure>\n",
        escape_html(&groups.column),
        table.html("groups")
    )
}

/// The slowest intervals, each with a link to the timeline.
fn slowest(facts: &Facts, field: &FieldFacts) -> String {
    if field.slowest.is_empty() {
        return String::new();
    }
    let mut columns = vec!["begins at", "length", "thread", "seqno"];
    columns.extend(field.columns.iter().map(String::as_str));
    let mut table = HtmlTable::new(&columns, 0);
    for slow in &field.slowest {
        let at = slow.start.saturating_sub(facts.timeline.origin);
        let lane = facts.timeline.lane(&slow.host, &slow.pid, &slow.tid);
        let link = into_timeline(facts, (slow.start, slow.length), lane, &precise(at));
        let thread = lane.map_or_else(|| slow.tid.clone(), |at| facts.timeline.lanes[at].label());
        let cells = [
            link,
            escape_html(&duration(slow.length as f64)),
            escape_html(&thread),
            escape_html(&slow.seqno),
        ];
        table
            .html_row("", cells.into_iter().chain(slow.cells.iter().map(|cell| escape_html(cell))));
    }
    let count = field.slowest.len();
    let title = if count == 1 { "The slowest".to_owned() } else { format!("The slowest {count}") };
    format!("<figure><figcaption>{title}</figcaption>{}</figure>\n", table.html("slow"))
}

/// A time since the beginning, in s with 6 decimals.
fn precise(ns: i64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}

pub fn fields_table(fields: &[(usize, &FieldFacts)]) -> String {
    let columns = ["field", "count", "min", "p50", "p90", "p99", "max", "mean", "sd"];
    let mut table = HtmlTable::new(&columns, 1);
    for (_, field) in fields {
        let summary = &field.summary;
        let unit = &field.unit;
        let [p50, p90, p99, _] = percentile_texts(summary, unit);
        let [min, max] = [summary.min, summary.max].map(|edge| value(number(edge), unit));
        let [mean, sd] = [summary.mean_as_float(), summary.sd].map(|number| value(number, unit));
        let cells = [min, p50, p90, p99, max, mean, sd];
        table.row([field.label.clone(), grouped(summary.count)].into_iter().chain(cells));
    }
    table.html("")
}

pub fn view(view: &ReportView) -> String {
    let names: Vec<&str> = view.columns.iter().map(String::as_str).collect();
    let words = view.numeric.iter().take_while(|flag| !**flag).count();
    let mut table = HtmlTable::new(&names, words);
    view.rows.iter().for_each(|row| table.row(row.iter().cloned()));
    let cut = if view.cut {
        format!("<p class=note>Only the first {MAX_ROWS} rows are shown.</p>")
    } else {
        String::new()
    };
    let none = if view.rows.is_empty() { "<p class=note>No rows.</p>" } else { "" };
    format!(
        "<section>\n<h2>{}</h2>\n{}{none}{cut}</section>\n",
        escape_html(&view.name),
        table.html("")
    )
}
