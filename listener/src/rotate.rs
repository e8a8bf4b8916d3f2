//! A capture that goes on in one file after another, each of them whole.

use std::fmt;
use std::io;
use std::time::Duration;

use ppt_capture::FileHeader;

use crate::clocks;

/// When to begin another file, and how to get it. A file without a frame goes on.
pub struct Rotation<W> {
    /// After this time.
    pub every: Option<Duration>,
    /// Before a file grows beyond this many bytes; one chunk is written in any case.
    pub size: Option<u64>,
    /// Opens the next file. After an error the capture ends.
    pub next: Box<dyn FnMut() -> io::Result<(W, FileHeader)> + Send>,
}

impl<W> fmt::Debug for Rotation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut it = f.debug_struct("Rotation");
        it.field("every", &self.every).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<W: 'static> Rotation<W> {
    /// The same with another output made of each.
    pub fn map<V>(mut self, output: impl Fn(W) -> V + Send + 'static) -> Rotation<V> {
        let next = move || (self.next)().map(|(out, header)| (output(out), header));
        Rotation { every: self.every, size: self.size, next: Box::new(next) }
    }
}

impl<W> Rotation<W> {
    /// When a file that begins now is full of time.
    pub(crate) fn deadline(&self) -> u64 {
        let every = self.every.map_or(u64::MAX, |it| it.as_nanos() as u64);
        clocks::monotonic().saturating_add(every)
    }
}
