//! A window that moves forward over a file or a stream.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The source of the bytes.
pub(crate) enum Stream {
    /// A regular file, in which skipped parts need not be read.
    File(File),
    /// Anything else.
    Reader(Box<dyn Read>),
}

/// The requested bytes from `offset` on. The buffer grows with what was really read, never with a
/// length stated in the input.
pub(crate) struct Input {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    at_end: bool,
    step: usize,
    /// Whether the window was just moved over unread bytes, and may soon be moved again.
    jumped: bool,
    /// Length of a file when it was last checked: it may grow, or be truncated.
    len: u64,
    /// No byte of a file behind this many is looked at.
    limit: u64,
}

/// Bytes that are read after a move: a chunk's header, and a little more.
const AFTER_JUMP: usize = 512;

impl Input {
    /// Reads `step` bytes at a time where available; more only on request.
    pub fn new(stream: Stream, step: usize) -> Self {
        let (buffer, jumped, len, limit) = (vec![0; step], false, 0, u64::MAX);
        let (start, end, offset, at_end) = (0, 0, 0, false);
        Input { stream, buffer, start, end, offset, at_end, step, jumped, len, limit }
    }

    /// From here on a file ends after its first `limit` bytes, however long it is.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Sets the number of bytes per read.
    pub fn set_step(&mut self, step: usize) {
        self.step = step;
    }

    /// Offset of the window from the first byte of the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes in the window now.
    pub fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether skipped parts are not read, and [`Self::rewind`] works.
    pub fn can_seek(&self) -> bool {
        matches!(self.stream, Stream::File(_))
    }

    /// Moves the window back to `offset`. Empties it if the stream cannot seek.
    pub fn rewind(&mut self, offset: u64) {
        (self.start, self.end) = (0, 0);
        if self.can_seek() {
            self.offset = offset;
            self.at_end = false;
        }
    }

    /// The window with at least `len` bytes; fewer only at the end of the stream.
    pub fn fill(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.window().len() < len && !self.at_end {
            self.make_room();
            let step = if self.jumped { self.step.min(AFTER_JUMP) } else { self.step };
            let most = (len - self.window().len()).max(step).min(self.buffer.len() - self.end);
            let held = (self.end - self.start) as u64;
            let room = &mut self.buffer[self.end..][..most];
            let read = match &mut self.stream {
                Stream::File(file) => {
                    let at = self.offset + held;
                    let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
                    let most = room.len().min(left);
                    file.read_at(&mut room[..most], at)
                }
                Stream::Reader(reader) => reader.read(room),
            };
            let jumped = std::mem::take(&mut self.jumped);
            match read {
                Ok(0) => {
                    self.at_end = true;
                    if jumped {
                        // The file was truncated: the window is at its new end.
                        self.offset = self.offset.min(self.file_len()?);
                    }
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.window())
    }

    /// The current length of a file; for a stream, the number of bytes read.
    pub fn file_len(&self) -> io::Result<u64> {
        match &self.stream {
            Stream::File(file) => Ok(file.metadata()?.len().min(self.limit)),
            Stream::Reader(_) => Ok(self.offset),
        }
    }

    /// Makes room for a step after the window's content: moves that to the front, then doubles the
    /// buffer.
    fn make_room(&mut self) {
        if self.buffer.len() - self.end >= self.step {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < self.step {
            self.buffer.resize((2 * self.end).max(2 * self.step), 0);
        }
    }

    /// Moves the window forward by `len` bytes, or to the end of the stream.
    pub fn skip(&mut self, len: u64) -> io::Result<()> {
        let buffered = len.min(self.window().len() as u64);
        self.start += buffered as usize;
        self.offset += buffered;
        let mut rest = len - buffered;
        if rest == 0 {
            return Ok(());
        }
        if self.can_seek() {
            // If the file ends before, the next read returns nothing.
            if self.offset.saturating_add(rest) > self.len {
                self.len = self.file_len()?;
            }
            self.offset += rest.min(self.len.saturating_sub(self.offset));
            self.jumped = true;
            return Ok(());
        }
        while rest > 0 {
            let available = self.fill(1)?.len() as u64;
            if available == 0 {
                break;
            }
            let part = available.min(rest);
            self.start += part as usize;
            self.offset += part;
            rest -= part;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_over_a_stream_of_small_reads() {
        struct Drip(u8);
        impl Read for Drip {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let len = buffer.len().min(3).min(usize::from(250 - self.0));
                buffer[..len].iter_mut().for_each(|byte| {
                    *byte = self.0;
                    self.0 += 1;
                });
                Ok(len)
            }
        }
        let mut input = Input::new(Stream::Reader(Box::new(Drip(0))), 8);
        assert_eq!(input.fill(20).unwrap()[..20], (0..20).collect::<Vec<u8>>());
        input.skip(18).unwrap();
        assert_eq!(input.fill(2).unwrap()[..2], [18, 19]);
        input.skip(100).unwrap();
        assert_eq!((input.fill(1).unwrap()[0], input.offset()), (118, 118));
        assert_eq!(input.fill(1 << 30).unwrap().len(), 132, "a length that lies costs nothing");
        input.skip(1000).unwrap();
        assert_eq!((input.fill(1).unwrap().len(), input.offset()), (0, 250));
    }
}
