//! A writer that notices when another program truncates, removes or replaces its file.
//!
//! Other programs may truncate a file that is being written (`logrotate` with copytruncate, `>
//! out.bin`), remove it, or replace it. A write at an offset would then leave a hole of zeros,
//! which no reader can skip. A write at the end of another file would damage that file.
//!
//! Overwriting without a change of the length is detected only by reading: before a file is
//! reported as complete, both of its ends are read.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, SeekFrom, Stat, fstat, ftruncate, seek, tell};

use crate::output::Output;

/// A change of a file by another program while ppt wrote it. The write that notices the change
/// returns this inside an [`io::Error`]; no byte of that write is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Displaced {
    /// The file is empty. [`Guarded::again`] can restart it.
    #[error("it was truncated while ppt wrote it")]
    Emptied,
    /// The file does not have the length that was written, so another program writes it, too.
    #[error(
        "another program changed it while ppt wrote it: it should have {written} bytes, and has \
         {found}"
    )]
    Changed {
        /// Bytes that were written.
        written: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// The file has the written length but other bytes.
    #[error("another program overwrote a part of it while ppt wrote it")]
    Overwritten,
    /// The file no longer has a name.
    #[error("it was removed or replaced while ppt wrote it")]
    Removed,
}

impl Displaced {
    /// The displacement that caused a write to fail, if any.
    pub fn from_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Displaced> for io::Error {
    fn from(displaced: Displaced) -> Self {
        io::Error::other(displaced)
    }
}

/// Writes into an output through a writer `W`, which has its own duplicate of the file.
///
/// Other programs may write into standard output, too. There, a guard notices only a file that
/// became shorter, and does not check pipes and devices.
#[derive(Debug)]
pub struct Guarded<W> {
    inner: W,
    output: Arc<Mutex<Output>>,
    file: File,
    kind: GuardedKind,
    /// Number of bytes written.
    at: u64,
    check: Option<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuardedKind {
    /// A file that only this output uses, opened for appending.
    Ours,
    /// A file that was inherited.
    Shared,
    Stream,
}

impl<W: Write> Guarded<W> {
    /// Creates a writer into `output`. A file of its own must be empty.
    ///
    /// # Errors
    /// The file cannot be opened again, or is not empty.
    pub fn new(output: &Arc<Mutex<Output>>, inner: impl FnOnce(File) -> W) -> io::Result<Self> {
        let (file, kind) = {
            let output = locked(output);
            let kind = if output.is_stdout() { GuardedKind::Shared } else { GuardedKind::Ours };
            (output.file().try_clone()?, kind)
        };
        let is_file = |found: Stat| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let kind = if fstat(&file).is_ok_and(is_file) { kind } else { GuardedKind::Stream };
        let check = if kind == GuardedKind::Ours { Check::reopen(&file) } else { None };
        let inner = inner(file.try_clone()?);
        Ok(Self { inner, output: output.clone(), file, kind, at: 0, check })
    }

    /// Creates a writer into an output whose file was [emptied](Displaced::Emptied).
    ///
    /// # Errors
    /// The file cannot be opened again.
    pub fn again(output: &Arc<Mutex<Output>>, inner: impl FnOnce(File) -> W) -> io::Result<Self> {
        // The file position is still the old end, or that of before the file was emptied.
        seek(locked(output).file(), SeekFrom::Start(0))?;
        Self::new(output, inner)
    }

    fn look(&self) -> Result<(), Displaced> {
        // Read before the file is checked, because it may be published in between: it had no name
        // then.
        let is_published = self.kind == GuardedKind::Ours && locked(&self.output).is_published();
        let found = match self.kind {
            GuardedKind::Stream => return Ok(()),
            GuardedKind::Ours | GuardedKind::Shared => fstat(&self.file),
        };
        // It was open a moment ago; the write will report the error.
        let Ok(found) = found else { return Ok(()) };
        let size = found.st_size as u64;
        let (written, as_ever) = match self.kind {
            GuardedKind::Ours if found.st_nlink == 0 && is_published => {
                return Err(Displaced::Removed);
            }
            GuardedKind::Ours => (self.at, size == self.at),
            GuardedKind::Shared | GuardedKind::Stream => {
                let at = tell(&self.file).unwrap_or(0);
                (at, size >= at)
            }
        };
        match size {
            _ if as_ever => Ok(()),
            0 => Err(Displaced::Emptied),
            found => Err(Displaced::Changed { written, found }),
        }
    }

    fn written(&mut self, count: usize) -> io::Result<usize> {
        self.at += count as u64;
        if self.kind != GuardedKind::Ours {
            return Ok(count);
        }
        let end = tell(&self.file)?;
        if end == self.at {
            return Ok(count);
        }
        // The file was changed after the check: bytes written to the wrong position are removed,
        // unless another program has written after them.
        let before = end - count as u64;
        if fstat(&self.file).is_ok_and(|fstat| fstat.st_size as u64 == end) {
            let _ = ftruncate(&self.file, before);
        }
        self.at -= count as u64;
        Err(match before {
            0 => Displaced::Emptied,
            found => Displaced::Changed { written: self.at, found },
        }
        .into())
    }
}

fn locked(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.look()?;
        let count = self.inner.write_vectored(parts)?;
        let written = self.written(count)?;
        if let Some(check) = &mut self.check {
            check.wrote(parts, written);
        }
        Ok(written)
    }

    /// Also compares both ends of the file with the written bytes.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()?;
        match &self.check {
            Some(check) if !check.holds(self.at) => Err(Displaced::Overwritten.into()),
            _ => Ok(()),
        }
    }
}

/// Bytes of each end of a file that are compared.
const END: usize = 64 << 10;

/// The expected content of both ends of a file.
#[derive(Debug)]
struct Check {
    /// Reads the file through another descriptor, because the writing one may bypass the page
    /// cache.
    reader: File,
    /// The first bytes, at most [`END`].
    first: Vec<u8>,
    /// The last bytes: at least [`END`], if there are that many, and at most twice that.
    last: Vec<u8>,
}

impl Check {
    /// `None` if the file cannot be opened again.
    fn reopen(file: &File) -> Option<Self> {
        let reader = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(Self { reader, first: Vec::new(), last: Vec::new() })
    }

    /// Records that the first `count` bytes of `parts` were written.
    fn wrote(&mut self, parts: &[IoSlice<'_>], count: usize) {
        let mut left = count;
        for part in parts {
            let part = &part[..part.len().min(left)];
            left -= part.len();
            let room = END - self.first.len();
            self.first.extend_from_slice(&part[..part.len().min(room)]);
            let end = &part[part.len().saturating_sub(END)..];
            if end.len() < part.len() {
                self.last.clear();
            }
            self.last.extend_from_slice(end);
            if self.last.len() > 2 * END {
                self.last.drain(..self.last.len() - END);
            }
        }
    }

    /// Whether a file of `len` bytes has the expected ends. An unreadable file counts as intact,
    /// because its reader will report the error.
    fn holds(&self, len: u64) -> bool {
        let is_there = |bytes: &[u8], at: u64| {
            let mut found = vec![0; bytes.len()];
            self.reader.read_exact_at(&mut found, at).is_err() || found == bytes
        };
        let at = len.saturating_sub(self.last.len() as u64);
        is_there(&self.first, 0) && is_there(&self.last, at)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::rules::Rules;

    /// Writes the given bytes, and runs a function between the check and the write.
    struct Late<F> {
        file: File,
        accident: F,
    }

    impl<F: FnMut()> Write for Late<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.accident)();
            self.file.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn open(path: &Path) -> Arc<Mutex<Output>> {
        let mut output = Output::open(path, &Rules::default()).unwrap();
        output.publish().unwrap();
        Arc::new(Mutex::new(output))
    }

    fn truncate(path: &Path, size: u64) {
        File::options().write(true).open(path).unwrap().set_len(size).unwrap();
    }

    /// Whether a thread of this process sleeps.
    fn sleeps(tid: i32) -> bool {
        let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
    }

    #[test]
    fn a_file_that_gets_its_name_during_a_write_was_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Arc::new(Mutex::new(Output::open(&path, &Rules::default()).unwrap()));
        let mut guarded = Guarded::new(&output, |file| file).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut held = locked(&output);
            let writer = scope.spawn(move || {
                send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                guarded.write_all(b"x")
            });
            let writing = receive.recv().unwrap();
            // It waits to learn whether the file is published.
            while !sleeps(writing) {
                std::thread::yield_now();
            }
            held.publish().unwrap();
            drop(held);
            writer.join().unwrap().unwrap();
        });
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }

    #[track_caller]
    fn displaced(written: io::Result<()>) -> Displaced {
        Displaced::from_error(&written.unwrap_err()).expect("a displacement")
    }

    #[test]
    fn a_truncated_file_is_begun_again_and_has_no_hole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = open(&path);
        let mut guarded = Guarded::new(&output, |file| file).unwrap();
        guarded.write_all(b"first").unwrap();
        truncate(&path, 0);
        assert_eq!(displaced(guarded.write_all(b"second")), Displaced::Emptied);
        let mut guarded = Guarded::again(&output, |file| file).unwrap();
        guarded.write_all(b"third").unwrap();
        guarded.write_all(b"fourth").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"thirdfourth");
    }

    #[test]
    fn what_others_wrote_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for (size, found) in [(2, 2), (9, 9)] {
            let path = folder.path().join(format!("out{size}"));
            let mut guarded = Guarded::new(&open(&path), |file| file).unwrap();
            guarded.write_all(b"first").unwrap();
            truncate(&path, size);
            let before = fs::read(&path).unwrap();
            assert_eq!(
                displaced(guarded.write_all(b"x")),
                Displaced::Changed { written: 5, found }
            );
            assert_eq!(fs::read(&path).unwrap(), before);
        }
    }

    #[test]
    fn bytes_that_others_overwrote_are_noticed_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let size = 3 * END as u64;
        for (name, at) in [("whole", None), ("first", Some(7)), ("last", Some(size - 1))] {
            let path = folder.path().join(name);
            let mut guarded = Guarded::new(&open(&path), |file| file).unwrap();
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            // With writes of many lengths.
            let mut rest = &bytes[..];
            for len in [1, 100, 5 * END / 2].into_iter().chain(std::iter::repeat(999)) {
                let (part, after) = rest.split_at(len.min(rest.len()));
                guarded.write_all(part).unwrap();
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            guarded.flush().unwrap();
            if let Some(at) = at {
                let file = File::options().write(true).open(&path).unwrap();
                file.write_all_at(b"\xff", at).unwrap();
                assert_eq!(displaced(guarded.flush()), Displaced::Overwritten, "{name}");
            }
            guarded.write_all(b"goes on").unwrap();
        }
    }

    #[test]
    fn a_file_without_a_name_is_noticed_once_it_had_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Arc::new(Mutex::new(Output::open(&path, &Rules::default()).unwrap()));
        let mut guarded = Guarded::new(&output, |file| file).unwrap();
        guarded.write_all(b"first").unwrap();
        output.lock().unwrap().publish().unwrap();
        guarded.write_all(b"second").unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        guarded.write_all(b"third").unwrap();
        fs::remove_file(folder.path().join("moved")).unwrap();
        assert_eq!(displaced(guarded.write_all(b"x")), Displaced::Removed);
    }

    /// Anything may happen in the microseconds between the check and the write.
    #[test]
    fn what_went_to_another_place_than_it_should_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        for (left, expected) in [
            (0, Displaced::Emptied),
            (3, Displaced::Changed { written: 5, found: 3 }),
            (8, Displaced::Changed { written: 5, found: 8 }),
        ] {
            let path = folder.path().join(format!("out{left}"));
            let mut round = 0;
            let accident = || {
                round += 1;
                if round == 2 {
                    truncate(&path, left);
                }
            };
            let late = |file| Late { file, accident };
            let mut guarded = Guarded::new(&open(&path), late).unwrap();
            guarded.write_all(b"first").unwrap();
            assert_eq!(displaced(guarded.write_all(b"second")), expected);
            assert_eq!(fs::metadata(&path).unwrap().len(), left);
        }
    }
}
