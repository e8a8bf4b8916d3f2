//! `ppt stat CAPTURE…`: statistics of frames and their fields.

mod drawn;
mod json;
mod rows;
mod text;
mod totals;

use std::io::{self, Write};

use ppt_query::summary::{FrameSummary, SummaryRequest};
use ppt_query::{Engine, ResultFormat, Total};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::{answer, open, question_settings, run};

/// Bytes of values without `--memory`.
const VALUES: usize = 1 << 30;

pub(crate) fn run(args: &args::Stat) -> Result<ExitStatus, AnswerError> {
    let engine = open::engine(&args.captures)?;
    let memory = question_settings::memory(args.captures.memory).of_values(VALUES);
    let request = SummaryRequest {
        frame: args.frame.clone(),
        spans_and_chains: true,
        fields: args.field.clone(),
        by: args.by.clone(),
        every: args.every,
        filter: args.filter.clone(),
        self_time: args.self_time,
        memory,
        spread: args.hist.clone(),
    };
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async { Ok(engine.summary(&request).await?) };
    let frames = runtime.block_on(run::question(engine.set().watch(), work))?;
    let totals = if is_of_all(args) { engine.totals()? } else { Vec::new() };
    answer::publish(output, |out| write_answer(args, &request, &engine, (&frames, &totals), out))?;
    Ok(open::report_faults(&engine))
}

/// Whether everything is requested: counters and histograms belong to no frame and no group.
fn is_of_all(args: &args::Stat) -> bool {
    let args::Captures { from, to, .. } = &args.captures;
    let one = args.frame.is_some() || !args.field.is_empty() || args.filter.is_some();
    let parts = !args.by.is_empty() || args.every.is_some() || from.is_some() || to.is_some();
    !one && !parts
}

fn write_answer(
    args: &args::Stat,
    request: &SummaryRequest,
    engine: &Engine,
    (frames, totals): (&[FrameSummary], &[Total]),
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    match answer::format(args.format.as_deref(), &args.to.output)? {
        _ if args.hist.is_some() => drawn::write(frames, out),
        None => {
            text::write(frames, request, engine.loss(), out)?;
            totals::write(totals, out)
        }
        Some(ResultFormat::Json) => json::write((frames, totals), request, out),
        Some(format) => {
            let rows = rows::batch((frames, totals), request, format.is_binary());
            answer::write_rows(rows, format, out)
        }
    }
}
