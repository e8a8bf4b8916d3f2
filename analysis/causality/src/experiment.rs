//! What an experiment with a running program shows: an interval ran at several speeds, in rounds.
//!
//! Rounds are random permutations of all speeds and two baselines, at which nothing is slowed down. What an arm
//! of a permutation shows is held against the baselines of the same permutation, so that slow changes of load
//! cancel out. The permutations are drawn again for the confidence intervals (bootstrap). If the two baselines
//! differ, the experiment shows nothing.

use ppt_stats::quantile;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use thiserror::Error;

use crate::retime::{Figures, Metric, Resampling};

/// Fewer permutations show nothing.
pub const LEAST_PERMUTATIONS: usize = 8;
/// The least ends of the metric in a round.
pub const LEAST_ENDS: usize = 30;
/// What is not measured at the start of a round, in ns.
const LEAST_DROPPED: i64 = 100_000_000;
/// The same, in 95th percentiles of the metric.
const DROPPED_LENGTHS: f64 = 3.0;
/// Speeds that differ less are the same.
const SAME: f64 = 1e-4;
/// Baselines that differ less do not differ.
const SAME_MEAN: f64 = 1e-3;
/// What is extrapolated, and from which speeds beside the baseline.
const EXTRAPOLATED: f64 = 1.25;
const EXTRAPOLATED_FROM: [f64; 2] = [1.0 / 1.25, 1.0 / 1.5];

/// For so long, an interval ran at a speed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRound {
    /// In ns, of the clock of the values.
    pub start: i64,
    /// The same.
    pub end: i64,
    /// Counted from 1; 0 is the time before the first.
    pub permutation: i64,
    /// How many times as fast the interval was.
    pub speed: f64,
    /// Its name; none where nothing was slowed down.
    pub slowed: Option<String>,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentSource {
    /// The interval really took longer.
    Slowed,
    /// A parabola through the baseline, 1.25 and 1.5 times as slow.
    Extrapolated,
}

impl ExperimentSource {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slowed => "slowed",
            Self::Extrapolated => "extrapolated",
        }
    }
}

/// What a speed is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentAnswer {
    /// The metric.
    pub metric: Metric,
    /// The interval.
    pub slowed: String,
    /// How many times as fast it is.
    pub speed: f64,
    /// How that is known.
    pub source: ExperimentSource,
    /// Of the baselines.
    pub base: Figures,
    /// At this speed; only the mean, if it is extrapolated.
    pub figures: Figures,
    /// Between what the mean lies.
    pub mean: (f64, f64),
    /// The share by which a length is shorter, or a rate higher.
    pub gain: f64,
    /// Between what it lies.
    pub gains: (f64, f64),
    /// The mean before the rounds.
    pub untouched: Option<f64>,
    /// Rounds at this speed.
    pub rounds: usize,
    /// By which share the second baselines differ from the first.
    pub aa: f64,
}

/// Why an experiment shows nothing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentRefusal {
    /// It was too short.
    #[error(
        "{there} whole permutations are too few, {LEAST_PERMUTATIONS} are needed: take more time (--for), or \
         ask about fewer speeds"
    )]
    Permutations {
        /// So many.
        there: usize,
    },
    /// The rounds are too short for the metric.
    #[error(
        "`{metric}` ends {ends:.1} times in a round, {LEAST_ENDS} are needed: --round {round_ms}ms or more"
    )]
    Ends {
        /// The metric.
        metric: Metric,
        /// So often.
        ends: f64,
        /// What would do.
        round_ms: u64,
    },
    /// Values take as long as rounds.
    #[error("`{metric}` takes too long for these rounds: --round {round_ms}ms or more")]
    Long {
        /// The metric.
        metric: Metric,
        /// What would do.
        round_ms: u64,
    },
    /// The program changes by itself.
    #[error(
        "the two baselines of `{metric}` differ by {:.1} % ({:.1} % to {:.1} %): the load changes by itself; take \
         more time (--for), under a load that stays",
        difference * 100.0, between.0 * 100.0, between.1 * 100.0
    )]
    Baselines {
        /// The metric.
        metric: Metric,
        /// As a share.
        difference: f64,
        /// The bounds of it.
        between: (f64, f64),
    },
}

/// What a round shows: quotients, so that rounds sum up.
#[derive(Debug, Clone, Default)]
struct RoundSeries {
    over: f64,
    under: f64,
    values: Vec<f64>,
}

/// Values of a metric: begin and end, in ns.
type Values = [(i64, i64)];

/// The answers of an experiment about a metric whose values are given: each slowed interval at each speed.
///
/// # Errors
/// The experiment shows nothing of this metric.
pub fn answers(
    metric: &Metric,
    rounds: &[ExperimentRound],
    values: &Values,
    resampling: Resampling,
) -> Result<Vec<ExperimentAnswer>, ExperimentRefusal> {
    let permutations = whole_permutations(rounds);
    if permutations.len() < LEAST_PERMUTATIONS {
        return Err(ExperimentRefusal::Permutations { there: permutations.len() });
    }
    let dropped = dropped(metric, &permutations, values)?;
    let series = |round: &ExperimentRound| measured(metric, round, dropped, values);
    let bases: Vec<[RoundSeries; 2]> = permutations
        .iter()
        .map(|all| {
            let mut bases = all.iter().filter(|round| round.slowed.is_none());
            std::array::from_fn(|_| bases.next().map(|round| series(round)).unwrap_or_default())
        })
        .collect();
    let [first, second] =
        [0, 1].map(|at| bases.iter().map(|pair| pair[at].clone()).collect::<Vec<_>>());
    let both: Vec<RoundSeries> = bases.iter().map(|[one, two]| joined(&[one, two])).collect();
    let ratio = |of: &[f64]| of[1] / of[0] - 1.0;
    let (aa, between) = resampled(&[&first, &second], ratio, resampling);
    if aa.abs() >= SAME_MEAN && (between.0 > 0.0 || between.1 < 0.0) {
        let metric = metric.clone();
        return Err(ExperimentRefusal::Baselines { metric, difference: aa, between });
    }
    let before = rounds.iter().find(|round| round.permutation == 0);
    let untouched = before.map(|round| mean(&measured(metric, round, dropped, values)));
    let arms = Arms { permutations: &permutations, series: &series };
    let answer = |slowed: &str, speed: f64, source: ExperimentSource| {
        let from: &[f64] = match source {
            ExperimentSource::Slowed => &[speed],
            ExperimentSource::Extrapolated => &EXTRAPOLATED_FROM,
        };
        let arms: Option<Vec<_>> = from.iter().map(|&speed| arms.of(slowed, speed)).collect();
        let arms = arms?;
        let all: Vec<&[RoundSeries]> =
            [&both[..]].into_iter().chain(arms.iter().map(Vec::as_slice)).collect();
        let at = |means: &[f64]| match source {
            ExperimentSource::Slowed => means[1],
            ExperimentSource::Extrapolated => parabola([means[0], means[1], means[2]], 1.0 / speed),
        };
        let (value, mean) = resampled(&all, at, resampling);
        let (gain, gains) = resampled(&all, |means| gain(metric, at(means) / means[0]), resampling);
        let figures = match source {
            ExperimentSource::Slowed => figures(&arms[0]),
            ExperimentSource::Extrapolated => {
                let none = f64::NAN;
                Figures { n: 0, mean: value, p50: none, p95: none, p99: none }
            }
        };
        Some(ExperimentAnswer {
            metric: metric.clone(),
            slowed: slowed.to_owned(),
            speed,
            source,
            base: self::figures(&both),
            figures,
            mean,
            gain,
            gains,
            untouched: untouched.filter(|mean| mean.is_finite()),
            rounds: permutations.len(),
            aa,
        })
    };
    let mut asked: Vec<(&str, f64)> = Vec::new();
    for round in permutations.iter().flatten() {
        let Some(slowed) = round.slowed.as_deref() else { continue };
        if !asked.iter().any(|one| one.0 == slowed && (one.1 - round.speed).abs() < SAME) {
            asked.push((slowed, round.speed));
        }
    }
    asked.sort_by(|one, other| one.0.cmp(other.0).then(other.1.total_cmp(&one.1)));
    let mut names: Vec<&str> = asked.iter().map(|one| one.0).collect();
    names.dedup();
    let slowed = asked.iter().map(|&(name, speed)| (name, speed, ExperimentSource::Slowed));
    let faster = names.iter().map(|&name| (name, EXTRAPOLATED, ExperimentSource::Extrapolated));
    Ok(slowed
        .chain(faster)
        .filter_map(|(name, speed, source)| answer(name, speed, source))
        .collect())
}

/// The rounds of each permutation that has all of its arms, by time.
fn whole_permutations(rounds: &[ExperimentRound]) -> Vec<Vec<&ExperimentRound>> {
    let mut sorted: Vec<_> = rounds.iter().filter(|round| round.permutation > 0).collect();
    sorted.sort_by_key(|round| (round.permutation, round.start));
    let all: Vec<Vec<_>> = sorted
        .chunk_by(|one, other| one.permutation == other.permutation)
        .map(<[_]>::to_vec)
        .collect();
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    let is_whole = |rounds: &Vec<&ExperimentRound>| {
        rounds.len() == most && rounds.iter().filter(|round| round.slowed.is_none()).count() == 2
    };
    all.into_iter().filter(is_whole).collect()
}

/// How much of each round is not measured.
fn dropped(
    metric: &Metric,
    permutations: &[Vec<&ExperimentRound>],
    values: &Values,
) -> Result<i64, ExperimentRefusal> {
    let bases: Vec<_> =
        permutations.iter().flatten().filter(|round| round.slowed.is_none()).collect();
    let mut lengths = Vec::new();
    for round in &bases {
        let ends = values.iter().filter(|value| value.1 >= round.start && value.1 < round.end);
        lengths.extend(ends.map(|value| (value.1 - value.0) as f64));
    }
    let length = bases.iter().map(|round| round.end - round.start).min().unwrap_or(0);
    let ends = lengths.len() as f64 / bases.len().max(1) as f64;
    let ms = |ns: f64| (ns / 1e6).ceil() as u64;
    if ends < LEAST_ENDS as f64 {
        let round_ms = ms(length as f64 * LEAST_ENDS as f64 * 1.2 / ends.max(0.1));
        return Err(ExperimentRefusal::Ends { metric: metric.clone(), ends, round_ms });
    }
    if matches!(metric, Metric::Rate(_)) {
        return Ok(LEAST_DROPPED);
    }
    lengths.sort_unstable_by(f64::total_cmp);
    let p95 = quantile(&lengths, 0.95).unwrap_or(0.0);
    let dropped = LEAST_DROPPED.max((DROPPED_LENGTHS * p95) as i64);
    if dropped > length / 2 {
        let round_ms = ms(2.0 * dropped as f64);
        return Err(ExperimentRefusal::Long { metric: metric.clone(), round_ms });
    }
    Ok(dropped)
}

/// What began and ended in the measured part of a round.
fn measured(
    metric: &Metric,
    round: &ExperimentRound,
    dropped: i64,
    values: &Values,
) -> RoundSeries {
    let start = round.start.saturating_add(dropped);
    let first = values.partition_point(|value| value.1 < start);
    let ended = values[first..].iter().take_while(|value| value.1 <= round.end);
    if matches!(metric, Metric::Rate(_)) {
        let (over, under) = (ended.count() as f64, (round.end - start) as f64 / 1e9);
        return RoundSeries { over, under, values: vec![over / under] };
    }
    let inside = ended.filter(|value| value.0 >= start);
    let values: Vec<f64> = inside.map(|value| (value.1 - value.0) as f64).collect();
    RoundSeries { over: values.iter().sum(), under: values.len() as f64, values }
}

fn joined(all: &[&RoundSeries]) -> RoundSeries {
    let mut joined = RoundSeries::default();
    for series in all {
        joined.over += series.over;
        joined.under += series.under;
        joined.values.extend(&series.values);
    }
    joined
}

fn mean(series: &RoundSeries) -> f64 {
    series.over / series.under
}

fn figures(rounds: &[RoundSeries]) -> Figures {
    let mut all = joined(&rounds.iter().collect::<Vec<_>>());
    all.values.sort_unstable_by(f64::total_cmp);
    let at = |share| quantile(&all.values, share).unwrap_or(f64::NAN);
    Figures { n: all.values.len(), mean: mean(&all), p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

fn gain(metric: &Metric, quotient: f64) -> f64 {
    if matches!(metric, Metric::Rate(_)) { quotient - 1.0 } else { 1.0 - quotient }
}

/// The value at a slowness of what it is at 1, 1.25 and 1.5.
fn parabola([one, two, three]: [f64; 3], slowness: f64) -> f64 {
    let x = (slowness - 1.0) / 0.25;
    one * (x - 1.0) * (x - 2.0) / 2.0 - two * x * (x - 2.0) + three * x * (x - 1.0) / 2.0
}

/// The rounds of each arm.
struct Arms<'a, F> {
    permutations: &'a [Vec<&'a ExperimentRound>],
    series: &'a F,
}

impl<F: Fn(&ExperimentRound) -> RoundSeries> Arms<'_, F> {
    /// What an interval at a speed shows, by permutation.
    fn of(&self, slowed: &str, speed: f64) -> Option<Vec<RoundSeries>> {
        let is_it = |round: &&&ExperimentRound| {
            round.slowed.as_deref() == Some(slowed) && (round.speed - speed).abs() < SAME
        };
        self.permutations
            .iter()
            .map(|rounds| rounds.iter().find(is_it).map(|round| (self.series)(round)))
            .collect()
    }
}

/// A value made of the means of some arms, and between what it lies.
fn resampled(
    arms: &[&[RoundSeries]],
    value: impl Fn(&[f64]) -> f64,
    resampling: Resampling,
) -> (f64, (f64, f64)) {
    let count = arms[0].len();
    let of = |rounds: &[usize]| {
        let mean = |arm: &&[RoundSeries]| {
            let over: f64 = rounds.iter().map(|&round| arm[round].over).sum();
            over / rounds.iter().map(|&round| arm[round].under).sum::<f64>()
        };
        value(&arms.iter().map(mean).collect::<Vec<_>>())
    };
    let middle = of(&(0..count).collect::<Vec<_>>());
    let mut dice = ChaCha8Rng::seed_from_u64(resampling.seed);
    let mut draw = || ((u128::from(dice.next_u64()) * count as u128) >> 64) as usize;
    let mut drawn: Vec<f64> = (0..resampling.count)
        .map(|_| of(&(0..count).map(|_| draw()).collect::<Vec<_>>()))
        .filter(|value| value.is_finite())
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let wider = (count as f64 / (count as f64 - 1.0)).sqrt();
    let tail = (1.0 - resampling.level) / 2.0;
    let bound = |share| {
        let found = quantile(&drawn, share).unwrap_or(f64::NAN);
        middle + (found - middle) * wider
    };
    (middle, (bound(tail), bound(1.0 - tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: i64 = 500_000_000;

    /// Rounds whose values are `length(speed)` long, each begun when the one before it ended.
    fn experiment(
        permutations: i64,
        speeds: &[f64],
        length: impl Fn(f64, i64, usize) -> i64,
    ) -> (Vec<ExperimentRound>, Vec<(i64, i64)>) {
        let (mut rounds, mut values, mut now) = (Vec::new(), Vec::new(), 0);
        for permutation in 0..=permutations {
            let arms: &[f64] = if permutation == 0 { &[1.0] } else { speeds };
            for (place, &speed) in arms.iter().enumerate() {
                let slowed = (speed != 1.0).then(|| "serve.work".to_owned());
                let round =
                    ExperimentRound { start: now, end: now + ROUND, permutation, speed, slowed };
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
        let answers = answers(&metric(), &rounds, &values, Resampling::default()).unwrap();
        let [slower, slowest, faster] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((slower.speed, slower.source), (0.8, ExperimentSource::Slowed));
        assert!((slower.gain + 0.125).abs() < 1e-3, "{slower:?}");
        assert!(slower.gains.0 <= slower.gain && slower.gain <= slower.gains.1, "{slower:?}");
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
            answers(&metric(), &rounds, &values, Resampling::default()).unwrap_err()
        };
        let few = ask(7, |_, _, _| 1_000_000);
        assert_eq!(few, ExperimentRefusal::Permutations { there: 7 });
        let seldom = ask(9, |_, _, _| 40_000_000);
        assert!(matches!(seldom, ExperimentRefusal::Ends { round_ms: 501.., .. }), "{seldom}");
        let drifts = ask(9, |_, permutation, place| {
            1_000_000 + place as i64 * 10_000 + permutation % 3 * 1000
        });
        assert!(matches!(drifts, ExperimentRefusal::Baselines { .. }), "{drifts}");
        assert!(drifts.to_string().contains("--for"), "{drifts}");
    }

    #[test]
    fn what_straddles_a_round_does_not_count() {
        let round =
            ExperimentRound { start: 0, end: ROUND, permutation: 1, speed: 1.0, slowed: None };
        let values = [
            (0, LEAST_DROPPED + 5),
            (LEAST_DROPPED, LEAST_DROPPED + 10),
            (ROUND - 20, ROUND),
            (ROUND - 5, ROUND + 5),
        ];
        let series = measured(&metric(), &round, LEAST_DROPPED, &values);
        assert_eq!((series.over, series.under), (30.0, 2.0));
        let rate = "rate(request)".parse().unwrap();
        assert_eq!(measured(&rate, &round, LEAST_DROPPED, &values).over, 3.0);
    }
}
