//! Feeds come, continue in other segments, and go.

use std::sync::Arc;

use ppt_capture::stamps::Stamps;
use ppt_capture::{Dropped, MAX_SOURCES};

use super::Listener;
use crate::drain::DrainedSegment;
use crate::error::ListenerError;
use crate::feed::{Feed, FeedChange};
use crate::introductions::{introduction, stamps};
use crate::keeper::KeptSegment;
use crate::sink::Introduction;
use crate::watched::{WatchedFeed, WatchedSegment};

impl Listener {
    /// Adds feeds to a running capture; they are numbered from [`Self::feeds`] on. As with
    /// [`Self::start`], their gates can be opened now, or are open already.
    ///
    /// # Errors
    /// The capture has no room for more sources, or cannot be written.
    pub fn add(&mut self, mut feeds: Vec<Feed>) -> Result<(), ListenerError> {
        // Feeds that have ended leave room in the next file.
        let over = if self.rotates { self.capture.counters.sources_ended() } else { 0 };
        complete(&mut feeds, self.feeds.len(), over)?;
        let introductions = self.enter(&feeds);
        let stamps = stamps(&introductions);
        // Before the drain knows of them, so that the file has the source of every frame in the
        // queue.
        self.introduce(&introductions);
        self.hand_over_all(feeds, stamps);
        Ok(())
    }

    /// Continues feed `feed` in another segment, that of `more`, whose source lists all of its
    /// segments. The former ones are drained until they are [retired](Self::retire_segment).
    ///
    /// # Panics
    /// If there is no such feed.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn extend(&mut self, feed: usize, mut more: Feed) -> Result<(), ListenerError> {
        assert!(feed < self.feeds.len());
        more.complete(feed)?;
        let tally = self.tallies.as_ref().and_then(|tallies| tallies.feed(feed));
        let news = introduction(feed, self.segments, &more, tally);
        let stamps = news.stamps.clone();
        self.introduce(&[news].into());
        self.hand_over(feed, more, stamps);
        self.wake_threads();
        Ok(())
    }

    /// Opens an account for each of `feeds`, which get the next numbers.
    pub(super) fn enter(&mut self, feeds: &[Feed]) -> Arc<[Introduction]> {
        self.dropped_now().resize(self.feeds.len() + feeds.len(), Dropped::default());
        let numbered = (self.feeds.len()..).zip(self.segments..).zip(feeds);
        numbered
            .map(|((number, segment_number), feed)| {
                let tallies = self.tallies.as_ref();
                let tally = tallies.map(|tallies| tallies.enter(number, &feed.source));
                introduction(number, segment_number, feed, tally)
            })
            .collect()
    }

    /// Passes feeds that have been entered to keeper and drain.
    pub(super) fn hand_over_all(&mut self, feeds: Vec<Feed>, stamps: Vec<Arc<Stamps>>) {
        for (feed, stamps) in feeds.into_iter().zip(stamps) {
            self.feeds.push(WatchedFeed { segments: Vec::new() });
            self.hand_over(self.feeds.len() - 1, feed, stamps);
        }
        self.wake_threads();
    }

    /// Passes a segment of a feed to keeper and drain.
    fn hand_over(&mut self, feed_number: usize, feed: Feed, stamps: Arc<Stamps>) {
        let segment = WatchedSegment::new(self.segments, feed.segment.clone(), &feed.first);
        if let Some(tally) = self.tally(feed_number) {
            tally.watch(&feed.segment, &segment.findings);
        }
        let (number, rings) = (segment.number, feed.segment.clone());
        let kept = KeptSegment::new(number, feed.segment, feed.populated, &feed.first, feed.alive);
        let drained =
            DrainedSegment::new(number, rings, segment.findings.clone(), stamps, feed.first);
        self.segments += 1;
        self.feeds[feed_number].segments.push(segment);
        // Sending fails only if the thread has panicked, which `finish` passes on.
        let _ = self.to_drain.send(FeedChange::Add(drained));
        let _ = self.to_keeper.send(FeedChange::Add(kept));
    }

    /// Drains the rest of the rings of `feed`, and then releases them: its target is gone. Its
    /// account stays. Report what it [dropped](Self::dropped) before this call.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn retire(&mut self, feed: usize) {
        self.retire_where(feed, |_| true);
    }

    /// Drains the rest of the rings of segment `nonce`, and then releases them: no thread will
    /// write into it any more. The feed's other segments stay.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn retire_segment(&mut self, feed: usize, nonce: u64) {
        self.retire_where(feed, |segment| segment.nonce == nonce);
    }

    fn retire_where(&mut self, feed: usize, which: impl Fn(&WatchedSegment) -> bool) {
        for segment in self.feeds[feed].segments.iter_mut().filter(|segment| which(segment)) {
            if segment.retire() {
                let _ = self.to_keeper.send(FeedChange::Retire(segment.number));
                let _ = self.to_drain.send(FeedChange::Retire(segment.number));
            }
        }
        self.wake_threads();
    }
}

/// Fails if a feed cannot be drained. The first of `feeds` gets number `first`; the next file omits
/// `over` of the feeds before it.
pub(super) fn complete(feeds: &mut [Feed], first: usize, over: usize) -> Result<(), ListenerError> {
    if (first - over).saturating_add(feeds.len()) > MAX_SOURCES {
        return Err(ListenerError::TooManySources);
    }
    (first..).zip(feeds).try_for_each(|(number, feed)| feed.complete(number))
}
