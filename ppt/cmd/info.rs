//! `ppt info out.bin`: what is in a capture.

use std::io;
use std::process::ExitCode;

use ppt_dump::Info;
use ppt_output::{FileId, Output, Rules};

use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::{exit, privileges, report};

pub(crate) fn run(args: &args::Info) -> ExitCode {
    let inputs = FileId::of_input(&args.capture).into_iter().collect();
    // Appended to the capture, the text would spoil it.
    if let Err(error) = Output::open("-".as_ref(), &Rules { inputs, ..Rules::default() }) {
        return Failure::from(error).tell();
    }
    privileges::only_read(false);
    let name = args.capture.display();
    let info = match Info::read(&args.capture) {
        Ok(info) => info,
        Err(error) => {
            report::error(error.code(), format_args!("{name}: {error}"));
            return exit::FAILED;
        }
    };
    let stdout = io::stdout().lock();
    let written = if args.json { info.write_json(stdout) } else { info.write_text(stdout) };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            report::error(Code::CannotWrite, format_args!("cannot write to stdout: {error}"));
            exit::FAILED
        }
        _ if info.damages > 0 => exit::FAILED,
        _ => exit::DONE,
    }
}
