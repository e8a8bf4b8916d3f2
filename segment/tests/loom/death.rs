//! A writer dies in the middle of a frame; the listener frees its ring, and another thread
//! continues.

use std::panic::resume_unwind;

use loom::thread;
use ppt_segment::{RingReader, RingWriter};

use crate::*;

/// The words of a frame whose second word is never written.
fn half_a_frame() -> impl Iterator<Item = u64> {
    (0..2).map(|word| if word == 0 { 666 } else { resume_unwind(Box::new("killed")) })
}

/// Two whole frames, and a third up to its first payload word.
fn die_midway<const W: u8>(memory: &ModelMemory<W>) {
    let mut writer = RingWriter::new(memory.ring());
    for seq in 1..=2 {
        writer.write(payload(seq));
    }
    let killed = catch_unwind(AssertUnwindSafe(|| writer.write(half_a_frame())));
    assert!(killed.is_err());
}

/// Every published frame stays readable and whole (I9), the next owner takes the number of the
/// unpublished one, and the sum is exact.
fn succeed<const W: u8>(margin: u64) {
    explore(Some(2), 100, move || {
        let memory = ModelMemory::<W>::new(2);
        let ring = memory.ring();
        assert!(ring.claim(1));
        let reader = thread::spawn({
            let memory = memory.clone();
            move || {
                let (mut captured, mut lost) = (0, 0);
                let mut reader = RingReader::with_margin(memory.ring(), 0, margin);
                poll(&mut reader, &mut captured, &mut lost);
                poll(&mut reader, &mut captured, &mut lost);
                (captured, lost, reader.next())
            }
        });
        die_midway(&memory);
        assert!(ring.release(1), "the listener frees it");
        assert!(ring.claim(2));
        let mut next = RingWriter::new(ring);
        for seq in 3..=4 {
            assert_eq!(next.write(payload(seq)), seq, "the number of the frame that was not");
        }
        assert!(ring.release(2));

        let (mut captured, mut lost, next) = reader.join().unwrap();
        let mut reader = RingReader::with_margin(ring, next, margin);
        poll(&mut reader, &mut captured, &mut lost);
        assert_eq!(captured + lost, 4, "unaccounted");
        let tenures =
            [1, 2].map(|epoch| ring.tenure(epoch).map(|tenure| (tenure.tid, tenure.first_seq)));
        assert_eq!(tenures, [Some((1, 1)), Some((2, 3))]);
    });
}

#[test]
fn a_dead_writers_ring_goes_on() {
    succeed::<NOTHING>(1);
}

#[test]
fn the_frame_under_a_dead_writer_is_torn_without_the_margin() {
    fails(|| succeed::<NOTHING>(0));
}

#[test]
fn a_dead_writers_ring_tears_without_the_writer_fence() {
    fails(|| succeed::<WRITER_FENCE>(1));
}

/// The listener frees the ring of a thread: `dead` before, or still writing.
fn free_a_ring(dead: bool) {
    explore(Some(3), if dead { 0 } else { 100 }, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        assert!(memory.ring().claim(1));
        let first = thread::spawn({
            let memory = memory.clone();
            move || RingWriter::new(memory.ring()).write([1, 1])
        });
        let first = if dead { Ok(first.join().unwrap()) } else { Err(first) };
        let next = thread::spawn({
            let memory = memory.clone();
            move || {
                let ring = memory.ring();
                assert!(ring.release(1) && ring.claim(2));
                RingWriter::new(ring).write([2, 2])
            }
        });
        let first = first.unwrap_or_else(|first| first.join().unwrap());
        assert_ne!(first, next.join().unwrap(), "a sequence number was used twice");
    });
}

#[test]
fn a_dead_writers_ring_is_freed() {
    free_a_ring(true);
}

#[test]
fn a_living_writers_ring_must_not_be_freed() {
    fails(|| free_a_ring(false));
}

/// The listener finds dead a thread that has given its ring back by itself: it must not free the
/// ring of the next owner.
fn come_too_late<const W: u8>() {
    explore(Some(2), 20, || {
        let memory = ModelMemory::<W>::new(4);
        assert!(memory.ring().claim(1));
        let first = thread::spawn({
            let memory = memory.clone();
            move || {
                RingWriter::new(memory.ring()).write(payload(1));
                memory.ring().release(1)
            }
        });
        let listener = thread::spawn({
            let memory = memory.clone();
            move || {
                assert!(first.join().unwrap());
                memory.ring().release(1)
            }
        });
        let ring = memory.ring();
        if ring.claim(2) {
            let seq = RingWriter::new(ring).write(payload(2));
            assert_eq!(seq, 2, "a sequence number was used twice");
            assert!(ring.release(2), "the ring was taken from its owner");
        }
        assert!(!listener.join().unwrap(), "it had been given back");
    });
}

#[test]
fn a_ring_is_freed_once() {
    come_too_late::<NOTHING>();
}

#[test]
fn a_ring_is_taken_from_its_owner_without_the_comparison() {
    fails(come_too_late::<WHOSE>);
}
