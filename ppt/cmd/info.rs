//! `ppt info out.bin`: prints what a capture contains, or what readings of clocks tell.

use std::io::Write;
use std::path::Path;

use ppt_dump::{Info, SyncInfo};
use ppt_output::{FileId, Output, Rules};

use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::{args, privileges, signals, stdout};

pub(crate) fn run(args: &args::Info) -> Outcome {
    signals::needs_stdout()?;
    let inputs = args.files.iter().filter_map(|it| FileId::of_input(it)).collect();
    // If stdout is one of the inputs, the text would damage it.
    Output::open("-".as_ref(), &Rules { inputs, ..Rules::default() })?;
    privileges::only_read(false);
    match &args.files[..] {
        files if args.sync || files.iter().all(|it| SyncInfo::is_sync(it)) => clocks(args),
        [capture] => self::capture(capture, args.json),
        _ => Err(Failure::usage(
            Code::OneCapture,
            "ppt info tells of one capture; several files may be readings of clocks only",
        )),
    }
}

fn capture(capture: &Path, json: bool) -> Outcome {
    let name = capture.display();
    let info = Info::read(capture)
        .map_err(|error| Failure::failed(error.code(), format!("{name}: {error}")))?;
    let write = |out: &mut dyn Write| match json {
        true => info.write_json(out),
        false => info.write_text(out),
    };
    stdout::by(write).map_err(Failure::stdout)?;
    Ok(ExitStatus::of(info.damages == 0))
}

fn clocks(args: &args::Info) -> Outcome {
    let info = SyncInfo::read(&args.files, args.reference.as_deref())
        .map_err(|error| Failure::failed(error.code(), error.to_string()))?;
    let write = |out: &mut dyn Write| match args.json {
        true => info.write_json(out),
        false => info.write_text(out),
    };
    stdout::by(write).map_err(Failure::stdout)?;
    Ok(ExitStatus::of(true))
}
