//! Consecutive sessions on one segment, while the writer continues.

use loom::thread;
use ppt_segment::{RingReader, RingWriter};

use crate::*;

/// Possible mistakes of a session.
#[derive(Clone, Copy, PartialEq)]
enum SessionMistake {
    Right,
    /// Its account begins at one reading of the cursor and its reader at another.
    TwoReadings,
    /// It begins where its predecessor ended, and also states the frames between them as
    /// unattended.
    CountsTwice,
}

/// Three sessions: in each `captured + lost == next - first` (I3), no frame is in two of them, and
/// with the unattended frames between them they add up to all frames written.
fn sessions<const W: u8>(session: SessionMistake, margin: u64) {
    const FRAMES: u64 = 3;
    explore(Some(2), 100, move || {
        let memory = ModelMemory::<W>::new(2);
        let attend = move |memory: &ModelMemory<W>| {
            let ring = memory.ring();
            let first = ring.tail();
            let unattended = first - ring.attended();
            let start = match session {
                SessionMistake::Right => first,
                SessionMistake::TwoReadings => ring.tail(),
                SessionMistake::CountsTwice => ring.attended(),
            };
            let mut reader = RingReader::with_margin(ring, start, margin);
            let (mut captured, mut lost) = (0, 0);
            poll(&mut reader, &mut captured, &mut lost);
            assert_eq!(captured + lost, reader.next() - first, "a wrong sum");
            ring.set_attended(reader.next());
            unattended + captured + lost
        };
        let agents = thread::spawn({
            let memory = memory.clone();
            move || attend(&memory) + attend(&memory)
        });
        let mut writer = RingWriter::new(memory.ring());
        for seq in 1..=FRAMES {
            writer.write(payload(seq));
        }
        let known = agents.join().unwrap() + attend(&memory);
        assert_eq!(known, FRAMES, "unaccounted");
    });
}

#[test]
fn sessions_add_up() {
    sessions::<NOTHING>(SessionMistake::Right, 1);
}

#[test]
fn a_session_that_reads_the_cursor_twice_is_wrong() {
    fails(|| sessions::<NOTHING>(SessionMistake::TwoReadings, 1));
}

#[test]
fn a_session_that_begins_at_the_end_of_the_last_counts_twice() {
    fails(|| sessions::<NOTHING>(SessionMistake::CountsTwice, 1));
}

#[test]
fn an_adopted_ring_tears_without_the_margin() {
    fails(|| sessions::<NOTHING>(SessionMistake::Right, 0));
}

#[test]
fn an_adopted_ring_tears_without_the_writer_fence() {
    fails(|| sessions::<WRITER_FENCE>(SessionMistake::Right, 1));
}

#[test]
fn an_adopted_ring_tears_without_the_reader_fence() {
    fails(|| sessions::<READER_FENCE>(SessionMistake::Right, 1));
}
