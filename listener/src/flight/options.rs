//! The options of a flight recorder.

use std::time::Duration;

use ppt_capture::Codec;

use crate::buffer::LARGE_CHUNK;

/// One part in this many of the memory is for frames on their way to the recorder.
const WAITING: u64 = 8;

/// The smallest memory with which a flight recorder works, in bytes: one full chunk may be on its
/// way to it.
pub const LEAST_MEMORY: u64 = WAITING * LARGE_CHUNK as u64;

/// The options of a flight recorder.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// The length of the history that the recorder keeps in memory.
    pub keep: Duration,
    /// Length of a window before its first trigger.
    pub before: Duration,
    /// Length of a window after its last trigger.
    pub after: Duration,
    /// Time after a trigger in which further ones count as the same.
    pub cooldown: Duration,
    /// Most bytes of memory: at least [`LEAST_MEMORY`].
    pub memory: u64,
    /// Whether lost frames trigger.
    pub on_gap: bool,
    /// Interval between readings of counters.
    pub counters: Duration,
    /// The compression of frames in files. `None`: uncompressed.
    pub compress: Option<Codec>,
    /// The time for which the recorder retries a window that cannot be written after the end of the
    /// session.
    pub patience: Duration,
}

impl FlightOptions {
    /// Bytes of frames that may wait for the recorder.
    pub(crate) fn queue_bytes(&self) -> usize {
        usize::try_from(self.memory / WAITING).unwrap_or(usize::MAX)
    }

    /// Bytes that the recorder may store.
    pub(super) fn store_bytes(&self) -> usize {
        usize::try_from(self.memory - self.memory / WAITING).unwrap_or(usize::MAX)
    }
}
