//! The spans that a thread has entered and not left.

use std::cell::Cell;

/// The most nested spans of a thread. Further ones are not measured.
const DEPTH: usize = 64;

#[derive(Clone, Copy)]
struct Entered {
    id: u64,
    /// The stamp at which the thread entered the span.
    start: u64,
}

struct Stack {
    entered: [Cell<Entered>; DEPTH],
    depth: Cell<usize>,
    /// The session in which the spans were entered. Spans that the thread leaves after its end stay here until
    /// another session begins.
    session: Cell<u64>,
}

thread_local! {
    static STACK: Stack = const {
        Stack {
            entered: [const { Cell::new(Entered { id: 0, start: 0 }) }; DEPTH],
            depth: Cell::new(0),
            session: Cell::new(0),
        }
    };
}

/// Records that the thread enters a span. Returns false if it has entered too many.
pub(crate) fn enter(session: u64, id: u64, start: u64) -> bool {
    STACK.with(|stack| {
        if stack.session.replace(session) != session {
            stack.depth.set(0);
        }
        let depth = stack.depth.get();
        let Some(free) = stack.entered.get(depth) else { return false };
        free.set(Entered { id, start });
        stack.depth.set(depth + 1);
        true
    })
}

/// Records that the thread leaves a span. Returns the stamp at which the thread entered it, if that was in this
/// session. Spans may be left in any order.
pub(crate) fn leave(session: u64, id: u64) -> Option<u64> {
    STACK.with(|stack| {
        if stack.session.get() != session {
            return None;
        }
        let depth = stack.depth.get();
        let entered = &stack.entered[..depth];
        let position = entered.iter().rposition(|entered| entered.get().id == id)?;
        let start = entered[position].get().start;
        for pair in entered[position..].windows(2) {
            pair[0].set(pair[1].get());
        }
        stack.depth.set(depth - 1);
        Some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_left_in_any_order() {
        let enter = |id, start| super::enter(1, id, start);
        let leave = |id| super::leave(1, id);
        assert!(enter(1, 10) && enter(2, 20) && enter(1, 30));
        assert_eq!(leave(2), Some(20));
        assert_eq!((leave(1), leave(1), leave(1)), (Some(30), Some(10), None));
        assert!((0..64).all(|id| enter(id, id)));
        assert!(!enter(64, 64));
        assert_eq!((leave(64), leave(63)), (None, Some(63)));
        assert!(enter(65, 65));
    }

    #[test]
    fn a_session_begins_without_spans() {
        assert!((0..64).all(|id| enter(1, id, id)));
        assert_eq!(leave(2, 63), None);
        assert!(enter(2, 7, 70), "there is room again");
        assert_eq!((leave(2, 7), leave(2, 6)), (Some(70), None));
    }
}
