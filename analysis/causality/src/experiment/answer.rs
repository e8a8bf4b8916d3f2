//! The answers of an experiment, and why it gives none.

use thiserror::Error;

use crate::retime::{Figures, Metric};

/// Fewer whole permutations show nothing.
pub const MIN_PERMUTATIONS: usize = 8;
/// The largest speed by pauses of a span that threads run one at a time, or in which they wait. At 1.5x, means were up
/// to 12 % off, at 1.25x 8 % (docs/measured/what-if.md).
pub const MAX_INEXACT_SPEED: f64 = 1.25;
/// The largest share of their time in a span that threads wait, above which [`MAX_INEXACT_SPEED`] is the largest speed.
/// Without a lock in the span it was 0 %, with one 34 to 54 %.
pub const MAX_WAIT_SHARE: f64 = 0.1;
/// The smallest mean number of ends of the metric in a round.
pub const MIN_ENDS: usize = 30;

/// The source of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentSource {
    /// Measured: the interval really took longer.
    Slowed,
    /// A parabola through the baseline, 1.25 and 1.5 times as slow.
    Extrapolated,
    /// Measured in virtual time: everything else was paused.
    Paused,
}

impl ExperimentSource {
    /// The source as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slowed => "slowed",
            Self::Extrapolated => "extrapolated",
            Self::Paused => "paused",
        }
    }
}

/// The worth of a speed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentAnswer {
    /// The metric.
    pub metric: Metric,
    /// The name of the interval or span with this speed.
    pub activity: String,
    /// The speed of the interval: 0.5 is half as fast.
    pub speed: f64,
    /// Measured or extrapolated.
    pub source: ExperimentSource,
    /// The metric in the baselines.
    pub base: Figures,
    /// The metric at this speed; only the mean, if it is extrapolated.
    pub figures: Figures,
    /// The confidence interval of the mean.
    pub mean_interval: (f64, f64),
    /// The share by which a length is shorter, or a rate higher.
    pub gain: f64,
    /// The confidence interval of the gain.
    pub gain_interval: (f64, f64),
    /// The mean before the rounds.
    pub untouched: Option<f64>,
    /// The number of rounds at this speed.
    pub rounds: usize,
    /// The share by which the second baselines differ from the first (an A/A comparison).
    pub aa: f64,
}

/// Why an experiment shows nothing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentRefusal {
    /// The experiment was too short.
    #[error(
        "{count} whole permutations are too few, {MIN_PERMUTATIONS} are needed: take more time (--for), or \
         ask about fewer speeds"
    )]
    Permutations {
        /// The number of whole permutations.
        count: usize,
    },
    /// The rounds are too short for the metric.
    #[error(
        "`{metric}` ends {ends:.1} times in a round, {MIN_ENDS} are needed: --round {round_ms}ms or more"
    )]
    Ends {
        /// The metric.
        metric: Metric,
        /// The mean number of ends in a round.
        ends: f64,
        /// The shortest sufficient round.
        round_ms: u64,
    },
    /// Values take as long as rounds.
    #[error("`{metric}` takes too long for these rounds: --round {round_ms}ms or more")]
    Long {
        /// The metric.
        metric: Metric,
        /// The shortest sufficient round.
        round_ms: u64,
    },
    /// CPUs were looked at too seldom for the metric.
    #[error(
        "`{metric}` takes {:.2} ms, and CPUs are paused in steps of {:.2} ms: ten steps are needed",
        *mean / 1e6, *interval / 1e6
    )]
    Short {
        /// The metric.
        metric: Metric,
        /// The mean of the metric in the baselines, in ns.
        mean: f64,
        /// The interval between two looks at a CPU, in ns.
        interval: f64,
    },
    /// Looking at CPUs changes the program.
    #[error(
        "a look at a CPU takes {:.0} µs of each {:.0} µs: this machine is too slow for pauses",
        *look / 1e3, *interval / 1e3
    )]
    Looks {
        /// The CPU time of a look, in ns.
        look: f64,
        /// The interval between two looks at a CPU, in ns.
        interval: f64,
    },
    /// CPUs did not pause.
    #[error(
        "CPUs paused for {:.0} % of the time that they owed: other real-time threads had them, or the span is too short",
        *share * 100.0
    )]
    Unpaid {
        /// The paid share.
        share: f64,
    },
    /// Threads run a span one at a time, which pauses show too inexactly.
    #[error(
        "{activity}={speed}x is not answered: threads run {activity} one at a time, as if a lock were around it, and \
         then pauses are exact up to {MAX_INEXACT_SPEED}x: ask for {activity}={MAX_INEXACT_SPEED}x"
    )]
    Turns {
        /// The name of the span.
        activity: String,
        /// The speed of the span.
        speed: f64,
    },
    /// Threads wait in a span, for instance for a lock, which pauses show too inexactly.
    #[error(
        "{activity}={speed}x is not answered: threads wait in {activity} for {:.0} % of its time, for instance for a \
         lock, and then pauses are exact up to {MAX_INEXACT_SPEED}x: ask for {activity}={MAX_INEXACT_SPEED}x",
        *share * 100.0
    )]
    Waits {
        /// The name of the span.
        activity: String,
        /// The speed of the span.
        speed: f64,
        /// The share of their time in the span that threads wait.
        share: f64,
    },
    /// A faster program is extrapolated from arms that are known too badly.
    #[error(
        "{activity}={speed}x is not answered: extrapolated, `{metric}` takes {:.2} to {:.2} ms; take more time \
         (--for), or measure it (--pause-host)",
        interval.0 / 1e6, interval.1 / 1e6
    )]
    Extrapolated {
        /// The metric.
        metric: Metric,
        /// The name of the interval.
        activity: String,
        /// The speed of the interval.
        speed: f64,
        /// The confidence interval of the mean.
        interval: (f64, f64),
    },
    /// The program changes by itself.
    #[error(
        "the two baselines of `{metric}` differ by {:.1} % ({:.1} % to {:.1} %): the load changes by itself; take \
         more time (--for), under a load that stays",
        difference * 100.0, interval.0 * 100.0, interval.1 * 100.0
    )]
    Baselines {
        /// The metric.
        metric: Metric,
        /// The difference as a share.
        difference: f64,
        /// The confidence interval of the difference.
        interval: (f64, f64),
    },
}

/// The answers of an experiment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentAnswers {
    /// The worth of each interval and speed.
    pub answers: Vec<ExperimentAnswer>,
    /// The reasons why other speeds are not answered.
    pub left_out: Vec<ExperimentRefusal>,
}

impl ExperimentAnswers {
    /// Leaves out what pauses show too inexactly of a span that threads run one at a time.
    pub fn leave_out_turns(&mut self, activity: &str) {
        self.leave_out_faster(|answer| {
            let turns =
                ExperimentRefusal::Turns { activity: answer.activity.clone(), speed: answer.speed };
            (answer.activity == activity).then_some(turns)
        });
    }

    /// Leaves out what pauses show too inexactly of a span in which threads wait for this share of their time.
    pub fn leave_out_waits(&mut self, share: f64) {
        self.leave_out_faster(|answer| {
            let waits = ExperimentRefusal::Waits {
                activity: answer.activity.clone(),
                speed: answer.speed,
                share,
            };
            (share > MAX_WAIT_SHARE).then_some(waits)
        });
    }

    /// Leaves out answers above [`MAX_INEXACT_SPEED`] that pauses show too inexactly for this reason.
    fn leave_out_faster(
        &mut self,
        reason: impl Fn(&ExperimentAnswer) -> Option<ExperimentRefusal>,
    ) {
        let is_faster = |answer: &ExperimentAnswer| {
            answer.source == ExperimentSource::Paused && answer.speed > MAX_INEXACT_SPEED + 1e-4
        };
        let mut reasons = Vec::new();
        self.answers.retain(|answer| {
            let reason = if is_faster(answer) { reason(answer) } else { None };
            let is_exact = reason.is_none();
            reasons.extend(reason);
            is_exact
        });
        self.left_out.extend(reasons);
    }
}
