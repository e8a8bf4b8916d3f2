//! Counters and histograms: `codegen/runtime/c/cells.c` in Rust.
//!
//! A thread that owns a ring adds to a row of cells that no other thread writes to. It is busy during this, as
//! with a frame. A signal handler that interrupts it, and a thread without a row, add atomically to a shared
//! row. So nothing is refused, unless the segment cannot be mapped.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::LocalKey;

use ppt_segment::cells::{add_own, add_shared};

use super::control::{Control, word};
use super::descriptor::Buffer;
use super::errno::{errno, set_errno};
use super::place::RingPlace;
use super::slow::{Found, described, find, has_failed, is_moving, reach};
use super::table;
use super::thread::Thread;

/// An addition to the cells of a row: to `cell`, and of 1 to `other`, if there is one.
#[derive(Clone, Copy)]
struct Addition {
    cell: u32,
    value: u64,
    other: Option<u32>,
}

impl Addition {
    /// Adds, by `add`, to the row that begins at `row`.
    ///
    /// # Safety
    /// The row is mapped, and has the cells.
    #[inline(always)]
    unsafe fn to(self, row: *const AtomicU64, add: impl Fn(&AtomicU64, u64)) {
        // SAFETY: the contract of this function; everybody accesses cells atomically.
        unsafe {
            add(&*row.add(self.cell as usize), self.value);
            if let Some(other) = self.other {
                add(&*row.add(other as usize), 1);
            }
        }
    }
}

/// Adds to a counter.
#[inline(always)]
pub fn add<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
    cell: u32,
    value: u64,
) {
    make(control, buffer, thread, Addition { cell, value, other: None });
}

/// Adds to the sum of a histogram, and counts the value.
#[inline(always)]
pub fn observe<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
    (sum, bucket): (u32, u32),
    value: u64,
) {
    make(control, buffer, thread, Addition { cell: sum, value, other: Some(bucket) });
}

#[inline(always)]
fn make<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
    addition: Addition,
) {
    let cells = buffer.descriptor.cells();
    assert!(u64::from(addition.cell.max(addition.other.unwrap_or(0))) < cells);
    thread.with(|Thread(place)| {
        if place.busy.load(Relaxed) != 0 {
            return slow(buffer, addition, place, true);
        }
        place.enter();
        let row = place.row.get();
        if control.gate() == place.gate.get() && !row.is_null() {
            // SAFETY: the same gate means a ring, so the row is mapped and ours (invariant of
            // `RingPlace`), and has the cells (asserted; the slow path takes no shorter rows).
            unsafe { addition.to(row, add_own) };
        } else {
            slow(buffer, addition, place, false);
        }
        place.leave();
    });
}

/// Adds for a thread that is busy (`nested`), or has no row for this gate.
#[cold]
#[inline(never)]
fn slow(buffer: &'static Buffer, addition: Addition, place: &RingPlace, nested: bool) {
    let saved = errno();
    let gate = buffer.control.gate();
    let found = match nested {
        true => Found::NoRing,
        false if gate == place.gate.get() => Found::Joined,
        // SAFETY: `place` is a thread-local of this thread, without a destructor: `make` got it so.
        false => unsafe { find(buffer, place, gate) },
    };
    let row = Some(place.row.get()).filter(|row| !row.is_null());
    match (found, row) {
        // SAFETY: as in `make`.
        (Found::Joined, Some(row)) => unsafe { addition.to(row, add_own) },
        (Found::Joined | Found::NoRing, _) => shared(buffer, addition, place),
        (Found::NotMapped | Found::GateChanged, _) => count(buffer),
        (Found::Refused, _) => {}
    }
    set_errno(saved);
}

/// Counts an addition that has no segment.
fn count(buffer: &Buffer) {
    word!(buffer.control, adds_not_mapped).fetch_add(1, Relaxed);
}

/// Adds to the shared row of the segment that the gate names, and maps it if necessary. It may differ from that
/// of the thread's ring.
fn shared(buffer: &'static Buffer, addition: Addition, place: &RingPlace) {
    let control = buffer.control;
    for _ in 0..4 {
        let gate = control.gate();
        if gate == 0 {
            return;
        }
        if is_moving(gate) {
            let row = place.shared.load(Relaxed);
            if row.is_null() || table::find(control, place.nonce.load(Relaxed)).is_none() {
                continue;
            }
            // SAFETY: the shared row of a segment that the table lists: mapped, never unmapped.
            return unsafe { addition.to(row, add_shared) };
        }
        let Some(description) = described(control, gate) else { continue };
        if description.rows.rows == 0 {
            return; // an agent that does not know counters
        }
        if has_failed(control, gate, description.nonce) {
            break;
        }
        // SAFETY: no pointers.
        let is_ours = || description.target_pid == unsafe { libc::getpid() } as u32;
        if table::find(control, description.nonce).is_none() && !is_ours() {
            return; // a fork copied the control page
        }
        let Some(row) = reach(buffer, gate, &description).and_then(|reach| reach.row(0)) else {
            break;
        };
        // SAFETY: the row is mapped, and as long as the buffer's rows (`Shape`); `make` has asserted
        // that these have the cells.
        unsafe { addition.to(row, add_shared) };
        return;
    }
    count(buffer);
}
