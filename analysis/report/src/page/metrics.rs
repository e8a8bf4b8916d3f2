//! Counters and histograms.

use super::parts::TOO_FEW_VALUES;
use super::sections::folded;
use crate::facts::{CounterFacts, Facts, HistogramFacts};
use crate::html::{HtmlTable, escape_html};
use crate::page_svg;
use crate::shown_percentiles::MIN_VALUES;
use crate::span::ChartSpan;
use ppt_query::text::{bucket, counted_up, duration, grouped, measured};

/// Maximum number of charts of counters, and of histograms.
const CHARTS: usize = 24;

pub fn section(facts: &Facts) -> String {
    let metrics = &facts.metrics;
    let mut out = String::new();
    if !metrics.counters.is_empty() {
        out.push_str(
            "<section id=counters>\n<h2>Counters</h2>\n<p class=note>What programs added up since the \
             session began. Between two readings, it is spread evenly.</p>\n<div class=pair>\n",
        );
        for (at, counter) in metrics.counters.iter().enumerate() {
            let span = facts.span.as_ref().filter(|_| at < CHARTS && !counter.over.is_empty());
            out.push_str(&counted(counter, span));
        }
        out.push_str("</div>\n</section>\n");
    }
    if !metrics.histograms.is_empty() {
        out.push_str(
            "<section id=histograms>\n<h2>Histograms</h2>\n<p class=note>Programs counted these values \
             in buckets: a percentile is known up to its bucket.</p>\n",
        );
        for (at, histogram) in metrics.histograms.iter().enumerate() {
            out.push_str(&observed(histogram, facts.span.as_ref().filter(|_| at < CHARTS)));
        }
        out.push_str("</section>\n");
    }
    out
}

fn counted(counter: &CounterFacts, span: Option<&ChartSpan>) -> String {
    let total = counted_up(counter.total);
    let total = format!("{total} {}", counter.unit);
    let mut out = format!(
        "<figure class=counter data-name=\"{0}\"><figcaption>{0} <span class=keys>{1}</span></figcaption>",
        escape_html(&counter.label),
        escape_html(total.trim_end())
    );
    let Some(span) = span else { return out + "</figure>\n" };
    let (title, unit, values) = if counter.goes_down {
        ("since the session began", counter.unit.clone(), counter.over.clone())
    } else {
        ("per second", format!("{}/s", counter.unit), page_svg::per_second(&counter.over, span))
    };
    let name = format!("{}, {title}", counter.label);
    out.push_str(&page_svg::area(&name, &values, span, &unit, "cx"));
    let mut table = HtmlTable::new(&["from", title], 0);
    for (slice, value) in values.iter().enumerate() {
        let from = span.named(slice);
        let place = format!(" data-i=\"{slice}\"");
        table.html_row(&place, [from, escape_html(&measured(*value, &unit))]);
    }
    out.push_str(&folded(&format!("As a table, every {}", duration(span.every as f64)), &table));
    out + "</figure>\n"
}

fn observed(histogram: &HistogramFacts, span: Option<&ChartSpan>) -> String {
    let HistogramFacts { label, unit, is_time, all, over } = histogram;
    let bucket_text = |entry: Option<_>| bucket(entry, unit, *is_time);
    let mut details = vec![("count", grouped(all.count()))];
    let parts = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    for ((name, part), enough) in parts.into_iter().zip(MIN_VALUES) {
        let is_few = (1..enough).contains(&all.count());
        details.push((
            name,
            if is_few { TOO_FEW_VALUES.to_owned() } else { bucket_text(all.quantile(part)) },
        ));
    }
    details.push(("max", bucket_text(all.quantile(1.0))));
    let details: String = details
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}<dd>{}</div>", escape_html(value)))
        .collect();
    let mut out = format!(
        "<h3 data-name=\"{0}\">{0}</h3>\n<dl class=\"said long\">{details}</dl>\n",
        escape_html(label)
    );
    let Some(span) = span.filter(|_| all.count() > 0) else { return out };
    let unit = if *is_time && unit.is_empty() { "ns" } else { unit };
    out.push_str("<div class=pair>");
    if over.iter().any(Option::is_some) {
        out.push_str(
            "<figure class=main><figcaption>Over time <span class=\"keys cx\"><i class=m></i>p50\
             <i class=b1></i>p90<i class=\"b2 dotted\"></i>p99<i class=\"b3 e\"></i>max</span></figcaption>",
        );
        out.push_str(&page_svg::bands(
            &format!("percentiles of {label} over time"),
            over,
            span,
            unit,
            "cx",
        ));
        out.push_str("</figure>");
    }
    let scale = if *is_time { " <span class=keys>logarithmic</span>" } else { "" };
    out.push_str(&format!("<figure><figcaption>Distribution{scale}</figcaption>"));
    out.push_str(&page_svg::buckets(&format!("distribution of {label}"), &all.0, unit, *is_time));
    let mut table = HtmlTable::new(&["bucket", "count"], 1);
    for &(lo, hi, count) in &all.0 {
        table.row([bucket_text(Some((lo, hi))), grouped(count)]);
    }
    out.push_str(&folded("As a table", &table));
    out.push_str("</figure></div>\n");
    out
}
