//! The end of a capture, and its summary.

use std::collections::BTreeSet;
use std::panic;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Release;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ppt_capture::{Dropped, EndReason};

use super::Listener;
use crate::ledger::Ledger;
use crate::queue::QueueItem;
use crate::sink::{Ending, SinkOutcome};
use crate::summary::{BrokenRing, CaptureSummary, ExtraSinkSummary, FeedSummary, enough_slots};
use crate::watched::WatchedSegment;

impl Listener {
    /// Ends the capture: drains up to the current cursors, and writes the queued frames and the
    /// end.
    ///
    /// Call it when the gates are closed or the targets gone. Otherwise frames written from now on
    /// may or may not be in the capture, and are in neither case counted as lost. `dropped` is what
    /// each target refused since the session began; a missing entry stands for the last reported
    /// value. This takes as long as the disk does, but no longer than
    /// [`ListenerOptions::patience`](crate::ListenerOptions::patience).
    pub fn finish(
        mut self,
        reason: EndReason,
        message: String,
        dropped: Vec<Dropped>,
    ) -> CaptureSummary {
        let duration = self.started.elapsed();
        if let Err(panic) = self.halt() {
            panic::resume_unwind(panic);
        }
        let mut totals = self.dropped_now().clone();
        totals.iter_mut().zip(dropped).for_each(|(total, dropped)| *total = dropped);
        let ending = Ending { reason, message, dropped: totals.clone() };
        self.workers().for_each(|worker| worker.end(ending.clone()));
        let until = Instant::now() + self.patience;
        let outcome = self.capture.outcome(until);
        let extra_sinks =
            self.extra_workers.iter().map(|worker| worker.extra_summary(until)).collect();
        let ledger = self.final_ledger();
        self.summary(duration, outcome, extra_sinks, ledger, &totals)
    }

    /// Stops the keeper, and stops the drain after a last pass.
    pub(super) fn halt(&mut self) -> thread::Result<()> {
        self.stop.store(true, Release);
        self.wake_threads();
        self.keeper.take().map_or(Ok(()), JoinHandle::join)?;
        self.drain.take().map_or(Ok(()), JoinHandle::join)
    }

    /// The final accounts. Frames that the disk thread has not processed never reach the file.
    fn final_ledger(&self) -> Ledger {
        let left = self.capture.queue.abandon();
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for item in left {
            match item {
                // The closing of its ring states these.
                QueueItem::Frames(_)
                | QueueItem::Masks(..)
                | QueueItem::Threads(..)
                | QueueItem::Modules(..)
                | QueueItem::Upto(_)
                | QueueItem::Call => {}
                QueueItem::Sources(new) => new.iter().for_each(|introduction| {
                    ledger.open(
                        introduction.segment_number,
                        introduction.feed,
                        introduction.segment.nonce(),
                        introduction.first.clone(),
                    );
                }),
                QueueItem::Gone(segment_number, closings) => {
                    _ = ledger.close(segment_number, &closings);
                }
            }
        }
        ledger
    }

    fn summary(
        &self,
        duration: Duration,
        outcome: SinkOutcome,
        extra_sinks: Vec<ExtraSinkSummary>,
        ledger: Ledger,
        dropped: &[Dropped],
    ) -> CaptureSummary {
        let progress = self.progress();
        let mut feeds: Vec<FeedSummary> = dropped
            .iter()
            .map(|&dropped| FeedSummary { dropped, ..FeedSummary::default() })
            .collect();
        // The cursors of broken rings do not show how full the rings were.
        let mut misled = BTreeSet::new();
        for entry in ledger.into_all() {
            let account = entry.account;
            if entry.broken.is_some() {
                misled.insert((account.feed, account.nonce));
            }
            let feed = &mut feeds[account.feed];
            feed.captured += account.captured;
            feed.lost += account.lost;
            feed.left_out += account.left_out;
            let truncated = self.feeds[account.feed].truncated();
            if let Some(cursor) = entry.broken.filter(|_| !truncated) {
                feed.broken.push(BrokenRing { ring: account.ring, cursor });
            }
            if entry.is_listed() {
                feed.rings.push(account);
            }
        }
        for (number, (feed, watched)) in feeds.iter_mut().zip(&self.feeds).enumerate() {
            feed.truncated = watched.truncated();
            feed.high_water = watched.high_water();
            let sound = |segment: &&WatchedSegment| !misled.contains(&(number, segment.nonce));
            let enough = watched.segments.iter().filter(sound).filter_map(|segment| {
                let rings = feed.rings.iter().filter(|ring| ring.nonce == segment.nonce);
                let overrun = rings.map(|ring| ring.lost.overrun).sum();
                enough_slots(segment.peak(), segment.geometry.slots(), overrun)
            });
            feed.enough_slots = enough.max();
        }
        CaptureSummary {
            feeds,
            bytes: progress.bytes,
            duration,
            ended: progress.ended,
            error: outcome.error,
            complete: outcome.complete,
            freed: progress.freed,
            extra_sinks,
        }
    }
}
