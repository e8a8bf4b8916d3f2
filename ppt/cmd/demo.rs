//! `ppt demo`: starts an example program under load, attaches to it while it runs, and asks the capture.
//!
//! Everything is real: a demo compiles the frame file, builds the programs with the machine's C
//! compiler, starts them, and runs `ppt` itself to attach and to answer. The binary contains the
//! sources, so that the demo works from any folder.

mod game;
mod programs;
mod slow;

use std::io::{self, IsTerminal};
use std::path::Path;

use ppt_text::exit::ExitStatus;

use crate::args::{self, DemoProgram};
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::report;

pub(crate) fn run(args: &args::Demo) -> CommandResult {
    let captured = match args.program {
        DemoProgram::Game => game::run(args),
        DemoProgram::Slow => slow::run(args),
    };
    let shown = captured.and_then(|capture| offer_view(&capture));
    shown.map_err(|message| Failure::failed(Code::Demo, message))?;
    Ok(ExitStatus::DONE)
}

/// On a terminal, shows the capture as a timeline if the user wants that, until Ctrl-C.
fn offer_view(capture: &Path) -> Result<(), String> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Ok(());
    }
    report::line("Enter shows the capture as a timeline in the browser; Ctrl-C ends that");
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(count) if count > 0 => programs::ppt(&["view", programs::text(capture)?])?.wait(),
        _ => Ok(()),
    }
}
