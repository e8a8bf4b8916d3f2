//! The spans that a thread is inside of.

use std::cell::Cell;

/// Spans of a thread, one inside of the other, of which more are not measured.
const DEPTH: usize = 64;

#[derive(Clone, Copy)]
struct Entered {
    id: u64,
    /// When the thread entered it: a stamp.
    start: u64,
}

struct Stack {
    entered: [Cell<Entered>; DEPTH],
    depth: Cell<usize>,
    /// In which they were entered. What is left while nobody is attached stays, until another one begins.
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

/// The thread enters a span. `false` if it is inside of too many.
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

/// The thread leaves a span: returns when it entered it, if that was in this session. Spans may be left in another
/// order than that of entering.
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
    fn another_session_knows_nothing_of_the_last() {
        assert!((0..64).all(|id| enter(1, id, id)));
        assert_eq!(leave(2, 63), None);
        assert!(enter(2, 7, 70), "there is room again");
        assert_eq!((leave(2, 7), leave(2, 6)), (Some(70), None));
    }
}
