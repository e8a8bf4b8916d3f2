//! Tests that segments which contradict the control page are refused and unmapped. `codegen/tests/all/refuses.rs`
//! has the same list for the C runtime.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::abi::GeometryWords;
use ppt_segment::{Created, Geometry, Segment, SegmentIdentity};

use super::control::word;
use super::{Buffer, Control, Descriptor, Layout, Thread, begin};
use crate::wrong_segments::{WRONG_GEOMETRIES, WRONG_HEADERS};

const HASH: u64 = 0x1234_5678_9abc_def0;
/// The mark in the lower half of a gate of a segment that the target makes.
const MADE: u64 = 1 << 31;

static CONTROL: Control = Control::new();
static DESCRIPTOR: Descriptor = Descriptor::new(
    &DESCRIPTOR,
    &CONTROL,
    "{}",
    Layout { hash: HASH, stride: 64, log2_slots: 4, frames: 1, cells: 0 },
);
static BUFFER: Buffer = Buffer::new(&DESCRIPTOR, &CONTROL);
thread_local! {
    static THREAD: Thread<64> = const { Thread::new() };
}

/// Opens a gate as an agent does, and writes a frame. Returns the error if it was not written.
fn write(id: u64, nonce: u64, g: &GeometryWords) -> Result<(), i32> {
    static GENERATION: AtomicU64 = AtomicU64::new(1);
    let halves = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    word!(CONTROL, gate).store(0, Relaxed);
    word!(CONTROL, nonce).store(nonce, Relaxed);
    word!(CONTROL, geometry.size).store(g.size, Relaxed);
    word!(CONTROL, geometry.stride).store(halves(g.stride, g.log2_slots), Relaxed);
    word!(CONTROL, geometry.rings).store(halves(g.rings, g.ring_pitch), Relaxed);
    word!(CONTROL, geometry.masks).store(g.masks, Relaxed);
    word!(CONTROL, geometry.process).store(g.process, Relaxed);
    word!(CONTROL, geometry.ring_headers).store(g.ring_headers, Relaxed);
    word!(CONTROL, geometry.slots).store(g.slots, Relaxed);
    word!(CONTROL, clock_kind).store(halves(0, std::process::id()), Relaxed);
    let refused = word!(CONTROL, not_mapped).load(Relaxed);
    word!(CONTROL, gate).store(GENERATION.fetch_add(1, Relaxed) << 32 | id, Relaxed);
    match begin(&CONTROL, &BUFFER, &THREAD, 0) {
        Some(frame) => {
            frame.end();
            Ok(())
        }
        None => {
            assert_eq!(word!(CONTROL, not_mapped).load(Relaxed), refused + 1);
            Err(word!(CONTROL, error).load(Relaxed) as i32)
        }
    }
}

fn segment(nonce: u64, rings: u32) -> Segment {
    let geometry = Geometry::new(64, 4, rings).unwrap();
    let mut key = std::process::id() as u16;
    Segment::create(
        SegmentIdentity { nonce, schema_hash: HASH, geometry },
        None,
        Created::default(),
        || {
            key = key.wrapping_add(1);
            key
        },
    )
    .unwrap()
}

/// Changes a bit of a segment's header, as any process can that may attach it.
fn spoil(id: u64, offset: usize) {
    // SAFETY: a mapping of our own, of at least a header; atomic, as others map it, too.
    unsafe {
        let base = libc::shmat(id as i32, std::ptr::null(), 0);
        assert_ne!(base as isize, -1);
        (*base.byte_add(offset).cast::<std::sync::atomic::AtomicU32>()).fetch_xor(1, Relaxed);
        libc::shmdt(base);
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs System V shared memory")]
fn what_no_agent_makes_is_not_written_into() {
    let nonce = 77;
    let good = segment(nonce, 3);
    let id = good.id().unwrap() as u64;
    let words = good.geometry().words();
    for (what, spoil) in WRONG_GEOMETRIES {
        let mut wrong = words;
        spoil(&mut wrong);
        assert_eq!(write(id, nonce, &wrong), Err(libc::EPROTO), "{what}");
        assert_eq!(write(MADE | 1, nonce, &wrong), Err(libc::EPROTO), "{what}, to be made");
    }
    for (what, offset) in WRONG_HEADERS {
        spoil(id, offset);
        assert_eq!(write(id, nonce, &words), Err(libc::ESTALE), "{what}");
        spoil(id, offset);
    }
    let rows = |row: usize| CONTROL.segment(row).unwrap()[0].load(Relaxed);
    assert_eq!((rows(0), good.ring(0).tail()), (0, 0), "nothing is mapped, nothing written");

    // A smaller segment of the same nonce, with the geometry of a larger one.
    let larger = Geometry::new(64, 4, 200).unwrap().words();
    assert_eq!(write(id, nonce, &larger), Err(libc::ESTALE), "larger than it is");
    assert_eq!(write(id, nonce, &words), Ok(()));
    assert_eq!(write(id, nonce, &larger), Err(libc::EPROTO), "larger than what is mapped");
    assert_eq!(write(id, nonce, &words), Ok(()));
    // A mapped segment keeps its shape, even if its header changes.
    spoil(id, WRONG_HEADERS[6].1);
    assert_eq!(write(id, nonce, &words), Ok(()));
    assert_eq!(good.ring(0).tail(), 3);

    assert_eq!(write(MADE | 1, 78, &words), Ok(()));
    assert_eq!((rows(1) != 0, rows(2)), (true, 0));
}
