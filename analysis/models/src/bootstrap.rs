//! The bootstrap over runs: runs are drawn with replacement.
//!
//! Frames of one run are not independent; runs are.

use nalgebra::{DMatrix, DVector};
use ppt_stats::{Resampler, quantile};

use crate::chance::{normal_below, t_quantile};
use crate::error::NoBootstrap;
use crate::interval::ConfidenceInterval;
use crate::squares::Squares;
use crate::table::Runs;

/// The smallest number of runs beyond the number of coefficients.
const MIN_MORE_RUNS: usize = 4;
/// The largest share of resamples that may fail.
const MAX_FAILED_SHARE: f64 = 0.05;

/// The parameters of resampling. The same seed gives the same numbers on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// The number of resamples.
    pub count: usize,
    /// The seed of the random numbers.
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
    /// The coefficients of each resample; None if it could not be fitted.
    resamples: Vec<Option<DVector<f64>>>,
    runs: usize,
    freedom: f64,
}

impl Bootstrap {
    /// Resamples the rows of `runs`. `residuals` are those of the fit of all rows.
    pub(crate) fn new(
        squares: &Squares,
        coefficients: &DVector<f64>,
        residuals: &DVector<f64>,
        runs: Option<&Runs>,
        resampling: Resampling,
    ) -> Result<Bootstrap, NoBootstrap> {
        let runs = runs.ok_or(NoBootstrap::NoRuns)?;
        let (count, terms) = (runs.count(), coefficients.len());
        let least = terms + MIN_MORE_RUNS;
        if count < least {
            return Err(NoBootstrap::TooFew { runs: count, least });
        }
        let parts = parts(squares, residuals, runs);
        // Fits of the same runs draw the same resamples, so that common effects cancel out.
        let mut resampler = Resampler::new(resampling.seed ^ hash(&runs.names));
        let mut whole = DMatrix::zeros(terms, terms);
        let mut answer = DVector::zeros(terms);
        let mut resample = || {
            whole.fill(0.0);
            answer.fill(0.0);
            for _ in 0..count {
                let (square, product) = &parts[resampler.below(count)];
                whole += square;
                answer += product;
            }
            // In the basis of all rows, `whole` is near the identity, unless the resample lacks the only runs
            // that separate coefficients.
            let solved = whole.clone().cholesky()?;
            let least = solved.l_dirty().diagonal().iter().copied().fold(f64::INFINITY, f64::min);
            (least > 1e-4).then(|| coefficients + &squares.to_coefficients * solved.solve(&answer))
        };
        let resamples: Vec<_> = (0..resampling.count.max(1)).map(|_| resample()).collect();
        let failed = resamples.iter().filter(|resample| resample.is_none()).count();
        if failed as f64 > MAX_FAILED_SHARE * resamples.len() as f64 {
            return Err(NoBootstrap::Alike { failed, of: resamples.len() });
        }
        Ok(Bootstrap { resamples, runs: count, freedom: (count - terms) as f64 })
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// A function of the coefficients in each resample.
    pub(crate) fn each(&self, mut value: impl FnMut(&DVector<f64>) -> f64) -> Vec<Option<f64>> {
        self.resamples.iter().map(|resample| resample.as_ref().map(&mut value)).collect()
    }

    /// The interval of a function of the coefficients.
    pub(crate) fn interval(
        &self,
        level: f64,
        value: impl FnMut(&DVector<f64>) -> f64,
    ) -> ConfidenceInterval {
        self.interval_of(level, self.each(value))
    }

    /// The interval of values from [`Bootstrap::each`].
    pub(crate) fn interval_of(&self, level: f64, each: Vec<Option<f64>>) -> ConfidenceInterval {
        let values = each.into_iter().flatten().collect();
        expanded(values, level, self.runs as f64, self.freedom)
    }

    /// The coefficients of each resample; None if it could not be fitted.
    pub(crate) fn coefficients(&self) -> &[Option<DVector<f64>>] {
        &self.resamples
    }

    /// The degrees of freedom: runs beyond the coefficients.
    pub(crate) fn freedom(&self) -> f64 {
        self.freedom
    }
}

/// The part of each run in the normal equations, in the basis.
fn parts(
    squares: &Squares,
    residuals: &DVector<f64>,
    runs: &Runs,
) -> Vec<(DMatrix<f64>, DVector<f64>)> {
    let terms = squares.basis.ncols();
    let mut parts = vec![(DMatrix::zeros(terms, terms), DVector::zeros(terms)); runs.count()];
    for (row, &run) in runs.of_row.iter().enumerate() {
        let (square, product) = &mut parts[run];
        for i in 0..terms {
            let left = squares.basis[(row, i)];
            product[i] += left * residuals[row];
            for j in 0..terms {
                square[(i, j)] += left * squares.basis[(row, j)];
            }
        }
    }
    parts
}

/// [`expanded_by`] for resamples of `units` with the variance σ²/units, where σ² has `freedom`.
pub(crate) fn expanded(
    values: Vec<f64>,
    level: f64,
    units: f64,
    freedom: f64,
) -> ConfidenceInterval {
    expanded_by(values, level, (units / freedom).sqrt(), freedom)
}

/// The percentile interval, expanded for few units: percentiles of resamples are too narrow, as they assume a
/// known variance, and as the variance of resamples of n units is (n − 1)/n of it (Hesterberg 2015, "expanded
/// percentile"). `wider` corrects the latter.
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

/// FNV-1a of the names of runs, so that the same runs draw the same numbers.
pub(crate) fn hash(names: &[String]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}
