//! The feeds of a capture.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::{Dropped, Modules, Source};
use ppt_segment::Segment;

use crate::cells::{FoundCells, SegmentCells, cells_of};
use crate::limit;
use crate::masks::Disabled;
use crate::tally::FeedTally;
use crate::thread_names::CurrentNames;
use ppt_capture::stamps::Stamps;

/// Frames that the targets dropped, by feed, as last reported by the caller.
pub(crate) type DroppedByFeed = Mutex<Vec<Dropped>>;

/// Adds and observations that were lost, by feed, as last reported by the caller.
pub(crate) type Adds = Mutex<BTreeMap<usize, u64>>;

/// A feed of the capture.
#[derive(Debug)]
pub(crate) struct Origin {
    pub stride: u32,
    pub stamps: Arc<Stamps>,
    /// The source as in the file, if the file states it.
    pub source: Source,
    /// The segments and their numbers, each until its last chunk is written.
    pub segments: Vec<(usize, Arc<Segment>)>,
    /// The counters and histograms of all its segments, until no more frames come. They stay
    /// because a slow thread may still add to a segment that other threads have left.
    pub cells: Vec<SegmentCells>,
    /// The masks of its segments.
    pub disabled: Disabled,
    /// The names of its process's threads.
    pub names: CurrentNames,
    /// The code mappings of its process.
    pub modules: Option<Modules>,
    /// Shows its numbers.
    pub tally: Option<Arc<FeedTally>>,
    /// Number of cells per row.
    cells_of_row: u32,
    /// The lost adds, at the start of the file and as the file states.
    adds_before: u64,
    adds_stated: u64,
    /// The frames that it had dropped when the file began.
    dropped_before: Dropped,
    /// The dropped frames that the file states.
    dropped_stated: Dropped,
}

impl Origin {
    pub fn new(stride: u32, stamps: &Arc<Stamps>, source: &Source) -> Self {
        Self {
            stride,
            stamps: stamps.clone(),
            source: source.clone(),
            segments: Vec::new(),
            cells: Vec::new(),
            disabled: Disabled::default(),
            names: CurrentNames::default(),
            modules: None,
            tally: None,
            cells_of_row: cells_of(source),
            adds_before: 0,
            adds_stated: 0,
            dropped_before: Dropped::default(),
            dropped_stated: Dropped::default(),
        }
    }

    /// Includes the counters and histograms of one more segment, if it has any.
    pub fn count_in(&mut self, segment: &Arc<Segment>, found: &FoundCells) {
        // Rings may grow into a segment that was used before.
        if self.cells_of_row > 0 && self.cells.iter().all(|cell| cell.nonce() != segment.nonce()) {
            let readings = SegmentCells::new(segment.clone(), found.clone(), self.cells_of_row);
            self.cells.extend(readings.map(|readings| readings.shown_by(self.tally.clone())));
        }
    }

    /// Moves adds to segments that the file does not list to one that it lists.
    fn gather_cells(&mut self) {
        let listed =
            |cells: &SegmentCells| self.source.segments.iter().any(|to| to.nonce == cells.nonce());
        let Some(to) = self.cells.iter().position(listed) else { return };
        let others: Vec<_> =
            (0..self.cells.len()).filter(|&index| !listed(&self.cells[index])).collect();
        for other in others {
            let adds = self.cells[other].take();
            self.cells[to].give(&adds);
        }
    }

    /// The drops that the file has to state if the total of the feed is `now`.
    fn dropped(&self, now: Dropped) -> Dropped {
        now - self.dropped_before
    }

    /// The drops that all files together state.
    pub fn dropped_so_far(&self) -> Dropped {
        let mut dropped = self.dropped_before;
        dropped += self.dropped_stated;
        dropped
    }
}

/// All feeds of a capture, by number.
#[derive(Debug)]
pub(crate) struct Origins {
    by_feed: BTreeMap<usize, Origin>,
    dropped: Arc<DroppedByFeed>,
}

impl Origins {
    pub fn new(dropped: Arc<DroppedByFeed>) -> Self {
        Self { by_feed: BTreeMap::new(), dropped }
    }

    pub fn get(&self, feed: usize) -> Option<&Origin> {
        self.by_feed.get(&feed)
    }

    pub fn get_mut(&mut self, feed: usize) -> Option<&mut Origin> {
        self.by_feed.get_mut(&feed)
    }

    /// All feeds, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Origin)> {
        self.by_feed.iter().map(|(&feed, origin)| (feed, origin))
    }

    pub fn has(&self, feed: usize) -> bool {
        self.by_feed.contains_key(&feed)
    }

    /// The feed, which `new` makes if it does not exist.
    pub fn enter(&mut self, feed: usize, new: impl FnOnce() -> Origin) -> &mut Origin {
        self.by_feed.entry(feed).or_insert_with(new)
    }

    /// The sources of these feeds, with the feeds' numbers.
    pub fn sources(&self, feeds: &BTreeSet<usize>) -> impl Iterator<Item = (usize, &Source)> {
        self.by_feed
            .iter()
            .filter(|entry| feeds.contains(entry.0))
            .map(|(&feed, origin)| (feed, &origin.source))
    }

    /// Bytes that the last readings of all segments may take.
    pub fn last_readings(&self) -> u64 {
        let origins = self.by_feed.values();
        origins.map(|origin| origin.cells.len() as u64 * limit::reading(origin.cells_of_row)).sum()
    }

    /// Calls `state` for each segment with cells, of feed `only` or of all, with the lost adds, and
    /// whether the file does not state these yet. `state` returns false if nothing more can be
    /// written.
    pub fn state_cells(
        &mut self,
        only: Option<usize>,
        adds: &Adds,
        mut state: impl FnMut(usize, (u64, bool), &mut SegmentCells) -> bool,
    ) {
        let adds = adds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let origins =
            self.by_feed.iter_mut().filter(|(feed, _)| only.is_none_or(|only| only == **feed));
        for (&feed, origin) in origins {
            let now = adds.get(&feed).copied().unwrap_or_default();
            let not_mapped = now.saturating_sub(origin.adds_before);
            let is_news = not_mapped != origin.adds_stated;
            origin.gather_cells();
            let listed = &origin.source.segments;
            let of_file =
                |cells: &&mut SegmentCells| listed.iter().any(|to| to.nonce == cells.nonce());
            for readings in origin.cells.iter_mut().filter(of_file) {
                if !state(feed, (not_mapped, is_news), readings) {
                    return;
                }
            }
            origin.adds_stated = not_mapped;
        }
    }

    /// Whether a feed has counters or histograms.
    pub fn have_cells(&self) -> bool {
        self.by_feed.values().any(|origin| !origin.cells.is_empty())
    }

    /// The feeds that may have further frames.
    pub fn alive(&self) -> BTreeSet<usize> {
        self.feeds_that(|_, origin| !origin.segments.is_empty())
    }

    /// The feeds that another file has to state if this one has no end.
    pub fn unstated(&self) -> BTreeSet<usize> {
        let totals = self.dropped_now();
        self.feeds_that(|feed, origin| {
            let stated = origin.dropped_so_far();
            !origin.segments.is_empty() || totals.get(feed).is_some_and(|&total| total != stated)
        })
    }

    fn feeds_that(&self, are: impl Fn(usize, &Origin) -> bool) -> BTreeSet<usize> {
        let feeds = self.by_feed.iter().filter(|(feed, origin)| are(**feed, origin));
        feeds.map(|(&feed, _)| feed).collect()
    }

    /// The drops of each feed so far.
    pub fn dropped_now(&self) -> MutexGuard<'_, Vec<Dropped>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The drops that a file that ends now has to state, by feed. `dropped` is the total of each
    /// feed.
    pub fn drops(&self, dropped: &[Dropped]) -> impl Iterator<Item = (usize, Dropped)> {
        let now = |feed: usize| dropped.get(feed).copied().unwrap_or_default();
        self.by_feed.iter().map(move |(&feed, origin)| (feed, origin.dropped(now(feed))))
    }

    /// Calls `state` with the drops that the file does not state yet, by feed. `state` returns
    /// whether it wrote them and continues. `None` skips the feed.
    pub fn state_drops(&mut self, mut state: impl FnMut(usize, Dropped) -> Option<bool>) {
        let totals = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        for (&feed, origin) in &mut self.by_feed {
            let dropped = origin.dropped(totals.get(feed).copied().unwrap_or_default());
            if dropped == origin.dropped_stated {
                continue;
            }
            match state(feed, dropped) {
                Some(true) => origin.dropped_stated = dropped,
                Some(false) => return,
                None => {}
            }
        }
    }

    /// Starts a file that has only the feeds `staying`. `dropped` is the total of each before this
    /// file.
    pub fn begin_file(
        &mut self,
        staying: &BTreeSet<usize>,
        dropped: impl Fn(usize, &Origin) -> Dropped,
    ) {
        self.by_feed.retain(|feed, _| staying.contains(feed));
        for (&feed, origin) in &mut self.by_feed {
            origin.dropped_before = dropped(feed, origin);
            origin.dropped_stated = Dropped::default();
            origin.adds_before += std::mem::take(&mut origin.adds_stated);
        }
    }
}
