//! What the same work would have given with other runs: runs are drawn with replacement.
//!
//! Frames of a run follow each other and are no independent witnesses; runs are.

use nalgebra::{DMatrix, DVector};
use ppt_stats::quantile;

use crate::chance::{Resampler, normal_below, t_quantile};
use crate::error::NoBootstrap;
use crate::interval::ConfidenceInterval;
use crate::squares::Squares;
use crate::table::Runs;

/// At least this many runs more than coefficients.
const MORE_RUNS: usize = 4;
/// At most this part of the resamples may fail.
const FAILING: f64 = 0.05;

/// How often, and from which seed. The same seed gives the same numbers everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// So many resamples.
    pub count: usize,
    /// Where the random numbers begin.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Resampling { count: 2000, seed: 1 }
    }
}

/// The coefficients of each resample.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// One column a resample; None where it could not be fitted.
    resamples: Vec<Option<DVector<f64>>>,
    runs: usize,
    freedom: f64,
}

impl Bootstrap {
    /// Of the rows of `runs`, where `rest` is what a fit of all of them left.
    pub(crate) fn new(
        squares: &Squares,
        coefficients: &DVector<f64>,
        rest: &DVector<f64>,
        runs: Option<&Runs>,
        resampling: Resampling,
    ) -> Result<Bootstrap, NoBootstrap> {
        let runs = runs.ok_or(NoBootstrap::NoRuns)?;
        let (count, terms) = (runs.count(), coefficients.len());
        let least = terms + MORE_RUNS;
        if count < least {
            return Err(NoBootstrap::TooFew { runs: count, least });
        }
        let parts = parts(squares, rest, runs);
        // The same runs are drawn for every fit of the same runs: what they share cancels out.
        let mut dice = Resampler::new(resampling.seed ^ hash(&runs.names));
        let mut whole = DMatrix::zeros(terms, terms);
        let mut answer = DVector::zeros(terms);
        let mut resample = || {
            whole.fill(0.0);
            answer.fill(0.0);
            for _ in 0..count {
                let (square, product) = &parts[dice.below(count)];
                whole += square;
                answer += product;
            }
            // In the basis of all rows, `whole` is near the identity, unless runs are missing that
            // alone separate coefficients.
            let solved = whole.clone().cholesky()?;
            let least = solved.l_dirty().diagonal().iter().copied().fold(f64::INFINITY, f64::min);
            (least > 1e-4).then(|| coefficients + &squares.to_coefficients * solved.solve(&answer))
        };
        let resamples: Vec<_> = (0..resampling.count.max(1)).map(|_| resample()).collect();
        let failed = resamples.iter().filter(|resample| resample.is_none()).count();
        if failed as f64 > FAILING * resamples.len() as f64 {
            return Err(NoBootstrap::Alike { failed, of: resamples.len() });
        }
        Ok(Bootstrap { resamples, runs: count, freedom: (count - terms) as f64 })
    }

    /// So many runs were drawn from.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// What `of` the coefficients is in each resample.
    pub(crate) fn each(&self, mut of: impl FnMut(&DVector<f64>) -> f64) -> Vec<Option<f64>> {
        self.resamples.iter().map(|resample| resample.as_ref().map(&mut of)).collect()
    }

    /// Between what `of` the coefficients lies.
    pub(crate) fn interval(
        &self,
        level: f64,
        of: impl FnMut(&DVector<f64>) -> f64,
    ) -> ConfidenceInterval {
        self.interval_of(level, self.each(of))
    }

    /// Between what these lie, which [`Bootstrap::each`] gave.
    pub(crate) fn interval_of(&self, level: f64, each: Vec<Option<f64>>) -> ConfidenceInterval {
        let values = each.into_iter().flatten().collect();
        expanded(values, level, self.runs as f64, self.freedom)
    }

    /// The coefficients of each resample; None where it could not be fitted.
    pub(crate) fn coefficients(&self) -> &[Option<DVector<f64>>] {
        &self.resamples
    }

    /// Degrees of freedom: runs beyond the coefficients.
    pub(crate) fn freedom(&self) -> f64 {
        self.freedom
    }
}

/// Each run's part of the normal equations, in the basis.
fn parts(squares: &Squares, rest: &DVector<f64>, runs: &Runs) -> Vec<(DMatrix<f64>, DVector<f64>)> {
    let terms = squares.basis.ncols();
    let mut parts = vec![(DMatrix::zeros(terms, terms), DVector::zeros(terms)); runs.count()];
    for (row, &run) in runs.of_row.iter().enumerate() {
        let (square, product) = &mut parts[run];
        for i in 0..terms {
            let left = squares.basis[(row, i)];
            product[i] += left * rest[row];
            for j in 0..terms {
                square[(i, j)] += left * squares.basis[(row, j)];
            }
        }
    }
    parts
}

/// [`expanded_by`] where resamples of `units` vary by σ²/units, and σ² has `freedom`.
pub(crate) fn expanded(
    values: Vec<f64>,
    level: f64,
    units: f64,
    freedom: f64,
) -> ConfidenceInterval {
    expanded_by(values, level, (units / freedom).sqrt(), freedom)
}

/// The percentile interval, further out for few units: percentiles of resamples are too narrow, as
/// they believe to know the variance, and as that of n units is n − 1 parts in n of it (Hesterberg
/// 2015, "expanded percentile"). `wider` makes up for the latter.
pub(crate) fn expanded_by(
    mut values: Vec<f64>,
    level: f64,
    wider: f64,
    freedom: f64,
) -> ConfidenceInterval {
    values.sort_unstable_by(f64::total_cmp);
    let tail = normal_below(t_quantile((1.0 - level) / 2.0, freedom) * wider);
    let at = |share: f64| quantile(&values, share).unwrap_or(f64::NAN);
    ConfidenceInterval { low: at(tail), high: at(1.0 - tail) }
}

/// FNV-1a: the same runs draw the same numbers.
pub(crate) fn hash(names: &[String]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}
