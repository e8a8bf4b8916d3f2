//! The interface of all generated frames.

use std::cell::RefCell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crate::text::Text;

/// A generated frame.
pub trait Frame: Copy {
    /// Whether ppt is attached to its buffer.
    fn ppt_on() -> bool;
    /// Writes the frame if ppt is attached. While it is not, this is slower than [`Self::ppt_on`].
    fn ppt_commit(&self);
    /// Counts a frame that could not be written because its thread is busy with the frame.
    fn ppt_busy();
    /// Stamps the beginning of the frame's interval.
    fn ppt_start(&mut self);
    /// Stamps the end of the frame's interval.
    fn ppt_end(&mut self);
}

/// The half of a span with fields of its own.
pub trait Half: Frame {
    /// The frame with the fields of both halves.
    type Whole: Copy;
    /// The fields of this half.
    fn ppt_of(whole: &Self::Whole) -> Self;
    /// Stores the fields of this half.
    fn ppt_keep(&self, whole: &mut Self::Whole);
}

/// A frame that is written when this value is dropped: at the end of the block, on `return` or `?`,
/// and on panic (unless panics abort).
#[derive(Debug)]
#[must_use = "the frame's interval ends when this is dropped: `let _guard = …`"]
pub struct Scope<F: Frame> {
    /// None if ppt was not attached when the scope began.
    frame: Option<F>,
}

impl<F: Frame> Scope<F> {
    /// Sets fields of the frame, if ppt was attached when the scope began.
    #[inline(always)]
    pub fn set(&mut self, fill: impl FnOnce(&mut F)) {
        if let Some(frame) = &mut self.frame {
            fill(frame);
        }
    }
}

impl<F: Frame> Drop for Scope<F> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(frame) = &mut self.frame {
            frame.ppt_end();
            frame.ppt_commit();
        }
    }
}

/// Comes last when a frame is written. It is not an instruction, but separates the end of that path: the last
/// call does not become a jump, and registers are saved on that path only, not while ppt is not attached.
#[inline(always)]
pub fn written() {
    compiler_fence(SeqCst);
}

/// Begins a scope over `zero`, filled in by `fill`.
#[inline(always)]
pub fn scope<F: Frame>(zero: F, fill: impl FnOnce(&mut F)) -> Scope<F> {
    if !F::ppt_on() {
        return Scope { frame: None };
    }
    let mut frame = zero;
    frame.ppt_start();
    fill(&mut frame);
    Scope { frame: Some(frame) }
}

/// Changes a thread's frame of the macro form, and writes it if requested.
#[inline(always)]
pub fn update<F: Frame>(last: &RefCell<F>, write: bool, set: impl FnOnce(&mut F)) {
    update_as(last, write, set, |_| {});
}

/// Changes a thread's frame of the macro form, and writes it if requested. `own` sets ppt's own fields after
/// the only check of the gate, so that no frame is written without them.
///
/// A signal handler that interrupts this finds the frame taken: it changes nothing, and its frame is counted as
/// refused.
#[inline(always)]
pub fn update_as<F: Frame>(
    last: &RefCell<F>,
    write: bool,
    set: impl FnOnce(&mut F),
    own: impl FnOnce(&mut F),
) {
    match last.try_borrow_mut() {
        Ok(mut frame) => {
            set(&mut frame);
            if write && F::ppt_on() {
                own(&mut frame);
                frame.ppt_commit();
            }
        }
        Err(_) if write => F::ppt_busy(),
        Err(_) => {}
    }
}

/// Changes a thread's frame of the macro form.
#[inline(always)]
pub fn set<W: Copy>(last: &RefCell<W>, set: impl FnOnce(&mut W)) {
    if let Ok(mut frame) = last.try_borrow_mut() {
        set(&mut frame);
    }
}

/// Changes the fields of one half of a span in a thread's frame of the macro form, and writes them. See
/// [`update_as`].
#[inline(always)]
pub fn update_half<H: Half>(
    last: &RefCell<H::Whole>,
    set: impl FnOnce(&mut H),
    own: impl FnOnce(&mut H),
) {
    match last.try_borrow_mut() {
        Ok(mut frame) => {
            let mut half = H::ppt_of(&frame);
            set(&mut half);
            half.ppt_keep(&mut frame);
            if H::ppt_on() {
                own(&mut half);
                half.ppt_commit();
            }
        }
        Err(_) => H::ppt_busy(),
    }
}

/// The conversion of a value in `write_…!(field = value)`: unchanged, or a string into a text.
#[diagnostic::on_unimplemented(message = "this field cannot hold `{T}`: it is of type `{Self}`")]
pub trait Put<T> {
    /// Stores the value.
    fn put(&mut self, value: T);
}

impl<T> Put<T> for T {
    #[inline(always)]
    fn put(&mut self, value: T) {
        *self = value;
    }
}

impl<const N: usize> Put<&str> for Text<N> {
    #[inline(always)]
    fn put(&mut self, value: &str) {
        self.set(value);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often the gate was looked at, from which look on somebody is attached, and the mark and
    /// the value of what was written.
    #[derive(Clone, Copy, Default)]
    struct GateLooks {
        looks: u32,
        on_from: u32,
        written: Option<(u32, u32)>,
    }

    thread_local! {
        static SEEN: Cell<GateLooks> = Cell::default();
    }

    #[derive(Clone, Copy)]
    struct Marked {
        mark: u32,
        value: u32,
    }

    impl Frame for Marked {
        fn ppt_on() -> bool {
            let mut seen = SEEN.get();
            seen.looks += 1;
            SEEN.set(seen);
            seen.looks >= seen.on_from
        }
        fn ppt_commit(&self) {
            SEEN.set(GateLooks { written: Some((self.mark, self.value)), ..SEEN.get() });
        }
        fn ppt_busy() {}
        fn ppt_start(&mut self) {}
        fn ppt_end(&mut self) {}
    }

    /// Whenever somebody attaches, a frame is written with its mark or not at all.
    #[test]
    fn one_look_at_the_gate() {
        for (on_from, written) in [(1, Some((2, 7))), (2, None)] {
            SEEN.set(GateLooks { on_from, ..GateLooks::default() });
            let last = RefCell::new(Marked { mark: 1, value: 0 });
            update_as(&last, true, |frame| frame.value = 7, |frame| frame.mark = 2);
            assert_eq!((SEEN.get().looks, SEEN.get().written), (1, written));
            assert_eq!(last.borrow().value, 7);
        }
        update(&RefCell::new(Marked { mark: 0, value: 0 }), false, |_| {});
        assert_eq!(SEEN.get().looks, 1);
    }
}
