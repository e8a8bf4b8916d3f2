//! How this program starts itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The command that starts this program in another role: its path and the arguments before those of
/// `lab::host`.
#[derive(Debug, Clone)]
pub struct SelfStart {
    /// The program.
    pub program: PathBuf,
    /// The first arguments: `lab host`.
    pub words: Vec<OsString>,
}

impl SelfStart {
    pub(crate) fn command(&self, role: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words).arg(role);
        command
    }
}
