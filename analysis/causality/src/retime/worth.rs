//! The worth of speeds: a metric as it was and as it would be.

use super::critical_paths::CriticalPaths;
use super::figures::{BlockBootstrap, Figures};
use super::metric::{FoundMetric, Metric, MetricPlaces, MetricUnavailable, Ratios};
use super::model::RetimeModel;
use super::recorded_run::NameId;
use super::refusal::{MAX_REPLAY_ERROR, MAX_REPLAY_ERROR_P95, RetimeRefusal};
use super::replay_result::TracedReplay;
use super::speed::{ActivityError, Speed, Speeds};

/// Gains and losses below this share are not distinguished from 0.
pub const NO_GAIN: f64 = 0.001;

/// The largest share of the run's time that may be left out of a metric.
const MAX_MISSING_SHARE: f64 = 0.5;

/// A metric, found in a run.
#[derive(Debug, Clone)]
pub struct MetricQuestion {
    /// The metric.
    pub metric: Metric,
    /// The metric in the recorded run.
    pub was: Figures,
    /// The share of the run's time that is left out because frames are missing.
    pub missing_share: f64,
    places: MetricPlaces,
    ratios: Ratios,
}

/// The worth of speeds for a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeedWorth {
    /// The metric.
    pub metric: Metric,
    /// The speeds, with whole names.
    pub speeds: Speeds,
    /// The share of the run's time that is left out because frames are missing.
    pub missing_share: f64,
    /// The metric in the recorded run.
    pub was: Figures,
    /// The metric at these speeds.
    pub predicted: Figures,
    /// The confidence interval of the predicted mean, treating the run as one sample (block bootstrap).
    pub mean_interval: Option<(f64, f64)>,
    /// The confidence interval of the gain.
    pub gain_interval: Option<(f64, f64)>,
    /// The share of these activities in the critical paths of the metric, in the recorded run.
    pub critical_share: f64,
}

/// Whether speeds make a metric better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedVerdict {
    /// Better.
    Gain,
    /// The same, to a thousandth.
    NoGain,
    /// Worse.
    Loss,
}

/// An activity and the worth of its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The name of the activity.
    pub activity: String,
    /// The worth of the asked speed.
    pub answer: SpeedWorth,
}

impl SpeedWorth {
    /// The share of its mean by which a length is shorter, or a rate higher.
    pub fn gain(&self) -> f64 {
        self.metric.gain(self.predicted.mean / self.was.mean)
    }

    /// Whether the gain is positive, zero or negative.
    pub fn verdict(&self) -> SpeedVerdict {
        match self.gain() {
            value if value >= NO_GAIN => SpeedVerdict::Gain,
            value if value <= -NO_GAIN => SpeedVerdict::Loss,
            _ => SpeedVerdict::NoGain,
        }
    }
}

/// Whether a replay with the recorded speeds has the metric as it was.
fn judge_replay(metric: &Metric, was: &Figures, replayed: &Figures) -> Result<(), RetimeRefusal> {
    let mean = replayed.mean / was.mean - 1.0;
    let p95 = replayed.p95 / was.p95 - 1.0;
    if mean.abs() <= MAX_REPLAY_ERROR && p95.abs() <= MAX_REPLAY_ERROR_P95 {
        return Ok(());
    }
    Err(RetimeRefusal::Unlike { metric: metric.to_string(), mean, p95 })
}

impl RetimeModel {
    /// Finds a metric in the run.
    ///
    /// # Errors
    /// The run does not have the metric, or too much of it is in doubt.
    pub fn ask(&self, metric: &Metric) -> Result<MetricQuestion, MetricUnavailable> {
        let FoundMetric { places, missing_share } = MetricPlaces::find(metric, self)?;
        if missing_share > MAX_MISSING_SHARE {
            let metric = metric.to_string();
            return Err(RetimeRefusal::TooMuchMissing { metric, share: missing_share }.into());
        }
        let ratios = places.measure(&self.moments.time);
        let (metric, was) = (metric.clone(), Figures::new(&ratios));
        if let Some(times) = &self.unlike_run {
            judge_replay(&metric, &was, &Figures::new(&places.measure(times)))?;
        }
        Ok(MetricQuestion { metric, was, missing_share, places, ratios })
    }

    /// Completes the names of `speeds` by those of the activities.
    ///
    /// # Errors
    /// As for [`Speeds::resolve`].
    pub fn speeds(&self, speeds: &Speeds) -> Result<Speeds, ActivityError> {
        speeds.resolve(&self.activities())
    }

    /// The worth of `speeds`, whose names are whole.
    ///
    /// # Errors
    /// The run cannot be replayed with these speeds.
    pub fn answer(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        bootstrap: BlockBootstrap,
    ) -> Result<SpeedWorth, RetimeRefusal> {
        let critical_share = self.critical_share(asked, speeds)?;
        self.answer_with(asked, speeds, bootstrap, critical_share)
    }

    /// The worth of each of several factors for all these activities.
    ///
    /// # Errors
    /// As for [`answer`](Self::answer).
    pub fn sweep(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        factors: &[f64],
        bootstrap: BlockBootstrap,
    ) -> Result<Vec<SpeedWorth>, RetimeRefusal> {
        let critical_share = self.critical_share(asked, speeds)?;
        let answer =
            |&factor: &f64| self.answer_with(asked, &speeds.all(factor), bootstrap, critical_share);
        factors.iter().map(answer).collect()
    }

    /// The worth of each activity alone at the speed `factor`, the best first.
    ///
    /// # Errors
    /// As for [`answer`](Self::answer).
    pub fn rank(
        &self,
        asked: &MetricQuestion,
        factor: f64,
        bootstrap: BlockBootstrap,
    ) -> Result<Vec<Ranked>, RetimeRefusal> {
        let mut ranked = Vec::new();
        for activity in self.activities() {
            let activity = activity.to_owned();
            let speed = Speed { activity: activity.clone(), factor };
            let speeds = Speeds::default().with(speed);
            ranked.push(Ranked { activity, answer: self.answer(asked, &speeds, bootstrap)? });
        }
        ranked.sort_by(|one, other| other.answer.gain().total_cmp(&one.answer.gain()));
        Ok(ranked)
    }

    fn answer_with(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        bootstrap: BlockBootstrap,
        critical_share: f64,
    ) -> Result<SpeedWorth, RetimeRefusal> {
        let ratios = asked.places.measure(&self.replay(speeds)?.time);
        let intervals = bootstrap.intervals(&asked.ratios, &ratios);
        let gain_interval = intervals.as_ref().map(|intervals| {
            let (low, high) = intervals.quotient;
            let ends = [asked.metric.gain(low), asked.metric.gain(high)];
            (ends[0].min(ends[1]), ends[0].max(ends[1]))
        });
        Ok(SpeedWorth {
            metric: asked.metric.clone(),
            missing_share: asked.missing_share,
            speeds: speeds.clone(),
            was: asked.was,
            predicted: Figures::new(&ratios),
            mean_interval: intervals.map(|intervals| intervals.mean),
            gain_interval,
            critical_share,
        })
    }

    fn critical_share(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
    ) -> Result<f64, RetimeRefusal> {
        let marked = self.contexts.each(false, |name| {
            let name = self.names.written(NameId(name));
            speeds.iter().any(|speed| speed.activity == name).then_some(true)
        });
        let ones = vec![1.0; marked.len()];
        let paths = CriticalPaths::new(self, marked);
        let TracedReplay { replay, critical_paths } = self.replay_with(&ones, Some(paths))?;
        Ok(critical_paths.map_or(0.0, |paths| asked.places.critical_share(&paths, &replay.time)))
    }
}
