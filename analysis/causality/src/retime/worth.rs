//! What speeds are worth: a metric as it was and as it would be.

use super::critical::Trace;
use super::doubt::RetimeRefusal;
use super::figures::{Figures, Resampling};
use super::metric::{FoundMetric, Metric, MetricPlaces, NoMetric, Series};
use super::model::RetimeModel;
use super::recording::NameId;
use super::speed::{NoActivity, Speed, Speeds};

/// Less than this share is no gain.
const NO_GAIN: f64 = 0.001;

/// If more than this share of a metric is left out, the rest does not speak for all of it.
const MOST_LEFT_OUT: f64 = 0.5;

/// A metric of a run.
#[derive(Debug, Clone)]
pub struct MetricQuestion {
    /// The metric.
    pub metric: Metric,
    /// As it was.
    pub was: Figures,
    /// The share of the run's time that counts for nothing, as frames are missing there.
    pub missing_share: f64,
    places: MetricPlaces,
    series: Series,
}

/// What speeds are worth for a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeedWorth {
    /// The metric.
    pub metric: Metric,
    /// The speeds, with whole names.
    pub speeds: Speeds,
    /// The share of the run's time that counts for nothing, as frames are missing there.
    pub missing_share: f64,
    /// As it was.
    pub was: Figures,
    /// As it would be.
    pub predicted: Figures,
    /// Between what the predicted mean lies, as far as the run was one of many that might have been.
    pub mean: Option<(f64, f64)>,
    /// Between what the gain lies.
    pub gains: Option<(f64, f64)>,
    /// The share of the metric, as it was, that lies in these activities on the ways that decided it.
    pub critical_share: f64,
}

/// What an answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedVerdict {
    /// Better.
    Gain,
    /// As before, to a thousandth.
    NoGain,
    /// Worse.
    Loss,
}

/// An activity and what its speed is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Its name.
    pub activity: String,
    /// For the asked speed.
    pub answer: SpeedWorth,
}

impl SpeedWorth {
    /// The share of its mean by which a length is shorter, or a rate higher.
    pub fn gain(&self) -> f64 {
        gain(&self.metric, self.predicted.mean / self.was.mean)
    }

    /// In a word.
    pub fn verdict(&self) -> SpeedVerdict {
        match self.gain() {
            value if value >= NO_GAIN => SpeedVerdict::Gain,
            value if value <= -NO_GAIN => SpeedVerdict::Loss,
            _ => SpeedVerdict::NoGain,
        }
    }
}

fn gain(metric: &Metric, quotient: f64) -> f64 {
    if matches!(metric, Metric::Rate(_)) { quotient - 1.0 } else { 1.0 - quotient }
}

impl RetimeModel {
    /// Finds a metric in the run.
    ///
    /// # Errors
    /// The run has nothing of that name, or too little to measure, or too much of it is in doubt.
    pub fn ask(&self, metric: &Metric) -> Result<MetricQuestion, NoMetric> {
        let FoundMetric { places, missing_share } = MetricPlaces::find(metric, self)?;
        if missing_share > MOST_LEFT_OUT {
            let metric = metric.to_string();
            return Err(RetimeRefusal::LeftOut { metric, share: missing_share }.into());
        }
        let series = places.measure(&self.moments.time);
        let (metric, was) = (metric.clone(), Figures::new(&series));
        Ok(MetricQuestion { metric, was, missing_share, places, series })
    }

    /// `speeds` with whole names, where they have only the last parts.
    ///
    /// # Errors
    /// A name fits no activity, or several.
    pub fn speeds(&self, speeds: &Speeds) -> Result<Speeds, NoActivity> {
        speeds.known(&self.activities())
    }

    /// What `speeds`, whose names are whole, are worth.
    ///
    /// # Errors
    /// The run cannot be timed again with these speeds.
    pub fn answer(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        resampling: Resampling,
    ) -> Result<SpeedWorth, RetimeRefusal> {
        let critical_share = self.critical_share(asked, speeds)?;
        self.answer_with(asked, speeds, resampling, critical_share)
    }

    /// The same for several speeds, each for all these activities.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub fn sweep(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        times: &[f64],
        resampling: Resampling,
    ) -> Result<Vec<SpeedWorth>, RetimeRefusal> {
        let critical_share = self.critical_share(asked, speeds)?;
        let each = times
            .iter()
            .map(|&times| self.answer_with(asked, &speeds.all(times), resampling, critical_share));
        each.collect()
    }

    /// What each activity alone is worth, made `times` as fast: the best first.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub fn rank(
        &self,
        asked: &MetricQuestion,
        times: f64,
        resampling: Resampling,
    ) -> Result<Vec<Ranked>, RetimeRefusal> {
        let mut ranked = Vec::new();
        for activity in self.activities() {
            let activity = activity.to_owned();
            let speed = Speed { activity: activity.clone(), times };
            let speeds = Speeds::default().with(speed);
            ranked.push(Ranked { activity, answer: self.answer(asked, &speeds, resampling)? });
        }
        ranked.sort_by(|one, other| other.answer.gain().total_cmp(&one.answer.gain()));
        Ok(ranked)
    }

    fn answer_with(
        &self,
        asked: &MetricQuestion,
        speeds: &Speeds,
        resampling: Resampling,
        critical_share: f64,
    ) -> Result<SpeedWorth, RetimeRefusal> {
        let series = asked.places.measure(&self.replay(speeds)?.time);
        let intervals = resampling.intervals(&asked.series, &series);
        let gains = intervals.map(|[_, (low, high)]| {
            let ends = [gain(&asked.metric, low), gain(&asked.metric, high)];
            (ends[0].min(ends[1]), ends[0].max(ends[1]))
        });
        Ok(SpeedWorth {
            metric: asked.metric.clone(),
            missing_share: asked.missing_share,
            speeds: speeds.clone(),
            was: asked.was,
            predicted: Figures::new(&series),
            mean: intervals.map(|interval| interval[0]),
            gains,
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
        let trace = Trace::new(self, marked);
        let (replay, trace) = self.time_again(&ones, Some(trace))?;
        Ok(trace.map_or(0.0, |trace| asked.places.critical(&trace, &replay.time)))
    }
}
