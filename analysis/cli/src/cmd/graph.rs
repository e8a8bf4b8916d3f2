//! `ppt graph CAPTURE… [--from A --to B]`: the graph of points, or the paths between two points.

mod columns;
mod json;
mod paths;
mod points;

use std::io::{self, Write};
use std::path::Path;

use ppt_import::frame_dsl;
use ppt_import::frame_dsl::edge::Edge;
use ppt_query::ResultFormat;
use ppt_query::graph::{GraphPaths, PointGraph, ThreadWakes};
use ppt_text::exit::ExitStatus;

use crate::args::{self, Drawing};
use crate::error::AnswerError;
use crate::{answer, message, open, run};

/// The answer.
enum GraphOutput {
    Points(PointsAnswer),
    Paths(Box<GraphPaths>),
}

/// The graph of points, and wake-ups between threads.
struct PointsAnswer {
    graph: PointGraph,
    wakes: Vec<ThreadWakes>,
}

pub(crate) fn run(args: &args::Graph) -> Result<ExitStatus, AnswerError> {
    match args.draw {
        Some(Drawing::Dot) => open::check_name(&args.to.output, "DOT")?,
        Some(Drawing::Svg) => open::check_name(&args.to.output, "SVG")?,
        None => {}
    }
    let edges = args.edges.as_deref().map(edges).transpose()?;
    let engine = open::engine_with(&args.captures(), edges)?;
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async {
        Ok(match (&args.from, &args.to_point) {
            (Some(from), Some(to)) => {
                GraphOutput::Paths(Box::new(engine.paths(from, to, args.slowest).await?))
            }
            _ => {
                let graph = engine.point_graph().await?;
                // A drawing shows points only.
                let wakes = match args.draw {
                    Some(_) => Vec::new(),
                    None => engine.thread_wakes().await?,
                };
                GraphOutput::Points(PointsAnswer { graph, wakes })
            }
        })
    };
    let answer = runtime.block_on(run::question(engine.set().watch(), work))?;
    if let GraphOutput::Points(points) = &answer {
        warn(&points.graph);
    }
    answer::publish(output, |out| write_answer(args, &answer, out))?;
    Ok(open::report_faults(&engine))
}

/// The edge lines of a file.
fn edges(path: &Path) -> Result<Vec<Edge>, AnswerError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| AnswerError::Read(name.clone(), error))?;
    frame_dsl::parse_edges(&bytes, &name)
        .map_err(|failure| AnswerError::FrameFile(name, failure.render(false)))
}

/// Warns about times that cannot be right.
fn warn(graph: &PointGraph) {
    for name in &graph.unknown {
        let text = format_args!("an edge line names `{name}`, which no capture has");
        message::warning("unknown-point", text);
    }
    for (from, to) in &graph.idle {
        let text = format_args!(
            "the edge `{from} -> {to}` says nothing: no hash type leaves `{from}` and enters `{to}`"
        );
        message::warning("idle-edge", text);
    }
    for of in graph
        .types
        .iter()
        .filter(|matching| matching.never_met() && matching.ins > 0 && matching.outs > 0)
    {
        let text = format_args!(
            "`{}` never meets: it leaves points {} times and enters them {} times, and nothing of that \
             is an edge",
            of.of, of.outs, of.ins
        );
        message::warning("never-meets", text);
    }
}

fn write_answer(
    args: &args::Graph,
    answer: &GraphOutput,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    if let (Some(drawing), GraphOutput::Points(PointsAnswer { graph, .. })) = (args.draw, answer) {
        let text = match drawing {
            Drawing::Dot => ppt_report::points::dot(graph),
            Drawing::Svg => ppt_report::points::svg(graph),
        };
        return out.write_all(text.as_bytes());
    }
    let format = answer::format(args.format.as_deref(), &args.to.output)?;
    match (format, answer) {
        (None, GraphOutput::Points(all)) => points::write(&all.graph, &all.wakes, out),
        (None, GraphOutput::Paths(paths)) => paths::write(paths, out),
        (Some(ResultFormat::Json), GraphOutput::Points(all)) => {
            json::points(&all.graph, &all.wakes, out)
        }
        (Some(ResultFormat::Json), GraphOutput::Paths(paths)) => json::paths(paths, out),
        (Some(format), GraphOutput::Points(all)) => {
            answer::write_rows(points::rows(&all.graph), format, out)
        }
        (Some(format), GraphOutput::Paths(paths)) => {
            answer::write_rows(paths::rows(paths), format, out)
        }
    }
}
