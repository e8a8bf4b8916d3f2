//! Masks: an agent enables and disables frames while a thread writes them, and states the sequence
//! number in the ring from which on a frame was enabled.
//!
//! A membarrier makes the writer's CPU execute a fence at some point. The model's writer executes
//! one between any two frames: if it is inside a frame, that frame is the one in flight.

use loom::thread;
use ppt_segment::RingWriter;
use ppt_segment::abi::MAX_FRAMES;
use ppt_segment::masks::{Masks, first_disabled, first_enabled, is_wanted, put};

use crate::detach::Gate;
use crate::*;

type MaskPage = [ModelWord<NOTHING>; MAX_FRAMES / 64];

fn page(enabled: bool) -> Arc<MaskPage> {
    let word = if enabled { u64::MAX } else { u64::MAX - 1 };
    Arc::new(std::array::from_fn(|_| ModelWord(AtomicU64::new(word))))
}

/// Frame 0 is disabled.
fn without() -> Masks {
    let mut masks = Masks::ALL_ENABLED;
    masks.set(0, false);
    masks
}

/// Reads the mask as the hot path does: relaxed, right before a frame.
fn is_on(page: &MaskPage) -> bool {
    page[0].load(Relaxed) & 1 == 1
}

/// Possible mistakes of an agent that flips a bit.
#[derive(Clone, Copy, PartialEq)]
enum Flip {
    Right,
    /// It does not wait until the mask is visible.
    NoBarrier,
    /// It reads the cursor on the wrong side of the flip.
    WrongSide,
    /// It ignores the frame in flight.
    NoFrameInFlight,
}

/// Every frame of a disabled kind comes before the number that the agent states.
fn disable(flip: Flip) {
    explore(Some(3), 20, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        let page = page(true);
        let agent = thread::spawn({
            let (memory, page) = (memory.clone(), page.clone());
            move || {
                let early = first_disabled(memory.ring());
                put(&page[..], &without());
                if flip != Flip::NoBarrier {
                    fence(Ordering::SeqCst);
                }
                match flip {
                    Flip::WrongSide => early,
                    Flip::NoFrameInFlight => first_disabled(memory.ring()) - 1,
                    _ => first_disabled(memory.ring()),
                }
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        let mut last = 0;
        for _ in 0..3 {
            if is_on(&page) {
                last = writer.write(payload(last + 1));
            }
            fence(Ordering::SeqCst);
        }
        let first = agent.join().unwrap();
        assert!(last < first, "frame {last} was written though it is off from {first} on");
    });
}

#[test]
fn no_frame_comes_behind_the_number_that_a_disable_states() {
    disable(Flip::Right);
}

#[test]
fn a_frame_comes_later_without_the_barrier() {
    fails(|| disable(Flip::NoBarrier));
}

#[test]
fn a_frame_comes_later_where_the_cursor_is_read_before_it_is_disabled() {
    fails(|| disable(Flip::WrongSide));
}

#[test]
fn the_frame_in_flight_comes_later() {
    fails(|| disable(Flip::NoFrameInFlight));
}

/// No frame of an enabled kind comes before the number that the agent states.
fn enable(flip: Flip) {
    explore(Some(3), 20, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        let page = page(false);
        let agent = thread::spawn({
            let (memory, page) = (memory.clone(), page.clone());
            move || {
                let first = first_enabled(memory.ring());
                put(&page[..], &Masks::ALL_ENABLED);
                if flip == Flip::WrongSide { first_enabled(memory.ring()) } else { first }
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        // Another kind of frame is always enabled.
        let mut first_of_kind = u64::MAX;
        for seq in 1..=3 {
            let is_on = is_on(&page);
            assert_eq!(writer.write(payload(seq)), seq);
            if is_on {
                first_of_kind = first_of_kind.min(seq);
            }
        }
        let first = agent.join().unwrap();
        assert!(first_of_kind >= first, "frame {first_of_kind} was on before {first}");
    });
}

#[test]
fn no_frame_comes_before_the_number_that_an_enable_states() {
    enable(Flip::Right);
}

#[test]
fn a_frame_comes_before_where_the_cursor_is_read_after_it_is_enabled() {
    fails(|| enable(Flip::WrongSide));
}

/// When the agent writes the mask of a segment that it starts to use.
#[derive(Clone, Copy, PartialEq)]
enum When {
    BeforeTheGate,
    AfterTheGate,
}

/// The gate moves to a segment whose mask is `found`, left by an earlier session or its maker;
/// `wanted` is the mask of this session. A thread that comes by the new gate follows `wanted`.
fn come_to(when: When, found: bool, wanted: bool) {
    explore(Some(3), 3, move || {
        let page = page(found);
        let gate = Arc::new(Gate::new(1));
        let masks = if wanted { Masks::ALL_ENABLED } else { without() };
        let agent = thread::spawn({
            let (page, gate) = (page.clone(), gate.clone());
            move || {
                if when == When::BeforeTheGate {
                    put(&page[..], &masks);
                }
                gate.set(2);
                put(&page[..], &masks);
            }
        });
        if gate.get() == 2 {
            assert_eq!(is_on(&page), wanted, "not what the session wants");
        }
        agent.join().unwrap();
    });
}

/// Growth: the new segment has all ones. Adoption, and a session after a killed one: the segment
/// has the mask of that session.
#[test]
fn a_segment_says_what_is_wanted_before_the_gate_names_it() {
    come_to(When::BeforeTheGate, true, false);
    come_to(When::BeforeTheGate, false, true);
}

#[test]
fn a_segment_that_grew_forgets_what_is_disabled_where_the_gate_comes_first() {
    fails(|| come_to(When::AfterTheGate, true, false));
}

#[test]
fn a_killed_session_blinds_the_next_where_the_gate_comes_first() {
    fails(|| come_to(When::AfterTheGate, false, true));
}

/// The control page holds the words of a killed session when another one opens the gate. `claim`:
/// whether that session writes its claim before the gate, as every version does.
fn next_session(claim_first: bool) {
    explore(Some(3), 3, move || {
        let word = |value| Arc::new(ModelWord::<NOTHING>(AtomicU64::new(value)));
        let (bits, nonce, claim) = (word(1), word(7), word(7));
        let gate = Arc::new(Gate::new(1));
        let agent = thread::spawn({
            let (claim, gate) = (claim.clone(), gate.clone());
            move || {
                if claim_first {
                    claim.store(8, Relaxed);
                }
                gate.set(2);
                claim.store(8, Relaxed);
            }
        });
        if gate.get() == 2 {
            assert!(is_wanted(&*bits, 0, &*nonce, &*claim), "words of the session before count");
        }
        agent.join().unwrap();
    });
}

#[test]
fn words_of_a_killed_session_do_not_count() {
    next_session(true);
}

#[test]
fn they_would_count_where_the_gate_came_before_the_claim() {
    fails(|| next_session(false));
}
