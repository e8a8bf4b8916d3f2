//! `ppt export --format parquet CAPTURE… -o PATH`: files that other programs open.

mod folder;
mod follow;
mod store;
mod tables;
mod traces;

use std::process::ExitCode;

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

pub(crate) fn run(args: &args::Export) -> Result<ExitCode, Failure> {
    if args.for_spreadsheet && args.format != args::ExportFormat::Csv {
        return Err(Failure::not_for_spreadsheets());
    }
    if args.follow.follow {
        return follow::run(args);
    }
    if args::is_address(&args.to.output.to_string_lossy()) {
        let why = "an object store gets files by --follow alone: name a file, and copy it with the tools \
                   of the store";
        return Err(Failure::Usage(why.to_owned()));
    }
    let engine = open::engine(&args.captures)?;
    let runtime = run::runtime(engine.threads())?;
    signals::end_questions();
    let trace = traces::form(args.format);
    let work = async {
        match trace {
            Some(form) => traces::export(form, args, &engine).await,
            None => tables::export(args, &engine).await,
        }
    };
    runtime.block_on(run::question(engine.set().watch(), work))?;
    Ok(open::report_faults(&engine))
}
