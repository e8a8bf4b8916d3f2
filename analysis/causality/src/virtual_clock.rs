//! Virtual time, in which pauses of CPUs do not count, and what pauses can show.

use crate::experiment::ExperimentRefusal;
use crate::retime::Metric;

/// The time without pauses: V(t) = t − G(t).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VirtualClock {
    /// Points of G, in the order of time. It is constant before the first one.
    pub points: Vec<VirtualClockPoint>,
}

/// A point of G, which grows by `pause_rate` from there to the next point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualClockPoint {
    /// The time, ns.
    pub time: i64,
    /// G, the sum of pauses until then, ns.
    pub paused: i64,
    /// The growth of the sum of pauses per ns of time, 0 to 1.
    pub pause_rate: f64,
}

impl VirtualClock {
    /// The virtual time of a time, in ns. It never runs backwards.
    pub fn at(&self, time: i64) -> i64 {
        let next = self.points.partition_point(|point| point.time <= time);
        let Some(before) = next.checked_sub(1).map(|before| self.points[before]) else {
            return time - self.points.first().map_or(0, |first| first.paused);
        };
        let grown = ((time - before.time) as f64 * before.pause_rate).round() as i64;
        time - before.paused - grown
    }
}

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
    fn virtual_time_has_no_pauses() {
        let point = |time, paused, pause_rate| VirtualClockPoint { time, paused, pause_rate };
        let points =
            vec![point(100, 0, 0.5), point(200, 50, 0.0), point(300, 50, 0.2), point(400, 70, 0.0)];
        let clock = VirtualClock { points };
        let times = [0, 100, 150, 200, 250, 300, 350, 400, 500];
        let virtual_times = [0, 100, 125, 150, 200, 250, 290, 330, 430];
        assert_eq!(times.map(|time| clock.at(time)), virtual_times);
        assert_eq!(VirtualClock::default().at(7), 7);
    }

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
