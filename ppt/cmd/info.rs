//! `ppt info out.bin`: prints what a capture contains.

use std::io::Write;

use ppt_dump::Info;
use ppt_output::{FileId, Output, Rules};

use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::{args, privileges, signals, stdout};

pub(crate) fn run(args: &args::Info) -> Outcome {
    signals::needs_stdout()?;
    let inputs = FileId::of_input(&args.capture).into_iter().collect();
    // If stdout is the capture itself, the text would damage it.
    Output::open("-".as_ref(), &Rules { inputs, ..Rules::default() })?;
    privileges::only_read(false);
    let name = args.capture.display();
    let info = Info::read(&args.capture)
        .map_err(|error| Failure::failed(error.code(), format!("{name}: {error}")))?;
    let write = |out: &mut dyn Write| match args.json {
        true => info.write_json(out),
        false => info.write_text(out),
    };
    stdout::by(write).map_err(Failure::stdout)?;
    Ok(ExitStatus::of(info.damages == 0))
}
