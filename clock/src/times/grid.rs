//! Chooses the knots: one per block where there are readings, and ever fewer away from them.

/// Number of blocks before the first and after the last reading for which a bound is still given:
/// an hour.
const BEYOND: i64 = 4096;

/// Adds indices to `data`, which is sorted without duplicates, so that the distance between
/// neighbours is less than twice that to the nearest of `data`. Adds some before and after if
/// requested.
pub(super) fn fill(data: &[i64], before: bool, after: bool) -> Vec<i64> {
    let mut all = Vec::with_capacity(data.len());
    let (Some(&first), Some(&last)) = (data.first(), data.last()) else { return all };
    let doubled = |most: i64| {
        std::iter::successors(Some(1), |by| Some(by * 2)).take_while(move |&by| by <= most)
    };
    if before {
        all.extend(doubled(BEYOND).map(|by| first - by));
        all.reverse();
    }
    for (i, &index) in data.iter().enumerate() {
        all.push(index);
        let Some(&next) = data.get(i + 1) else { break };
        let half = (next - index) / 2;
        all.extend(doubled(half).map(|by| index + by));
        let from = all.len();
        all.extend(
            doubled(half).map(|by| next - by).filter(|&number| number > index + largest(half)),
        );
        all[from..].reverse();
    }
    if after {
        all.extend(doubled(BEYOND).map(|by| last + by));
    }
    all
}

/// The largest power of two up to `most`; 0 if there is none.
fn largest(most: i64) -> i64 {
    if most < 1 { 0 } else { 1 << most.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_are_filled_by_few(gaps in prop::collection::vec(1..100_000i64, 1..20)) {
            let data: Vec<i64> = gaps.iter().scan(-7, |at, by| { *at += by; Some(*at) }).collect();
            let all = fill(&data, true, true);
            prop_assert!(all.windows(2).all(|it| it[0] < it[1]), "{:?}", all);
            prop_assert!(data.iter().all(|it| all.binary_search(it).is_ok()));
            prop_assert!(all.len() <= data.len() * 36 + 26);
            for it in all.windows(2) {
                let away = |x: i64| data.iter().map(|it| (it - x).abs()).min().unwrap();
                prop_assert!(it[1] - it[0] < 2 * away(it[0]).max(away(it[1])).max(1), "{:?}", it);
            }
            prop_assert_eq!(all[0], data[0] - BEYOND);
            let inside = fill(&data, false, false);
            prop_assert_eq!(inside.last(), data.last());
        }
    }
}
