//! Counts the bytes of the file.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use crate::progress::SinkCounters;

/// An output that counts bytes as soon as they are written, including those of an incomplete chunk.
#[derive(Debug)]
pub(crate) struct CountedOutput<W> {
    out: W,
    counters: Arc<SinkCounters>,
}

impl<W> CountedOutput<W> {
    pub fn new(out: W, counters: Arc<SinkCounters>) -> Self {
        Self { out, counters }
    }

    fn counted(&self, written: io::Result<usize>) -> io::Result<usize> {
        if let Ok(bytes) = written {
            self.counters.wrote(bytes as u64);
        }
        written
    }
}

impl<W: Write> Write for CountedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.counted(written)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.out.write_vectored(parts);
        self.counted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
