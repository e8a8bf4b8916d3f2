//! Why there is no prediction.

use thiserror::Error;

/// If more threads were runnable than there are processors for a larger share of the time than this, and the
/// order of the threads is not known, the answer is refused.
pub(super) const CROWDED: f64 = 0.05;
/// More than this share of the time in which others had the processors that threads waited for is too much: at
/// 12 %, a prediction was 11 % off.
const FOREIGN: f64 = 0.10;
/// More than this share of causes that may be others is too much.
const AMBIGUOUS: f64 = 0.01;

/// Why a run cannot be timed again, or what was asked of it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RetimeRefusal {
    /// A point that the metric needs never occurred.
    #[error("there is no `{point}` in the run")]
    Missing {
        /// Its name.
        point: String,
    },
    /// Frames are missing, and what that touches is most of the time.
    #[error("what `{metric}` would be is unknown for {:.1} % of the time, as frames are missing", .share * 100.0)]
    LeftOut {
        /// As it is written.
        metric: String,
        /// This share of the time.
        share: f64,
    },
    /// Who waits for a processor waits for other programs, which the model does not know.
    #[error(
        "for {:.1} % of the time threads waited for a processor that none of the program's threads had",
        .share * 100.0
    )]
    Foreign {
        /// This share of the time.
        share: f64,
    },
    /// Threads that wait for a processor wait for each other, and the kernel's frames do not give
    /// an order.
    #[error(
        "for {:.1} % of the time more threads were ready to run than there are processors, and in which order \
         they got them cannot be told",
        .share * 100.0
    )]
    Crowded {
        /// This share of the time.
        share: f64,
    },
    /// Causes that may be others.
    #[error("{ambiguous} of {edges} causes are ambiguous")]
    Ambiguous {
        /// So many.
        ambiguous: u64,
        /// The number of all.
        edges: u64,
    },
    /// Effects that are before their causes.
    #[error("{backward} of {of} effects are stamped before their causes")]
    Backward {
        /// So many.
        backward: usize,
        /// The number of all.
        of: usize,
    },
    /// Threads that wait for each other for ever, which they did not.
    #[error("{missing} of {of} events wait for each other for ever when they are timed again")]
    Stuck {
        /// So many.
        missing: usize,
        /// The number of all.
        of: usize,
    },
}

/// What of a run speaks against a prediction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// The points that are needed, by name.
    pub points: Vec<PointSeen>,
    /// Causes.
    pub edges: u64,
    /// Of them, those that may be others, though no frame is missing.
    pub ambiguous: u64,
    /// The share of the time in which a thread waited for a processor that no other thread of these programs
    /// had; None: nobody asked the kernel.
    pub foreign: Option<f64>,
}

/// A point, and how often.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointSeen {
    /// Its name.
    pub name: String,
    /// So often.
    pub seen: u64,
}

impl Evidence {
    /// Whether a prediction can be believed.
    ///
    /// # Errors
    /// The reason why it cannot: processors were scarce, causes ambiguous, points missing.
    pub fn judge(&self) -> Result<(), RetimeRefusal> {
        for point in &self.points {
            if point.seen == 0 {
                return Err(RetimeRefusal::Missing { point: point.name.clone() });
            }
        }
        if self.ambiguous as f64 > AMBIGUOUS * self.edges as f64 {
            return Err(RetimeRefusal::Ambiguous { ambiguous: self.ambiguous, edges: self.edges });
        }
        match self.foreign {
            Some(share) if share > FOREIGN => Err(RetimeRefusal::Foreign { share }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_believed() {
        let point = |seen| PointSeen { name: "sent".to_owned(), seen };
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
