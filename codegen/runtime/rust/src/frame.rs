//! The interface of all generated frames.

use std::cell::RefCell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crate::text::Text;

/// A generated frame.
pub trait Frame: Copy {
    /// Whether somebody is attached to its buffer.
    fn ppt_on() -> bool;
    /// Writes it, if somebody is attached; asked when nobody is, it takes longer to find out.
    fn ppt_commit(&self);
    /// Counts a frame that could not be written because its thread is busy with the frame.
    fn ppt_busy();
    /// Stamps the beginning of the frame's interval.
    fn ppt_start(&mut self);
    /// Stamps the end of the frame's interval.
    fn ppt_end(&mut self);
}

/// A frame that is written when this value is dropped: at the end of the block, on `return` or `?`,
/// and on panic (unless panics abort).
#[derive(Debug)]
#[must_use = "the frame's interval ends when this is dropped: `let _guard = …`"]
pub struct Scope<F: Frame> {
    /// None where nobody was attached when the scope began.
    frame: Option<F>,
}

impl<F: Frame> Scope<F> {
    /// Sets fields of the frame, if somebody was attached when the scope began.
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

/// Comes last where a frame is written. It is no instruction, but it makes the end of that path its
/// own: the last call does not become a jump, and what the path saves on the stack is saved on it
/// alone, not also where nobody is attached.
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

/// Changes a thread's frame of the macro form, and writes it if that is asked for.
///
/// A signal handler that comes in between finds the frame taken: it changes nothing, and what it
/// would have written is counted.
#[inline(always)]
pub fn update<F: Frame>(last: &RefCell<F>, write: bool, set: impl FnOnce(&mut F)) {
    match last.try_borrow_mut() {
        Ok(mut frame) => {
            set(&mut frame);
            if write && F::ppt_on() {
                frame.ppt_commit();
            }
        }
        Err(_) if write => F::ppt_busy(),
        Err(_) => {}
    }
}

/// How `write_…!(field = value)` stores a value: as it is, or a string into a text.
#[diagnostic::on_unimplemented(message = "this field cannot hold `{T}`: it is of type `{Self}`")]
pub trait Put<T> {
    /// Stores it.
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
