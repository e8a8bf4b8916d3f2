//! Which points lead to which: a picture, and a table.

use ppt_query::causality::short;
use ppt_query::text::{duration, grouped};

use crate::facts::Facts;
use crate::html::{Table, text};

/// Edges that the table shows.
const MOST: usize = 200;

pub fn section(facts: &Facts) -> String {
    let Some(graph) = &facts.points else { return String::new() };
    let head = ["from", "to", "by", "count", "possible", "p50", "p99", "longest", "of the time"];
    let mut table = Table::new(&head, 3);
    for it in graph.edges.iter().take(MOST) {
        table.row([
            short(&it.from).to_owned(),
            short(&it.to).to_owned(),
            it.of.clone().unwrap_or_else(|| it.kind.clone()),
            grouped(it.count),
            grouped(it.possible),
            duration(it.p50),
            duration(it.p99),
            duration(it.max as f64),
            format!("{:.1} %", 100.0 * it.share),
        ]);
    }
    let mut lost = Table::new(&["point", "type", "side", "reason", "count"], 4);
    for it in &graph.unmatched {
        let cells = [&it.point, &it.of, &it.side, &it.reason];
        lost.row(cells.map(Clone::clone).into_iter().chain([grouped(it.count)]));
    }
    let lost = match graph.unmatched.is_empty() {
        true => String::new(),
        false => format!("<h3>Unmatched</h3>\n{}", lost.html("")),
    };
    let more = match graph.edges.len() {
        count if count > MOST => {
            format!("<p class=note>{}</p>\n", text(&format!("The first {MOST} of {count} edges.")))
        }
        _ => String::new(),
    };
    let picture = crate::points::inline(graph);
    format!(
        "<section id=points>\n<h2>Causality</h2>\n<p class=note>What leaves one point and enters \
         another one, by what identifies it. <code>ppt graph --from A --to B</code> tells the ways \
         between two.</p>\n{picture}\n{}{more}{lost}</section>\n",
        table.html("")
    )
}
