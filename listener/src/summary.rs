//! The result of a capture.

use std::io;
use std::time::Duration;

use ppt_capture::{Dropped, EndReason, Lost};
use ppt_segment::BrokenCursor;

use crate::account::FrameAccount;

/// The result of a finished capture.
#[derive(Debug)]
pub struct CaptureSummary {
    /// The feeds, in order.
    pub feeds: Vec<FeedSummary>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Time from start to [`crate::Listener::finish`].
    pub duration: Duration,
    /// Set if it ended by itself.
    pub ended: Option<EndReason>,
    /// Why the rest of the file could not be written. A closed pipe is one reason.
    pub error: Option<io::Error>,
    /// Whether the file has its end chunk. Without it, it reads as truncated.
    pub complete: bool,
    /// Rings freed after their threads ended without doing so.
    pub freed: u64,
    /// The [further sinks](crate::PreparedListener::add_sink), in order.
    pub extra_sinks: Vec<ExtraSinkSummary>,
}

/// The result of a further sink.
#[derive(Debug)]
pub struct ExtraSinkSummary {
    /// Frames for which it was too slow. They may be in the capture, and in other sinks.
    pub missed: u64,
    /// The error that ended it, if any.
    pub error: Option<io::Error>,
    /// Whether it has processed everything else, including its end.
    pub complete: bool,
}

/// The result of one feed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedSummary {
    /// Frames in the file.
    pub captured: u64,
    /// Frames not in the file, by cause.
    pub lost: Lost,
    /// Frames that the filter left out of the file.
    pub left_out: u64,
    /// Frames that the target refused, as reported by the caller.
    pub dropped: Dropped,
    /// Every ring that was ever written to.
    pub rings: Vec<FrameAccount>,
    /// Rings that were given up because their cursor was invalid.
    pub broken: Vec<BrokenRing>,
    /// Whether its segment was given up because it was truncated.
    pub truncated: bool,
    /// The highest fill level of a ring: 1 = full.
    pub high_water: f64,
    /// Slots per ring that would have sufficed, if these did not or hardly did.
    pub enough_slots: Option<u64>,
}

/// A ring that was given up. The other rings continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenRing {
    /// The ring.
    pub ring: u32,
    /// The position up to which it had been read, and the value of its cursor.
    pub cursor: BrokenCursor,
}

/// A feed whose rings are too small for its frame rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undersized {
    /// The feed, from 0.
    pub feed: usize,
    /// Slots per ring that would have sufficed.
    pub enough_slots: u64,
}

impl CaptureSummary {
    /// Frames in the file.
    pub fn captured(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.captured).sum()
    }

    /// Frames not in the file, by cause.
    pub fn lost(&self) -> Lost {
        self.feeds.iter().fold(Lost::default(), |mut sum, feed| {
            sum += feed.lost;
            sum
        })
    }

    /// Frames that the filter left out of the file.
    pub fn left_out(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.left_out).sum()
    }

    /// Frames that the targets refused, by cause.
    pub fn dropped(&self) -> Dropped {
        self.feeds.iter().fold(Dropped::default(), |mut sum, feed| {
            sum += feed.dropped;
            sum
        })
    }

    /// Rings that were given up, of all feeds.
    pub fn broken(&self) -> impl Iterator<Item = (usize, BrokenRing)> {
        self.feeds
            .iter()
            .enumerate()
            .flat_map(|(feed, summary)| summary.broken.iter().map(move |&ring| (feed, ring)))
    }
}

/// Slots that would have held `peak` unread frames with a quarter to spare, if the actual `slots`
/// were overrun or more than seven eighths full.
pub(crate) fn enough_slots(peak: u64, slots: u64, overrun: u64) -> Option<u64> {
    const MAX_SLOTS: u64 = 1 << *ppt_segment::abi::LOG2_SLOTS.end();
    let undersized = overrun > 0 || peak > slots / 8 * 7;
    if !undersized || slots >= MAX_SLOTS {
        return None;
    }
    let peak = peak.min(MAX_SLOTS);
    Some((peak + peak / 4).next_power_of_two().clamp(slots * 2, MAX_SLOTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_when_there_is_need() {
        assert_eq!(enough_slots(10, 64, 0), None);
        assert_eq!(enough_slots(57, 64, 0), Some(128));
        assert_eq!(enough_slots(10, 64, 1), Some(128), "lost while it was being copied");
        assert_eq!(enough_slots(1000, 64, 900), Some(2048));
        assert_eq!(enough_slots(u64::MAX, 64, 9), Some(1 << 26));
        assert_eq!(enough_slots(u64::MAX, 1 << 26, 9), None, "there is no more");
    }
}
