//! `ppt demo`: starts an example program under load, attaches to it while it runs, and asks the capture.
//!
//! Everything is real: a demo compiles the frame file, builds the programs with the machine's C
//! compiler, starts them, and runs `ppt` itself to attach and to answer. The binary contains the
//! sources, so that the demo works from any folder.

mod game;
mod programs;
mod slow;

use crate::args::{self, DemoProgram};
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use ppt_text::exit::ExitStatus;

pub(crate) fn run(args: &args::Demo) -> CommandResult {
    let shown = match args.program {
        DemoProgram::Game => game::run(args),
        DemoProgram::Slow => slow::run(args),
    };
    shown.map_err(|message| Failure::failed(Code::Demo, message))?;
    Ok(ExitStatus::DONE)
}
