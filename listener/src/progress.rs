//! The progress of a capture: counters that the threads write and any thread may read.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

use nix::sys::eventfd::EventFd;
use ppt_capture::{Cause, EndReason, Lost};

/// The progress of a capture.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Frames in the file.
    pub captured: u64,
    /// Frames that will never be in the file, by cause.
    pub lost: Lost,
    /// Frames that the filter left out of the file.
    pub left_out: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Frames that are copied and wait for the disk.
    pub waiting: u64,
    /// For each feed the highest fill level of a ring: 1 = full.
    pub high_water: Vec<f64>,
    /// Rings that threads own at the moment, of all feeds.
    pub rings: u32,
    /// Rings freed after their threads ended without doing so.
    pub freed: u64,
    /// Set when the capture takes no more frames: it has reached its maximum size, or it failed, in
    /// which case [`Summary::error`](crate::CaptureSummary::error) holds the reason.
    pub ended: Option<EndReason>,
}

/// The counters of keeper and drain. They are relaxed, because they are independent; the exact sums
/// come from the ledger once the threads have ended.
#[derive(Debug)]
pub(crate) struct Counters {
    copied: AtomicU64,
    overrun: AtomicU64,
    corrupt: AtomicU64,
    freed: AtomicU64,
    undersized: EventFd,
}

impl Counters {
    pub fn new(undersized: EventFd) -> Self {
        Self {
            copied: AtomicU64::new(0),
            overrun: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            undersized,
        }
    }

    pub fn lost(&self, cause: Cause, count: u64) {
        let lost = match cause {
            Cause::Overrun => &self.overrun,
            Cause::Corrupt => &self.corrupt,
            // A sink loses these, or the target never wrote them.
            _ => return,
        };
        lost.fetch_add(count, Relaxed);
    }

    /// Counts frames that were copied into our memory. Each sink counts what becomes of them.
    pub fn copied(&self, count: u64) {
        self.copied.fetch_add(count, Relaxed);
    }

    /// The number of copied frames.
    pub fn all_copied(&self) -> u64 {
        self.copied.load(Relaxed)
    }

    pub fn freed(&self, rings: u64) {
        self.freed.fetch_add(rings, Relaxed);
    }

    /// Signals that the rings of a feed are too small.
    pub fn tell_undersized(&self) {
        // This fails only if the counter is full, and then the descriptor is readable anyway.
        let _ = self.undersized.write(1);
    }

    pub fn undersized(&self) -> &EventFd {
        &self.undersized
    }

    /// All counters, with those of `sink`.
    pub fn progress(&self, sink: &SinkCounters, high_water: Vec<f64>, rings: u32) -> Progress {
        let (captured, disk) = (sink.captured.load(Relaxed), sink.lost.load(Relaxed));
        let left_out = sink.left_out.load(Relaxed);
        // Each copied frame is in one of these or waits. No frame counts twice while it moves.
        let settled = captured + disk + left_out;
        Progress {
            captured,
            lost: Lost {
                overrun: self.overrun.load(Relaxed),
                disk,
                corrupt: self.corrupt.load(Relaxed),
            },
            left_out,
            bytes: sink.bytes.load(Relaxed),
            waiting: self.copied.load(Relaxed).saturating_sub(settled),
            high_water,
            rings,
            freed: self.freed.load(Relaxed),
            ended: sink.ended(),
        }
    }
}

/// The counters of one sink.
#[derive(Debug)]
pub(crate) struct SinkCounters {
    captured: AtomicU64,
    lost: AtomicU64,
    left_out: AtomicU64,
    bytes: AtomicU64,
    sources_ended: AtomicUsize,
    ended: AtomicU8,
    wake: EventFd,
}

impl SinkCounters {
    pub fn new(wake: EventFd) -> Self {
        Self {
            captured: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            sources_ended: AtomicUsize::new(0),
            ended: AtomicU8::new(0),
            wake,
        }
    }

    pub fn captured(&self, count: u64) {
        self.captured.fetch_add(count, Relaxed);
    }

    /// Counts frames for which it was too slow, or that it could not write: cause `disk`.
    pub fn lost(&self, count: u64) {
        self.lost.fetch_add(count, Relaxed);
    }

    /// Counts frames that the filter left out.
    pub fn left_out(&self, count: u64) {
        self.left_out.fetch_add(count, Relaxed);
    }

    /// The number of frames for which it was too slow.
    pub fn missed(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    pub fn wrote(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// One more feed has ended, and all of its frames are processed.
    pub fn source_ended(&self) {
        self.sources_ended.fetch_add(1, Relaxed);
    }

    pub fn sources_ended(&self) -> usize {
        self.sources_ended.load(Relaxed)
    }

    /// The capture takes no more frames. Signals the eventfd.
    pub fn end(&self, why: EndReason) {
        self.ended.store(why as u8, Relaxed);
        // As above.
        let _ = self.wake.write(1);
    }

    pub fn ended(&self) -> Option<EndReason> {
        // 0 stands for none of them.
        [EndReason::Failed, EndReason::MaxSize]
            .into_iter()
            .find(|&why| why as u8 == self.ended.load(Relaxed))
    }

    pub fn wake(&self) -> &EventFd {
        &self.wake
    }
}

/// `peak` frames as a fraction of a ring's capacity, at most 1.
pub(crate) fn high_water(peak: u64, capacity: u64) -> f64 {
    (peak as f64 / capacity as f64).min(1.0)
}
