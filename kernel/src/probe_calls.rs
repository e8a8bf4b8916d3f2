//! Pairs the entries of functions with their returns.
//!
//! On x86-64, a function returns with the stack pointer 8 bytes above where it was entered. So thread, function
//! and stack pointer identify a call, also a recursive one. A call that longjmp(3) leaves never returns: it is
//! dropped once the stack is shorter than it was.

use std::collections::HashMap;

/// A call that has not returned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenCall<T> {
    pub probe: usize,
    /// The stack pointer at the entry.
    stack: u64,
    pub entered: T,
}

/// The calls of all threads that have not returned yet.
#[derive(Debug)]
pub(crate) struct OpenCalls<T> {
    by_thread: HashMap<i32, Vec<OpenCall<T>>>,
    /// Calls that never returned.
    pub unreturned: u64,
}

/// Bytes of a return address.
const RETURN_ADDRESS: u64 = 8;
/// The maximum number of open calls of a thread.
const DEEPEST: usize = 1 << 16;

impl<T> OpenCalls<T> {
    pub fn new() -> Self {
        Self { by_thread: HashMap::new(), unreturned: 0 }
    }

    /// A thread enters a function with the stack pointer at `stack`.
    pub fn enter(&mut self, thread: i32, probe: usize, stack: u64, entered: T) {
        let calls = self.by_thread.entry(thread).or_default();
        // Stacks grow down: the caller is above it. A function that is left by a jump to another one has the
        // same place, and returns with that one.
        let is_dead =
            |call: &OpenCall<T>| call.stack < stack || (call.stack == stack && call.probe == probe);
        while calls.last().is_some_and(is_dead) || calls.len() >= DEEPEST {
            calls.pop();
            self.unreturned += 1;
        }
        calls.push(OpenCall { probe, stack, entered });
    }

    /// A function returns, and the stack pointer is at `stack` then.
    pub fn leave(&mut self, thread: i32, probe: usize, stack: u64) -> Option<T> {
        let entered_at = stack.checked_sub(RETURN_ADDRESS)?;
        let calls = self.by_thread.get_mut(&thread)?;
        while calls.last().is_some_and(|call| call.stack < entered_at) {
            calls.pop();
            self.unreturned += 1;
        }
        let is_it = |call: &OpenCall<T>| call.stack == entered_at && call.probe == probe;
        let same_place = calls.iter().rev().take_while(|call| call.stack == entered_at).count();
        let first = calls.len() - same_place;
        let at = first + calls[first..].iter().rposition(is_it)?;
        let call = calls.remove(at);
        if calls.is_empty() {
            self.by_thread.remove(&thread);
        }
        Some(call.entered)
    }

    /// A thread has ended: its calls never return.
    pub fn forget(&mut self, thread: i32) {
        let calls = self.by_thread.remove(&thread).unwrap_or_default();
        self.unreturned += calls.len() as u64;
    }

    /// Calls that may return yet.
    pub fn open(&self) -> u64 {
        self.by_thread.values().map(|calls| calls.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recursion_is_told_apart() {
        let mut calls = OpenCalls::new();
        for depth in 0..5u64 {
            calls.enter(1, 0, 1000 - 16 * depth, depth);
        }
        assert_eq!(calls.open(), 5);
        for depth in (0..5u64).rev() {
            assert_eq!(calls.leave(1, 0, 1008 - 16 * depth), Some(depth));
        }
        assert_eq!((calls.open(), calls.unreturned), (0, 0));
        assert_eq!(calls.leave(1, 0, 1008), None, "its entry was lost");
    }

    #[test]
    fn what_longjmp_leaves_never_returns() {
        let mut calls = OpenCalls::new();
        calls.enter(1, 0, 1000, "outer");
        calls.enter(1, 1, 900, "left");
        calls.enter(1, 1, 800, "left, too");
        assert_eq!(calls.leave(1, 0, 1008), Some("outer"));
        assert_eq!((calls.open(), calls.unreturned), (0, 2));
        // The same function at the same place once more.
        calls.enter(1, 1, 900, "left");
        calls.enter(1, 1, 900, "again");
        assert_eq!(calls.leave(1, 1, 908), Some("again"));
        assert_eq!((calls.open(), calls.unreturned), (0, 3));
    }

    #[test]
    fn a_function_that_jumps_to_another_returns_with_it() {
        let mut calls = OpenCalls::new();
        calls.enter(1, 0, 1000, "first");
        calls.enter(1, 1, 1000, "second");
        assert_eq!(calls.leave(1, 1, 1008), Some("second"));
        assert_eq!(calls.leave(1, 0, 1008), Some("first"));
        assert_eq!(calls.unreturned, 0);
    }

    #[test]
    fn threads_have_stacks_of_their_own() {
        let mut calls = OpenCalls::new();
        calls.enter(1, 0, 1000, 1);
        calls.enter(2, 0, 1000, 2);
        calls.forget(1);
        assert_eq!(calls.leave(1, 0, 1008), None);
        assert_eq!(calls.leave(2, 0, 1008), Some(2));
        assert_eq!((calls.open(), calls.unreturned), (0, 1));
        assert_eq!(calls.leave(2, 0, 3), None, "no stack is there");
    }

    proptest! {
        /// Calls, returns and jumps of a thread, against a stack that knows which call is which.
        #[test]
        fn each_return_finds_its_call(steps in prop::collection::vec((0u8..4, 0usize..3, 1u64..5), 0..200)) {
            let (mut calls, mut truth) = (OpenCalls::new(), Vec::<(usize, u64, usize)>::new());
            let mut jumped = 0;
            for (number, (step, probe, size)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let top = truth.last().map_or(1 << 20, |call| call.1);
                        let stack = top - 16 * size;
                        calls.enter(1, probe, stack, number);
                        truth.push((probe, stack, number));
                    }
                    2 => {
                        if let Some((probe, stack, number)) = truth.pop() {
                            prop_assert_eq!(calls.leave(1, probe, stack + 8), Some(number));
                        }
                    }
                    _ => {
                        // longjmp to an outer one.
                        let left = truth.len().min(size as usize);
                        truth.truncate(truth.len() - left);
                        jumped += left as u64;
                    }
                }
            }
            prop_assert_eq!(calls.open() + calls.unreturned, truth.len() as u64 + jumped);
        }
    }
}
