//! Lines of a file that other programs write, read without blocking.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::TimeSourceError;

/// Maximum bytes of a read.
const READ_BYTES: usize = 64 << 10;
/// Maximum bytes of a line. A longer line is cut and cannot be parsed.
const MAX_LINE_BYTES: usize = 1 << 10;
/// Most bytes at the end of a file that are read again each time.
const TAIL_BYTES: u64 = 4 << 10;

/// A file that grows, or a FIFO. Earlier content is skipped.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    file: File,
    is_fifo: bool,
    /// An incomplete line.
    rest: Vec<u8>,
}

impl GrowingFile {
    pub fn open(path: &Path) -> Result<Self, TimeSourceError> {
        let (mut file, is_fifo) = open(path)?;
        if !is_fifo {
            file.seek(SeekFrom::End(0)).map_err(|error| TimeSourceError::file(path, &error))?;
        }
        Ok(Self { path: path.to_owned(), file, is_fifo, rest: Vec::new() })
    }

    pub fn is_fifo(&self) -> bool {
        self.is_fifo
    }

    /// The lines since the last call, without line ends.
    pub fn new_lines(&mut self) -> Result<Vec<Vec<u8>>, TimeSourceError> {
        let mut bytes = vec![0; READ_BYTES];
        let length = match self.file.read(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(TimeSourceError::file(&self.path, &error)),
        };
        if length == 0 && !self.is_fifo {
            self.follow()?;
        }
        self.rest.extend_from_slice(&bytes[..length]);
        let mut lines: Vec<_> =
            self.rest.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        self.rest = lines.pop().unwrap_or_default();
        if self.rest.len() > MAX_LINE_BYTES {
            lines.push(std::mem::take(&mut self.rest));
        }
        Ok(lines)
    }

    /// Logs are rotated or truncated; the new content is then read from its start.
    fn follow(&mut self) -> Result<(), TimeSourceError> {
        let failed = |error: io::Error| TimeSourceError::file(&self.path, &error);
        let own = self.file.metadata().map_err(failed)?;
        let at = self.file.stream_position().map_err(failed)?;
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (own.dev(), own.ino()) => {
                if own.len() < at {
                    self.file.rewind().map_err(failed)?;
                    self.rest.clear();
                }
            }
            Ok(_) => {
                (self.file, self.is_fifo) = open(&self.path)?;
                self.rest.clear();
            }
            // Between the old and the new file.
            Err(_) => {}
        }
        Ok(())
    }
}

/// A file whose last lines are rewritten. Earlier content is skipped.
#[derive(Debug)]
pub(super) struct RewrittenFile {
    path: PathBuf,
    /// The last line returned.
    last: Option<Vec<u8>>,
}

impl RewrittenFile {
    pub fn open(path: &Path) -> Result<Self, TimeSourceError> {
        let mut file = Self { path: path.to_owned(), last: None };
        file.new_lines()?;
        Ok(file)
    }

    /// The lines that are new since the last call, without line ends.
    pub fn new_lines(&mut self) -> Result<Vec<Vec<u8>>, TimeSourceError> {
        let mut lines = self.read().map_err(|error| TimeSourceError::file(&self.path, &error))?;
        if let Some(at) = lines.iter().rposition(|line| Some(line) == self.last.as_ref()) {
            lines.drain(..=at);
        }
        self.last = lines.last().cloned().or(self.last.take());
        Ok(lines)
    }

    fn read(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut file = File::open(&self.path)?;
        let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        // The last line may lack its end, and the first one its start.
        lines.pop();
        if start > 0 && !lines.is_empty() {
            lines.remove(0);
        }
        Ok(lines)
    }
}

/// Opens a file or a FIFO, which may have no writer yet, and returns whether it is a FIFO.
fn open(path: &Path) -> Result<(File, bool), TimeSourceError> {
    let failed = |error: io::Error| TimeSourceError::file(path, &error);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    // Other types are not even opened, because that may have side effects.
    let kind = fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(TimeSourceError::NotAFile { path: path.to_owned() });
    }
    Ok((options.open(path).map_err(failed)?, kind.is_fifo()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn text(lines: Result<Vec<Vec<u8>>, TimeSourceError>) -> Vec<String> {
        lines.unwrap().into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn a_file_that_grows_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "old\n").unwrap();
        let mut lines = GrowingFile::open(&path).unwrap();
        assert!(!lines.is_fifo());
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"one\ntw").unwrap();
        assert_eq!(text(lines.new_lines()), ["one"]);
        assert_eq!(text(lines.new_lines()), [""; 0]);
        log.write_all(b"o\nthree\n").unwrap();
        assert_eq!(text(lines.new_lines()), ["two", "three"]);
        // The file is truncated.
        log.set_len(0).unwrap();
        assert_eq!(text(lines.new_lines()), [""; 0]);
        log.write_all(b"four\n").unwrap();
        assert_eq!(text(lines.new_lines()), ["four"]);
        // The file is moved away, and missing for a while.
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        log.write_all(b"five\n").unwrap();
        assert_eq!(text(lines.new_lines()), ["five"]);
        assert_eq!(text(lines.new_lines()), [""; 0]);
        fs::write(&path, "six\n").unwrap();
        assert_eq!(text(lines.new_lines()), [""; 0]);
        assert_eq!(text(lines.new_lines()), ["six"]);
        // A long line without an end is returned in parts.
        fs::write(&path, [b'x'; 3 * MAX_LINE_BYTES]).unwrap();
        let parts: Vec<_> = (0..3).flat_map(|_| lines.new_lines().unwrap()).collect();
        assert!(!parts.is_empty() && lines.rest.len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn a_file_with_other_lines_each_time_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assert");
        fs::write(&path, "1#1\n").unwrap();
        let mut file = RewrittenFile::open(&path).unwrap();
        assert_eq!(text(file.new_lines()), [""; 0]);
        fs::write(&path, "2#2\n").unwrap();
        assert_eq!(text(file.new_lines()), ["2#2"]);
        assert_eq!(text(file.new_lines()), [""; 0]);
        // A growing file.
        fs::write(&path, "2#2\n3#3\n4#4").unwrap();
        assert_eq!(text(file.new_lines()), ["3#3"]);
        fs::write(&path, "").unwrap();
        assert_eq!(text(file.new_lines()), [""; 0]);
        let many: String = (0..2000).map(|number| format!("{number}#{number}\n")).collect();
        fs::write(&path, many).unwrap();
        let lines = text(file.new_lines());
        assert_eq!((lines.last().unwrap().as_str(), lines.len() < 600), ("1999#1999", true));
        fs::remove_file(&path).unwrap();
        assert_eq!(file.new_lines().unwrap_err(), TimeSourceError::NoFile { path });
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let path = Path::new("/dev/null").to_owned();
        assert_eq!(GrowingFile::open(&path).unwrap_err(), TimeSourceError::NotAFile { path });
        let path = Path::new("/").to_owned();
        assert_eq!(GrowingFile::open(&path).unwrap_err(), TimeSourceError::NotAFile { path });
        let path = Path::new("/no/such/file").to_owned();
        assert_eq!(GrowingFile::open(&path).unwrap_err(), TimeSourceError::NoFile { path });
    }
}
