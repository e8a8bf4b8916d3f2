//! The errors of a helper.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a helper ended.
#[derive(Debug, Error)]
pub enum HostError {
    /// The arguments are reserved for `ppt lab`.
    #[error("`lab host` is started by `ppt lab run`, which gives it its arguments")]
    Arguments,
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// The operation.
        what: &'static str,
        /// Why it failed.
        cause: io::Error,
    },
    /// A program cannot be executed.
    #[error("cannot run {}: {cause}", program.display())]
    Exec {
        /// The program.
        program: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

pub(super) fn cannot<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> HostError {
    move |cause| HostError::System { what, cause: cause.into() }
}
