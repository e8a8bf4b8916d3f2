//! `ppt why CAPTURE…`: where the slowest intervals spent their time.

mod alike;
mod json;
mod part_text;
mod rows;
mod summary;
mod text;

use std::io::{self, Write};

use ppt_query::ResultFormat;
use ppt_query::why::{WhyAnswer, WhyQuestion};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::{answer, open, run};

pub(crate) fn run(args: &args::WhyArgs) -> Result<ExitStatus, AnswerError> {
    let engine = open::engine(&args.captures)?;
    let why = WhyQuestion {
        frame: args.frame.clone(),
        field: args.field.clone(),
        filter: args.filter.clone(),
        slowest: args.slowest,
        show: args.show.clone(),
    };
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async { Ok(engine.why(&why).await?) };
    let answer = runtime.block_on(run::question(engine.set().watch(), work))?;
    answer::publish(output, |out| write_answer(args, &answer, out))?;
    Ok(open::report_faults(&engine))
}

fn write_answer(
    args: &args::WhyArgs,
    answer: &WhyAnswer,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    match answer::format(args.format.as_deref(), &args.to.output)? {
        None => text::write(answer, args.summary, out),
        Some(ResultFormat::Json) if args.summary => summary::write_json(&answer.tails, out),
        Some(ResultFormat::Json) => json::write(&answer.slowest, out),
        Some(format) if args.summary => {
            answer::write_rows(summary::batch(&answer.tails), format, out)
        }
        Some(format) => answer::write_rows(rows::batch(&answer.slowest), format, out),
    }
}
