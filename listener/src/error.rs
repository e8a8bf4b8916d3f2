//! Why a capture could not begin.

use std::io;

use nix::errno::Errno;
use thiserror::Error;

/// Why a listener could not start. Later failures end the capture: see [`crate::Ended`].
#[derive(Debug, Error)]
pub enum ListenerError {
    /// The first bytes of the capture could not be written.
    #[error("the capture cannot be written: {0}")]
    Output(#[source] io::Error),
    /// The caller's description of the feeds contradicts itself.
    #[error("feed {feed}: {what}")]
    Feed {
        /// Which one, from 0.
        feed: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    /// eventfd(2) failed.
    #[error("an eventfd cannot be made: {0}")]
    Wake(#[source] Errno),
}
