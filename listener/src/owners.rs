//! Determines which thread wrote which frames of a ring.

use std::sync::atomic::AtomicU64;

use ppt_segment::Ring;
use ppt_segment::abi::OWNER_HISTORY;
use ppt_segment::owner::Tenure;

/// Frames from `first_seq` on belong to thread `tid`, up to the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OwnerRun {
    pub first_seq: u64,
    /// 0 = unknown.
    pub tid: u32,
}

/// Upper limit: an unknown owner before the history, the owner known from the last look, and the
/// history.
pub(crate) const MAX_OWNER_RUNS: usize = OWNER_HISTORY + 2;

/// The known owners of a ring.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// The newest claim found so far, with its tenure.
    last: Option<(u32, Tenure)>,
}

/// The owners of a batch of frames.
#[derive(Debug, Default)]
pub(crate) struct OwnerRuns {
    runs: [OwnerRun; MAX_OWNER_RUNS],
    len: usize,
    /// Number of owners of the ring since the last look, as far as the history reaches.
    pub claims: u32,
}

impl OwnerRuns {
    /// The runs in ascending order. The first one is at the start of the batch.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = OwnerRun> + use<'_> {
        self.runs[..self.len].iter().copied()
    }

    /// The thread of the whole batch, if it was one.
    pub fn only(&self) -> Option<u32> {
        (self.len == 1).then(|| self.runs[0].tid)
    }

    /// Adds a run, which replaces the last one unless it begins later.
    fn push(&mut self, run: OwnerRun) {
        while self.len > 0 && self.runs[self.len - 1].first_seq >= run.first_seq {
            self.len -= 1;
        }
        self.runs[self.len] = run;
        self.len += 1;
    }
}

impl Owners {
    /// The threads that wrote the frames from `first_seq` up to `next_seq`. The caller has already
    /// copied the frames, so their writers have claimed the ring.
    ///
    /// A thread is named only if it is certain: after four further owners, it is unknown.
    pub fn runs(&mut self, ring: Ring<'_, AtomicU64>, first_seq: u64, next_seq: u64) -> OwnerRuns {
        let mut runs = OwnerRuns::default();
        let epoch = ring.owner().epoch;
        match self.last {
            Some((known, tenure)) if known == epoch && tenure.first_seq <= first_seq => {
                runs.push(OwnerRun { first_seq, tid: tenure.tid });
                return runs;
            }
            _ => {}
        }
        let (found, newest) = look(ring, epoch, first_seq);
        runs.claims = match (newest, self.last) {
            (Some(newest), Some((last, _))) => newest.wrapping_sub(last).min(OWNER_HISTORY as u32),
            (newest, _) => u32::from(newest.is_some()),
        };

        runs.push(OwnerRun { first_seq, tid: 0 });
        // A tenure that begins after the batch is ignored: a later claim, or a wrong entry of the
        // target.
        let mut run = |tenure: &Tenure| {
            if tenure.first_seq < next_seq {
                runs.push(OwnerRun { first_seq: tenure.first_seq.max(first_seq), tid: tenure.tid });
            }
        };
        let oldest = newest.map(|newest| newest.wrapping_sub(found.len() as u32 - 1));
        if let (Some((known, tenure)), Some(oldest)) = (self.last, oldest) {
            // The tenure before the oldest one found: its end is known, too.
            if oldest.wrapping_sub(known) == 1 {
                run(&tenure);
            }
        }
        found.iter().rev().for_each(run);
        if let (Some(newest), Some(&tenure)) = (newest, found.first()) {
            self.last = Some((newest, tenure));
        }
        runs
    }
}

/// Consecutive tenures, the newest first, back to the one that covers `first_seq` or as far as the
/// history reaches; and the newest claim's epoch.
fn look(ring: Ring<'_, AtomicU64>, epoch: u32, first_seq: u64) -> (Vec<Tenure>, Option<u32>) {
    let mut found = Vec::with_capacity(OWNER_HISTORY);
    let mut newest = None;
    for back in 0..OWNER_HISTORY as u32 {
        let claim = epoch.wrapping_sub(back);
        match ring.tenure(claim) {
            Some(tenure) => {
                newest.get_or_insert(claim);
                found.push(tenure);
                if tenure.first_seq <= first_seq {
                    break;
                }
            }
            // The thread has not entered itself yet, so it has published nothing either.
            None if back == 0 && ring.owner().epoch.wrapping_sub(epoch) < OWNER_HISTORY as u32 => {}
            None => break,
        }
    }
    (found, newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_segment::RingWriter;
    use ppt_segment::abi::ring_word;

    struct RingMemory(Vec<AtomicU64>, Vec<AtomicU64>);

    impl RingMemory {
        fn new() -> Self {
            let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
            Self(zeros(ring_word::COUNT), zeros(64 * 2))
        }
        fn ring(&self) -> Ring<'_, AtomicU64> {
            Ring::new(&self.0, &self.1, 2)
        }
        /// A thread claims the ring, writes, and releases it.
        fn visit(&self, tid: u32, frames: u64) {
            assert!(self.ring().claim(tid));
            let mut writer = RingWriter::new(self.ring());
            (0..frames).for_each(|_| _ = writer.write([0]));
            self.ring().release(self.ring().owner().epoch);
        }
    }

    fn of(owners: &mut Owners, memory: &RingMemory, first: u64, next: u64) -> Vec<(u64, u32)> {
        owners.runs(memory.ring(), first, next).iter().map(|run| (run.first_seq, run.tid)).collect()
    }

    #[test]
    fn an_unclaimed_ring_has_no_owner() {
        let memory = RingMemory::new();
        assert_eq!(of(&mut Owners::default(), &memory, 1, 5), [(1, 0)]);
    }

    #[test]
    fn owners_between_two_looks_are_distinguished() {
        let memory = RingMemory::new();
        let mut owners = Owners::default();
        memory.visit(10, 3);
        assert_eq!(of(&mut owners, &memory, 1, 4), [(1, 10)]);
        memory.visit(11, 2);
        memory.visit(12, 0);
        memory.visit(13, 2);
        assert_eq!(of(&mut owners, &memory, 4, 8), [(4, 11), (6, 13)]);
        memory.visit(14, 1);
        assert_eq!(of(&mut owners, &memory, 8, 9), [(8, 14)]);
        assert_eq!(of(&mut owners, &memory, 9, 10), [(9, 14)], "the same one goes on");
    }

    #[test]
    fn the_last_known_owner_fills_in_for_a_history_that_just_lacks_it() {
        let memory = RingMemory::new();
        let mut owners = Owners::default();
        assert!(memory.ring().claim(10));
        let mut writer = RingWriter::new(memory.ring());
        writer.write([0]);
        assert_eq!(of(&mut owners, &memory, 1, 2), [(1, 10)]);
        writer.write([0]);
        memory.ring().release(1);
        (11..15).for_each(|tid| memory.visit(tid, 1));
        let expected = [(2, 10), (3, 11), (4, 12), (5, 13), (6, 14)];
        assert_eq!(of(&mut owners, &memory, 2, 7), expected);
    }

    #[test]
    fn more_owners_than_the_history_holds_leave_some_unknown() {
        let memory = RingMemory::new();
        let mut owners = Owners::default();
        memory.visit(10, 1);
        assert_eq!(of(&mut owners, &memory, 1, 2), [(1, 10)]);
        (11..17).for_each(|tid| memory.visit(tid, 1));
        let expected = [(2, 0), (4, 13), (5, 14), (6, 15), (7, 16)];
        assert_eq!(of(&mut owners, &memory, 2, 8), expected);
    }

    #[test]
    fn an_owner_of_later_frames_has_no_part_in_earlier_ones() {
        let memory = RingMemory::new();
        let mut owners = Owners::default();
        memory.visit(10, 9);
        memory.visit(11, 3);
        // The result is kept, although it begins after the requested frames.
        assert_eq!(of(&mut owners, &memory, 1, 4), [(1, 10)]);
        memory.visit(12, 1);
        // A later claim overtakes the second one while the history is read.
        let noted = ring_word::HISTORY + 2 * ring_word::OWNER_WORDS + 1;
        memory.0[noted].store(0, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(of(&mut owners, &memory, 4, 7), [(4, 0)]);
    }

    #[test]
    fn a_claim_that_is_not_noted_yet_leaves_the_last_owner_in_place() {
        let memory = RingMemory::new();
        let mut owners = Owners::default();
        memory.visit(10, 2);
        // Epoch 2, active, and no history entry: a thread between its two steps.
        memory.0[ring_word::OWNER].store(2 << 32 | 1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(of(&mut owners, &memory, 1, 3), [(1, 10)]);
    }
}
