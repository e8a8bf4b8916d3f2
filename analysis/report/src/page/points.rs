//! The graph of points: a drawing and a table.

use ppt_query::causality::short;
use ppt_query::text::{duration, grouped};

use crate::facts::Facts;
use crate::html::{HtmlTable, escape_html};

/// Maximum number of edges in the table.
const MAX_EDGES: usize = 200;

pub fn section(facts: &Facts) -> String {
    let Some(graph) = &facts.points else { return String::new() };
    let head = ["from", "to", "by", "count", "possible", "p50", "p99", "longest", "of the time"];
    let mut table = HtmlTable::new(&head, 3);
    for edge in graph.edges.iter().take(MAX_EDGES) {
        table.row([
            short(&edge.from).to_owned(),
            short(&edge.to).to_owned(),
            edge.of.clone().unwrap_or_else(|| edge.kind.clone()),
            grouped(edge.count),
            grouped(edge.possible),
            duration(edge.p50),
            duration(edge.p99),
            duration(edge.max as f64),
            format!("{:.1} %", 100.0 * edge.share),
        ]);
    }
    let mut lost = HtmlTable::new(&["point", "type", "side", "reason", "count"], 4);
    for unmatched in &graph.unmatched {
        let cells = [&unmatched.point, &unmatched.of, &unmatched.side, &unmatched.reason];
        lost.row(cells.map(Clone::clone).into_iter().chain([grouped(unmatched.count)]));
    }
    let lost = if graph.unmatched.is_empty() {
        String::new()
    } else {
        format!("<h3>Unmatched</h3>\n{}", lost.html(""))
    };
    let more = match graph.edges.len() {
        count if count > MAX_EDGES => {
            format!(
                "<p class=note>{}</p>\n",
                escape_html(&format!("The first {MAX_EDGES} of {count} edges."))
            )
        }
        _ => String::new(),
    };
    let picture = crate::points::inline(graph);
    format!(
        "<section id=points>\n<h2>Causality</h2>\n<p class=note>Messages and tasks that leave one point and enter \
         another, by their identities. <code>ppt graph --from A --to B</code> shows the paths \
         between two points.</p>\n{picture}\n{}{more}{lost}</section>\n",
        table.html("")
    )
}
