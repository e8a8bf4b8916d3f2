//! The triggers of the flight recorder.

use super::parts::into_timeline;
use crate::facts::Facts;
use crate::html::{HtmlTable, escape_html};

pub fn section(facts: &Facts) -> String {
    if facts.triggers.is_empty() {
        return String::new();
    }
    let mut table = HtmlTable::new(&["at", "why", "expression", "buffer", "seqno", "note"], 0);
    for trigger in &facts.triggers {
        let at = trigger.ts.saturating_sub(facts.timeline.origin);
        let at = into_timeline(facts, (trigger.ts, 0), None, &format!("{:.6} s", at as f64 / 1e9));
        let others =
            [&trigger.why, &trigger.expression, &trigger.buffer, &trigger.seqno, &trigger.note];
        table.html_row("", [at].into_iter().chain(others.map(|string| escape_html(string))));
    }
    format!(
        "<section id=triggers>\n<h2>Triggers</h2>\n<p class=note>The flight recorder wrote these \
         captures because of them. The timeline has a mark for each.</p>\n{}</section>\n",
        table.html("slow")
    )
}
