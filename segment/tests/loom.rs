//! Model checks of the product's own ring code, and mutants of its memory that must fail.
//!
//! loom explores every interleaving of the two or three threads below, stale relaxed loads
//! included (C11, without load buffering). A mutant weakens one ordering of the protocol, by name;
//! its test passes only when the model finds a torn frame, a wrong sum or two owners.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use ppt_segment::abi::ring_word;
use ppt_segment::word::Word;
use ppt_segment::{Ring, RingReader, RingWriter};

/// What a mutant leaves out.
const NOTHING: u8 = 0;
/// w3: the fence before a frame's words are stored.
const WRITER_FENCE: u8 = 1;
/// r4: the fence before the cursor is read again.
const READER_FENCE: u8 = 2;
/// w5: the release of the cursor.
const PUBLISH: u8 = 3;
/// The claim's compare-and-swap: a load and a store instead.
const CLAIM: u8 = 4;
/// The release of an owner word when a ring is given back.
const GIVE_BACK: u8 = 5;

struct Model<const WITHOUT: u8>(AtomicU64);

impl<const WITHOUT: u8> Word for Model<WITHOUT> {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, if WITHOUT == PUBLISH { Relaxed } else { order });
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        match (WITHOUT, success) {
            (CLAIM, Ordering::AcqRel) => {
                let found = self.0.load(Acquire);
                if found != current {
                    return Err(found);
                }
                self.0.store(new, Release);
                Ok(current)
            }
            (GIVE_BACK, Release) => self.0.compare_exchange(current, new, Relaxed, failure),
            _ => self.0.compare_exchange(current, new, success, failure),
        }
    }
    fn add(&self, value: u64) {
        self.0.fetch_add(value, Relaxed);
    }
    fn fence(order: Ordering) {
        match (WITHOUT, order) {
            (WRITER_FENCE, Release) | (READER_FENCE, Acquire) => {}
            _ => fence(order),
        }
    }
}

struct Memory<const WITHOUT: u8> {
    header: Vec<Model<WITHOUT>>,
    slots: Vec<Model<WITHOUT>>,
}

/// Words of a frame: its sequence number and two payload words.
const STRIDE: usize = 3;

impl<const WITHOUT: u8> Memory<WITHOUT> {
    fn new(slots: usize) -> Arc<Self> {
        // loom allows few atomics: only the words that the protocol touches are its own.
        let zeros = |n| (0..n).map(|_| Model(AtomicU64::new(0))).collect();
        Arc::new(Self { header: zeros(ring_word::COUNT), slots: zeros(slots * STRIDE) })
    }
    fn ring(&self) -> Ring<'_, Model<WITHOUT>> {
        Ring::new(&self.header, &self.slots, STRIDE)
    }
}

fn payload(seq: u64) -> [u64; 2] {
    [seq * 10 + 1, seq * 10 + 2]
}

/// Polls once: every frame whole (I1), rising (I2), and the sum exact (I3).
fn poll<const W: u8>(reader: &mut RingReader<'_, Model<W>>, captured: &mut u64, lost: &mut u64) {
    let from = reader.next();
    let mut buffer = [0; 4 * STRIDE];
    let batch = reader.poll(&mut buffer).expect("cursors only rise");
    let frames = buffer[batch.start..].chunks(STRIDE).take(batch.count);
    for (seq, frame) in (batch.first_seq..).zip(frames) {
        assert_eq!(frame[0], seq, "torn");
        assert_eq!(frame[1..], payload(seq), "torn");
    }
    *captured += batch.count as u64;
    *lost += batch.overrun;
    assert_eq!(from + batch.overrun + batch.count as u64, reader.next());
}

fn lossy_ring<const W: u8>(slots: usize, frames: u64, polls: usize, margin: u64) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    let executions = AtomicUsize::new(0);
    let count = std::sync::Arc::new(executions);
    let seen = count.clone();
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        let memory = Memory::<W>::new(slots);
        // The reader is spawned and the writer is not: loom remembers one access per word, and a
        // writer's own load of the cursor would hide an earlier load by the reader.
        let reader = thread::spawn({
            let memory = memory.clone();
            move || {
                let (mut captured, mut lost) = (0, 0);
                let mut reader = RingReader::with_margin(memory.ring(), 0, margin);
                for _ in 0..polls {
                    poll(&mut reader, &mut captured, &mut lost);
                }
                (captured, lost, reader.next())
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        for seq in 1..=frames {
            writer.write(payload(seq));
        }
        let (mut captured, mut lost, next) = reader.join().unwrap();
        let mut reader = RingReader::with_margin(memory.ring(), next, margin);
        poll(&mut reader, &mut captured, &mut lost);
        assert_eq!(captured + lost, frames, "unaccounted");
    });
    assert!(seen.load(Relaxed) > 100, "the model explored too little: {seen:?}");
}

fn fails(model: impl Fn()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = catch_unwind(AssertUnwindSafe(model)).is_err();
    std::panic::set_hook(hook);
    assert!(found, "the model did not notice the mutant");
}

#[test]
fn frames_are_whole_and_counted() {
    lossy_ring::<NOTHING>(2, 3, 1, 1);
    lossy_ring::<NOTHING>(2, 4, 1, 1);
    lossy_ring::<NOTHING>(4, 5, 1, 1);
}

#[test]
fn two_polls_agree() {
    lossy_ring::<NOTHING>(2, 3, 2, 1);
}

#[test]
fn a_ring_of_two_tears_without_the_writer_fence() {
    fails(|| lossy_ring::<WRITER_FENCE>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_reader_fence() {
    fails(|| lossy_ring::<READER_FENCE>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_release_of_the_cursor() {
    fails(|| lossy_ring::<PUBLISH>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_margin() {
    fails(|| lossy_ring::<NOTHING>(2, 3, 1, 0));
}

/// A thread claims the ring if it is free, writes `frames` frames marked with its name, leaves.
fn own<const W: u8>(memory: &Memory<W>, tid: u32, frames: u64) -> bool {
    let ring = memory.ring();
    if !ring.claim(tid) {
        return false;
    }
    let epoch = ring.owner().epoch;
    let mut writer = RingWriter::new(ring);
    for _ in 0..frames {
        let seq = writer.write([tid as u64, tid as u64]);
        assert_eq!(ring.owner().epoch, epoch, "two owners");
        assert!(seq <= 2 * frames);
    }
    assert!(ring.release(epoch), "two owners");
    true
}

/// Every published frame's owner is known, and is the thread that wrote it.
fn check_tenures<const W: u8>(ring: Ring<'_, Model<W>>) {
    let mut buffer = [0; 4 * STRIDE];
    let batch = RingReader::new(ring, 0).poll(&mut buffer).unwrap();
    let tenures: Vec<_> = (1..=ring.owner().epoch).filter_map(|epoch| ring.tenure(epoch)).collect();
    for (seq, frame) in (batch.first_seq..).zip(buffer.chunks(STRIDE).take(batch.count)) {
        let owner = tenures.iter().rfind(|tenure| tenure.first_seq <= seq);
        let owner = owner.expect("a published frame's owner is known");
        assert_eq!(frame[1..], [owner.tid as u64; 2], "the wrong thread");
    }
}

/// Two threads hand one ring over: one owner at a time (I6), the sequence goes on (I5), and the
/// reader never believes a wrong tid.
fn hand_over<const W: u8>() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    builder.check(|| {
        let memory = Memory::<W>::new(4);
        let reader = thread::spawn({
            let memory = memory.clone();
            move || check_tenures(memory.ring())
        });
        let second = thread::spawn({
            let memory = memory.clone();
            move || own(&memory, 2, 1)
        });
        let owned = own(&memory, 1, 1) as u64 + second.join().unwrap() as u64;
        reader.join().unwrap();
        assert_eq!(memory.ring().tail(), owned, "a sequence number was used twice");
    });
}

#[test]
fn one_owner_at_a_time() {
    hand_over::<NOTHING>();
}

#[test]
fn two_owners_without_the_compare_and_swap() {
    fails(hand_over::<CLAIM>);
}

#[test]
fn the_sequence_breaks_without_the_release_of_the_owner_word() {
    fails(hand_over::<GIVE_BACK>);
}

#[test]
fn owners_are_mistaken_without_the_release_of_the_cursor() {
    fails(hand_over::<PUBLISH>);
}
