//! The control page: an agent describes a segment in steps while a thread looks for a ring.
//!
//! The agent's stores are as weak as system calls may be: relaxed, in any order within a call, each
//! call a release of those before it. The thread runs the product's code: it reads the gate
//! relaxed, as on the hot path, and the rest by `handshake::under`.

use std::cell::Cell;

use loom::thread;
use ppt_segment::handshake::under;

use crate::*;

/// Fences that a mutant omits.
const NO_FENCE: u8 = 0;
const FIRST_FENCE: u8 = 1;
const SECOND_FENCE: u8 = 2;

thread_local! {
    /// Acquire fences of this execution: only the reading thread has any, and loom runs all threads
    /// of a model in one.
    static FENCES: Cell<u8> = const { Cell::new(0) };
}

struct ControlPage<const WITHOUT: u8>(AtomicU64);

impl<const WITHOUT: u8> SharedWord for ControlPage<WITHOUT> {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
    fn add(&self, value: u64) {
        self.0.fetch_add(value, Relaxed);
    }
    fn fence(order: Ordering) {
        FENCES.set(FENCES.get() + 1);
        if FENCES.get() != WITHOUT {
            fence(order);
        }
    }
}

/// The behaviour of the agent.
#[derive(Clone, Copy, PartialEq)]
enum Agent {
    /// Describes another segment, with the gate closed during that time.
    MovesOn,
    /// Opens a gate that was closed.
    Opens,
    /// Leaves the gate open while it writes.
    LeavesOpen,
    /// Writes everything in one call, without an order.
    InOneCall,
}

/// A thread uses the description that belongs to the gate that it saw, never that of another gate,
/// nor a mixture.
fn describe<const WITHOUT: u8>(agent: Agent) {
    explore(None, 5, move || {
        FENCES.set(0);
        let before = if agent == Agent::Opens { 0 } else { 1 };
        let gate = Arc::new(ControlPage::<WITHOUT>(AtomicU64::new(before)));
        let page = Arc::new([1, 1].map(|word| ControlPage::<WITHOUT>(AtomicU64::new(word))));
        let writes = thread::spawn({
            let (gate, page) = (gate.clone(), page.clone());
            move || {
                let next_call = || match agent {
                    Agent::InOneCall => {}
                    _ => fence(Release),
                };
                if matches!(agent, Agent::MovesOn | Agent::InOneCall) {
                    gate.store(0, Relaxed);
                    next_call();
                }
                page.iter().for_each(|word| word.store(2, Relaxed));
                next_call();
                gate.store(2, Relaxed);
            }
        });
        let seen = gate.load(Relaxed);
        let found = || [0, 1].map(|word: usize| page[word].load(Relaxed));
        if seen != 0
            && let Some(found) = under(&*gate, seen, found)
        {
            assert_eq!(found, [seen, seen], "of another gate");
        }
        writes.join().unwrap();
    });
}

#[test]
fn a_description_is_of_the_gate_that_was_seen() {
    describe::<NO_FENCE>(Agent::MovesOn);
    describe::<NO_FENCE>(Agent::Opens);
}

#[test]
fn a_new_gate_meets_a_former_nonce_without_the_first_fence() {
    fails(|| describe::<FIRST_FENCE>(Agent::Opens));
    fails(|| describe::<FIRST_FENCE>(Agent::MovesOn));
}

#[test]
fn a_former_gate_meets_a_new_nonce_without_the_second_fence() {
    fails(|| describe::<SECOND_FENCE>(Agent::MovesOn));
}

#[test]
fn a_description_is_of_two_segments_where_the_gate_stays_open() {
    fails(|| describe::<NO_FENCE>(Agent::LeavesOpen));
}

#[test]
fn a_description_is_of_another_gate_where_all_is_one_call() {
    fails(|| describe::<NO_FENCE>(Agent::InOneCall));
}
