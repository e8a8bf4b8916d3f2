//! Several rings: threads start, take the lowest free one, and end.

use loom::thread;
use ppt_segment::RingWriter;

use crate::hand_over::check_tenures;
use crate::*;

type Rings<const W: u8> = [Arc<ModelMemory<W>>; 2];

/// A thread's life: it takes the lowest free ring, writes a frame, and gives the ring back. Returns
/// the ring.
fn live<const W: u8>(rings: &Rings<W>, tid: u32) -> usize {
    let index = rings.iter().position(|ring| ring.ring().claim(tid));
    let index = index.expect("there are as many rings as threads");
    let ring = rings[index].ring();
    let owner = ring.owner();
    RingWriter::new(ring).write([tid as u64; 2]);
    assert_eq!(ring.owner(), owner, "two owners");
    assert!(ring.release(owner.epoch), "two owners");
    index
}

/// Two threads, then a third when both have ended: each has its own ring (I6), the lowest free one,
/// and every ring's sequence continues (I5) with its owners known.
fn come_and_go<const W: u8>() {
    explore(Some(3), 100, || {
        let rings: Rings<W> = [ModelMemory::new(4), ModelMemory::new(2)];
        let [one, two] = [1, 2].map(|tid| {
            let rings = rings.clone();
            thread::spawn(move || live(&rings, tid))
        });
        let (one, two) = (one.join().unwrap(), two.join().unwrap());
        assert!(one == 0 || two == 0, "the lowest ring was free for one of them");
        assert_eq!(live(&rings, 3), 0, "not the lowest free ring");
        let tails = [0, 1].map(|index| rings[index].ring().tail());
        assert_eq!(tails.iter().sum::<u64>(), 3, "a sequence number was used twice");
        assert_eq!(tails[1], one as u64 + two as u64);
        rings.iter().for_each(|ring| check_tenures(ring.ring()));
    });
}

#[test]
fn every_thread_has_the_lowest_free_ring() {
    come_and_go::<NOTHING>();
}

#[test]
fn two_threads_share_a_ring_without_the_compare_and_swap() {
    fails(come_and_go::<CLAIM>);
}

#[test]
fn a_ring_forgets_its_sequence_without_the_release_of_the_owner_word() {
    fails(come_and_go::<GIVE_BACK>);
}
