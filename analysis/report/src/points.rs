//! The graph of points, drawn.

use std::fmt::Write;

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::geometry::Point as Size;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;
use ppt_query::graph::{PointEdge, PointGraph};
use ppt_query::text::{duration, grouped};

/// The graph in the language of Graphviz.
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

/// The graph as a picture.
pub fn svg(graph: &PointGraph) -> String {
    let mut drawn = VisualGraph::new(Orientation::LeftToRight);
    // Begins and ends of spans are no points.
    let mut names: Vec<&str> = graph.points.iter().map(|it| it.name.as_str()).collect();
    for name in graph.edges.iter().flat_map(|it| [&it.from, &it.to]) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let style = StyleAttr::simple;
    let nodes: Vec<_> = names
        .iter()
        .map(|name| {
            let frames = graph.points.iter().find(|it| it.name == *name);
            let text = match frames {
                Some(point) => format!("{name}\n{}", grouped(point.frames)),
                None => (*name).to_owned(),
            };
            let size = Size::new(12.0 * name.chars().count().max(6) as f64, 50.0);
            let shape = ShapeKind::new_box(&text);
            drawn.add_node(Element::create(shape, style(), Orientation::LeftToRight, size))
        })
        .collect();
    for edge in &graph.edges {
        let place = |name: &str| names.iter().position(|it| *it == name);
        let (Some(from), Some(to)) = (place(&edge.from), place(&edge.to)) else { continue };
        drawn.add_edge(Arrow::simple(&label(edge)), nodes[from], nodes[to]);
    }
    let mut writer = SVGWriter::new();
    drawn.do_it(false, false, false, &mut writer);
    writer.finalize()
}

fn label(edge: &PointEdge) -> String {
    format!("{}, p50 {}", grouped(edge.count), duration(edge.p50))
}

/// Text as Graphviz reads it.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}
