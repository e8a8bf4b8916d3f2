//! Flame graphs: the width of a function is the number of stacks that contain it; callers are below
//! callees.

use std::fmt::Write;

use ppt_query::flame::{Flame, FlameNode, FlameRequest};
use ppt_query::text::grouped;
use ppt_query::{Engine, QueryError};

use crate::error::ReportError;
use crate::html::escape_html;

/// Pixels of a function's row, of the text above a flame, and of the margin.
const ROW: f64 = 17.0;
const ABOVE: f64 = 42.0;
const MARGIN: f64 = 16.0;
/// Pixels below which a function is not drawn.
const NARROWEST: f64 = 0.4;
/// Approximate pixels of a letter.
const LETTER: f64 = 6.6;
/// Colours of functions: light enough for black text, also in print.
const FILLS: [&str; 8] =
    ["#f2b279", "#f6c894", "#efa06b", "#f3d58a", "#eebf6c", "#e9a98e", "#f0cfa8", "#e8b95b"];

/// A requested flame graph.
#[derive(Debug, Clone)]
pub struct FlamePlot {
    /// The stacks that are drawn.
    pub request: FlameRequest,
    /// Title above the graph.
    pub title: String,
    /// Width in pixels. The height follows from the depth of the stacks.
    pub width: u32,
}

/// Draws the stacks within the slowest intervals above all others, or all stacks.
///
/// # Errors
/// The captures have no stacks, the request names an unknown frame or interval, or a query failed.
pub async fn flame(engine: &Engine, plot: &FlamePlot) -> Result<String, ReportError> {
    let flames = engine.flames(&plot.request).await?;
    let stacks = if plot.request.waits { "waits" } else { "stacks" };
    let mut all: Vec<(String, &Flame)> = Vec::new();
    match &flames.slowest {
        Some((intervals, inside)) => {
            let why = plot.request.slowest.clone().unwrap_or_default();
            let name = why.frame.or(why.field).unwrap_or_else(|| "intervals".to_owned());
            let what = format!("the {} slowest {name}", grouped(*intervals as u64));
            all.push((format!("{} {stacks} in {what}", grouped(inside.count())), inside));
            let others = &flames.others;
            all.push((format!("{} other {stacks}", grouped(others.count())), others));
        }
        None => {
            let others = &flames.others;
            all.push((format!("{} {stacks}", grouped(others.count())), others));
        }
    }
    if all.iter().all(|(_, flame)| flame.count() == 0) {
        return Err(QueryError::NoStacks.into());
    }
    Ok(svg(&plot.title, f64::from(plot.width.max(120)), &all))
}

/// An SVG with several flames, one below the other.
fn svg(title: &str, width: f64, all: &[(String, &Flame)]) -> String {
    let height = |flame: &Flame| ABOVE + ROW * flame.depth().max(1) as f64 + MARGIN;
    let top = if title.is_empty() { 0.0 } else { 30.0 };
    let whole = top + all.iter().map(|(_, flame)| height(flame)).sum::<f64>();
    let title = escape_html(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" \
         viewBox=\"0 0 {width} {whole}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    if !title.is_empty() {
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"24\" font-size=\"15\" font-weight=\"600\" \
             fill=\"#1c1e21\">{title}</text>"
        );
    }
    let mut at = top;
    for (heading, flame) in all {
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{}\" fill=\"#1c1e21\">{}</text>",
            at + ABOVE - 16.0,
            escape_html(heading)
        );
        at += height(flame);
        draw(&mut svg, flame, width, at - MARGIN);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws a flame. `bottom`: lower edge of its outermost functions, in pixels.
fn draw(svg: &mut String, flame: &Flame, width: f64, bottom: f64) {
    let all = flame.count().max(1) as f64;
    let scale = (width - 2.0 * MARGIN) / all;
    for (place, from) in places(flame) {
        let node = &flame.nodes[place];
        let across = scale * node.count as f64;
        if across < NARROWEST {
            continue;
        }
        let (x, y) = (MARGIN + scale * from as f64, bottom - ROW * node.depth as f64);
        let percent = 100.0 * node.count as f64 / all;
        let (count, name) = (grouped(node.count), escape_html(&node.function));
        let _ = write!(
            svg,
            "<g><title>{name}: {count}, {percent:.1} %</title><rect x=\"{x:.2}\" y=\"{y:.2}\" \
             width=\"{across:.2}\" height=\"{}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"/>",
            ROW - 1.0,
            fill(&node.function)
        );
        let letters = ((across - 6.0) / LETTER).floor().max(0.0) as usize;
        if letters >= 3 {
            let _ = write!(
                svg,
                "<text x=\"{:.2}\" y=\"{:.2}\" fill=\"#1c1e21\">{}</text>",
                x + 3.0,
                y + 12.0,
                escape_html(&cut(&node.function, letters))
            );
        }
        svg.push_str("</g>\n");
    }
}

/// The position of each function, in stacks from the left. Functions of one caller are sorted by name,
/// so that pictures can be compared.
fn places(flame: &Flame) -> Vec<(usize, u64)> {
    let mut called: Vec<Vec<usize>> = vec![Vec::new(); flame.nodes.len()];
    for (place, node) in flame.nodes.iter().enumerate().skip(1) {
        called[node.caller].push(place);
    }
    let name = |place: &usize| -> &FlameNode { &flame.nodes[*place] };
    called.iter_mut().for_each(|all| all.sort_by(|a, b| name(a).function.cmp(&name(b).function)));
    let (mut begins, mut placed) = (vec![0; flame.nodes.len()], Vec::new());
    // Callers precede callees.
    for (place, all) in called.iter().enumerate() {
        let mut from = begins[place];
        for &inner in all {
            begins[inner] = from;
            from += flame.nodes[inner].count;
            placed.push((inner, begins[inner]));
        }
    }
    placed
}

/// Shortens a name to `letters`, first by its module.
fn cut(function: &str, letters: usize) -> String {
    let short = function.rsplit_once(" (").map_or(function, |parts| parts.0);
    let name = if function.chars().count() <= letters { function } else { short };
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// The colour of a function, the same in all graphs.
fn fill(function: &str) -> &'static str {
    let sum =
        function.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    FILLS[sum as usize % FILLS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame_of(nodes: &[(&str, usize, usize, u64)]) -> Flame {
        let node = |&(function, caller, depth, count): &(&str, usize, usize, u64)| FlameNode {
            function: function.to_owned(),
            caller,
            depth,
            count,
        };
        Flame { nodes: nodes.iter().map(node).collect() }
    }

    #[test]
    fn functions_stand_upon_their_callers() {
        let flame = flame_of(&[
            ("", 0, 0, 10),
            ("main (a)", 0, 1, 10),
            ("save (a)", 1, 2, 6),
            ("load (a)", 1, 2, 3),
            ("malloc (libc)", 2, 3, 4),
        ]);
        // `load` precedes `save`.
        assert_eq!(places(&flame), [(1, 0), (3, 0), (2, 3), (4, 3)]);
        let svg = svg("a <title>", 132.0, &[("10 stacks".to_owned(), &flame)]);
        assert!(svg.contains("a &lt;title&gt;") && svg.contains(">10 stacks</text>"), "{svg}");
        assert!(svg.contains("<title>save (a): 6, 60.0 %</title><rect x=\"46.00\""), "{svg}");
        assert!(svg.contains("width=\"60.00\""), "{svg}");
        assert_eq!(svg.matches("<rect ").count(), 5, "one is white paper");
    }

    #[test]
    fn names_of_others_are_text() {
        let flame = flame_of(&[("", 0, 0, 1), ("<script>&\u{1b}", 0, 1, 1)]);
        let svg = svg("", 600.0, &[(String::new(), &flame)]);
        assert!(!svg.contains("<script>") && !svg.contains('\u{1b}'), "{svg}");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut("save (redis-server)", 19), "save (redis-server)");
        assert_eq!(cut("save (redis-server)", 18), "save");
        assert_eq!(cut("save (redis-server)", 3), "sa…");
    }
}
