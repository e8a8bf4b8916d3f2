//! The graph of points as a drawing.

use std::fmt::Write;

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::geometry::Point as Size;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;
use ppt_query::graph::{PointEdge, PointGraph};
use ppt_query::text::{duration, grouped};
use ppt_text::escaped_lines;

/// The graph in the DOT language of Graphviz.
pub fn dot(graph: &PointGraph) -> String {
    let mut text = String::from("digraph points {\n  rankdir=LR;\n  node [shape=box];\n");
    for point in &graph.points {
        let frames = grouped(point.frames);
        let _ = writeln!(
            text,
            "  {} [label={}];",
            quoted(&point.name),
            quoted(&format!("{}\n{frames}", point.name))
        );
    }
    for edge in &graph.edges {
        let (from, to, label) = (quoted(&edge.from), quoted(&edge.to), quoted(&label(edge)));
        let style = if edge.possible == edge.count { ", style=dashed" } else { "" };
        let _ = writeln!(text, "  {from} -> {to} [label={label}{style}];");
    }
    text + "}\n"
}

/// Maximum number of edges and of points in a drawing. The most frequent edges come first; larger
/// drawings take too long and are hard to read.
pub(crate) const MAX_DRAWN: usize = 40;

/// Draws the most frequent edges of the graph as a complete SVG.
pub fn svg(graph: &PointGraph) -> String {
    let mut drawn = VisualGraph::new(Orientation::LeftToRight);
    // Begins and ends of spans are not points.
    let mut names: Vec<&str> = graph.points.iter().map(|point| point.name.as_str()).collect();
    let edges = &graph.edges[..graph.edges.len().min(MAX_DRAWN)];
    if names.len() > MAX_DRAWN {
        names.clear();
    }
    for name in edges.iter().flat_map(|edge| [&edge.from, &edge.to]) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"></svg>\n"
            .to_owned();
    }
    let style = StyleAttr::simple;
    let nodes: Vec<_> = names
        .iter()
        .map(|name| {
            let frames = graph.points.iter().find(|point| point.name == *name);
            let text = match frames {
                Some(point) => format!("{name}\n{}", grouped(point.frames)),
                None => (*name).to_owned(),
            };
            let size = Size::new(12.0 * name.chars().count().max(6) as f64, 50.0);
            let shape = ShapeKind::new_box(&text);
            drawn.add_node(Element::create(shape, style(), Orientation::LeftToRight, size))
        })
        .collect();
    for edge in edges {
        let place = |name: &str| names.iter().position(|text| *text == name);
        let (Some(from), Some(to)) = (place(&edge.from), place(&edge.to)) else { continue };
        drawn.add_edge(Arrow::simple(&label(edge)), nodes[from], nodes[to]);
    }
    let mut writer = SVGWriter::new();
    drawn.do_it(false, false, false, &mut writer);
    writer.finalize()
}

/// The drawing as part of a page, whose policy forbids style attributes.
pub(crate) fn inline(graph: &PointGraph) -> String {
    let whole = svg(graph);
    let body = whole.find("<svg").map_or("", |at| &whole[at..]);
    match (body.find("<style"), body.find("</style>")) {
        (Some(from), Some(to)) => format!("{}{}", &body[..from], &body[to + "</style>".len()..]),
        _ => body.to_owned(),
    }
}

fn label(edge: &PointEdge) -> String {
    format!("{}, p50 {}", grouped(edge.count), duration(edge.p50))
}

/// A quoted string of the DOT language.
fn quoted(text: &str) -> String {
    let text = escaped_lines(text);
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use ppt_query::graph::GraphPoint;

    use super::*;

    fn graph(points: usize, edges: &[(usize, usize)]) -> PointGraph {
        let name = |point: usize| format!("b.p{point}");
        let edge = |&(from, to): &(usize, usize)| PointEdge {
            from: name(from),
            to: name(to),
            kind: "hash".to_owned(),
            of: Some("id".to_owned()),
            policy: Some("all".to_owned()),
            count: 3,
            possible: 3,
            time: 30,
            share: 1.0,
            min: 5,
            max: 20,
            p50: 10.0,
            p99: 20.0,
        };
        PointGraph {
            points: (0..points)
                .map(|index| GraphPoint { name: name(index), frames: 7, processes: 1 })
                .collect(),
            edges: edges.iter().map(edge).collect(),
            unmatched: Vec::new(),
            types: Vec::new(),
            unknown: Vec::new(),
            idle: Vec::new(),
        }
    }

    /// Edges to the same point, in circles, to a missing point, and parallel ones.
    #[test]
    fn every_graph_is_drawn() {
        let all: Vec<(usize, usize)> =
            (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).collect();
        let long: Vec<(usize, usize)> = (0..60).map(|index| (index, (index + 1) % 60)).collect();
        let cases: [(usize, &[(usize, usize)]); 6] = [
            (0, &[]),
            (1, &[(0, 0)]),
            (2, &[(0, 1), (1, 0), (0, 1)]),
            (1, &[(0, 5)]),
            (6, &all),
            (60, &long),
        ];
        for (points, edges) in cases {
            let graph = graph(points, edges);
            let svg = svg(&graph);
            let drawn = svg.matches("b.p").count();
            assert!(drawn >= points.min(MAX_DRAWN), "{drawn} of {points}");
            assert!(svg.trim_end().ends_with("</svg>"), "{points} {edges:?}");
            assert!(!inline(&graph).contains("<style"));
            assert_eq!(dot(&graph).matches(" -> ").count(), edges.len());
        }
    }
}
