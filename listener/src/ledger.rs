//! The accounts of all rings, segment by segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use ppt_capture::Gap;

use crate::account::{Closing, FrameAccount, RunningRingAccount};
use crate::tally::FeedTally;

/// The account of every frame of every ring, up to the position of one sink.
///
/// A segment that has ended is kept until the file that states its end has ended. After that, the
/// ledger keeps only the accounts of its rings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    segments: BTreeMap<usize, SegmentAccounts>,
    /// Rings of released segments.
    past: Vec<RunningRingAccount>,
    captured: u64,
    /// The number of rings that the end of the file will mention.
    rings_in_file: u64,
    /// The displays of each feed's numbers.
    tallies: BTreeMap<usize, Arc<FeedTally>>,
}

/// The rings of one segment.
#[derive(Debug, Clone)]
struct SegmentAccounts {
    feed: usize,
    nonce: u64,
    /// The cursor of each ring at the start of the session.
    first: Vec<u64>,
    /// Rings with an account.
    entries: BTreeMap<u32, RunningRingAccount>,
    /// Whether the segment has ended.
    closed: bool,
}

impl SegmentAccounts {
    fn entry(&mut self, ring: u32) -> &mut RunningRingAccount {
        let Self { feed, nonce, first, entries, .. } = self;
        let new = || RunningRingAccount::new(*feed, *nonce, ring, first[ring as usize]);
        entries.entry(ring).or_insert_with(new)
    }
}

impl Ledger {
    /// Opens the accounts of segment `segment_number` with nonce `nonce`, which belongs to `feed`.
    /// `first` is the cursor of each of its rings at the start.
    pub fn open(&mut self, segment_number: usize, feed: usize, nonce: u64, first: Vec<u64>) {
        let mut segment =
            SegmentAccounts { feed, nonce, first, entries: BTreeMap::new(), closed: false };
        for ring in 0..segment.first.len() {
            if segment.first[ring] > 0 {
                segment.entry(ring as u32);
                self.rings_in_file += 1;
            }
        }
        self.segments.insert(segment_number, segment);
    }

    /// Makes `tally` show the numbers of a feed.
    pub fn show(&mut self, feed: usize, tally: &Arc<FeedTally>) {
        self.tallies.insert(feed, tally.clone());
    }

    /// No more frames of a feed come.
    pub fn end(&mut self, feed: usize) {
        if let Some(tally) = self.tallies.remove(&feed) {
            tally.end();
        }
    }

    /// Calls a function with the account of a ring of segment `segment_number`.
    ///
    /// # Panics
    /// If that segment has not been opened.
    pub fn with<T>(
        &mut self,
        segment_number: usize,
        ring: u32,
        act: impl FnOnce(&mut RunningRingAccount) -> T,
    ) -> T {
        let entry = self.segments.get_mut(&segment_number).expect("it was introduced").entry(ring);
        let (before, was_in_file) = (entry.account, entry.is_in_file());
        let done = act(entry);
        self.captured += entry.account.captured - before.captured;
        self.rings_in_file += u64::from(entry.is_in_file() && !was_in_file);
        if let Some(tally) = self.tallies.get(&before.feed) {
            tally.account(&before, &entry.account);
        }
        done
    }

    /// No more frames come from segment `segment_number`, whose rings ended in these states.
    /// Returns its feed.
    ///
    /// # Panics
    /// If that segment has not been opened.
    pub fn close(&mut self, segment_number: usize, closings: &[Closing]) -> usize {
        for closing in closings {
            self.with(segment_number, closing.ring, |entry| entry.close(closing));
        }
        let segment = self.segments.get_mut(&segment_number).expect("it was introduced");
        segment.closed = true;
        segment.feed
    }

    /// The accounts of all segments that are not released.
    pub fn entries(&self) -> impl Iterator<Item = &RunningRingAccount> {
        self.segments.values().flat_map(|segment| segment.entries.values())
    }

    /// The gaps that the file does not state yet, with the segment number: of the rings of segment
    /// `segment_number`, or of all rings. `source` returns the source number of a ring in the file.
    /// Rings without one are left out.
    pub fn gaps(
        &self,
        segment_number: Option<usize>,
        source: impl Fn(&FrameAccount) -> Option<u16>,
    ) -> Vec<(usize, FrameAccount, Gap)> {
        let segments = match segment_number {
            Some(segment_number) => self.segments.range(segment_number..=segment_number),
            None => self.segments.range(..),
        };
        let entries = segments.flat_map(|(&segment_number, segment)| {
            segment.entries.values().map(move |entry| (segment_number, entry))
        });
        let gaps = entries.filter(|(_, entry)| !entry.is_stated()).filter_map(
            |(segment_number, entry)| {
                let source = source(&entry.account)?;
                Some(entry.gaps(source).map(move |gap| (segment_number, entry.account, gap)))
            },
        );
        gaps.flatten().collect()
    }

    /// Starts another file. Ended segments that the previous file stated completely are released.
    pub fn begin_file(&mut self) {
        let past = &mut self.past;
        self.segments.retain(|_, segment| {
            let is_over =
                segment.closed && segment.entries.values().all(RunningRingAccount::is_stated);
            if is_over {
                let entries = std::mem::take(&mut segment.entries);
                past.extend(entries.into_values());
            }
            !is_over
        });
        let entries = self.segments.values_mut().flat_map(|segment| segment.entries.values_mut());
        self.rings_in_file = entries
            .map(|entry| {
                entry.begin_file();
                u64::from(entry.is_in_file())
            })
            .sum();
    }

    /// Frames in all files so far.
    pub fn captured(&self) -> u64 {
        self.captured
    }

    /// The rings that the end of the file will mention.
    pub fn rings_in_file(&self) -> u64 {
        self.rings_in_file
    }

    /// Every account.
    pub fn into_all(self) -> impl Iterator<Item = RunningRingAccount> {
        let now = self.segments.into_values().flat_map(|segment| segment.entries.into_values());
        self.past.into_iter().chain(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Chunk, Frames};
    use ppt_capture::Lost;

    fn chunk(first_seq: u64, count: u32) -> Frames {
        Chunk { first_seq, count, ..Chunk::default() }.into()
    }

    fn closing(ring: u32, next_seq: u64, overrun: u64) -> Closing {
        let lost = Lost { overrun, ..Lost::default() };
        Closing { ring, next_seq, lost, broken: None }
    }

    #[test]
    fn the_end_of_a_segment_is_stated_once_and_kept_in_short() {
        let mut ledger = Ledger::default();
        ledger.open(4, 0, 77, vec![0; 64]);
        ledger.open(5, 1, 78, vec![0, 9]);
        assert_eq!(ledger.rings_in_file(), 1, "one was written to before");
        ledger.with(4, 3, |entry| entry.take(&chunk(1, 10), 10));
        assert_eq!((ledger.captured(), ledger.rings_in_file()), (10, 2));
        ledger.close(4, &[closing(3, 16, 2)]);
        let gaps = ledger.gaps(None, |account| Some(account.feed as u16));
        let named: Vec<_> = gaps.iter().map(|(_, _, gap)| (gap.first_seq, gap.count)).collect();
        assert_eq!(named, [(11, 2), (13, 3)], "two ran over, three were never written");
        // A file that begins now states them, and is the last to mention the ring.
        ledger.begin_file();
        assert_eq!((ledger.rings_in_file(), ledger.entries().count()), (1, 2));
        for (segment_number, ring, gap) in &gaps {
            ledger.with(*segment_number, ring.ring, |entry| entry.state(gap));
        }
        assert_eq!(ledger.gaps(None, |_| Some(0)), []);
        assert_eq!(ledger.entries().count(), 2);
        let end = ledger.entries().next().unwrap().ring_end(0);
        assert_eq!((end.first_seq, end.next_seq, end.captured, end.lost.total()), (11, 16, 0, 5));

        ledger.begin_file();
        assert_eq!((ledger.rings_in_file(), ledger.entries().count()), (0, 1));
        ledger.with(5, 1, |entry| entry.take(&chunk(10, 3), 3));
        assert_eq!((ledger.captured(), ledger.rings_in_file()), (13, 1));
        let sums =
            ledger.into_all().map(|account| (account.account.nonce, account.account.captured));
        assert_eq!(sums.collect::<Vec<_>>(), [(77, 10), (78, 3)]);
    }
}
