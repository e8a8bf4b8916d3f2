//! Quantiles of values.

use crate::ColumnValue;
use crate::summary::{PERCENTILES, SummaryNumber};

/// A quantile of sorted values, interpolated between neighbours as numpy does by default; None
/// without values. `share` is 0 to 1.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = (last as f64 * share).clamp(0.0, last as f64);
    let low = place.floor() as usize;
    let above = sorted[(low + 1).min(last)];
    Some(between(sorted[low], above, place - place.floor()))
}

/// The percentiles of values, which are reordered: each is selected among the values above the previous one.
pub(crate) fn percentiles<T: ColumnValue>(values: &mut [T]) -> [Option<SummaryNumber>; 4] {
    let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    let last = values.len() - 1;
    let (mut above_previous, mut offset) = (values, 0);
    PERCENTILES.map(|p| {
        let place = last as f64 * p;
        let low = (place.floor() as usize).min(last);
        above_previous.select_nth_unstable_by(low - offset, order);
        let searched = std::mem::take(&mut above_previous);
        above_previous = &mut searched[low - offset..];
        offset = low;
        let below = above_previous[0];
        let above = above_previous[1..].iter().copied().min_by(order).unwrap_or(below);
        Some(between_values(below, above, place - low as f64))
    })
}

/// Interpolates from one value to the next at `share`. Where floats cannot represent the values,
/// the result is rounded to a whole number.
fn between_values(below: impl ColumnValue, above: impl ColumnValue, share: f64) -> SummaryNumber {
    if let (Some(low), Some(high)) = (below.whole(), above.whole())
        && [below.number(), above.number()].iter().any(|number| number.beyond_floats().is_some())
    {
        let step = ((high - low) as f64 * share).round() as i128;
        return SummaryNumber::Whole((low + step).min(high));
    }
    SummaryNumber::Real(between(below.float(), above.float(), share))
}

/// Interpolates as numpy does.
pub(crate) fn between(below: f64, above: f64, share: f64) -> f64 {
    if below == above || share == 0.0 {
        return below;
    }
    // Halfway to infinity is infinity, and halfway to minus infinity is minus infinity.
    if above.is_infinite() || below.is_infinite() {
        return if above.is_infinite() { above } else { below };
    }
    let step = above - below;
    if step.is_infinite() {
        return below * (1.0 - share) + above * share;
    }
    if share >= 0.5 { above - step * (1.0 - share) } else { below + step * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_nothing_between_infinity_and_a_number() {
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        for share in [0.1, 0.5, 0.9] {
            assert_eq!(between(1.0, most, share), most);
            assert_eq!(between(least, 1.0, share), least);
            assert_eq!(between(least, most, share), most);
        }
        assert_eq!(between(least, most, 0.0), least);
        assert_eq!(between(-1.5e308, 1.5e308, 0.5), 0.0, "their difference is no number");
    }

    #[test]
    fn what_numpy_says() {
        // numpy.quantile([1, 1, 2, 3, 4, 5, 6, 9], [0, .5, .9, .99, 1])
        let sorted = [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0];
        let quantiles = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| quantile(&sorted, share));
        assert_eq!(quantiles, [1.0, 3.5, 6.8999999999999995, 8.79, 9.0].map(Some));
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.3)), (None, Some(7.0)));
    }

    #[test]
    fn beyond_all_numbers() {
        let sorted = [1.0, 2.0, f64::INFINITY];
        assert_eq!(
            (quantile(&sorted, 0.5), quantile(&sorted, 1.0)),
            (Some(2.0), Some(f64::INFINITY))
        );
        assert_eq!(quantile(&sorted, 0.7), Some(f64::INFINITY));
    }
}
