//! Robust slopes, which outliers do not affect much.

use nalgebra::{DMatrix, DVector};
use ppt_stats::{Resampler, quantile};

use crate::chance::normal_quantile;
use crate::fit::Fit;
use crate::interval::ConfidenceInterval;
use crate::squares::Squares;

/// The largest number of pairs of rows. If there are more, this number is drawn at random.
const PAIRS: usize = 2_000_000;

/// The robust slopes of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Robust {
    /// The method of estimation.
    pub method: Method,
    /// The slope of each term except the constant.
    pub slopes: Vec<Slope>,
}

/// The method of estimation of slopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The median of the slopes between all pairs of rows (Theil, Sen).
    TheilSen,
    /// The median of the slopes between this many random pairs of rows.
    TheilSenOfSome(usize),
    /// Huber's M-estimate, in which rows beyond 1.345 deviations count less.
    Huber,
}

/// The slope of a term.
#[derive(Debug, Clone, PartialEq)]
pub struct Slope {
    /// The term.
    pub term: String,
    /// The estimated slope.
    pub estimate: f64,
    /// The interval, if rows are independent; None with Huber's estimate.
    pub interval: Option<ConfidenceInterval>,
}

impl Robust {
    /// The robust slopes of a fit; None if the formula has no term.
    pub fn from_fit(fit: &Fit) -> Option<Robust> {
        match fit.formula.terms.len() {
            0 => None,
            1 if fit.formula.constant => {
                let inputs = fit.design.inputs.column(1);
                let response = fit.design.response.as_slice();
                let seed = fit.options.resampling.seed;
                let MedianSlope { estimate, interval, drawn } =
                    theil_sen(inputs.as_slice(), response, fit.level, seed, PAIRS)?;
                let term = fit.design.names[1].clone();
                let method = drawn.map_or(Method::TheilSen, Method::TheilSenOfSome);
                let slopes = vec![Slope { term, estimate, interval: Some(interval) }];
                Some(Robust { method, slopes })
            }
            _ => {
                let estimate = huber(&fit.design.inputs, &fit.design.response, &fit.estimate)?;
                let constant = usize::from(fit.formula.constant);
                let names = fit.design.names.iter().zip(estimate.iter()).skip(constant);
                let slope = |(name, &estimate): (&String, &f64)| Slope {
                    term: name.clone(),
                    estimate,
                    interval: None,
                };
                Some(Robust { method: Method::Huber, slopes: names.map(slope).collect() })
            }
        }
    }
}

/// The median of the slopes between rows.
struct MedianSlope {
    estimate: f64,
    /// The confidence interval of the slope (Sen 1968).
    interval: ConfidenceInterval,
    /// The number of pairs that were drawn. None if all pairs were used.
    drawn: Option<usize>,
}

/// Computes the median slope, from at most `max_pairs` pairs of rows.
fn theil_sen(
    inputs: &[f64],
    response: &[f64],
    level: f64,
    seed: u64,
    max_pairs: usize,
) -> Option<MedianSlope> {
    let rows = inputs.len();
    let slope = |i: usize, j: usize| {
        let run = inputs[j] - inputs[i];
        (run != 0.0).then(|| (response[j] - response[i]) / run)
    };
    let pairs = rows * (rows - 1) / 2;
    let mut slopes = Vec::with_capacity(pairs.min(max_pairs));
    let drawn = (pairs > max_pairs).then_some(max_pairs);
    if drawn.is_some() {
        let mut resampler = Resampler::new(seed);
        for _ in 0..max_pairs {
            slopes.extend(slope(resampler.below(rows), resampler.below(rows)));
        }
    } else {
        for i in 0..rows {
            slopes.extend((i + 1..rows).filter_map(|j| slope(i, j)));
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let estimate = quantile(&slopes, 0.5)?;
    // The ranks of the ends of the interval, by the variance of Kendall's S with ties.
    let rows = rows as f64;
    let ties = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let runs = sorted.chunk_by(|value, next| value == next).map(|values| values.len() as f64);
        runs.map(|k| k * (k - 1.0) * (2.0 * k + 5.0)).sum::<f64>()
    };
    let whole = rows * (rows - 1.0) * (2.0 * rows + 5.0);
    let spread = ((whole - ties(inputs) - ties(response)) / 18.0).max(0.0).sqrt();
    let z = normal_quantile((1.0 + level) / 2.0);
    // Scaled to the pairs that have a slope and were drawn.
    let runs = {
        let mut sorted = inputs.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let same = sorted.chunk_by(|value, next| value == next).map(|values| values.len() as f64);
        rows * (rows - 1.0) / 2.0 - same.map(|k| k * (k - 1.0) / 2.0).sum::<f64>()
    };
    let part = slopes.len() as f64 / runs;
    let count = slopes.len() as f64;
    let rank = |at: f64| slopes[(at.max(0.0) as usize).min(slopes.len() - 1)];
    let high = ((count + z * spread * part) / 2.0).round();
    let low = ((count - z * spread * part) / 2.0).round() - 1.0;
    let interval = ConfidenceInterval { low: rank(low), high: rank(high) };
    Some(MedianSlope { estimate, interval, drawn })
}

/// The number of standard deviations beyond which a row counts less.
const FAR: f64 = 1.345;

/// Huber's M-estimate from `start` on, scaled by the median absolute deviation.
fn huber(
    inputs: &DMatrix<f64>,
    response: &DVector<f64>,
    start: &DVector<f64>,
) -> Option<DVector<f64>> {
    let mut estimate = start.clone();
    for _ in 0..100 {
        let rest = response - inputs * &estimate;
        let mut sizes: Vec<f64> = rest.iter().map(|value| value.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        // The ratio of median and standard deviation of a normal distribution.
        let scale = quantile(&sizes, 0.5)? / normal_quantile(0.75);
        if scale <= 0.0 {
            return Some(estimate);
        }
        let weight = |value: f64| (FAR * scale / value.abs()).min(1.0).sqrt();
        let mut weighted = inputs.clone();
        let mut answer = response.clone();
        for (row, &x) in rest.iter().enumerate() {
            weighted.row_mut(row).scale_mut(weight(x));
            answer[row] *= weight(x);
        }
        let squares = Squares::new(&weighted).ok()?;
        let next = &squares.to_coefficients * squares.nearest(&answer).0;
        let moved = (&next - &estimate).amax();
        estimate = next;
        if moved <= 1e-9 * estimate.amax() {
            break;
        }
    }
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_at_random_say_the_same() {
        let inputs: Vec<f64> = (0..600).map(|number| f64::from(number % 60)).collect();
        let noise = |index: usize| ((index * 7919) % 601) as f64 / 601.0 - 0.5;
        let response: Vec<f64> =
            inputs.iter().enumerate().map(|(at, value)| 2.0 * value + 10.0 * noise(at)).collect();
        let all = theil_sen(&inputs, &response, 0.95, 1, PAIRS).unwrap();
        let some = theil_sen(&inputs, &response, 0.95, 1, 50_000).unwrap();
        assert_eq!((all.drawn, some.drawn), (None, Some(50_000)));
        let estimates = (all.estimate, some.estimate);
        assert!((all.estimate - some.estimate).abs() < 0.01, "{estimates:?}");
        let widths = (all.interval.width(), some.interval.width());
        assert!((widths.0 / widths.1 - 1.0).abs() < 0.1, "{widths:?}");
    }
}
