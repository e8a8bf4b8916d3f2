//! Lines of a file that others write, without waiting for them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::TimeSourceError;

/// Most bytes that are read at once, and of one line. Of a longer line, a part is told, which nobody understands.
const MOST: usize = 64 << 10;
const LONGEST: usize = 1 << 10;
/// Most bytes at the end of a file that are looked at again and again.
const TAIL: u64 = 4 << 10;

/// A file that grows, or a FIFO: what was in the file before is left out.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    is_fifo: bool,
    /// A line without its end.
    rest: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> Result<Self, TimeSourceError> {
        let (mut file, is_fifo) = open(path)?;
        if !is_fifo {
            file.seek(SeekFrom::End(0)).map_err(|it| TimeSourceError::file(path, &it))?;
        }
        Ok(Self { path: path.to_owned(), file, is_fifo, rest: Vec::new() })
    }

    pub fn is_fifo(&self) -> bool {
        self.is_fifo
    }

    /// The lines since the last call, without their ends.
    pub fn more(&mut self) -> Result<Vec<Vec<u8>>, TimeSourceError> {
        let mut bytes = vec![0; MOST];
        let length = match self.file.read(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(TimeSourceError::file(&self.path, &error)),
        };
        if length == 0 && !self.is_fifo {
            self.follow()?;
        }
        self.rest.extend_from_slice(&bytes[..length]);
        let mut lines: Vec<_> = self.rest.split(|&it| it == b'\n').map(<[u8]>::to_vec).collect();
        self.rest = lines.pop().unwrap_or_default();
        if self.rest.len() > LONGEST {
            lines.push(std::mem::take(&mut self.rest));
        }
        Ok(lines)
    }

    /// Logs are moved away, or emptied: then what is new is read from its start.
    fn follow(&mut self) -> Result<(), TimeSourceError> {
        let failed = |it: io::Error| TimeSourceError::file(&self.path, &it);
        let own = self.file.metadata().map_err(failed)?;
        let at = self.file.stream_position().map_err(failed)?;
        match fs::metadata(&self.path) {
            Ok(it) if (it.dev(), it.ino()) == (own.dev(), own.ino()) => {
                if own.len() < at {
                    self.file.rewind().map_err(failed)?;
                    self.rest.clear();
                }
            }
            Ok(_) => {
                (self.file, self.is_fifo) = open(&self.path)?;
                self.rest.clear();
            }
            // Between two files.
            Err(_) => {}
        }
        Ok(())
    }
}

/// A file whose last lines may be others each time: what was in it before is left out.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    /// The last line that was told.
    last: Option<Vec<u8>>,
}

impl Tail {
    pub fn open(path: &Path) -> Result<Self, TimeSourceError> {
        let mut it = Self { path: path.to_owned(), last: None };
        it.more()?;
        Ok(it)
    }

    /// Lines that were not there at the last call, without their ends.
    pub fn more(&mut self) -> Result<Vec<Vec<u8>>, TimeSourceError> {
        let mut lines = self.read().map_err(|it| TimeSourceError::file(&self.path, &it))?;
        if let Some(at) = lines.iter().rposition(|it| Some(it) == self.last.as_ref()) {
            lines.drain(..=at);
        }
        self.last = lines.last().cloned().or(self.last.take());
        Ok(lines)
    }

    fn read(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut file = File::open(&self.path)?;
        let start = file.metadata()?.len().saturating_sub(TAIL);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        let mut lines: Vec<_> = bytes.split(|&it| it == b'\n').map(<[u8]>::to_vec).collect();
        // The last one has no end, and the first one maybe no start.
        lines.pop();
        if start > 0 && !lines.is_empty() {
            lines.remove(0);
        }
        Ok(lines)
    }
}

/// Opens a file or a FIFO, which may have no writer yet, and says whether it is a FIFO.
fn open(path: &Path) -> Result<(File, bool), TimeSourceError> {
    let failed = |it: io::Error| TimeSourceError::file(path, &it);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    // What is no file is not even opened: that may have effects.
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
        lines.unwrap().into_iter().map(|it| String::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn a_file_that_grows_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "old\n").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        assert!(!lines.is_fifo());
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"one\ntw").unwrap();
        assert_eq!(text(lines.more()), ["one"]);
        assert_eq!(text(lines.more()), [""; 0]);
        log.write_all(b"o\nthree\n").unwrap();
        assert_eq!(text(lines.more()), ["two", "three"]);
        // It is emptied.
        log.set_len(0).unwrap();
        assert_eq!(text(lines.more()), [""; 0]);
        log.write_all(b"four\n").unwrap();
        assert_eq!(text(lines.more()), ["four"]);
        // It is moved away, and there is none for a while.
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        log.write_all(b"five\n").unwrap();
        assert_eq!(text(lines.more()), ["five"]);
        assert_eq!(text(lines.more()), [""; 0]);
        fs::write(&path, "six\n").unwrap();
        assert_eq!(text(lines.more()), [""; 0]);
        assert_eq!(text(lines.more()), ["six"]);
        // A line without an end is told in parts.
        fs::write(&path, [b'x'; 3 * LONGEST]).unwrap();
        let parts: Vec<_> = (0..3).flat_map(|_| lines.more().unwrap()).collect();
        assert!(!parts.is_empty() && lines.rest.len() <= LONGEST);
    }

    #[test]
    fn a_file_with_other_lines_each_time_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assert");
        fs::write(&path, "1#1\n").unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(text(tail.more()), [""; 0]);
        fs::write(&path, "2#2\n").unwrap();
        assert_eq!(text(tail.more()), ["2#2"]);
        assert_eq!(text(tail.more()), [""; 0]);
        // One that grows.
        fs::write(&path, "2#2\n3#3\n4#4").unwrap();
        assert_eq!(text(tail.more()), ["3#3"]);
        fs::write(&path, "").unwrap();
        assert_eq!(text(tail.more()), [""; 0]);
        let many: String = (0..2000).map(|it| format!("{it}#{it}\n")).collect();
        fs::write(&path, many).unwrap();
        let lines = text(tail.more());
        assert_eq!((lines.last().unwrap().as_str(), lines.len() < 600), ("1999#1999", true));
        fs::remove_file(&path).unwrap();
        assert_eq!(tail.more().unwrap_err(), TimeSourceError::NoFile { path });
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let path = Path::new("/dev/null").to_owned();
        assert_eq!(Lines::open(&path).unwrap_err(), TimeSourceError::NotAFile { path });
        let path = Path::new("/").to_owned();
        assert_eq!(Lines::open(&path).unwrap_err(), TimeSourceError::NotAFile { path });
        let path = Path::new("/no/such/file").to_owned();
        assert_eq!(Lines::open(&path).unwrap_err(), TimeSourceError::NoFile { path });
    }
}
