//! Why a capture could not begin.

use std::io;

use nix::errno::Errno;
use strum::VariantNames;
use thiserror::Error;

/// Why a listener could not start. Later failures end the capture: see [`crate::Progress::ended`].
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ListenerError {
    /// The first bytes of the capture could not be written.
    #[strum(serialize = "cannot-write")]
    #[error("the capture cannot be written: {0}")]
    Output(#[source] io::Error),
    /// The caller's description of the feeds contradicts itself.
    #[strum(serialize = "bug")]
    #[error("feed {feed}: {what}")]
    Feed {
        /// The feed, from 0.
        feed: usize,
        /// The contradiction.
        what: &'static str,
    },
    /// The capture has the maximum number of sources, [`MAX_SOURCES`](ppt_capture::MAX_SOURCES).
    #[strum(serialize = "too-many-sources")]
    #[error("a capture holds at most 4,096 buffers of processes")]
    TooManySources,
    /// A thread could not be started.
    #[strum(serialize = "system")]
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    /// eventfd(2) failed.
    #[strum(serialize = "system")]
    #[error("an eventfd cannot be made: {0}")]
    Wake(#[source] Errno),
}

impl ListenerError {
    /// The short name of the message, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// Every code.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_named_is_the_one_that_holds() {
        assert!(ListenerError::TooManySources.to_string().contains("4,096"));
        assert_eq!(ppt_capture::MAX_SOURCES, 4096);
    }
}
