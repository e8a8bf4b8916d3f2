//! The sequence numbers of a conversation that have been seen.

/// The number of sequence numbers remembered.
const WIDTH: u64 = u128::BITS as u64;

/// The latest sequence numbers of a conversation; each is accepted once.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    /// The highest number.
    top: u64,
    /// Numbers at or below it; bit 0 is `top` itself.
    seen: u128,
}

/// The status of a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberState {
    /// New, and now recorded.
    Fresh,
    /// Seen before.
    Replayed,
    /// Too far below the highest to be remembered.
    Late,
}

impl Window {
    pub fn take(&mut self, number: u64) -> NumberState {
        if number > self.top {
            let by = number - self.top;
            self.seen = if by < WIDTH { self.seen << by | 1 } else { 1 };
            self.top = number;
            return NumberState::Fresh;
        }
        let below = self.top - number;
        // Numbers start at 1, so 0 is never new.
        if below >= WIDTH || number == 0 {
            return NumberState::Late;
        }
        let bit = 1 << below;
        if self.seen & bit != 0 {
            return NumberState::Replayed;
        }
        self.seen |= bit;
        NumberState::Fresh
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a set that forgets nothing.
        #[test]
        fn each_number_is_taken_once(numbers in prop::collection::vec(
            prop_oneof![1u64..300, 1u64..2000, Just(u64::MAX), any::<u64>()], 0..300,
        )) {
            let (mut window, mut all, mut top) = (Window::default(), HashSet::new(), 0);
            for number in numbers {
                let seen = window.take(number);
                if number == 0 || top >= WIDTH && number <= top - WIDTH {
                    prop_assert_eq!(seen, NumberState::Late);
                } else if all.insert(number) {
                    prop_assert_eq!(seen, NumberState::Fresh);
                } else {
                    prop_assert_eq!(seen, NumberState::Replayed);
                }
                top = top.max(number);
            }
        }
    }
}
