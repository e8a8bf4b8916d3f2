//! The facts about feeds that a listener collects while its threads run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ppt_segment::abi::ring_state;
use ppt_segment::{Geometry, Segment};

use crate::progress::high_water;
use crate::summary::enough_slots;

/// The findings of the drain about the rings of a segment.
#[derive(Debug)]
pub(crate) struct RingFindings {
    /// The largest number of frames found in a ring.
    pub peak: AtomicU64,
    /// Whether the rings are too small for the frame rate.
    pub undersized: AtomicBool,
    /// The cursor up to which each ring has been drained, for the display of fill levels.
    drained: Box<[AtomicU64]>,
}

impl RingFindings {
    /// For rings that are drained from these cursors on.
    pub fn new(first: &[u64]) -> Self {
        Self {
            peak: AtomicU64::new(0),
            undersized: AtomicBool::new(false),
            drained: first.iter().map(|&cursor| AtomicU64::new(cursor)).collect(),
        }
    }

    /// Records that a ring has been drained up to this cursor.
    pub fn drain(&self, ring: usize, cursor: u64) {
        self.drained[ring].store(cursor, Relaxed);
    }

    /// The cursor up to which a ring has been drained.
    pub fn drained(&self, ring: u32) -> u64 {
        self.drained.get(ring as usize).map_or(u64::MAX, |cursor| cursor.load(Relaxed))
    }
}

/// One segment of a feed.
pub(crate) struct WatchedSegment {
    /// The number of the segment among those of all feeds.
    pub number: usize,
    /// The nonce, which names the segment in the capture.
    pub nonce: u64,
    pub geometry: Geometry,
    pub findings: Arc<RingFindings>,
    /// The segment, until no more frames come from it.
    segment: Option<Arc<Segment>>,
    /// Whether the segment was truncated, set when it is released.
    was_truncated: bool,
}

impl WatchedSegment {
    pub fn new(number: usize, segment: Arc<Segment>, first: &[u64]) -> Self {
        Self {
            number,
            nonce: segment.nonce(),
            geometry: segment.geometry(),
            findings: Arc::new(RingFindings::new(first)),
            segment: Some(segment),
            was_truncated: false,
        }
    }

    pub fn truncated(&self) -> bool {
        self.segment.as_ref().map_or(self.was_truncated, |segment| segment.truncated())
    }

    pub fn peak(&self) -> u64 {
        self.findings.peak.load(Relaxed)
    }

    /// Releases the segment. Returns whether it was still there.
    pub fn retire(&mut self) -> bool {
        self.was_truncated = self.truncated();
        self.segment.take().is_some()
    }
}

/// The facts about a feed that the caller of a listener may ask for.
pub(crate) struct WatchedFeed {
    /// The segments, at least one. New frames go to the last one that is still drained.
    pub segments: Vec<WatchedSegment>,
}

impl WatchedFeed {
    fn newest(&self) -> &WatchedSegment {
        let newest = self.segments.iter().rfind(|segment| segment.segment.is_some());
        newest.or(self.segments.last()).expect("a feed has a segment")
    }

    pub fn truncated(&self) -> bool {
        self.segments.iter().any(WatchedSegment::truncated)
    }

    pub fn high_water(&self) -> f64 {
        let segment = self.newest();
        high_water(segment.peak(), segment.geometry.capacity())
    }

    /// The number of slots that would suffice, if the rings for new frames are too small.
    pub fn undersized(&self) -> Option<u64> {
        let segment = self.newest();
        let undersized = segment.findings.undersized.load(Relaxed);
        undersized.then(|| enough_slots(segment.peak(), segment.geometry.slots(), 1)).flatten()
    }

    /// Rings that threads own at the moment.
    pub fn owned(&self) -> u32 {
        let segments = self.segments.iter().filter_map(|segment| segment.segment.as_ref());
        let owned = segments.map(|segment| {
            let mut rings = 0..segment.geometry().rings();
            let owned = |ring: &u32| segment.ring(*ring).owner().state == ring_state::ACTIVE;
            rings.by_ref().filter(owned).count() as u32
        });
        owned.sum()
    }
}
