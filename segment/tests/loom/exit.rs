//! Threads that end: at the end of a session, and with signals that come late.

use loom::thread;
use ppt_segment::{RingReader, RingWriter};

use crate::detach::Gate;
use crate::*;

/// A thread writes and ends while a session ends and the next one begins, in which another thread
/// starts: each frame is before the cursor where the second session begins, or in it (I3); the
/// sequence continues (I5); one owner at a time (I6). `own`: the second thread gets the ring only
/// by a claim.
fn exit_while_a_session_ends<const W: u8>(own: bool) {
    explore(Some(2), 50, move || {
        let memory = ModelMemory::<W>::new(4);
        let gate = Arc::new(Gate::new(1));
        assert!(memory.ring().claim(1));
        let agent = thread::spawn({
            let (memory, gate) = (memory.clone(), gate.clone());
            move || {
                gate.set(0);
                let first = memory.ring().tail();
                gate.set(2);
                first
            }
        });
        let second = thread::spawn({
            let memory = memory.clone();
            move || {
                let ring = memory.ring();
                if own && !ring.claim(2) {
                    return 0;
                }
                let seq = RingWriter::new(ring).write([2, 2]);
                assert!(seq <= 2);
                if own {
                    assert!(ring.release(2), "two owners");
                }
                1
            }
        });
        let ring = memory.ring();
        let mut written = 0;
        if gate.get() == 1 && gate.get() == 1 {
            RingWriter::new(ring).write([1, 1]);
            written += 1;
        }
        assert!(ring.release(1), "two owners");
        written += second.join().unwrap();
        let first = agent.join().unwrap();
        assert_eq!(ring.tail(), written, "a sequence number was used twice");
        let mut buffer = [0; 4 * STRIDE];
        let batch = RingReader::new(ring, first).poll(&mut buffer).unwrap();
        assert_eq!(first + batch.overrun + batch.count as u64, written, "unaccounted");
    });
}

#[test]
fn a_thread_ends_with_its_session() {
    exit_while_a_session_ends::<NOTHING>(true);
}

#[test]
fn a_thread_that_does_not_claim_breaks_the_sequence() {
    fails(|| exit_while_a_session_ends::<NOTHING>(false));
}

#[test]
fn a_ring_of_an_ended_thread_goes_on_wrong_without_the_release_of_the_owner_word() {
    fails(|| exit_while_a_session_ends::<GIVE_BACK>(true));
}

/// A signal comes right after a thread has given its ring back: its handler writes if the thread
/// still refers to the ring. `forgets`: it drops the reference first.
fn late_signal(forgets: bool) {
    explore(Some(2), 5, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        assert!(memory.ring().claim(1));
        let next = thread::spawn({
            let memory = memory.clone();
            move || {
                let ring = memory.ring();
                ring.claim(2).then(|| RingWriter::new(ring).write([2, 2]))
            }
        });
        let ring = memory.ring();
        let mut known = Some(RingWriter::new(ring));
        if forgets {
            known = None;
        }
        assert!(ring.release(1));
        let handler = known.map(|mut writer| writer.write([1, 1]));
        let next = next.join().unwrap();
        assert!(next.is_none() || handler != next, "a sequence number was used twice");
    });
}

#[test]
fn a_late_signal_finds_no_ring() {
    late_signal(true);
}

#[test]
fn a_late_signal_writes_into_somebody_elses_ring() {
    fails(|| late_signal(false));
}

/// How the disk thread handles a chunk.
#[derive(Clone, Copy, PartialEq)]
enum Disk {
    Right,
    /// It informs the next session before the chunk is in the file.
    TellsFirst,
}

/// kill -9 of the listener at any time (I8): what the next session considers accounted for is in
/// the file, and other frames become unattended; the writer continues and is not affected.
fn killed_listener(disk: Disk) {
    explore(Some(3), 50, move || {
        let memory = ModelMemory::<NOTHING>::new(4);
        let file = Arc::new(AtomicU64::new(0));
        let listener = thread::spawn({
            let (memory, file) = (memory.clone(), file.clone());
            move || {
                let (mut captured, mut lost) = (0, 0);
                let mut reader = RingReader::new(memory.ring(), 0);
                for _ in 0..2 {
                    poll(&mut reader, &mut captured, &mut lost);
                    if disk == Disk::TellsFirst {
                        memory.ring().set_attended(reader.next());
                    }
                    file.swap(captured + lost, Ordering::AcqRel);
                    memory.ring().set_attended(reader.next());
                }
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        (1..=2).for_each(|seq| _ = writer.write(payload(seq)));
        // The listener is killed here, at any of its steps: this is what the next session finds.
        let ring = memory.ring();
        let (attended, stated) = (ring.attended(), file.fetch_add(0, Ordering::AcqRel));
        assert!(attended <= stated, "a frame is in no file, and is not said to be missing");
        assert!(stated <= ring.tail());
        listener.join().unwrap();
        assert_eq!(writer.write(payload(3)), 3);
    });
}

#[test]
fn what_is_attended_is_in_the_file() {
    killed_listener(Disk::Right);
}

#[test]
fn a_frame_vanishes_where_the_disk_thread_tells_first() {
    fails(|| killed_listener(Disk::TellsFirst));
}
