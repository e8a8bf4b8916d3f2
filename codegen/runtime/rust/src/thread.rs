//! The code that runs once a frame.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::LocalKey;

use ppt_segment::ring::{open, publish, put};

use super::control::Control;
use super::descriptor::Buffer;
use super::place::RingPlace;
use super::slow;
use crate::bytes::Plain;

/// A thread's place in a buffer of slots of `STRIDE` bytes. It has no destructor, so reading it is one
/// thread-local access, at any time in a thread's life.
#[derive(Debug)]
pub struct Thread<const STRIDE: usize>(pub(super) RingPlace);

impl<const STRIDE: usize> Thread<STRIDE> {
    /// The state of a thread without a ring.
    #[expect(clippy::new_without_default, reason = "only thread-locals are threads")]
    pub const fn new() -> Self {
        const { assert!(STRIDE >= 16 && STRIDE % 8 == 0 && !std::mem::needs_drop::<RingPlace>()) };
        Self(RingPlace::new())
    }
}

/// A frame that is being written, until [`Write::end`]. Its thread is busy until then.
#[derive(Debug)]
#[must_use]
pub struct Write<const STRIDE: usize> {
    /// The thread-local of the thread that this value cannot leave.
    place: NonNull<RingPlace>,
    /// Its slot, read once, because for the compiler stores into it might change the thread-local.
    slot: NonNull<AtomicU64>,
    of_this_thread: PhantomData<*const ()>,
}

/// Marks the branch that calls it as unlikely.
#[cold]
fn unwanted() {}

/// Begins a frame with the number `frame`, if ppt wants it.
#[inline(always)]
pub fn begin<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
    frame: u32,
) -> Option<Write<STRIDE>> {
    thread.with(|Thread(place)| {
        if place.busy.load(Relaxed) != 0 {
            slow::nested(buffer, place);
            return None;
        }
        place.enter();
        let gate = control.gate();
        // SAFETY: `with` gives a thread-local of this thread; `RingPlace` has no destructor (asserted).
        let found = || unsafe { slow::found(buffer, place, gate) };
        if gate != place.gate.get() && !found() {
            place.leave();
            return None;
        }
        // SAFETY: a gate that is the place's own means a ring, so `enable` is mapped (invariant of
        // `RingPlace`); the mask page has a bit for every number that `% 256` gives.
        let enabled = unsafe { (*place.enable.get().add(frame as usize / 64 % 4)).load(Relaxed) };
        if enabled >> (frame % 64) & 1 == 0 {
            unwanted();
            place.leave();
            return None;
        }
        open::<AtomicU64>();
        // SAFETY: the same gate means a ring, so `slot` is one of its slots (invariant of `RingPlace`).
        // A check of it would make the frame wait for this load.
        let slot = unsafe { NonNull::new_unchecked(place.slot.get().cast_mut()) };
        Some(Write { place: NonNull::from(place), slot, of_this_thread: PhantomData })
    })
}

impl<const STRIDE: usize> Write<STRIDE> {
    #[inline(always)]
    fn place(&self) -> &RingPlace {
        // SAFETY: it points to a thread-local without a destructor, of a thread that is running:
        // this value is not Send.
        unsafe { self.place.as_ref() }
    }

    /// Word `index` of the slot.
    ///
    /// # Safety
    /// `index < STRIDE / 8`.
    #[inline(always)]
    unsafe fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: `slot` has STRIDE bytes (invariant of `RingPlace`; the slow path gives a thread no
        // ring of another stride), and the caller keeps to them.
        unsafe { self.slot.add(index).as_ref() }
    }

    /// Stores word `INDEX`, any but the first.
    #[inline(always)]
    pub fn put<const INDEX: usize>(&self, value: u64) {
        const { assert!(INDEX >= 1 && INDEX < STRIDE / 8) };
        // SAFETY: asserted above.
        put(unsafe { self.word(INDEX) }, value);
    }

    /// Stores `COUNT` words from byte `FROM` of an array into words `FIRST` and following.
    #[inline(always)]
    pub fn put_array<
        T: Plain,
        const N: usize,
        const FIRST: usize,
        const FROM: usize,
        const COUNT: usize,
    >(
        &self,
        array: &[T; N],
    ) {
        const { assert!(FIRST >= 1 && FIRST + COUNT <= STRIDE / 8) };
        const { assert!(FROM + COUNT * 8 <= N * size_of::<T>()) };
        let from = array.as_ptr().cast::<u8>();
        for index in 0..COUNT {
            // SAFETY: eight bytes inside the array (asserted above), all initialised (`Plain`).
            let value = unsafe { from.add(FROM + index * 8).cast::<u64>().read_unaligned() };
            // SAFETY: asserted above.
            put(unsafe { self.word(FIRST + index) }, value);
        }
    }

    /// Numbers the frame, publishes it, and moves on to the next slot.
    #[inline(always)]
    pub fn end(self) {
        let place = self.place();
        let seq = place.next.get().wrapping_add(1);
        let slot = self.slot.as_ptr().cast_const();
        // SAFETY: the slot and the cursor of our ring (invariant of `RingPlace`).
        unsafe { publish(&*slot, &*place.tail.get(), seq) };
        place.next.set(seq);
        // SAFETY: the end of a slot is the start of another, or the end of the ring.
        let after = unsafe { slot.add(STRIDE / 8) };
        place.slot.set(if after == place.end.get() { place.first.get() } else { after });
        place.leave();
    }
}

/// Maps the segment and touches pages in advance, on an idle thread.
#[inline(always)]
pub fn prepare<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
) {
    if control.on() {
        // SAFETY: as in `begin`.
        thread.with(|Thread(place)| unsafe { slow::prepare(buffer, place) });
    }
}

/// Counts a frame that cannot begin, because its thread is busy with its source.
#[inline(always)]
pub fn busy<const STRIDE: usize>(
    control: &'static Control,
    buffer: &'static Buffer,
    thread: &'static LocalKey<Thread<STRIDE>>,
) {
    if control.on() {
        thread.with(|Thread(place)| slow::nested(buffer, place));
    }
}

#[cfg(test)]
mod tests {
    use std::alloc;
    use std::sync::atomic::Ordering::Relaxed;

    use ppt_segment::abi::{CellWords, NO_GATE, PAGE};
    use ppt_segment::{Geometry, RingReader};

    use super::super::claim::claim;
    use super::super::control::word;
    use super::super::made::initialise;
    use super::super::mapped::{Base, Mapped};
    use super::super::shape::Shape;
    use super::super::{Descriptor, Layout};
    use super::*;

    const HASH: u64 = 5;
    const GATE: u64 = 1 << 32 | 7;

    static CONTROL: Control = Control::new();
    static DESCRIPTOR: Descriptor = Descriptor::new(
        &DESCRIPTOR,
        &CONTROL,
        "{}",
        Layout { hash: HASH, stride: 64, log2_slots: 2, frames: 256, cells: 0 },
    );
    static BUFFER: Buffer = Buffer::new(&DESCRIPTOR, &CONTROL);
    thread_local! {
        static THREAD: Thread<64> = const { Thread::new() };
    }

    /// The hot path over memory of our own, which Miri watches.
    #[test]
    fn frames_keep_to_their_ring() {
        let words = Geometry::new(64, 2, 2).unwrap().words();
        let shape = Shape::of(words, CellWords::NONE, 64, 0).unwrap();
        let size = shape.words().size as usize;
        let layout = alloc::Layout::from_size_align(size, PAGE as usize).unwrap();
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc::alloc_zeroed(layout) };
        // SAFETY: as large as the shape, aligned to pages, and ours until the end of this test,
        // which no frame outlives.
        let (base, segment) = unsafe {
            initialise(memory.cast(), &CONTROL, HASH, 9, &shape);
            let base = Base::new(memory.expose_provenance());
            (base, Mapped::new(base, shape))
        };
        assert!(base.is(9, HASH, &shape));
        assert!(!base.is(8, HASH, &shape) && !base.is(9, HASH + 1, &shape));

        THREAD.with(|Thread(place)| {
            assert!(claim(place, &segment));
            place.enable.set(segment.enable().as_ptr());
            place.gate.set(GATE);
        });
        word!(CONTROL, gate).store(GATE, Relaxed);
        let mut reader = RingReader::new(segment.ring(0).1, 0);
        let array: [u8; 20] = std::array::from_fn(|index| index as u8);
        for n in 1..=9 {
            let frame = begin(&CONTROL, &BUFFER, &THREAD, 255).unwrap();
            frame.put::<1>(n);
            frame.put_array::<u8, 20, 2, 3, 2>(&array);
            frame.put::<7>(!n);
            frame.end();
            let mut read = [0; 8];
            assert_eq!(reader.poll(&mut read).unwrap().count, 1);
            let expected = [n, n, 0x0a09_0807_0605_0403, 0x1211_100f_0e0d_0c0b, 0, 0, 0, !n];
            assert_eq!(read, expected);
        }
        segment.enable()[3].store(u64::MAX >> 1, Relaxed);
        assert!(begin(&CONTROL, &BUFFER, &THREAD, 255).is_none(), "nobody wants it");
        begin(&CONTROL, &BUFFER, &THREAD, 254).unwrap().end();
        assert_eq!((segment.ring(0).1.tail(), segment.ring(1).1.tail()), (10, 0));

        word!(CONTROL, gate).store(0, Relaxed);
        THREAD.with(|Thread(place)| place.gate.set(NO_GATE));
        // SAFETY: allocated above; nobody uses it any more.
        unsafe { alloc::dealloc(memory, layout) };
    }
}
