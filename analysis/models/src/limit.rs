//! Where a growing cost meets its bound.

use std::fmt;

use serde::Serialize;

/// Where a cost meets its bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Meets {
    /// Here.
    At(f64),
    /// It is above from the beginning, which is the least value that was measured.
    FromTheStart(f64),
    /// Nowhere up to here, which is far beyond what was measured.
    Never {
        /// So far it was looked for.
        searched: f64,
    },
}

impl Meets {
    /// For comparisons: never is beyond all numbers.
    pub(crate) fn number(self) -> f64 {
        match self {
            Meets::At(at) | Meets::FromTheStart(at) => at,
            Meets::Never { .. } => f64::INFINITY,
        }
    }
}

impl fmt::Display for Meets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meets::At(at) => write!(f, "{at}"),
            Meets::FromTheStart(at) => write!(f, "{at} or fewer"),
            Meets::Never { searched } => write!(f, "never (looked for up to {searched})"),
        }
    }
}

/// Where to look: from the least measured value to a thousand times the greatest.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// In order.
    pub places: Vec<f64>,
}

/// Places within what was measured, and beyond.
const WITHIN: usize = 200;
const BEYOND: usize = 400;
/// How many times the greatest measured value.
const FAR: f64 = 1000.0;

impl Search {
    pub fn new(low: f64, high: f64) -> Search {
        let step = (high - low) / WITHIN as f64;
        let mut places: Vec<f64> = (0..WITHIN).map(|index| low + step * index as f64).collect();
        let size = high.abs().max(high - low).max(f64::MIN_POSITIVE);
        let ratio = FAR.powf(1.0 / BEYOND as f64);
        let grown = |index: usize| high + size * (ratio.powi(index as i32) - 1.0);
        places.extend((0..BEYOND).map(grown));
        places.push(high + size * (FAR - 1.0));
        Search { places }
    }

    /// The first place where `cost` is at least `bound`; its values at `places` are known.
    pub fn first(
        &self,
        bound: f64,
        known: impl Fn(usize) -> f64,
        cost: impl Fn(f64) -> f64,
    ) -> Meets {
        let reached = |value: f64| value >= bound;
        let Some(at) = (0..self.places.len()).find(|&index| reached(known(index))) else {
            return Meets::Never { searched: self.places.last().copied().unwrap_or(0.0) };
        };
        if at == 0 {
            return Meets::FromTheStart(self.places[0]);
        }
        let (mut below, mut above) = (self.places[at - 1], self.places[at]);
        for _ in 0..40 {
            let middle = below + (above - below) / 2.0;
            if reached(cost(middle)) { above = middle } else { below = middle }
        }
        Meets::At(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bound: f64, cost: impl Fn(f64) -> f64) -> Meets {
        let search = Search::new(10.0, 500.0);
        search.first(bound, |index| cost(search.places[index]), &cost)
    }

    #[test]
    fn within_beyond_and_never() {
        let near = |found: Meets, expected: f64| match found {
            Meets::At(at) => assert!((at / expected - 1.0).abs() < 1e-9, "{at} {expected}"),
            other => panic!("{other}"),
        };
        near(first(0.9, |n| n / 300.0), 270.0);
        near(first(0.9, |n| n * n / 1e6), 948.683_298_050_513_8);
        near(first(100.0, |n| n / 1000.0), 100_000.0);
        assert_eq!(first(1.0, |_| 2.0), Meets::FromTheStart(10.0));
        assert_eq!(first(1.0, |n| 1.0 - 1.0 / n), Meets::Never { searched: 500_000.0 });
        // The first of several.
        near(first(1.0, |n| 1.5 - ((n - 200.0) / 100.0).powi(2)), 200.0 - 100.0 * 0.5f64.sqrt());
    }
}
