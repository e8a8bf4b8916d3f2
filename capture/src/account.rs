//! Sums captured and missing frames from the chunks of a capture.

use std::collections::BTreeMap;

use crate::cause::{Cause, Dropped, Lost};
use crate::chunk::{Drops, FramesHead, Gap};
use crate::end::{End, RingEnd};
use crate::error::DamageKind;
use crate::ranges::Ranges;

/// Identifies one ring in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RingKey {
    /// The source.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
}

/// The account of one ring: `captured + lost.total() + damaged + left_out + unattended within ==
/// next_seq - first_seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAccount {
    /// The first sequence number of the session that a chunk states.
    pub first_seq: u64,
    /// The sequence number after the last.
    pub next_seq: u64,
    /// Frames that the reader returned.
    pub captured: u64,
    /// Frames that the listener lost.
    pub lost: Lost,
    /// Frames that no readable chunk accounts for, because the file is damaged.
    pub damaged: u64,
    /// Frames that the listener left out on request.
    pub left_out: u64,
    /// Frames between sessions, which are neither captured nor lost.
    pub unattended: u64,
}

impl RingAccount {
    /// The lost frames as every output counts them. Frames lost by damage count as `corrupt`.
    pub fn lost_with_damage(&self) -> Lost {
        let mut lost = self.lost;
        lost.add(Cause::Corrupt, self.damaged);
        lost
    }
}

/// A ring for which the end chunk, the listener's own account, disagrees with the other chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// The ring.
    pub key: RingKey,
    /// The account in the end chunk.
    pub stated: RingEnd,
    /// The account that follows from the chunks.
    pub found: RingAccount,
}

/// The sums of the chunks read so far. They are exact after every chunk, and so for a truncated
/// capture, too.
#[derive(Debug, Clone, Default)]
pub struct Account {
    rings: BTreeMap<RingKey, RingTally>,
    dropped: BTreeMap<u16, Dropped>,
}

/// Most rings of one capture; more are damage (a segment has at most 65,536 rings).
const MAX_RINGS: usize = 1 << 20;

#[derive(Debug, Clone, Default)]
struct RingTally {
    /// Every number that a chunk accounts for.
    seen: Ranges,
    /// From the first captured or lost frame to after the last. `None` if there is none.
    span: Option<(u64, u64)>,
    captured: u64,
    bad: u64,
    lost: Lost,
    left_out: u64,
    unattended: u64,
}

impl RingTally {
    fn widen(&mut self, first: u64, next: u64) {
        let (start, end) = self.span.unwrap_or((first, next));
        self.span = Some((start.min(first), end.max(next)));
    }

    fn account(&self) -> RingAccount {
        let (first_seq, next_seq) = self.span.unwrap_or_default();
        RingAccount {
            first_seq,
            next_seq,
            captured: self.captured,
            lost: self.lost,
            damaged: self.seen.missing(first_seq, next_seq).saturating_add(self.bad),
            left_out: self.left_out,
            unattended: self.unattended,
        }
    }
}

impl Account {
    /// Adds a frames chunk of which `bad` frames are damaged. An error rejects the frames, because
    /// a number is returned only once. `Ok(false)`: `lost_before` repeats earlier statements.
    pub(crate) fn frames(&mut self, head: &FramesHead, bad: u32) -> Result<bool, DamageKind> {
        let tally = self.tally(RingKey::of_frames(head))?;
        if !tally.seen.insert(head.first_seq, head.next_seq()) {
            return Err(overlap(head.ring, head.first_seq, head.next_seq()));
        }
        tally.widen(head.first_seq, head.next_seq());
        tally.captured += u64::from(head.count.saturating_sub(bad));
        tally.bad += u64::from(bad);
        let lost = head.lost_before.total();
        let from = head.first_seq - lost;
        if lost == 0 {
            return Ok(true);
        }
        if !tally.seen.insert(from, head.first_seq) {
            return Ok(false);
        }
        tally.widen(from, head.first_seq);
        tally.lost += head.lost_before;
        Ok(true)
    }

    /// Adds a gap chunk.
    pub(crate) fn gap(&mut self, gap: &Gap) -> Result<(), DamageKind> {
        let tally = self.tally(RingKey::of_gap(gap))?;
        if !tally.seen.insert(gap.first_seq, gap.next_seq()) {
            return Err(overlap(gap.ring, gap.first_seq, gap.next_seq()));
        }
        if gap.cause == Cause::Unattended {
            tally.unattended = tally.unattended.saturating_add(gap.count);
            return Ok(());
        }
        tally.widen(gap.first_seq, gap.next_seq());
        if !tally.lost.add(gap.cause, gap.count) {
            tally.left_out = tally.left_out.saturating_add(gap.count);
        }
        Ok(())
    }

    /// Adds a drops chunk. The last one counts.
    pub(crate) fn drops(&mut self, drops: &Drops) {
        self.dropped.insert(drops.source, drops.dropped);
    }

    /// Adds the listener's account, which states the final cursors even if the file lost chunks.
    pub(crate) fn end(&mut self, end: &End) -> Result<(), DamageKind> {
        for stated in &end.rings {
            if stated.first_seq > stated.next_seq {
                return Err(DamageKind::Content("a ring that ends before it begins"));
            }
            self.tally(RingKey::of_end(stated))?.widen(stated.first_seq, stated.next_seq);
        }
        self.dropped.extend(end.drops.iter().copied());
        Ok(())
    }

    fn tally(&mut self, key: RingKey) -> Result<&mut RingTally, DamageKind> {
        if self.rings.len() >= MAX_RINGS && !self.rings.contains_key(&key) {
            return Err(DamageKind::Content("more rings than any capture has"));
        }
        Ok(self.rings.entry(key).or_default())
    }

    /// Every ring that a chunk mentions, sorted by source, nonce and number.
    pub fn rings(&self) -> impl Iterator<Item = (RingKey, RingAccount)> {
        self.rings.iter().map(|(&key, tally)| (key, tally.account()))
    }

    /// The frames that `source` dropped.
    pub fn dropped(&self, source: u16) -> Dropped {
        self.dropped.get(&source).copied().unwrap_or_default()
    }

    /// The runs of sequence numbers that the capture accounts for, including unattended ones: the
    /// ring, the first number, and the number after the last. Runs of a ring neither overlap nor
    /// touch. A ring without frames that the end lists has an empty run at its cursor.
    pub fn held(&self) -> impl Iterator<Item = (RingKey, u64, u64)> {
        self.rings.iter().flat_map(|(&key, tally)| {
            let mut runs = tally.seen.with(tally.span.unwrap_or_default());
            if runs.is_empty() {
                runs.extend(tally.span);
            }
            runs.into_iter().map(move |(first_seq, next_seq)| (key, first_seq, next_seq))
        })
    }

    /// The sequence numbers that were lost by damage, as gaps.
    pub fn holes(&self) -> impl Iterator<Item = Gap> {
        self.rings.iter().flat_map(|(key, tally)| {
            let (first, next) = tally.span.unwrap_or_default();
            tally.seen.holes(first, next).map(|(from, to)| Gap {
                source: key.source,
                nonce: key.nonce,
                ring: key.ring,
                first_seq: from,
                count: to - from,
                cause: Cause::Corrupt,
            })
        })
    }

    /// The rings for which `end` disagrees with the other chunks. An undamaged capture has none. In
    /// a damaged capture, these rings lack frames.
    pub fn mismatches(&self, end: &End) -> Vec<Mismatch> {
        let pairs = end.rings.iter().filter_map(|stated| {
            let key = RingKey::of_end(stated);
            let found = self.rings.get(&key)?.account();
            Some(Mismatch { key, stated: *stated, found })
        });
        let differs = |one: &Mismatch| {
            (one.stated.first_seq, one.stated.next_seq, one.stated.captured, one.stated.lost)
                != (one.found.first_seq, one.found.next_seq, one.found.captured, one.found.lost)
        };
        pairs.filter(differs).collect()
    }
}

impl RingKey {
    fn of_frames(head: &FramesHead) -> Self {
        RingKey { source: head.source, nonce: head.nonce, ring: head.ring }
    }

    /// The ring of a gap.
    pub fn of_gap(gap: &Gap) -> Self {
        RingKey { source: gap.source, nonce: gap.nonce, ring: gap.ring }
    }

    fn of_end(end: &RingEnd) -> Self {
        RingKey { source: end.source, nonce: end.nonce, ring: end.ring }
    }
}

fn overlap(ring: u32, first_seq: u64, next_seq: u64) -> DamageKind {
    DamageKind::Overlap { ring, first_seq, last_seq: next_seq - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first_seq: u64, count: u32, overrun: u64) -> FramesHead {
        let lost_before = Lost { overrun, ..Lost::default() };
        FramesHead { first_seq, count, lost_before, ..FramesHead::default() }
    }

    fn gap(first_seq: u64, count: u64, cause: Cause) -> Gap {
        Gap { source: 0, nonce: 0, ring: 0, first_seq, count, cause }
    }

    fn only(account: &Account) -> RingAccount {
        account.rings().next().unwrap().1
    }

    #[test]
    fn frames_losses_and_holes_add_up_to_the_span() {
        let mut account = Account::default();
        account.gap(&gap(1, 99, Cause::Unattended)).unwrap();
        account.frames(&head(105, 10, 5), 1).unwrap();
        account.frames(&head(120, 10, 0), 0).unwrap();
        account.gap(&gap(130, 4, Cause::Disk)).unwrap();
        account.gap(&gap(134, 7, Cause::LeftOut)).unwrap();
        let ring = only(&account);
        assert_eq!((ring.first_seq, ring.next_seq, ring.left_out), (100, 141, 7));
        assert_eq!((ring.captured, ring.damaged, ring.unattended), (19, 6, 99));
        assert_eq!(ring.lost, Lost { overrun: 5, disk: 4, corrupt: 0 });
        assert_eq!(ring.captured + ring.lost_with_damage().total() + ring.left_out, 41);
        assert_eq!(account.holes().collect::<Vec<_>>(), [gap(115, 5, Cause::Corrupt)]);
    }

    #[test]
    fn nothing_is_counted_twice() {
        let mut account = Account::default();
        account.frames(&head(10, 10, 0), 0).unwrap();
        assert!(account.frames(&head(19, 10, 0), 0).is_err());
        assert!(account.gap(&gap(5, 6, Cause::Overrun)).is_err());
        assert_eq!(account.frames(&head(25, 1, 7), 0), Ok(false), "the loss overlaps");
        assert_eq!(only(&account).captured, 11);
    }

    #[test]
    fn the_end_shows_what_the_file_lacks() {
        let mut account = Account::default();
        account.frames(&head(1, 10, 0), 0).unwrap();
        let ring = RingEnd { first_seq: 1, next_seq: 21, captured: 20, ..RingEnd::default() };
        let end = End {
            reason: crate::EndReason::Stopped,
            message: String::new(),
            rings: vec![ring],
            drops: vec![(0, Dropped { nested: 3, ..Dropped::default() })],
            realtime_ns: 0,
            mono_ns: 0,
        };
        account.end(&end).unwrap();
        assert_eq!(only(&account).damaged, 10);
        assert_eq!(account.dropped(0).nested, 3);
        assert_eq!(account.mismatches(&end).len(), 1);
    }
}
