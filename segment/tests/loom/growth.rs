//! Rings that grow: the gate moves to another segment, threads follow with their next frame, and
//! the listener reads both.

use loom::thread;
use ppt_segment::abi::ring_state;
use ppt_segment::{RingReader, RingWriter};

use crate::detach::Gate;
use crate::*;

/// When the listener reads the former segment for the last time.
#[derive(Clone, Copy, PartialEq)]
enum Leave {
    /// After it has seen that no thread owns a ring there.
    Free,
    /// Before it checks that.
    BeforeFree,
    /// When a poll has found nothing new.
    Idle,
}

fn count<const W: u8>(memory: &ModelMemory<W>, from: u64) -> (u64, u64) {
    let (mut captured, mut lost) = (0, 0);
    let mut reader = RingReader::new(memory.ring(), from);
    poll(&mut reader, &mut captured, &mut lost);
    (captured + lost, reader.next())
}

/// A thread writes frame by frame into the segment that the gate names: each frame is accounted for
/// in one of the segments (I3), whole (I1), whenever the thread moves; and it alone owns its ring
/// there (I6).
fn move_on<const W: u8>(leave: Leave) {
    explore(Some(3), 100, move || {
        let (old, new) = (ModelMemory::<W>::new(4), ModelMemory::<W>::new(4));
        let gate = Arc::new(Gate::new(1));
        assert!(old.ring().claim(1));
        let listener = thread::spawn({
            let (old, gate) = (old.clone(), gate.clone());
            move || {
                gate.set(0);
                gate.set(2);
                let free = || old.ring().owner().state == ring_state::FREE;
                match leave {
                    Leave::Free => {
                        let free = free();
                        let (count, next) = count(&old, 0);
                        (count, next, free)
                    }
                    Leave::BeforeFree => {
                        let (count, next) = count(&old, 0);
                        (count, next, free())
                    }
                    Leave::Idle => {
                        let (before, next) = count(&old, 0);
                        let (more, next) = count(&old, next);
                        (before + more, next, more == 0)
                    }
                }
            }
        });
        let mut written = 0;
        let (mut known, mut old_writer) = (1, Some(RingWriter::new(old.ring())));
        let mut new_writer = None;
        for _ in 0..3 {
            let now = gate.get();
            if now == 2 && known == 1 {
                old_writer = None;
                assert!(old.ring().release(1), "its own");
                assert!(new.ring().claim(1), "it is alone there");
                new_writer = Some(RingWriter::new(new.ring()));
                known = 2;
            }
            if now == known {
                let (memory, writer) = match (&mut old_writer, &mut new_writer) {
                    (Some(writer), _) => (&old, writer),
                    (None, Some(writer)) => (&new, writer),
                    (None, None) => unreachable!("it has one or the other"),
                };
                let seq = memory.ring().tail() + 1;
                assert_eq!(writer.write(payload(seq)), seq);
                written += 1;
            }
        }
        let (mut accounted, next, left) = listener.join().unwrap();
        if !left {
            accounted += count(&old, next).0;
        }
        accounted += count(&new, 0).0;
        assert_eq!(accounted, written, "unaccounted");
    });
}

#[test]
fn frames_of_both_segments_add_up() {
    move_on::<NOTHING>(Leave::Free);
}

#[test]
fn a_frame_is_missed_where_the_last_look_comes_before_the_ring_is_free() {
    fails(|| move_on::<NOTHING>(Leave::BeforeFree));
}

#[test]
fn a_frame_is_missed_where_an_idle_ring_is_left() {
    fails(|| move_on::<NOTHING>(Leave::Idle));
}

#[test]
fn a_frame_is_missed_without_the_release_of_the_owner_word() {
    fails(|| move_on::<GIVE_BACK>(Leave::Free));
}

/// The former segment's slots are given back (they then read as zeros) while a thread may still
/// complete its current frame: no frame that the listener has not read is lost. `attended`: the
/// listener checks whether everything was read; `kept`: slots that stay, from the cursor on.
fn give_back(attended: bool, kept: u64) {
    explore(Some(2), 20, move || {
        const SLOTS: usize = 4;
        let memory = ModelMemory::<NOTHING>::new(SLOTS);
        let gate = Arc::new(Gate::new(1));
        let listener = thread::spawn({
            let (memory, gate) = (memory.clone(), gate.clone());
            move || {
                let (seen, next) = count(&memory, 0);
                memory.ring().set_attended(next);
                gate.set(2);
                let tail = memory.ring().tail();
                if !attended || memory.ring().attended() == tail {
                    for index in tail + kept..tail + SLOTS as u64 {
                        let slot = index as usize % SLOTS * STRIDE;
                        for word in &memory.slots[slot..slot + STRIDE] {
                            word.store(0, Relaxed);
                        }
                    }
                }
                (seen, next)
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        let mut written = 0;
        for seq in 1..=2 {
            if gate.get() == 1 && gate.get() == 1 {
                writer.write(payload(seq));
                written += 1;
            }
        }
        let (seen, next) = listener.join().unwrap();
        assert_eq!(seen + count(&memory, next).0, written, "unaccounted");
    });
}

#[test]
fn memory_of_a_former_segment_is_given_back_behind_the_reader() {
    give_back(true, 2);
}

#[test]
fn frames_that_were_not_read_are_lost_where_nobody_looks() {
    fails(|| give_back(false, 2));
}

#[test]
fn a_late_frame_is_lost_where_its_slot_is_given_back_too() {
    fails(|| give_back(true, 0));
}
