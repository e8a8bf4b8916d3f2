//! Which captures are shown, and how they are opened.

use std::path::PathBuf;
use std::time::SystemTime;

use ppt_query::{CaptureSet, Engine, EngineOptions, Window};

use crate::error::ServeError;

/// Captures that are shown together.
#[derive(Debug, Clone, Default)]
pub struct Captures {
    /// Files, patterns, names of rotated ones.
    pub paths: Vec<PathBuf>,
    /// Readings of clocks.
    pub sync: Vec<PathBuf>,
    /// The host by whose clock times are told.
    pub reference: Option<String>,
    /// Bytes that a question may take, and frames that are read [default: half of what is free, and 256 MiB].
    pub memory: Option<usize>,
    /// Threads that read.
    pub threads: usize,
}

impl Captures {
    pub(crate) fn open(&self) -> Result<CaptureSet, ServeError> {
        let set = CaptureSet::open(&self.paths)?;
        Ok(set.align(&self.sync, self.reference.as_deref())?)
    }

    pub(crate) fn engine(&self, window: Window) -> Result<Engine, ServeError> {
        let (memory, threads) = (self.memory, self.threads);
        let options = EngineOptions { memory, threads, window, ..EngineOptions::default() };
        Ok(Engine::new(self.open()?, &options)?)
    }
}

/// What changes when a file grows: its length, and when it was written.
pub(crate) fn marks(paths: impl Iterator<Item = PathBuf>) -> Vec<Option<(u64, SystemTime)>> {
    let mark = |path: PathBuf| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.len(), file.modified().ok()?))
    };
    paths.map(mark).collect()
}
