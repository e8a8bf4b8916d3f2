//! The account: where every frame is, the rings, and the accuracy of clocks.

use crate::facts::Facts;
use crate::html::{HtmlTable, escape_html};
use ppt_query::text::{duration, grouped};

/// Maximum number of gaps in the table; the timeline has more.
const GAPS: usize = 20;

pub fn section(facts: &Facts) -> String {
    let account = &facts.account;
    let count = |text: &str| text.parse().map_or(text.to_owned(), grouped);
    let mut causes = HtmlTable::new(&["buffer", "process", "what became of them", "frames"], 3);
    for row in account.causes.iter().filter(|row| row[2] == "captured" || row[3] != "0") {
        let class = if row[2] == "captured" { "" } else { " class=bad" };
        let cells =
            [escape_html(&row[0]), escape_html(&row[1]), escape_html(&row[2]), count(&row[3])];
        causes.html_row(class, cells);
    }
    let mut out = format!(
        "<section id=account>\n<h2>Account</h2>\n<p class=note>Each frame that was written is captured, \
         or counted here with the cause for which it is not.</p>\n{}",
        causes.html("")
    );
    if !account.gaps.is_empty() {
        out.push_str(&gaps(facts));
    }
    if !account.rings.is_empty() {
        let mut table = HtmlTable::new(&["buffer", "process", "ring", "frames", "lost"], 1);
        for row in &account.rings {
            let [buffer, pid, ring] = [&row[0], &row[1], &row[2]].map(|string| escape_html(string));
            let class = if row[4] == "0" { "" } else { " class=bad" };
            table.html_row(class, [buffer, pid, ring, count(&row[3]), count(&row[4])]);
        }
        let shown = account.rings.len() as u64;
        let more = match account.all_rings.saturating_sub(shown) {
            0 => String::new(),
            more => format!("<p class=note>{} more rings lost no more.</p>", grouped(more)),
        };
        out.push_str(&format!(
            "<h3>Rings</h3>\n<p class=note>A thread writes into a ring of its own.</p>\n{}{more}",
            table.html("")
        ));
    }
    if !account.clocks.is_empty() {
        let mut table =
            HtmlTable::new(&["host", "clocks", "readings", "exact to about", "at worst", ""], 2);
        for clock in &account.clocks {
            let exact =
                |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("± {}", duration(ns)));
            let trust = if clock.distrusted { "the system does not trust its ticks" } else { "" };
            table.row([
                clock.host.clone(),
                clock.pair.clone(),
                grouped(clock.readings),
                exact(clock.typical),
                exact(clock.worst),
                trust.to_owned(),
            ]);
        }
        out.push_str(&format!(
            "<h3>Readings of clocks</h3>\n<p class=note>One clock of a pair is read before and after the other: half the time \
             between these two readings bounds the error.</p>\n{}",
            table.html("")
        ));
    }
    out.push_str("</section>\n");
    out
}

/// The largest gaps, each with a link to the timeline.
fn gaps(facts: &Facts) -> String {
    let origin = facts.timeline.origin;
    let mut table =
        HtmlTable::new(&["buffer", "process", "ring", "cause", "frames", "between", "and"], 1);
    for gap in facts.account.gaps.iter().take(GAPS) {
        let when = |ns: Option<i64>| {
            ns.map_or("–".to_owned(), |ns| {
                format!("{:.6} s", ns.saturating_sub(origin) as f64 / 1e9)
            })
        };
        let from = match gap.from.or(gap.to) {
            None => "–".to_owned(),
            Some(from) => {
                let to = gap.to.or(gap.from).unwrap_or(from);
                format!(
                    "<a class=go href=\"#timeline\" data-at=\"{}\" data-for=\"{}\" data-lane=\"{}\">{}</a>",
                    facts.timeline.place(from),
                    to.saturating_sub(from),
                    facts
                        .timeline
                        .lane(&gap.host, &gap.pid, &gap.tid)
                        .map_or(-1, |lane| lane as i64),
                    when(Some(from))
                )
            }
        };
        let words =
            [&gap.buffer, &gap.pid, &gap.ring, &gap.cause].map(|string| escape_html(string));
        let last = [grouped(gap.count), from, when(gap.to)];
        table.html_row("", words.into_iter().chain(last));
    }
    let more = match facts.account.all_gaps.saturating_sub(GAPS as u64) {
        0 => String::new(),
        more => {
            format!("<p class=note>The largest {GAPS}; {} more are smaller.</p>", grouped(more))
        }
    };
    format!("<h3>Gaps</h3>\n{}{more}", table.html(""))
}
