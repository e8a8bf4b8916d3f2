//! Options of the caller.

use std::ffi::OsString;
use std::path::PathBuf;

use ppt_output::Invoker;

use crate::lab::host::SelfStart;

/// Options of the caller.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// The command that starts helpers on this machine.
    pub own: SelfStart,
    /// The program that runs checks and makes reports, `ppt-analysis`, if it is installed.
    pub analysis: Option<PathBuf>,
    /// The `ppt` that captures on this machine.
    pub ppt: PathBuf,
    /// OpenSSH, and options for it: `ssh`.
    pub ssh: Vec<OsString>,
    /// The user who called sudo, if root runs this. Checks and reports run as that user.
    pub invoker: Option<Invoker>,
    /// The folder of the results [default: the first free of NAME-1, NAME-2, …].
    pub folder: Option<PathBuf>,
}
