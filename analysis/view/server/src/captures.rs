//! Which captures are shown, and how they are opened.

use std::path::{Path, PathBuf};
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
    /// The host whose clock gives the times.
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

impl Captures {
    /// Whether names may mean more files later: patterns, and names of series.
    pub(crate) fn may_become_more(&self) -> bool {
        self.open_names().next().is_some()
    }

    fn open_names(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().filter(|path| path.symlink_metadata().is_err())
    }

    /// What changes when files grow or come: lengths, and when they were written; of folders where other
    /// files may come, too.
    pub(crate) fn marks(&self, files: impl Iterator<Item = PathBuf>) -> Vec<FileMark> {
        let mark = |path: &Path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.len(), file.modified().ok()?))
        };
        let folders = self.open_names().map(|name| match name.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        });
        let folders: Vec<FileMark> = folders.map(mark).collect();
        files.map(|file| mark(&file)).chain(folders).collect()
    }
}

/// The length of a file and when it was written; None: it is not there.
pub(crate) type FileMark = Option<(u64, SystemTime)>;
