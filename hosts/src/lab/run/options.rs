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
    /// The `ppt` that answers checks and makes reports, unless no such one is there.
    pub answers: Option<PathBuf>,
    /// The `ppt` that captures on this machine.
    pub ppt: PathBuf,
    /// OpenSSH, and options for it: `ssh`.
    pub ssh: Vec<OsString>,
    /// The user who called sudo, if root runs this. Checks and reports run as that user.
    pub invoker: Option<Invoker>,
    /// The folder of the results [default: the first free of NAME-1, NAME-2, …].
    pub folder: Option<PathBuf>,
}
