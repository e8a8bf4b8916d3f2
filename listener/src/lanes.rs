//! The lanes from the drain to its sinks.

use std::collections::BTreeMap;
use std::sync::Arc;

use ppt_capture::{Cause, Lost};

use crate::account::Closing;
use crate::buffer::Pool;
use crate::chunk::{Chunk, Frames, RingPlace};
use crate::progress::SinkCounters;
use crate::queue::SinkQueue;

/// The lane to one sink.
#[derive(Debug)]
pub(crate) struct Lane {
    queue: Arc<SinkQueue>,
    counters: Arc<SinkCounters>,
    /// The frames for which the queue had no room, by segment and ring. The next frames of the
    /// ring, or its end, state them.
    missed: BTreeMap<RingPlace, Lost>,
    keeps_time: bool,
}

impl Lane {
    pub fn new(queue: Arc<SinkQueue>, counters: Arc<SinkCounters>, keeps_time: bool) -> Self {
        Self { queue, counters, missed: BTreeMap::new(), keeps_time }
    }

    /// Frames lost before the next item of a ring: `lost` plus those missed here.
    fn lost(&mut self, place: RingPlace, mut lost: Lost) -> Lost {
        lost += self.missed.remove(&place).unwrap_or_default();
        lost
    }

    fn hand(&mut self, chunk: &Arc<Chunk>) {
        let place = RingPlace { segment: chunk.segment_number, ring: chunk.ring };
        let mut lost = self.lost(place, chunk.lost_before);
        if !self.queue.push(Frames { chunk: chunk.clone(), lost_before: lost }) {
            let count = u64::from(chunk.count);
            self.counters.lost(count);
            lost.add(Cause::Disk, count);
            self.missed.insert(place, lost);
        }
    }

    fn gone(&mut self, segment_number: usize, closings: &[Closing]) {
        let closings = closings.iter().map(|closing| Closing {
            lost: self
                .lost(RingPlace { segment: segment_number, ring: closing.ring }, closing.lost),
            ..*closing
        });
        let closings = closings.collect();
        self.queue.gone(segment_number, closings);
    }
}

/// The lanes to all sinks.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    pool: Arc<Pool>,
}

impl Lanes {
    /// `pool` is the memory pool of the frames.
    pub fn new(lanes: Vec<Lane>, pool: Arc<Pool>) -> Self {
        Self { lanes, pool }
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Hands frames to every sink that has room for them. Call [`Self::notify`] afterwards.
    pub fn hand(&mut self, chunk: Chunk) {
        let chunk = Arc::new(chunk);
        self.lanes.iter_mut().for_each(|lane| lane.hand(&chunk));
        if let Some(chunk) = Arc::into_inner(chunk) {
            self.pool.give(chunk.frames);
        }
    }

    /// No more frames come from segment `segment_number`, whose rings ended in these states.
    pub fn gone(&mut self, segment_number: usize, closings: &[Closing]) {
        self.lanes.iter_mut().for_each(|lane| lane.gone(segment_number, closings));
    }

    /// All frames that were written before this time have been handed on. Informs the sinks that
    /// keep time.
    pub fn upto(&self, mono_ns: u64) {
        self.lanes.iter().filter(|lane| lane.keeps_time).for_each(|lane| lane.queue.upto(mono_ns));
    }

    /// Notifies the sinks of new frames. Called once for several items, because it costs a system
    /// call.
    pub fn notify(&self) {
        self.lanes.iter().for_each(|lane| lane.queue.notify());
    }

    /// Whether every sink is behind, so that handing frames on later delays no sink.
    pub fn are_behind(&self) -> bool {
        self.lanes.iter().all(|lane| lane.queue.is_behind())
    }
}
