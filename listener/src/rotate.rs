//! A capture in consecutive files, each of them complete.

use std::fmt;
use std::io;
use std::time::Duration;

use ppt_capture::FileHeader;

/// The source of the files of a capture.
pub trait CaptureFiles<W>: Send {
    /// Opens the next file. After an error the capture ends.
    ///
    /// # Errors
    /// The file cannot be created.
    fn next(&mut self) -> io::Result<(W, FileHeader)>;

    /// The last opened file now describes its sources, so it is worth keeping.
    ///
    /// # Errors
    /// The file cannot get its name.
    fn begun(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The previous file has its end, or will never have one.
    fn ended(&mut self) {}

    /// Opens a file to continue in, because a write failed with `error`. `None` if that does not
    /// help. The previous file stays as it is, without an end.
    fn instead(&mut self, error: &io::Error) -> Option<io::Result<(W, FileHeader)>> {
        let _ = error;
        None
    }
}

/// The rule for beginning another file, and the opener of files. A file without a frame continues.
pub struct Rotation<W> {
    /// Begin one after this time.
    pub every: Option<Duration>,
    /// Begin one before a file grows beyond this size in bytes; one chunk is written in any case.
    pub size: Option<u64>,
    /// The number of files that are kept, as the files state. `None`: all. [`Self::files`] removes
    /// the others.
    pub keep: Option<u32>,
    /// Opens the files after the first.
    pub files: Box<dyn CaptureFiles<W>>,
}

impl<W> fmt::Debug for Rotation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug_struct = f.debug_struct("Rotation");
        debug_struct
            .field("every", &self.every)
            .field("size", &self.size)
            .field("keep", &self.keep);
        debug_struct.finish_non_exhaustive()
    }
}

/// For a capture that is discarded: it restarts from time to time, so that it does not accumulate
/// sources that have ended.
pub fn nowhere() -> Rotation<io::Sink> {
    struct Nowhere;
    impl CaptureFiles<io::Sink> for Nowhere {
        fn next(&mut self) -> io::Result<(io::Sink, FileHeader)> {
            Ok((io::sink(), FileHeader::default()))
        }
    }
    Rotation { every: None, size: Some(1 << 30), keep: None, files: Box::new(Nowhere) }
}

impl<W> Rotation<W> {
    /// Whether another file is begun without a failure.
    pub(crate) fn is_wanted(&self) -> bool {
        self.every.is_some() || self.size.is_some()
    }

    /// The time limit of a file that begins now.
    pub(crate) fn deadline(&self) -> u64 {
        let every = self.every.map_or(u64::MAX, |every| every.as_nanos() as u64);
        ppt_now::monotonic().saturating_add(every)
    }
}
