//! Search starting from the last position.

/// The same as [`slice::partition_point`], fastest if the result is near `hint`.
pub(super) fn partition_near<T>(sorted: &[T], hint: usize, before: impl Fn(&T) -> bool) -> usize {
    let hint = hint.min(sorted.len());
    let (mut start, mut end) = (hint, hint);
    let mut step = 1;
    while start > 0 && !before(&sorted[start - 1]) {
        end = start - 1;
        start = start.saturating_sub(step);
        step *= 2;
    }
    while end < sorted.len() && before(&sorted[end]) {
        start = end + 1;
        end = (end + step).min(sorted.len());
        step *= 2;
    }
    start + sorted[start..end].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_hint_does_not_matter(mut sorted: Vec<u8>, hint in 0..200usize, at: u8) {
            sorted.sort_unstable();
            let plain = sorted.partition_point(|&it| it < at);
            prop_assert_eq!(partition_near(&sorted, hint, |&it| it < at), plain);
        }
    }
}
