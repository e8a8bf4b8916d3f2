//! `ppt plot CAPTURE… 'SELECT …' -o x.svg`: the answer to a query as a picture, or with `--flame`,
//! stacks.

use std::io::Write;

use ppt_query::flame::FlameRequest;
use ppt_query::why::WhyQuestion;
use ppt_report::{FlamePlot, Plot, PlotForm};
use ppt_text::exit::ExitStatus;

use super::input::SqlWords;
use crate::args;
use crate::error::AnswerError;
use crate::{answer, open, run};

pub(crate) fn run(args: &args::Plot) -> Result<ExitStatus, AnswerError> {
    let SqlWords { queries, captures } = SqlWords::split(&args.captures.captures);
    let query = match (&queries[..], args.flame) {
        ([query], false) => Some(query.to_string_lossy()),
        ([], true) => None,
        (_, true) => {
            return Err(AnswerError::Usage("--flame draws stacks, and takes no query".into()));
        }
        (_, false) => {
            return Err(AnswerError::Usage(
                "give captures and one query: ppt plot out.bin 'SELECT …' -o x.svg".into(),
            ));
        }
    };
    open::check_name(&args.to.output, "SVG")?;
    open::not_on_terminal(&args.to.output, "a picture")?;
    let kind =
        args.kind.as_deref().map(str::parse::<PlotForm>).transpose().map_err(AnswerError::Usage)?;
    let (width, height) = (args.width, args.height);
    let plot = Plot { kind, title: args.title.clone(), width, height, ..Plot::default() };
    let engine = open::engine(&super::input::with_captures(captures, &args.captures))?;
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async {
        Ok(match &query {
            Some(query) => ppt_report::plot(&engine, query, &plot).await?,
            None => ppt_report::flame(&engine, &flame(args)).await?,
        })
    };
    let svg = runtime.block_on(run::question(engine.set().watch(), work))?;
    answer::publish(output, |out| out.write_all(svg.as_bytes()))?;
    Ok(open::report_faults(&engine))
}

/// Default number of slowest intervals.
const SLOWEST: usize = 100;

/// The requested flame graph.
fn flame(args: &args::Plot) -> FlamePlot {
    let of_intervals = args.frame.is_some() || args.field.is_some() || args.slowest.is_some();
    let slowest = (of_intervals || args.filter.is_some()).then(|| WhyQuestion {
        frame: args.frame.clone(),
        field: args.field.clone(),
        filter: args.filter.clone(),
        slowest: args.slowest.unwrap_or(SLOWEST),
        show: Vec::new(),
    });
    let request = FlameRequest { slowest, waits: args.waits };
    FlamePlot { request, title: args.title.clone(), width: args.width }
}
