//! Accounts for every frame of a ring.

use ppt_capture::{Cause, Gap, Lost, RingEnd};
use ppt_segment::BrokenCursor;

use crate::chunk::Frames;

/// The account of one ring over the session: `captured + lost.total() + left_out ==
/// next_seq - first_seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAccount {
    /// The feed, from 0. It is the source number in the capture, unless the capture continues in
    /// many files.
    pub feed: usize,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
    /// Sequence number of the first frame of the session, even if that frame is missing.
    pub first_seq: u64,
    /// The sequence number after the last frame.
    pub next_seq: u64,
    /// Frames in the file.
    pub captured: u64,
    /// Frames not in the file, by cause.
    pub lost: Lost,
    /// Frames not in the file because the caller did not want them.
    pub left_out: u64,
}

impl FrameAccount {
    /// Whether the sums are right.
    pub fn adds_up(&self) -> bool {
        self.captured + self.lost.total() + self.left_out == self.next_seq - self.first_seq
    }
}

/// The account of one ring in progress. It follows the queue, in order.
#[derive(Debug, Clone)]
pub(crate) struct RunningRingAccount {
    pub account: FrameAccount,
    /// The account at the start of the file. The file's own account is the difference.
    begin: FrameAccount,
    /// Losses right before `next_seq` that the file does not state yet.
    unstated: Lost,
    /// Whether the file states anything about the ring.
    is_in_file: bool,
    /// The invalid cursor, if the ring was given up.
    pub broken: Option<BrokenCursor>,
}

impl RunningRingAccount {
    /// A ring whose session starts at `cursor`.
    pub fn new(feed: usize, nonce: u64, ring: u32, cursor: u64) -> Self {
        // A target may have left any cursor behind. A cursor at the very end never moves again.
        let first_seq = cursor.saturating_add(1);
        let next_seq = first_seq;
        let account = FrameAccount {
            feed,
            nonce,
            ring,
            first_seq,
            next_seq,
            captured: 0,
            lost: Lost::default(),
            left_out: 0,
        };
        let (begin, is_in_file) = (account, account.next_seq > 1);
        Self { account, begin, unstated: Lost::default(), is_in_file, broken: None }
    }

    /// Whether any thread has written to the ring, as far as the listener knows. The file does not
    /// mention other rings.
    pub fn is_listed(&self) -> bool {
        self.account.next_seq > 1
    }

    /// Whether the end of the file mentions the ring.
    pub fn is_in_file(&self) -> bool {
        self.is_in_file
    }

    /// Starts another file, which states what the previous file leaves open.
    pub fn begin_file(&mut self) {
        self.begin = self.account;
        self.begin.next_seq -= self.unstated.total();
        self.begin.lost = self.begin.lost - self.unstated;
        self.is_in_file = !self.is_stated();
    }

    /// The file's own account of the ring, which belongs to source `source`.
    pub fn ring_end(&self, source: u16) -> RingEnd {
        let FrameAccount { nonce, ring, next_seq, captured, lost, .. } = self.account;
        RingEnd {
            source,
            nonce,
            ring,
            first_seq: self.begin.next_seq,
            next_seq,
            captured: captured - self.begin.captured,
            lost: lost - self.begin.lost,
        }
    }

    /// The losses that a chunk written now must state.
    pub fn lost_before(&self, frames: &Frames) -> Lost {
        let mut lost = self.unstated;
        lost += frames.lost_before;
        lost
    }

    /// The first `written` of `frames` are in the file; the others are lost.
    pub fn take(&mut self, frames: &Frames, written: u32) {
        let chunk = &frames.chunk;
        self.lose(frames.lost_before);
        if written > 0 {
            self.unstated = Lost::default();
            self.is_in_file = true;
        }
        self.account.captured += u64::from(written);
        self.account.next_seq += u64::from(written);
        self.lose(Lost { disk: u64::from(chunk.count - written), ..Lost::default() });
        debug_assert_eq!(self.account.next_seq, chunk.next_seq());
        debug_assert!(self.account.adds_up());
    }

    /// The file states that the next `count` frames were left out. It states all earlier ones, too.
    pub fn leave_out(&mut self, count: u64) {
        self.account.left_out += count;
        self.account.next_seq += count;
        self.is_in_file = true;
        debug_assert!(self.is_stated() && self.account.adds_up());
    }

    /// Records `lost` at the current end.
    pub fn lose(&mut self, lost: Lost) {
        self.account.next_seq += lost.total();
        self.account.lost += lost;
        self.unstated += lost;
        self.is_in_file |= lost.total() > 0;
    }

    /// The ring ends. Frames that were in the queue and were not written are lost.
    pub fn close(&mut self, closing: &Closing) {
        let missing = closing.next_seq.saturating_sub(self.account.next_seq);
        let disk = missing.saturating_sub(closing.lost.total());
        self.lose(Lost { disk, ..Lost::default() });
        if missing > 0 {
            self.lose(closing.lost);
        }
        self.broken = closing.broken;
        debug_assert_eq!(self.account.next_seq, closing.next_seq);
    }

    /// The cursor up to which the file accounts for all frames.
    pub fn stated(&self) -> u64 {
        self.account.next_seq - 1 - self.unstated.total()
    }

    /// Whether the file accounts for all frames so far.
    pub fn is_stated(&self) -> bool {
        self.unstated.total() == 0
    }

    /// The losses that the file does not state yet, as contiguous gaps of source `source`.
    pub fn gaps(&self, source: u16) -> impl Iterator<Item = Gap> + use<> {
        let FrameAccount { nonce, ring, next_seq, .. } = self.account;
        let mut first_seq = next_seq - self.unstated.total();
        let parts = self.unstated.by_cause().into_iter().filter(|&(_, count)| count > 0);
        parts.map(move |(cause, count): (Cause, u64)| {
            let gap = Gap { source, nonce, ring, first_seq, count, cause };
            first_seq += count;
            gap
        })
    }

    /// The file states the first of these gaps.
    pub fn state(&mut self, gap: &Gap) {
        let mut stated = Lost::default();
        stated.add(gap.cause, gap.count);
        self.unstated = self.unstated - stated;
    }
}

/// The final state of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Closing {
    /// The ring of its segment.
    pub ring: u32,
    /// Sequence number of the first unread frame.
    pub next_seq: u64,
    /// Frames lost at its end, which no chunk states.
    pub lost: Lost,
    /// Set when it was given up.
    pub broken: Option<BrokenCursor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::chunk::Chunk;

    fn chunk(first_seq: u64, count: u32, lost_before: Lost) -> Frames {
        Chunk { first_seq, count, lost_before, ..Chunk::default() }.into()
    }

    #[test]
    fn what_is_not_written_is_stated_by_the_next_chunk_or_by_gaps() {
        let overrun = |overrun| Lost { overrun, ..Lost::default() };
        let mut entry = RunningRingAccount::new(1, 7, 3, 100);
        entry.take(&chunk(106, 10, overrun(5)), 4);
        assert_eq!(entry.account.lost, Lost { overrun: 5, disk: 6, corrupt: 0 });
        let next = chunk(118, 1, overrun(2));
        assert_eq!(entry.lost_before(&next), Lost { overrun: 2, disk: 6, corrupt: 0 });
        entry.take(&next, 1);
        assert!(entry.is_stated() && entry.gaps(1).count() == 0);
        entry.lose(Lost { overrun: 1, disk: 0, corrupt: 2 });
        let gaps: Vec<_> = entry.gaps(1).collect();
        let named: Vec<_> = gaps.iter().map(|gap| (gap.first_seq, gap.count, gap.cause)).collect();
        assert_eq!(named, [(119, 1, Cause::Overrun), (120, 2, Cause::Corrupt)]);
        entry.state(&gaps[0]);
        assert_eq!(entry.gaps(1).collect::<Vec<_>>(), gaps[1..]);
        // A file that begins now has to state the other loss.
        entry.begin_file();
        let end = entry.ring_end(1);
        assert_eq!((end.first_seq, end.next_seq, end.lost.corrupt), (120, 122, 2));
        entry.state(&gaps[1]);
        assert!(entry.is_stated());
        assert!(entry.account.adds_up());
        assert_eq!(entry.account.next_seq, 122);
    }
}
