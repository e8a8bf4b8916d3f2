//! `ppt export --format parquet CAPTURE… -o PATH`: files that other programs open.

mod folder;
mod tables;

use std::process::ExitCode;

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

pub(crate) fn run(args: &args::Export) -> Result<ExitCode, Failure> {
    let engine = open::engine(&args.captures)?;
    let runtime = run::runtime(engine.threads())?;
    signals::end_questions();
    let work = tables::export(args, &engine);
    runtime.block_on(run::question(engine.set().watch(), work))?;
    open::tell_loss(engine.loss());
    Ok(open::tell_troubles(&engine))
}
