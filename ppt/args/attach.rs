//! Arguments of `ppt attach`, `ppt run` and `ppt detach`.

use std::ffi::OsString;

use clap::Args as ClapArgs;
use clap::builder::NonEmptyStringValueParser;

use super::capture::{Allow, CaptureArgs};
use super::processes::{ProcessChoice, Processes};
use super::with::PreloadSource;

#[derive(ClapArgs)]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(super) processes: Processes,
    /// Wait for a process of this name that has ppt buffers.
    #[arg(long, value_name = "NAME", group = "which")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(super) wait_for: Option<String>,
    /// Also capture the children that the process forks: existing and future ones.
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

impl Attach {
    pub(crate) fn choice(&self) -> ProcessChoice<'_> {
        self.wait_for.as_deref().map_or_else(|| self.processes.choice(), ProcessChoice::WaitFor)
    }
}

#[derive(ClapArgs)]
pub(crate) struct RunArgs {
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    /// Preload a library that writes frames from inside of programs that nobody edited: `net` has their
    /// requests, `locks` their waits for locks, `files` their operations on files.
    #[arg(long, value_name = "SOURCES", value_delimiter = ',')]
    pub(crate) with: Vec<PreloadSource>,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

#[derive(ClapArgs)]
pub(crate) struct Detach {
    #[command(flatten)]
    pub(crate) processes: Processes,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    pub(crate) buffers: Vec<String>,
    /// Proceed despite a safety check (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) allow: Vec<Allow>,
}
