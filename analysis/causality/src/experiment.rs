//! The evaluation of an experiment with a running program: an interval ran at several speeds, in rounds.
//!
//! Rounds are random permutations of all speeds and two baselines, in which nothing is slowed down. An arm of a
//! permutation is compared with the baselines of the same permutation, so that slow changes of the load cancel
//! out. Confidence intervals come from resampling the permutations (bootstrap). If the two baselines differ,
//! the experiment shows nothing.

mod answer;

use ppt_stats::{Resampler, quantile};

use crate::retime::{BlockBootstrap, Figures, Metric};
pub use answer::{
    ExperimentAnswer, ExperimentAnswers, ExperimentRefusal, ExperimentSource, MIN_ENDS,
    MIN_PERMUTATIONS,
};

/// The shortest time at the start of a round that is not measured, in ns.
const MIN_SETTLING: i64 = 100_000_000;
/// That time in 95th percentiles of the metric, if longer.
const SETTLING_LENGTHS: f64 = 3.0;
/// Speeds that differ by less are the same.
const SPEED_TOLERANCE: f64 = 1e-4;
/// Baselines that differ by a smaller share are the same.
const BASELINE_TOLERANCE: f64 = 1e-3;
/// The speed that is extrapolated.
const EXTRAPOLATED: f64 = 1.25;
/// The speeds from which it is extrapolated, in addition to the baseline.
const EXTRAPOLATED_FROM: [f64; 2] = [1.0 / 1.25, 1.0 / 1.5];
/// An extrapolated mean that is known less well, as a share to either side, is no answer: noise of the slower arms
/// counts two to three times.
const MAX_EXTRAPOLATED_ERROR: f64 = 0.10;

/// A time during which an interval ran at one speed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRound {
    /// The start, ns of the clock of the values.
    pub start: i64,
    /// The end, ns of the clock of the values.
    pub end: i64,
    /// Counted from 1; 0 is the time before the first permutation.
    pub permutation: i64,
    /// The speed of the interval: 0.5 is half as fast.
    pub speed: f64,
    /// The name of the interval or span with this speed; None in a baseline.
    pub activity: Option<String>,
}

/// The metric in a round, as a quotient, so that rounds add up.
#[derive(Debug, Clone, Default)]
struct RoundRatio {
    numerator: f64,
    denominator: f64,
    values: Vec<f64>,
}

/// Values of a metric: begin and end, in ns.
type Values = [(i64, i64)];

/// Returns the worth of each interval and speed for a metric with these values, sorted by their ends.
///
/// # Errors
/// The experiment shows nothing of this metric.
pub fn answers(
    metric: &Metric,
    rounds: &[ExperimentRound],
    values: &Values,
    bootstrap: BlockBootstrap,
) -> Result<ExperimentAnswers, ExperimentRefusal> {
    let permutations = whole_permutations(rounds);
    if permutations.len() < MIN_PERMUTATIONS {
        return Err(ExperimentRefusal::Permutations { count: permutations.len() });
    }
    let settling = settling(metric, &permutations, values)?;
    let before = rounds.iter().find(|round| round.permutation == 0);
    let untouched = before.map(|round| mean(&measured(metric, round, settling, values)));
    let experiment = ExperimentEvaluation {
        metric,
        permutations,
        settling,
        values,
        untouched: untouched.filter(|mean| mean.is_finite()),
        bootstrap,
    };
    let baselines = experiment.baselines()?;
    let arms = experiment.arms();
    let mut names: Vec<&str> = arms.iter().map(|&(name, _)| name).collect();
    names.dedup();
    let source =
        |speed| if speed > 1.0 { ExperimentSource::Paused } else { ExperimentSource::Slowed };
    let tried = arms.iter().map(|&(name, speed)| (name, speed, source(speed)));
    let faster = names.iter().map(|&name| (name, EXTRAPOLATED, ExperimentSource::Extrapolated));
    let mut found = ExperimentAnswers::default();
    for (name, speed, source) in tried.chain(faster) {
        let Some(answer) = experiment.answer(&baselines, name, speed, source) else { continue };
        let (low, high) = answer.mean_interval;
        let is_known = (high - low) / 2.0 <= MAX_EXTRAPOLATED_ERROR * answer.figures.mean;
        if source == ExperimentSource::Extrapolated && !is_known {
            found.left_out.push(ExperimentRefusal::Extrapolated {
                metric: metric.clone(),
                activity: name.to_owned(),
                speed,
                interval: (low, high),
            });
        } else {
            found.answers.push(answer);
        }
    }
    Ok(found)
}

/// The whole permutations of an experiment, and how they are evaluated.
struct ExperimentEvaluation<'a> {
    metric: &'a Metric,
    permutations: Vec<Vec<&'a ExperimentRound>>,
    /// The time at the start of each round that is not measured, in ns.
    settling: i64,
    values: &'a Values,
    /// The mean before the rounds.
    untouched: Option<f64>,
    bootstrap: BlockBootstrap,
}

/// Both baselines of each permutation together.
struct Baselines {
    rounds: Vec<RoundRatio>,
    /// The share by which the second baselines differ from the first.
    aa: f64,
}

impl<'a> ExperimentEvaluation<'a> {
    fn measured(&self, round: &ExperimentRound) -> RoundRatio {
        measured(self.metric, round, self.settling, self.values)
    }

    fn baselines(&self) -> Result<Baselines, ExperimentRefusal> {
        let pairs: Vec<[RoundRatio; 2]> = self
            .permutations
            .iter()
            .map(|rounds| {
                let mut bases = rounds.iter().filter(|round| round.activity.is_none());
                std::array::from_fn(|_| {
                    bases.next().map(|round| self.measured(round)).unwrap_or_default()
                })
            })
            .collect();
        let [first, second] =
            [0, 1].map(|at| pairs.iter().map(|pair| pair[at].clone()).collect::<Vec<_>>());
        let ratio = |means: &[f64]| means[1] / means[0] - 1.0;
        let ResampledValue { value: aa, interval } =
            resampled(&[&first, &second], ratio, self.bootstrap);
        if aa.abs() >= BASELINE_TOLERANCE && (interval.0 > 0.0 || interval.1 < 0.0) {
            let metric = self.metric.clone();
            return Err(ExperimentRefusal::Baselines { metric, difference: aa, interval });
        }
        let rounds = pairs.iter().map(|[first, second]| joined(&[first, second])).collect();
        Ok(Baselines { rounds, aa })
    }

    /// The distinct pairs of interval and speed, by name, the fastest first.
    fn arms(&self) -> Vec<(&'a str, f64)> {
        let mut arms: Vec<(&str, f64)> = Vec::new();
        for &round in self.permutations.iter().flatten() {
            let Some(activity) = round.activity.as_deref() else { continue };
            let is_same = |arm: &(&str, f64)| {
                arm.0 == activity && (arm.1 - round.speed).abs() < SPEED_TOLERANCE
            };
            if !arms.iter().any(is_same) {
                arms.push((activity, round.speed));
            }
        }
        arms.sort_by(|one, other| one.0.cmp(other.0).then(other.1.total_cmp(&one.1)));
        arms
    }

    /// The round of an interval at a speed in each permutation; None if one lacks it.
    fn rounds_of(&self, activity: &str, speed: f64) -> Option<Vec<RoundRatio>> {
        let is_arm = |round: &&&ExperimentRound| {
            round.activity.as_deref() == Some(activity)
                && (round.speed - speed).abs() < SPEED_TOLERANCE
        };
        self.permutations
            .iter()
            .map(|rounds| rounds.iter().find(is_arm).map(|round| self.measured(round)))
            .collect()
    }

    fn answer(
        &self,
        baselines: &Baselines,
        activity: &str,
        speed: f64,
        source: ExperimentSource,
    ) -> Option<ExperimentAnswer> {
        let speeds = match source {
            ExperimentSource::Slowed | ExperimentSource::Paused => vec![speed],
            ExperimentSource::Extrapolated => EXTRAPOLATED_FROM.to_vec(),
        };
        let arms: Option<Vec<_>> =
            speeds.iter().map(|&speed| self.rounds_of(activity, speed)).collect();
        let arms = arms?;
        let compared: Vec<&[RoundRatio]> =
            [&baselines.rounds[..]].into_iter().chain(arms.iter().map(Vec::as_slice)).collect();
        let at_speed = |means: &[f64]| match source {
            ExperimentSource::Slowed | ExperimentSource::Paused => means[1],
            ExperimentSource::Extrapolated => parabola([means[0], means[1], means[2]], 1.0 / speed),
        };
        let mean = resampled(&compared, at_speed, self.bootstrap);
        let gain_of = |means: &[f64]| self.metric.gain(at_speed(means) / means[0]);
        let gain = resampled(&compared, gain_of, self.bootstrap);
        let figures_at_speed = match source {
            ExperimentSource::Slowed | ExperimentSource::Paused => figures(&arms[0]),
            ExperimentSource::Extrapolated => {
                let none = f64::NAN;
                Figures { n: 0, mean: mean.value, p50: none, p95: none, p99: none }
            }
        };
        Some(ExperimentAnswer {
            metric: self.metric.clone(),
            activity: activity.to_owned(),
            speed,
            source,
            base: figures(&baselines.rounds),
            figures: figures_at_speed,
            mean_interval: mean.interval,
            gain: gain.value,
            gain_interval: gain.interval,
            untouched: self.untouched,
            rounds: self.permutations.len(),
            aa: baselines.aa,
        })
    }
}

/// The rounds of each permutation that has all of its arms, by time.
fn whole_permutations(rounds: &[ExperimentRound]) -> Vec<Vec<&ExperimentRound>> {
    let mut sorted: Vec<_> = rounds.iter().filter(|round| round.permutation > 0).collect();
    sorted.sort_by_key(|round| (round.permutation, round.start));
    let permutations: Vec<Vec<_>> = sorted
        .chunk_by(|one, other| one.permutation == other.permutation)
        .map(<[_]>::to_vec)
        .collect();
    let most = permutations.iter().map(Vec::len).max().unwrap_or(0);
    let is_whole = |rounds: &Vec<&ExperimentRound>| {
        rounds.len() == most && rounds.iter().filter(|round| round.activity.is_none()).count() == 2
    };
    permutations.into_iter().filter(is_whole).collect()
}

/// The time at the start of each round that is not measured, in ns.
fn settling(
    metric: &Metric,
    permutations: &[Vec<&ExperimentRound>],
    values: &Values,
) -> Result<i64, ExperimentRefusal> {
    let bases: Vec<_> =
        permutations.iter().flatten().filter(|round| round.activity.is_none()).collect();
    let mut lengths = Vec::new();
    for round in &bases {
        let ends = values.iter().filter(|value| value.1 >= round.start && value.1 < round.end);
        lengths.extend(ends.map(|value| (value.1 - value.0) as f64));
    }
    let length = bases.iter().map(|round| round.end - round.start).min().unwrap_or(0);
    let ends = lengths.len() as f64 / bases.len().max(1) as f64;
    let ms = |ns: f64| (ns / 1e6).ceil() as u64;
    if ends < MIN_ENDS as f64 {
        let round_ms = ms(length as f64 * MIN_ENDS as f64 * 1.2 / ends.max(0.1));
        return Err(ExperimentRefusal::Ends { metric: metric.clone(), ends, round_ms });
    }
    if matches!(metric, Metric::Rate(_)) {
        return Ok(MIN_SETTLING);
    }
    lengths.sort_unstable_by(f64::total_cmp);
    let p95 = quantile(&lengths, 0.95).unwrap_or(0.0);
    let settling = MIN_SETTLING.max((SETTLING_LENGTHS * p95) as i64);
    if settling > length / 2 {
        let round_ms = ms(2.0 * settling as f64);
        return Err(ExperimentRefusal::Long { metric: metric.clone(), round_ms });
    }
    Ok(settling)
}

/// The metric of values that began and ended in the measured part of a round.
fn measured(
    metric: &Metric,
    round: &ExperimentRound,
    settling: i64,
    values: &Values,
) -> RoundRatio {
    let start = round.start.saturating_add(settling);
    let first = values.partition_point(|value| value.1 < start);
    let ended = values[first..].iter().take_while(|value| value.1 <= round.end);
    if matches!(metric, Metric::Rate(_)) {
        let (numerator, denominator) = (ended.count() as f64, (round.end - start) as f64 / 1e9);
        return RoundRatio { numerator, denominator, values: vec![numerator / denominator] };
    }
    let inside = ended.filter(|value| value.0 >= start);
    let values: Vec<f64> = inside.map(|value| (value.1 - value.0) as f64).collect();
    RoundRatio { numerator: values.iter().sum(), denominator: values.len() as f64, values }
}

fn joined(rounds: &[&RoundRatio]) -> RoundRatio {
    let mut joined = RoundRatio::default();
    for round in rounds {
        joined.numerator += round.numerator;
        joined.denominator += round.denominator;
        joined.values.extend(&round.values);
    }
    joined
}

fn mean(round: &RoundRatio) -> f64 {
    round.numerator / round.denominator
}

fn figures(rounds: &[RoundRatio]) -> Figures {
    let mut all = joined(&rounds.iter().collect::<Vec<_>>());
    all.values.sort_unstable_by(f64::total_cmp);
    let at = |share| quantile(&all.values, share).unwrap_or(f64::NAN);
    Figures { n: all.values.len(), mean: mean(&all), p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/// The parabola through the values at slowness 1, 1.25 and 1.5.
fn parabola([one, two, three]: [f64; 3], slowness: f64) -> f64 {
    let x = (slowness - 1.0) / 0.25;
    one * (x - 1.0) * (x - 2.0) / 2.0 - two * x * (x - 2.0) + three * x * (x - 1.0) / 2.0
}

/// A value and its confidence interval.
struct ResampledValue {
    value: f64,
    interval: (f64, f64),
}

/// Estimates a value that is a function of the means of some arms, by resampling permutations.
fn resampled(
    arms: &[&[RoundRatio]],
    value: impl Fn(&[f64]) -> f64,
    bootstrap: BlockBootstrap,
) -> ResampledValue {
    let count = arms[0].len();
    let value_of = |rounds: &[usize]| {
        let mean = |arm: &&[RoundRatio]| {
            let numerator: f64 = rounds.iter().map(|&round| arm[round].numerator).sum();
            numerator / rounds.iter().map(|&round| arm[round].denominator).sum::<f64>()
        };
        value(&arms.iter().map(mean).collect::<Vec<_>>())
    };
    let middle = value_of(&(0..count).collect::<Vec<_>>());
    let mut resampler = Resampler::new(bootstrap.seed);
    let mut drawn: Vec<f64> = (0..bootstrap.count)
        .map(|_| value_of(&(0..count).map(|_| resampler.below(count)).collect::<Vec<_>>()))
        .filter(|value| value.is_finite())
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let wider = (count as f64 / (count as f64 - 1.0)).sqrt();
    let tail = (1.0 - bootstrap.level) / 2.0;
    let bound = |share| {
        let found = quantile(&drawn, share).unwrap_or(f64::NAN);
        middle + (found - middle) * wider
    };
    ResampledValue { value: middle, interval: (bound(tail), bound(1.0 - tail)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: i64 = 500_000_000;

    /// Rounds and their values: each value begins when the previous one ends, and is `length(speed)` long.
    fn experiment(
        permutations: i64,
        speeds: &[f64],
        length: impl Fn(f64, i64, usize) -> i64,
    ) -> (Vec<ExperimentRound>, Vec<(i64, i64)>) {
        let (mut rounds, mut values, mut now) = (Vec::new(), Vec::new(), 0);
        for permutation in 0..=permutations {
            let arms: &[f64] = if permutation == 0 { &[1.0] } else { speeds };
            for (place, &speed) in arms.iter().enumerate() {
                let activity = (speed != 1.0).then(|| "serve.work".to_owned());
                let round =
                    ExperimentRound { start: now, end: now + ROUND, permutation, speed, activity };
                while now < round.end {
                    let end = now + length(speed, permutation, place).max(1);
                    values.push((now, end));
                    now = end;
                }
                now = round.end;
                rounds.push(round);
            }
        }
        values.sort_by_key(|value| value.1);
        (rounds, values)
    }

    fn metric() -> Metric {
        "request".parse().unwrap()
    }

    #[test]
    fn a_slowdown_is_what_it_was_made() {
        let speeds = [0.8, 1.0, 1.0 / 1.5, 1.0];
        let length =
            |speed: f64, permutation: i64, _| (1e6 + 1e6 / speed) as i64 + permutation % 3 * 1000;
        let (rounds, values) = experiment(10, &speeds, length);
        let ExperimentAnswers { answers, left_out } =
            answers(&metric(), &rounds, &values, BlockBootstrap::default()).unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        let [slower, slowest, faster] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((slower.speed, slower.source), (0.8, ExperimentSource::Slowed));
        assert!((slower.gain + 0.125).abs() < 1e-3, "{slower:?}");
        assert!(
            slower.gain_interval.0 <= slower.gain && slower.gain <= slower.gain_interval.1,
            "{slower:?}"
        );
        assert!((slowest.gain + 0.25).abs() < 1e-3, "{slowest:?}");
        // A straight line is a parabola, too.
        assert_eq!(faster.source, ExperimentSource::Extrapolated);
        assert!((faster.gain - 0.1).abs() < 1e-3 && faster.figures.p95.is_nan(), "{faster:?}");
        assert!(slower.aa.abs() < 1e-6 && slower.rounds == 10);
        assert!((slower.untouched.unwrap() / 2e6 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn an_experiment_that_shows_nothing_is_refused() {
        let ask = |permutations, length: fn(f64, i64, usize) -> i64| {
            let (rounds, values) = experiment(permutations, &[0.5, 1.0, 1.0], length);
            answers(&metric(), &rounds, &values, BlockBootstrap::default()).unwrap_err()
        };
        let few = ask(7, |_, _, _| 1_000_000);
        assert_eq!(few, ExperimentRefusal::Permutations { count: 7 });
        let seldom = ask(9, |_, _, _| 40_000_000);
        assert!(matches!(seldom, ExperimentRefusal::Ends { round_ms: 501.., .. }), "{seldom}");
        let drifts = ask(9, |_, permutation, place| {
            1_000_000 + place as i64 * 10_000 + permutation % 3 * 1000
        });
        assert!(matches!(drifts, ExperimentRefusal::Baselines { .. }), "{drifts}");
        assert!(drifts.to_string().contains("--for"), "{drifts}");
    }

    #[test]
    fn an_extrapolation_from_noise_is_no_answer() {
        // The length of a round's values varies by a tenth from permutation to permutation, in each arm alone.
        let speeds = [0.8, 1.0, 1.0 / 1.5, 1.0];
        let length = |speed: f64, permutation: i64, place: usize| {
            let noise = (permutation * 7 + place as i64 * permutation * permutation * 3) % 11 - 5;
            ((1e6 + 1e6 / speed) * (1.0 + noise as f64 / 30.0)) as i64
        };
        let (rounds, values) = experiment(10, &speeds, length);
        let found = answers(&metric(), &rounds, &values, BlockBootstrap::default()).unwrap();
        assert_eq!(found.answers.len(), 2, "{found:?}");
        let [ExperimentRefusal::Extrapolated { speed, interval, .. }] = &found.left_out[..] else {
            panic!("{found:?}")
        };
        assert!(*speed == 1.25 && interval.1 - interval.0 > 0.2e6, "{interval:?}");
    }

    #[test]
    fn of_threads_that_take_turns_pauses_answer_up_to_a_quarter() {
        let (rounds, values) = experiment(10, &[1.25, 1.0, 1.5, 1.0], |speed, permutation, _| {
            (1e6 + 1e6 / speed) as i64 + permutation % 3 * 1000
        });
        let mut found = answers(&metric(), &rounds, &values, BlockBootstrap::default()).unwrap();
        assert_eq!(found.answers.len(), 2, "{found:?}");
        found.leave_out_turns("another");
        assert_eq!((found.answers.len(), found.left_out.len()), (2, 0));
        found.leave_out_turns("serve.work");
        assert_eq!(found.answers.iter().map(|answer| answer.speed).collect::<Vec<_>>(), [1.25]);
        let activity = "serve.work".to_owned();
        assert_eq!(found.left_out, [ExperimentRefusal::Turns { activity, speed: 1.5 }]);
    }

    #[test]
    fn of_threads_that_wait_pauses_answer_up_to_a_quarter() {
        let (rounds, values) = experiment(10, &[1.25, 1.0, 1.5, 1.0], |speed, permutation, _| {
            (1e6 + 1e6 / speed) as i64 + permutation % 3 * 1000
        });
        let mut found = answers(&metric(), &rounds, &values, BlockBootstrap::default()).unwrap();
        found.leave_out_waits(0.01);
        assert_eq!((found.answers.len(), found.left_out.len()), (2, 0));
        found.leave_out_waits(0.3);
        assert_eq!(found.answers.iter().map(|answer| answer.speed).collect::<Vec<_>>(), [1.25]);
        assert_eq!(
            found.left_out[0].to_string(),
            "serve.work=1.5x is not answered: threads wait in serve.work for 30 % of its time, for instance for a \
             lock, and then pauses are exact up to 1.25x: ask for serve.work=1.25x"
        );
    }

    #[test]
    fn what_straddles_a_round_does_not_count() {
        let round =
            ExperimentRound { start: 0, end: ROUND, permutation: 1, speed: 1.0, activity: None };
        let values = [
            (0, MIN_SETTLING + 5),
            (MIN_SETTLING, MIN_SETTLING + 10),
            (ROUND - 20, ROUND),
            (ROUND - 5, ROUND + 5),
        ];
        let ratio = measured(&metric(), &round, MIN_SETTLING, &values);
        assert_eq!((ratio.numerator, ratio.denominator), (30.0, 2.0));
        let rate = "rate(request)".parse().unwrap();
        assert_eq!(measured(&rate, &round, MIN_SETTLING, &values).numerator, 3.0);
    }
}
