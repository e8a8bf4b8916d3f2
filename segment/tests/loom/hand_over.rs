//! One ring with consecutive owners.

use loom::thread;
use ppt_segment::{Ring, RingReader, RingWriter};

use crate::*;

/// A thread claims the ring if it is free, writes `frames` frames marked with its id, and releases
/// it.
fn own<const W: u8>(memory: &ModelMemory<W>, tid: u32, frames: u64) -> bool {
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
pub(crate) fn check_tenures<const W: u8>(ring: Ring<'_, ModelWord<W>>) {
    let mut buffer = [0; 4 * STRIDE];
    let batch = RingReader::new(ring, 0).poll(&mut buffer).unwrap();
    let tenures: Vec<_> = (1..=ring.owner().epoch).filter_map(|epoch| ring.tenure(epoch)).collect();
    for (seq, frame) in (batch.first_seq..).zip(buffer.chunks(STRIDE).take(batch.count)) {
        let owner = tenures.iter().rfind(|tenure| tenure.first_seq <= seq);
        let owner = owner.expect("a published frame's owner is known");
        assert_eq!(frame[1..], [owner.tid as u64; 2], "the wrong thread");
    }
}

/// Two threads hand over one ring: one owner at a time (I6), the sequence continues (I5), and the
/// reader never accepts a wrong tid.
fn hand_over<const W: u8>() {
    explore(Some(3), 100, || {
        let memory = ModelMemory::<W>::new(4);
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
