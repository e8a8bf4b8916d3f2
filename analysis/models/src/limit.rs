//! The load at which a growing cost meets its bound.

use std::fmt;

use serde::Serialize;

/// The load at which a cost meets its bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Crossing {
    /// The cost reaches the bound at this load.
    At(f64),
    /// The cost is above the bound already at this load, the smallest one measured.
    FromTheStart(f64),
    /// The cost does not reach the bound up to a load far beyond all measurements.
    Never {
        /// The largest load of the search.
        searched: f64,
    },
}

/// A confidence interval of a crossing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossingRange {
    /// The earliest crossing.
    pub low: Crossing,
    /// The latest crossing.
    pub high: Crossing,
}

impl Crossing {
    /// The load as a number; infinity for never.
    pub(crate) fn number(self) -> f64 {
        match self {
            Crossing::At(at) | Crossing::FromTheStart(at) => at,
            Crossing::Never { .. } => f64::INFINITY,
        }
    }
}

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crossing::At(at) => write!(f, "{at}"),
            Crossing::FromTheStart(at) => write!(f, "{at} or fewer"),
            Crossing::Never { searched } => write!(f, "never (looked for up to {searched})"),
        }
    }
}

/// The loads of a search: from the smallest measured load to a thousand times the largest.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Ascending loads.
    pub places: Vec<f64>,
}

/// Numbers of loads within and beyond the measured ones.
const WITHIN: usize = 200;
const BEYOND: usize = 400;
/// The end of the search, in largest measured loads.
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

    /// The first load at which `cost` is at least `bound`. `cost_at` has its values by index of `places`.
    pub fn first(
        &self,
        bound: f64,
        cost_at: impl Fn(usize) -> f64,
        cost: impl Fn(f64) -> f64,
    ) -> Crossing {
        let reached = |value: f64| value >= bound;
        let Some(at) = (0..self.places.len()).find(|&index| reached(cost_at(index))) else {
            return Crossing::Never { searched: self.places.last().copied().unwrap_or(0.0) };
        };
        if at == 0 {
            return Crossing::FromTheStart(self.places[0]);
        }
        let (mut below, mut above) = (self.places[at - 1], self.places[at]);
        for _ in 0..40 {
            let middle = below + (above - below) / 2.0;
            if reached(cost(middle)) { above = middle } else { below = middle }
        }
        Crossing::At(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bound: f64, cost: impl Fn(f64) -> f64) -> Crossing {
        let search = Search::new(10.0, 500.0);
        search.first(bound, |index| cost(search.places[index]), &cost)
    }

    #[test]
    fn within_beyond_and_never() {
        let near = |found: Crossing, expected: f64| match found {
            Crossing::At(at) => assert!((at / expected - 1.0).abs() < 1e-9, "{at} {expected}"),
            other => panic!("{other}"),
        };
        near(first(0.9, |n| n / 300.0), 270.0);
        near(first(0.9, |n| n * n / 1e6), 948.683_298_050_513_8);
        near(first(100.0, |n| n / 1000.0), 100_000.0);
        assert_eq!(first(1.0, |_| 2.0), Crossing::FromTheStart(10.0));
        assert_eq!(first(1.0, |n| 1.0 - 1.0 / n), Crossing::Never { searched: 500_000.0 });
        // Of several crossings, the first.
        near(first(1.0, |n| 1.5 - ((n - 200.0) / 100.0).powi(2)), 200.0 - 100.0 * 0.5f64.sqrt());
    }
}
