//! Chooses the knots: one per block where there are readings, and ever fewer away from them.

/// Number of blocks before the first and after the last reading for which a bound is still given:
/// an hour.
const BEYOND: i64 = 4096;

/// Adds indices to `data`, which is sorted without duplicates, so that the distance between
/// neighbours is less than twice that to the nearest of `data`. Adds some before and after if
/// requested.
pub(super) fn fill(data: &[i64], before: bool, after: bool) -> Vec<i64> {
    let mut knots = Vec::with_capacity(data.len());
    let (Some(&first), Some(&last)) = (data.first(), data.last()) else { return knots };
    let doubled = |most: i64| {
        std::iter::successors(Some(1), |by| Some(by * 2)).take_while(move |&by| by <= most)
    };
    if before {
        knots.extend(doubled(BEYOND).map(|by| first - by));
        knots.reverse();
    }
    for (i, &index) in data.iter().enumerate() {
        knots.push(index);
        let Some(&next) = data.get(i + 1) else { break };
        let half = (next - index) / 2;
        knots.extend(doubled(half).map(|by| index + by));
        let from = knots.len();
        knots.extend(
            doubled(half).map(|by| next - by).filter(|&number| number > index + largest(half)),
        );
        knots[from..].reverse();
    }
    if after {
        knots.extend(doubled(BEYOND).map(|by| last + by));
    }
    knots
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
            let knots = fill(&data, true, true);
            prop_assert!(knots.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", knots);
            prop_assert!(data.iter().all(|at| knots.binary_search(at).is_ok()));
            prop_assert!(knots.len() <= data.len() * 36 + 26);
            for pair in knots.windows(2) {
                let away = |x: i64| data.iter().map(|at| (at - x).abs()).min().unwrap();
                let allowed = 2 * away(pair[0]).max(away(pair[1])).max(1);
                prop_assert!(pair[1] - pair[0] < allowed, "{:?}", pair);
            }
            prop_assert_eq!(knots[0], data[0] - BEYOND);
            let inside = fill(&data, false, false);
            prop_assert_eq!(inside.last(), data.last());
        }
    }
}
