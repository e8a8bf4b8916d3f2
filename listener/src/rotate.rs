//! A capture that goes on in one file after another, each of them whole.

use std::fmt;
use std::io;
use std::time::Duration;

use ppt_capture::{Dropped, FileHeader, RingEnd};

use crate::account::LossAccount;
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

/// Where the accounts of a session stood when a file began: the file's own are the difference.
#[derive(Debug)]
pub(crate) struct Begin {
    /// Of every ring.
    pub rings: Vec<LossAccount>,
    /// Of every feed.
    pub dropped: Vec<Dropped>,
    /// When the file is full of time, in ns of CLOCK_MONOTONIC.
    pub deadline: u64,
    /// Frames captured before it.
    pub captured: u64,
}

impl Begin {
    /// What the file says at its end of ring number `index`.
    pub fn ring_end(&self, index: usize, now: LossAccount) -> RingEnd {
        let before = self.rings[index];
        RingEnd {
            first_seq: before.next_seq,
            captured: now.captured - before.captured,
            lost: now.lost - before.lost,
            ..now.ring_end()
        }
    }
}
