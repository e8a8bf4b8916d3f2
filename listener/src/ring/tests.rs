use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::sys::eventfd::EventFd;
use ppt_segment::RingWriter;
use ppt_segment::abi::ring_word;
use proptest::prelude::*;

use super::*;
use crate::account::RunningRingAccount;
use crate::buffer::SMALL_CHUNK;
use crate::lanes::Lane;
use crate::progress::SinkCounters;
use crate::queue::{NextTask, QueueItem, SinkQueue};

const SLOTS: u64 = 16;
const STRIDE: usize = 2;

#[derive(Debug, Clone)]
enum RingStep {
    Write(u8),
    /// Spoils the slot of the frame this many before the newest.
    Spoil(u8),
    Claim,
    Drain,
    Flush,
    /// One of the sinks writes this many frames of a chunk.
    Sink(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<RingStep>> {
    let step = prop_oneof![
        5 => (0..40u8).prop_map(RingStep::Write),
        1 => (0..16u8).prop_map(RingStep::Spoil),
        1 => Just(RingStep::Claim),
        4 => Just(RingStep::Drain),
        2 => Just(RingStep::Flush),
        4 => (0..2usize, prop_oneof![Just(0), 1..20u32, Just(u32::MAX)])
            .prop_map(|(sink, most)| RingStep::Sink(sink, most)),
    ];
    prop::collection::vec(step, 0..200)
}

/// A sink that writes as many frames as requested.
struct Taker {
    queue: Arc<SinkQueue>,
    counters: Arc<SinkCounters>,
    entry: RunningRingAccount,
    /// Frames before this one are stated.
    stated: u64,
}

impl Taker {
    fn new(limit: usize) -> Self {
        let counters = Arc::new(SinkCounters::new(EventFd::new().unwrap()));
        let queue = Arc::new(SinkQueue::new(limit, Default::default()));
        Self { queue, counters, entry: RunningRingAccount::new(0, 0, 0, 0), stated: 1 }
    }

    fn lane(&self) -> Lane {
        Lane::new(self.queue.clone(), self.counters.clone(), false)
    }

    /// Processes the next item. Returns whether there was one.
    fn take(&mut self, most: u32) -> bool {
        let frames = match self.queue.next(Duration::ZERO) {
            NextTask::Item(QueueItem::Frames(frames)) => frames,
            NextTask::Item(QueueItem::Gone(_, closings)) => {
                closings.iter().for_each(|closing| self.entry.close(closing));
                return true;
            }
            _ => return false,
        };
        let chunk = &frames.chunk;
        let written = chunk.count.min(most);
        if written > 0 {
            assert_eq!(chunk.first_seq - self.entry.lost_before(&frames).total(), self.stated);
            self.stated = chunk.first_seq + u64::from(written);
        }
        for (frame, seq) in chunk.bytes().chunks(STRIDE * 8).zip(chunk.first_seq..) {
            assert_eq!(frame[..8], seq.to_le_bytes());
            assert_eq!(frame[8..], (!seq).to_le_bytes());
        }
        assert_eq!(chunk.crc, ppt_capture::checksum(0, chunk.bytes()));
        self.entry.take(&frames, written);
        self.counters.captured(u64::from(written));
        self.counters.lost(u64::from(chunk.count - written));
        true
    }

    /// Checks that everything written is accounted for, up to cursor `tail`.
    fn check(&mut self, tail: u64, counters: &Counters) -> Result<(), TestCaseError> {
        while self.take(u32::MAX) {}
        let account = self.entry.account;
        prop_assert!(self.entry.broken.is_none());
        prop_assert_eq!(account.next_seq, tail + 1);
        prop_assert!(account.adds_up());
        let mut at = self.stated;
        for gap in self.entry.gaps(0) {
            prop_assert_eq!(gap.first_seq, at);
            at += gap.count;
        }
        prop_assert_eq!(at, tail + 1);
        let progress = counters.progress(&self.counters, Vec::new(), 0);
        prop_assert_eq!(progress.captured, account.captured);
        prop_assert_eq!(progress.lost, account.lost);
        prop_assert_eq!(progress.waiting, 0);
        Ok(())
    }
}

#[test]
fn a_cursor_that_goes_back_while_it_is_followed_is_given_up() {
    let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
    let ring = Ring::new(&header, &slots, STRIDE);
    let mut lanes = Lanes::new(Vec::new(), Arc::default());
    let counters = Counters::new(EventFd::new().unwrap());
    let mut out = Outlet {
        lanes: &mut lanes,
        counters: &counters,
        now: 0,
        since: 0,
        overrun: 0,
        full: SMALL_CHUNK,
        pushed: false,
        claims: 0,
        block: BLOCK,
        aside: Vec::new(),
    };
    let mut drain = RingDrain::new(RingPlace::default(), Arc::default(), 0, false);
    header[ring_word::TAIL].store(5, Relaxed);
    let until = drain.check_cursor(ring, 100).unwrap();
    header[ring_word::TAIL].store(0, Relaxed);
    drain.drain(ring, until, &mut out);
    assert_eq!(drain.closing().broken, Some(BrokenCursor { next: 0, tail: 0 }));
}

/// Only ppt's own frames are marked. In another ring, such a slot was never written.
#[test]
fn a_frame_that_was_lost_before_it_was_written_is_overrun() {
    for (marks, expected) in [(true, (3, 1)), (false, (0, 4))] {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
        let ring = Ring::new(&header, &slots, STRIDE);
        let mut writer = RingWriter::new(ring);
        let counters = Counters::new(EventFd::new().unwrap());
        let mut lanes = Lanes::new(Vec::new(), Arc::default());
        let mut out = Outlet {
            lanes: &mut lanes,
            counters: &counters,
            now: 0,
            since: 0,
            overrun: 0,
            full: SMALL_CHUNK,
            pushed: false,
            claims: 0,
            block: BLOCK,
            aside: Vec::new(),
        };
        writer.write([1]);
        (0..3).for_each(|_| _ = writer.lose());
        writer.write([2]);
        slots[4 * STRIDE].store(7, Relaxed);
        let mut drain = RingDrain::new(RingPlace::default(), Arc::default(), 0, marks);
        let until = drain.check_cursor(ring, 100).unwrap();
        drain.drain(ring, until, &mut out);
        drain.flush(&mut out);
        let lost = drain.closing().lost;
        assert_eq!((lost.overrun, lost.corrupt), expected, "{lost:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

    /// Each sink captures or loses each frame exactly once, whatever happens to frames on the
    /// way. The losses that a chunk states are contiguous with the previous chunk. A frame for
    /// which one sink is too slow still reaches another sink.
    #[test]
    fn every_frame_is_accounted_for(
        steps in steps(),
        limit in 0..2000usize,
        batch in 1..20usize,
    ) {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
        let ring = Ring::new(&header, &slots, STRIDE);
        let mut writer = RingWriter::new(ring);
        let counters = Counters::new(EventFd::new().unwrap());
        let mut takers = [limit, 2000 - limit, usize::MAX].map(Taker::new);
        let mut lanes = Lanes::new(takers.iter().map(Taker::lane).collect(), Arc::default());
        let mut out = Outlet {
            lanes: &mut lanes,
            counters: &counters,
            now: 0,
            since: 0,
            overrun: 0,
            full: SMALL_CHUNK,
            pushed: false,
            claims: 0,
            block: batch * STRIDE * 8,
            aside: Vec::new(),
        };
        let mut drain = RingDrain::new(RingPlace::default(), Arc::default(), 0, false);
        let mut tid = 0;
        for step in steps {
            match step {
                RingStep::Write(count) => for _ in 0..count {
                    let seq = ring.tail() + 1;
                    writer.write([!seq]);
                },
                RingStep::Spoil(back) => if let Some(index) = ring.tail().checked_sub(u64::from(back) + 1) {
                    slots[(index % SLOTS) as usize * STRIDE].store(u64::MAX, Relaxed);
                },
                RingStep::Claim => {
                    ring.release(ring.owner().epoch);
                    tid += 1;
                    ring.claim(tid);
                }
                RingStep::Drain => if let Some(tail) = drain.check_cursor(ring, u64::MAX) {
                    drain.drain(ring, tail, &mut out);
                },
                RingStep::Flush => drain.flush(&mut out),
                RingStep::Sink(sink, most) => _ = takers[sink].take(most),
            }
        }
        if let Some(tail) = drain.check_cursor(ring, u64::MAX) {
            drain.drain(ring, tail, &mut out);
        }
        drain.flush(&mut out);
        let closing = drain.closing();
        prop_assert!(closing.broken.is_none());
        prop_assert_eq!(closing.next_seq, ring.tail() + 1);
        out.lanes.gone(0, &[closing]);
        for taker in &mut takers {
            taker.check(ring.tail(), &counters)?;
        }
        prop_assert_eq!(takers[2].counters.missed(), 0, "nobody else's loss");
    }
}

#[test]
fn a_cursor_that_no_writer_can_have_reached_closes_the_ring() {
    let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
    let ring = Ring::new(&header, &slots, STRIDE);
    let mut drain = RingDrain::new(RingPlace::default(), Arc::default(), 0, false);
    header[ring_word::TAIL].store(1001, Relaxed);
    assert_eq!(drain.check_cursor(ring, 1000), None);
    header[ring_word::TAIL].store(5, Relaxed);
    assert_eq!(drain.check_cursor(ring, 1000), None, "once is enough");
    let closing = drain.closing();
    assert_eq!(closing.broken, Some(BrokenCursor { next: 0, tail: 1001 }));
    assert_eq!((closing.next_seq, closing.lost), (1, Lost::default()));

    // Wraps from the end of the range to 0: the old value was no valid cursor either.
    let mut drain = RingDrain::new(RingPlace::default(), Arc::default(), u64::MAX, false);
    assert_eq!(drain.check_cursor(ring, 1000), None);
    assert_eq!(drain.closing().broken, Some(BrokenCursor { next: u64::MAX, tail: 5 }));
}
