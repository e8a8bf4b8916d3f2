//! `ppt why CAPTURE…`: where the slowest intervals spent their time.

mod alike;
mod json;
mod part_text;
mod rows;
mod summary;
mod text;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use ppt_query::arrow::array::RecordBatch;
use ppt_query::arrow::error::ArrowError;
use ppt_query::why::{WhyAnswer, WhyQuestion};
use ppt_query::{Encoder, ResultFormat};

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

pub(crate) fn run(args: &args::WhyArgs) -> Result<ExitCode, Failure> {
    let engine = open::engine(&args.captures)?;
    let why = WhyQuestion {
        frame: args.frame.clone(),
        field: args.field.clone(),
        filter: args.filter.clone(),
        slowest: args.slowest,
        show: args.show.clone(),
    };
    signals::end_questions();
    let mut output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async { Ok(engine.why(&why).await?) };
    let answer = runtime.block_on(run::question(engine.set().watch(), work))?;
    let name = output.name();
    let mut out = BufWriter::new(output.file());
    write_answer(args, &answer, &mut out).map_err(Failure::writing(&name))?;
    drop(out);
    output.publish()?;
    open::warn_of_loss(&engine);
    Ok(open::report_faults(&engine))
}

fn write_answer(
    args: &args::WhyArgs,
    answer: &WhyAnswer,
    mut out: impl Write + Send,
) -> io::Result<()> {
    let on_terminal = args.to.output.as_os_str() == "-" && io::stdout().is_terminal();
    let by_extension = open::format_by_extension(&args.to.output);
    let format = match args.format.as_deref() {
        Some("text") => None,
        Some(word) => Some(word.parse::<ResultFormat>().map_err(io::Error::other)?),
        None if on_terminal => None,
        None => Some(by_extension.unwrap_or(ResultFormat::Tsv)),
    };
    match format {
        None => text::write(answer, args.summary, &mut out)?,
        Some(ResultFormat::Json) if args.summary => summary::write_json(&answer.tails, &mut out)?,
        Some(ResultFormat::Json) => json::write(&answer.slowest, &mut out)?,
        Some(format) if args.summary => {
            write_rows(summary::batch(&answer.tails), format, &mut out)?;
        }
        Some(format) => write_rows(rows::batch(&answer.slowest), format, &mut out)?,
    }
    out.flush()
}

fn write_rows(
    batch: Result<RecordBatch, ArrowError>,
    format: ResultFormat,
    out: impl Write + Send,
) -> io::Result<()> {
    let batch = batch.map_err(io::Error::other)?;
    let mut encoder = Encoder::new(out, format, &batch.schema())?;
    encoder.write(&batch)?;
    encoder.finish()?;
    Ok(())
}
