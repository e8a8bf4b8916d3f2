//! Reasons to refuse a prediction.

use thiserror::Error;

/// The largest accepted share of the time with more runnable threads than CPUs, if the order in which they got
/// them is unknown.
pub(super) const MAX_CROWDED_SHARE: f64 = 0.05;
/// The largest accepted share of the time in which threads waited for CPUs that other programs used: at 12 %, a
/// prediction was 11 % off.
const MAX_FOREIGN_SHARE: f64 = 0.10;
/// The largest accepted errors of a metric's mean and 95th percentile, as shares, if a replay with the recorded
/// speeds does not have the recorded times.
pub(super) const MAX_REPLAY_ERROR: f64 = 0.03;
pub(super) const MAX_REPLAY_ERROR_P95: f64 = 0.06;
/// The largest accepted share of waits for other threads that no edge shows. At 14 %, predictions
/// were 30 to 78 % off (docs/measured/what-if.md).
pub(super) const MAX_UNSEEN_WAIT_SHARE: f64 = 0.05;
/// The largest accepted share of ambiguous causes.
const MAX_AMBIGUOUS_SHARE: f64 = 0.01;

/// Why a run cannot be replayed, or a metric of it cannot be predicted.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RetimeRefusal {
    /// A point that the metric needs never occurred.
    #[error("there is no `{point}` in the run")]
    Missing {
        /// The name of the point.
        point: String,
    },
    /// Missing frames affect most of the time.
    #[error("what `{metric}` would be is unknown for {:.1} % of the time, as frames are missing", .share * 100.0)]
    TooMuchMissing {
        /// The metric, as it is written.
        metric: String,
        /// The affected share of the time.
        share: f64,
    },
    /// Threads waited for CPUs that other programs used, which the model does not know.
    #[error(
        "for {:.1} % of the time threads waited for a CPU that none of the program's threads had",
        .share * 100.0
    )]
    Foreign {
        /// The share of the time.
        share: f64,
    },
    /// Threads waited for CPUs in an order that the kernel's frames do not show.
    #[error(
        "for {:.1} % of the time more threads were ready to run than there are CPUs, and the order in which \
        they got them is unknown",
        .share * 100.0
    )]
    Crowded {
        /// The share of the time.
        share: f64,
    },
    /// Threads waited for CPUs, and a replay with the recorded speeds shows another distribution.
    #[error(
        "retimed at the recorded speeds, the mean of `{metric}` is {:+.1} % off, and its 95th percentile {:+.1} %: \
        threads waited for CPUs, and it is not known well enough in which order they got them",
        .mean * 100.0, .p95 * 100.0
    )]
    Unlike {
        /// The metric, as it is written.
        metric: String,
        /// The error of its mean, as a share.
        mean: f64,
        /// The error of its 95th percentile, as a share.
        p95: f64,
    },
    /// Threads waited for others without an edge that shows it.
    #[error(
        "threads waited for other threads, for instance for a lock, for {:.1} % of the time between their frames, and \
        no edge shows for which; the prediction would be wrong",
        .share * 100.0
    )]
    UnseenWaits {
        /// The share of the time.
        share: f64,
    },
    /// Too many causes are ambiguous.
    #[error("{ambiguous} of {edges} causes are ambiguous")]
    Ambiguous {
        /// The number of ambiguous causes.
        ambiguous: u64,
        /// The number of all causes.
        edges: u64,
    },
    /// Effects are stamped before their causes.
    #[error("{backward} of {of} effects are stamped before their causes")]
    Backward {
        /// The number of such effects.
        backward: usize,
        /// The number of all effects.
        of: usize,
    },
    /// In the replay, threads wait for each other forever.
    #[error("{missing} of {of} events wait for each other forever when the run is replayed")]
    Stuck {
        /// The number of events without a time.
        missing: usize,
        /// The number of all events.
        of: usize,
    },
}

/// The facts about a run that decide whether a prediction is credible.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// The points that the metric needs.
    pub points: Vec<PointCount>,
    /// The number of causes.
    pub edges: u64,
    /// The number of ambiguous causes, without those that a loss makes ambiguous.
    pub ambiguous: u64,
    /// The share of the time in which a thread waited for a CPU that no other thread of these programs had;
    /// None without records of the kernel.
    pub foreign: Option<f64>,
}

/// The number of frames of a point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointCount {
    /// The name of the point.
    pub name: String,
    /// The number of its frames.
    pub count: u64,
}

impl Evidence {
    /// Whether a prediction is credible.
    ///
    /// # Errors
    /// The evidence does not suffice: CPUs were scarce, causes ambiguous, or points missing.
    pub fn judge(&self) -> Result<(), RetimeRefusal> {
        for point in &self.points {
            if point.count == 0 {
                return Err(RetimeRefusal::Missing { point: point.name.clone() });
            }
        }
        if self.ambiguous as f64 > MAX_AMBIGUOUS_SHARE * self.edges as f64 {
            return Err(RetimeRefusal::Ambiguous { ambiguous: self.ambiguous, edges: self.edges });
        }
        match self.foreign {
            Some(share) if share > MAX_FOREIGN_SHARE => Err(RetimeRefusal::Foreign { share }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_believed() {
        let point = |count| PointCount { name: "sent".to_owned(), count };
        let with = |points| Evidence { points, edges: 1000, ambiguous: 10, foreign: Some(0.1) };
        let good = with(vec![point(7)]);
        assert_eq!(good.judge(), Ok(()));
        assert_eq!(Evidence { foreign: None, ..good.clone() }.judge(), Ok(()));
        let missing = Err(RetimeRefusal::Missing { point: "sent".to_owned() });
        assert_eq!(with(vec![point(0)]).judge(), missing);
        let ambiguous = Err(RetimeRefusal::Ambiguous { ambiguous: 11, edges: 1000 });
        assert_eq!(Evidence { ambiguous: 11, ..good.clone() }.judge(), ambiguous);
        let foreign = Err(RetimeRefusal::Foreign { share: 0.11 });
        assert_eq!(Evidence { foreign: Some(0.11), ..good }.judge(), foreign);
    }
}
