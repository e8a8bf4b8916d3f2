//! The ring itself: frames are whole (I1), in ascending order (I2) and counted (I3).

use loom::thread;
use ppt_segment::{RingReader, RingWriter};

use crate::*;

fn lossy_ring<const W: u8>(slots: usize, frames: u64, polls: usize, margin: u64) {
    explore(None, 100, move || {
        let memory = ModelMemory::<W>::new(slots);
        let reader = thread::spawn({
            let memory = memory.clone();
            move || {
                let (mut captured, mut lost) = (0, 0);
                let mut reader = RingReader::with_margin(memory.ring(), 0, margin);
                for _ in 0..polls {
                    poll(&mut reader, &mut captured, &mut lost);
                }
                (captured, lost, reader.next())
            }
        });
        let mut writer = RingWriter::new(memory.ring());
        for seq in 1..=frames {
            writer.write(payload(seq));
        }
        let (mut captured, mut lost, next) = reader.join().unwrap();
        let mut reader = RingReader::with_margin(memory.ring(), next, margin);
        poll(&mut reader, &mut captured, &mut lost);
        assert_eq!(captured + lost, frames, "unaccounted");
    });
}

#[test]
fn frames_are_whole_and_counted() {
    lossy_ring::<NOTHING>(2, 3, 1, 1);
    lossy_ring::<NOTHING>(2, 4, 1, 1);
    lossy_ring::<NOTHING>(4, 5, 1, 1);
}

#[test]
fn two_polls_agree() {
    lossy_ring::<NOTHING>(2, 3, 2, 1);
}

#[test]
fn a_ring_of_two_tears_without_the_writer_fence() {
    fails(|| lossy_ring::<WRITER_FENCE>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_reader_fence() {
    fails(|| lossy_ring::<READER_FENCE>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_release_of_the_cursor() {
    fails(|| lossy_ring::<PUBLISH>(2, 3, 1, 1));
}

#[test]
fn a_ring_of_two_tears_without_the_margin() {
    fails(|| lossy_ring::<NOTHING>(2, 3, 1, 0));
}
