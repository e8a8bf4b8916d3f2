//! Model checks of the product's own ring code, and mutants of its memory that must fail.
//!
//! loom explores every interleaving of the two or three threads of a model, including stale relaxed
//! loads (C11, without load buffering). A mutant weakens one ordering of the protocol, by name, or
//! breaks a rule of its users; its test passes only if the model finds a torn frame, a wrong sum or
//! two owners.
//!
//! In every model the reader is spawned and the writer is not: loom remembers one access per word,
//! and a writer's own load of the cursor would hide an earlier load by the reader. A model that
//! explores almost nothing fails.

mod adoption;
mod cells;
mod death;
mod detach;
mod exit;
mod follow;
mod growth;
mod hand_over;
mod handshake;
mod lossy_ring;
mod masks;
mod rings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use ppt_segment::abi::ring_word;
use ppt_segment::word::SharedWord;
use ppt_segment::{Ring, RingReader};

/// Parts of the protocol that a mutant omits.
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
/// The comparison when a ring is given back: any owner would lose it.
const WHOSE: u8 = 6;
/// The atomic add to the shared row of cells: a load and a store instead.
const SHARED: u8 = 7;

struct ModelWord<const WITHOUT: u8>(AtomicU64);

impl<const WITHOUT: u8> SharedWord for ModelWord<WITHOUT> {
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
            (WHOSE, Release) => {
                self.0.store(new, Release);
                Ok(current)
            }
            _ => self.0.compare_exchange(current, new, success, failure),
        }
    }
    fn add(&self, value: u64) {
        if WITHOUT == SHARED {
            return self.0.store(self.0.load(Relaxed) + value, Relaxed);
        }
        self.0.fetch_add(value, Relaxed);
    }
    fn fence(order: Ordering) {
        match (WITHOUT, order) {
            (WRITER_FENCE, Release) | (READER_FENCE, Acquire) => {}
            _ => fence(order),
        }
    }
}

struct ModelMemory<const WITHOUT: u8> {
    header: Vec<ModelWord<WITHOUT>>,
    slots: Vec<ModelWord<WITHOUT>>,
}

/// Words of a frame: its sequence number and two payload words.
const STRIDE: usize = 3;

impl<const WITHOUT: u8> ModelMemory<WITHOUT> {
    fn new(slots: usize) -> Arc<Self> {
        let zeros = |n| (0..n).map(|_| ModelWord(AtomicU64::new(0))).collect();
        Arc::new(Self { header: zeros(ring_word::COUNT), slots: zeros(slots * STRIDE) })
    }
    fn ring(&self) -> Ring<'_, ModelWord<WITHOUT>> {
        Ring::new(&self.header, &self.slots, STRIDE)
    }
}

fn payload(seq: u64) -> [u64; 2] {
    [seq * 10 + 1, seq * 10 + 2]
}

/// Polls once: every frame is whole (I1), in ascending order (I2), and the sum is exact (I3).
fn poll<const W: u8>(
    reader: &mut RingReader<'_, ModelWord<W>>,
    captured: &mut u64,
    lost: &mut u64,
) {
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

const TOO_LITTLE: &str = "the model explored too little";

/// Runs a model in every interleaving with at most `preemptions`. There must be more than `least`
/// interleavings.
fn explore(preemptions: Option<usize>, least: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        model();
    });
    let seen = executions.load(Relaxed);
    assert!(seen > least, "{TOO_LITTLE}: {seen}");
}

/// Passes if the model notices its mutant.
fn fails(model: impl Fn()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = catch_unwind(AssertUnwindSafe(model));
    std::panic::set_hook(hook);
    let found = found.expect_err("the model did not notice the mutant");
    let said = found.downcast_ref::<String>().map_or("", String::as_str);
    assert!(!said.starts_with(TOO_LITTLE), "{said}");
}
