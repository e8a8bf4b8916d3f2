//! Accuracy of the clocks of hosts.

use super::sections::folded;
use crate::facts::{Facts, HostClock};
use crate::html::{HtmlTable, escape_html};
use crate::page_svg;
use crate::span::ChartSpan;
use ppt_query::text::{duration, three};

/// Maximum number of charts of clocks.
const CHARTS: usize = 24;

pub fn section(facts: &Facts) -> String {
    let (Some(first), Some(span)) = (facts.clocks.first(), &facts.span) else {
        return String::new();
    };
    let mut table = HtmlTable::new(&["host", "least width", "median", "greatest", "not known"], 1);
    for host_clock in &facts.clocks {
        let widths = host_clock.widths().map(|all| all.map(duration));
        let [least, median, most] = widths.unwrap_or_else(|| ["–"; 3].map(str::to_owned));
        let unknown = format!("{} %", three(100.0 * host_clock.unknown()));
        table.row([host_clock.host.clone(), least, median, most, unknown]);
    }
    let charts =
        facts.clocks.iter().take(CHARTS).map(|clock| over(clock, span)).collect::<String>();
    format!(
        "<section id=clocks>\n<h2>Clocks</h2>\n<p class=note>Times are by the clock of host \
         {}. The truth is between <code>time_lo</code> and <code>time_hi</code>: so far apart are these for the \
         other hosts.</p>\n{}<div class=pair>\n{charts}</div>\n</section>\n",
        escape_html(&first.reference),
        table.html("")
    )
}

fn over(clock: &HostClock, span: &ChartSpan) -> String {
    let name = escape_html(&clock.host);
    let mut out = format!(
        "<figure class=clock><figcaption>{name} <span class=keys>width of the bounds; empty where \
         they are not known</span></figcaption>"
    );
    let values: Vec<f64> = clock.over.iter().map(|value| value.unwrap_or(0.0)).collect();
    let title = format!("width of the bounds of {} over time", clock.host);
    out.push_str(&page_svg::area(&title, &values, span, "ns", "cx"));
    let mut table = HtmlTable::new(&["from", "width"], 0);
    for (slice, width) in clock.over.iter().enumerate() {
        let from = duration((slice as i64 * span.every) as f64);
        let place = format!(" data-i=\"{slice}\"");
        let width = width.map_or_else(|| "not known".to_owned(), duration);
        table.html_row(&place, [from, width]);
    }
    out.push_str(&folded(&format!("As a table, every {}", duration(span.every as f64)), &table));
    out + "</figure>\n"
}
