//! The captures of a session: opening them, and noticing that they grow.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ppt_query::{CaptureSet, Engine, EngineOptions, Window};

use crate::error::ServeError;

/// A set of captures, and how to open it.
#[derive(Debug, Clone, Default)]
pub struct Captures {
    /// Paths of files, patterns, or paths of rotated captures.
    pub paths: Vec<PathBuf>,
    /// Paths of files with readings of clocks.
    pub sync: Vec<PathBuf>,
    /// The host whose clock gives the times.
    pub reference: Option<String>,
    /// The most bytes of a query, and of frames that are read. The defaults are half of the free memory, and
    /// 256 MiB.
    pub memory: Option<usize>,
    /// The number of threads that read.
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
    /// Whether more files may match later, because a path is a pattern or a series.
    pub(crate) fn may_match_more(&self) -> bool {
        self.patterns().next().is_some()
    }

    /// The paths that are not files.
    fn patterns(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().filter(|path| path.symlink_metadata().is_err())
    }

    /// The marks of files, and of folders in which more files may appear. They change when files grow or
    /// appear.
    pub(crate) fn marks(&self, files: impl Iterator<Item = PathBuf>) -> Vec<FileMark> {
        let mark = |path: &Path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.len(), file.modified().ok()?))
        };
        let folders = self.patterns().map(|name| match name.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        });
        let folders: Vec<FileMark> = folders.map(mark).collect();
        files.map(|file| mark(&file)).chain(folders).collect()
    }
}

/// The length of a file and the time of its last change. None if it does not exist.
pub(crate) type FileMark = Option<(u64, SystemTime)>;
