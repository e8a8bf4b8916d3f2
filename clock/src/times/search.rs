//! Search starting from the last position.

/// The same as [`slice::partition_point`], fastest if the result is near `hint`.
pub(super) fn partition_near<T>(all: &[T], hint: usize, before: impl Fn(&T) -> bool) -> usize {
    let hint = hint.min(all.len());
    let (mut start, mut end) = (hint, hint);
    let mut step = 1;
    while start > 0 && !before(&all[start - 1]) {
        end = start - 1;
        start = start.saturating_sub(step);
        step *= 2;
    }
    while end < all.len() && before(&all[end]) {
        start = end + 1;
        end = (end + step).min(all.len());
        step *= 2;
    }
    start + all[start..end].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_hint_does_not_matter(mut all: Vec<u8>, hint in 0..200usize, at: u8) {
            all.sort_unstable();
            let plain = all.partition_point(|&it| it < at);
            prop_assert_eq!(partition_near(&all, hint, |&it| it < at), plain);
        }
    }
}
