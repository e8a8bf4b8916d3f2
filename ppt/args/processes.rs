//! The processes that a command is about.

use std::num::ParseIntError;

use clap::Args as ClapArgs;
use clap::builder::NonEmptyStringValueParser;

/// The processes, named in exactly one way.
#[derive(ClapArgs)]
#[group(id = "which", required = true, multiple = false)]
pub(crate) struct Processes {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid_or_hint)]
    pub(super) pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid_or_hint)]
    pub(super) pid_option: Option<i32>,
    /// The process of this name that has ppt buffers; it must be the only one.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) name: Option<String>,
    /// Every process that has ppt buffers and that you may attach to.
    #[arg(long)]
    pub(super) all: bool,
}

/// Reads a pid. Who writes a name instead learns how to name a process.
fn pid_or_hint(text: &str) -> Result<i32, String> {
    read_pid(text, &format!("for the process of this name: --name {text}"))
}

/// Reads a pid, for a command that takes no name.
pub(super) fn pid(text: &str) -> Result<i32, String> {
    read_pid(text, "`ppt list` shows the pid of each process that has ppt buffers")
}

/// Reads a pid. The hint is for those who write a word instead.
fn read_pid(text: &str, hint: &str) -> Result<i32, String> {
    let is_word = text.chars().any(char::is_alphabetic);
    text.parse().map_err(|error: ParseIntError| {
        if is_word { format!("a pid is a number; {hint}") } else { error.to_string() }
    })
}

/// The selected processes.
#[derive(Clone, Copy)]
pub(crate) enum ProcessChoice<'a> {
    /// This one.
    Pid(i32),
    /// The one of this name.
    Name(&'a str),
    /// The one of this name, as soon as there is one.
    WaitFor(&'a str),
    /// Every one that there is.
    All,
}

impl Processes {
    pub(crate) fn choice(&self) -> ProcessChoice<'_> {
        match (&self.name, self.all) {
            (Some(name), _) => ProcessChoice::Name(name),
            (None, true) => ProcessChoice::All,
            // Without a name there is a number, or nothing at all was asked for.
            (None, false) => ProcessChoice::Pid(self.pid.or(self.pid_option).unwrap_or_default()),
        }
    }
}
