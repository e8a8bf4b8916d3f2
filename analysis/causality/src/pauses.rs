//! The pauses of CPUs in rounds, and what they can show.

use crate::experiment::ExperimentRefusal;
use crate::retime::Metric;

/// The pauses of a round: all in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundPauses {
    /// The pauses that CPUs owed together.
    pub owed: f64,
    /// The pauses that they paid together.
    pub paid: f64,
    /// The interval between two looks at a CPU, ns.
    pub interval: f64,
    /// The CPU time of a look, ns.
    pub look: f64,
    /// The time that threads were in the span together, ns.
    pub in_span: f64,
    /// How much of it they waited: for other threads, devices and timers, and then for a CPU; ns.
    pub waited: f64,
}

/// The share of their time in the span that threads wait.
pub fn wait_share(pauses: &[RoundPauses]) -> f64 {
    let sum = |value: fn(&RoundPauses) -> f64| pauses.iter().map(value).sum::<f64>();
    sum(|round| round.waited) / sum(|round| round.in_span).max(1.0)
}

/// The smallest number of looks in a mean value of the metric.
const MIN_LOOKS: f64 = 10.0;
/// The largest share of a CPU for looks. At 4 to 7 %, predictions were within 10 % (docs/measured/what-if.md).
const MAX_LOOK_SHARE: f64 = 0.08;
/// The smallest share of owed pauses that is paid.
const MIN_PAID: f64 = 0.8;

/// Whether pauses can show a metric with this mean.
///
/// # Errors
/// The pauses cannot show the metric.
pub fn judge_pauses(
    metric: &Metric,
    mean: f64,
    pauses: &[RoundPauses],
) -> Result<(), ExperimentRefusal> {
    if pauses.is_empty() {
        return Ok(());
    }
    let sum = |value: fn(&RoundPauses) -> f64| pauses.iter().map(value).sum::<f64>();
    let rounds = pauses.len() as f64;
    let (interval, look) = (sum(|round| round.interval) / rounds, sum(|round| round.look) / rounds);
    if !matches!(metric, Metric::Rate(_)) && mean < MIN_LOOKS * interval {
        return Err(ExperimentRefusal::Short { metric: metric.clone(), mean, interval });
    }
    if look > MAX_LOOK_SHARE * interval {
        return Err(ExperimentRefusal::Looks { look, interval });
    }
    let share = sum(|round| round.paid) / sum(|round| round.owed).max(1.0);
    if sum(|round| round.owed) > 0.0 && share < MIN_PAID {
        return Err(ExperimentRefusal::Unpaid { share });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_that_show_nothing_are_refused() {
        let good = RoundPauses {
            owed: 1e8,
            paid: 0.97e8,
            interval: 5e5,
            look: 2e4,
            in_span: 3e8,
            waited: 0.6e8,
        };
        let judge =
            |mean: f64, round: RoundPauses| judge_pauses(&Metric::End, mean, &[round, round]);
        assert_eq!(judge(6e6, good), Ok(()));
        assert_eq!((wait_share(&[good, good]), wait_share(&[])), (0.2, 0.0));
        let short = judge(4e6, good).unwrap_err();
        assert_eq!(
            short.to_string(),
            "`end` takes 4.00 ms, and CPUs are paused in steps of 0.50 ms: ten steps are needed"
        );
        let slow = judge(6e6, RoundPauses { look: 5e4, ..good }).unwrap_err();
        assert!(matches!(slow, ExperimentRefusal::Looks { .. }), "{slow}");
        let unpaid = judge(6e6, RoundPauses { paid: 0.5e8, ..good }).unwrap_err();
        assert_eq!(unpaid, ExperimentRefusal::Unpaid { share: 0.5 });
        assert_eq!(judge_pauses(&Metric::End, 1.0, &[]), Ok(()));
    }
}
