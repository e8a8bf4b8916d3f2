//! Detach: the gate goes to 0, threads finish their current frame, and memory is given back.

use loom::thread;
use ppt_segment::{RingReader, RingWriter};

use crate::*;

/// The gate of a control page. A store to it has happened once every thread can see it: when the
/// system call that made it returns. The effects of earlier system calls are visible by then. So
/// the model reads it by an operation that is never stale.
pub(crate) struct Gate(AtomicU64);

impl Gate {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.fetch_add(0, Acquire)
    }
    pub(crate) fn set(&self, value: u64) {
        self.0.swap(value, Ordering::AcqRel);
    }
}

/// Writes a frame as a writer does: it reads the gate, marks itself busy, reads the gate again, and
/// writes.
fn write_if_on<const W: u8>(gate: &Gate, writer: &mut RingWriter<'_, ModelWord<W>>) {
    if gate.get() != 0 && gate.get() != 0 {
        writer.write([7, 7]);
    }
}

/// How often a thread reads the gate.
#[derive(Clone, Copy, PartialEq)]
enum Looks {
    EachFrame,
    Once,
}

/// After gate := 0 a thread completes at most one more frame (I10).
fn one_more_frame(looks: Looks) {
    explore(Some(3), 10, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        let gate = Arc::new(Gate::new(1));
        let agent = thread::spawn({
            let (memory, gate) = (memory.clone(), gate.clone());
            move || {
                gate.set(0);
                // As the writer left it at this moment; not stale either.
                memory.header[ring_word::TAIL].0.fetch_add(0, Relaxed)
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        if looks == Looks::Once && gate.get() != 0 {
            for _ in 0..3 {
                writer.write([7, 7]);
            }
        }
        if looks == Looks::EachFrame {
            (0..3).for_each(|_| write_if_on(&gate, &mut writer));
        }
        let at = agent.join().unwrap();
        assert!(memory.ring().tail() <= at + 1, "more than one frame after the gate was closed");
    });
}

#[test]
fn a_closed_gate_lets_one_frame_out() {
    one_more_frame(Looks::EachFrame);
}

#[test]
fn a_gate_that_is_not_looked_at_lets_more_out() {
    fails(|| one_more_frame(Looks::Once));
}

/// A claim during the closing of the gate is given up: no thread keeps a ring of a session that is
/// over. `again`: the gate is read once more after the claim.
fn claim_at_the_gate(again: bool) {
    explore(Some(3), 10, move || {
        let memory = ModelMemory::<NOTHING>::new(2);
        let gate = Arc::new(Gate::new(1));
        let agent = thread::spawn({
            let (memory, gate) = (memory.clone(), gate.clone());
            move || {
                gate.set(0);
                memory.header[ring_word::OWNER].0.fetch_add(0, Ordering::AcqRel) as u32
            }
        });
        let ring = memory.ring();
        let mut claimed_late = false;
        if gate.get() == 1 && ring.claim(1) {
            if again && gate.get() != 1 {
                assert!(ring.release(1));
            } else {
                claimed_late = true;
            }
        }
        let owned_then = agent.join().unwrap() == 1;
        assert!(!claimed_late || owned_then, "a ring was claimed after the gate was closed");
    });
}

#[test]
fn a_claim_while_the_gate_closes_is_given_up() {
    claim_at_the_gate(true);
}

#[test]
fn a_claim_that_does_not_look_again_outlives_its_session() {
    fails(|| claim_at_the_gate(false));
}

/// Slots are given back (they then read as zeros) once the gate is closed, except the `kept` ones
/// from the cursor on, into which a thread may still be writing. The next session finds no partial
/// frame. The product keeps a second slot for stores that a store buffer delays, which no reading
/// here does.
fn give_back(kept: u64) {
    explore(Some(2), 20, move || {
        const SLOTS: usize = 4;
        let memory = ModelMemory::<NOTHING>::new(SLOTS);
        let gate = Arc::new(Gate::new(1));
        let agent = thread::spawn({
            let (memory, gate) = (memory.clone(), gate.clone());
            move || {
                gate.set(0);
                // Not stale, as above.
                let tail = memory.header[ring_word::TAIL].0.fetch_add(0, Relaxed);
                for index in tail + kept..tail + SLOTS as u64 {
                    let slot = index as usize % SLOTS * STRIDE;
                    for word in &memory.slots[slot..slot + STRIDE] {
                        word.store(0, Relaxed);
                    }
                }
                let first = memory.header[ring_word::TAIL].0.fetch_add(0, Relaxed);
                gate.set(2);
                first
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        (0..3).for_each(|_| write_if_on(&gate, &mut writer));
        let first = agent.join().unwrap();

        let mut buffer = [0; SLOTS * STRIDE];
        let batch = RingReader::new(memory.ring(), first).poll(&mut buffer).unwrap();
        let frames = buffer[batch.start..].chunks(STRIDE).take(batch.count);
        for (seq, frame) in (batch.first_seq..).zip(frames) {
            assert_eq!(frame, [seq, 7, 7], "torn");
        }
    });
}

#[test]
fn memory_is_given_back_around_a_late_writer() {
    give_back(2);
}

#[test]
fn a_late_frame_is_torn_where_its_slot_is_given_back() {
    fails(|| give_back(0));
}
