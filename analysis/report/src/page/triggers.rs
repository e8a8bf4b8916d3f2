//! Why a flight recorder wrote this.

use super::parts::into_timeline;
use crate::facts::Facts;
use crate::html::{Table, text};

pub fn section(facts: &Facts) -> String {
    if facts.triggers.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["at", "why", "expression", "buffer", "seqno", "note"], 0);
    for it in &facts.triggers {
        let at = it.ts.saturating_sub(facts.timeline.origin);
        let at = into_timeline(facts, (it.ts, 0), None, &format!("{:.6} s", at as f64 / 1e9));
        let others = [&it.why, &it.expression, &it.buffer, &it.seqno, &it.note];
        table.html_row("", [at].into_iter().chain(others.map(|it| text(it))));
    }
    format!(
        "<section id=triggers>\n<h2>Triggers</h2>\n<p class=note>The flight recorder wrote these \
         captures because of them. The timeline has a mark for each.</p>\n{}</section>\n",
        table.html("slow")
    )
}
