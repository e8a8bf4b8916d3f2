//! What speeds are worth: a metric as it was and as it would be.

use super::critical::Trace;
use super::doubt::Refusal;
use super::engine::Engine;
use super::figures::{Figures, Resampling};
use super::metric::{Metric, NoMetric, Places, Series};
use super::model::Model;
use super::recording::Name;
use super::speed::{NoActivity, Speed, Speeds};

/// Less than this share is no gain.
const NO_GAIN: f64 = 0.001;

/// A metric of a run.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The metric.
    pub metric: Metric,
    /// As it was.
    pub was: Figures,
    places: Places,
    series: Series,
}

/// What speeds are worth for a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The metric.
    pub metric: Metric,
    /// The speeds, with whole names.
    pub speeds: Speeds,
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
pub enum Verdict {
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
    pub answer: Answer,
}

impl Answer {
    /// The share of its mean by which a length is shorter, or a rate higher.
    pub fn gain(&self) -> f64 {
        gain(&self.metric, self.predicted.mean / self.was.mean)
    }

    /// In a word.
    pub fn verdict(&self) -> Verdict {
        match self.gain() {
            it if it >= NO_GAIN => Verdict::Gain,
            it if it <= -NO_GAIN => Verdict::Loss,
            _ => Verdict::NoGain,
        }
    }
}

fn gain(metric: &Metric, quotient: f64) -> f64 {
    if matches!(metric, Metric::Rate(_)) { quotient - 1.0 } else { 1.0 - quotient }
}

impl Model {
    /// Finds a metric in the run.
    ///
    /// # Errors
    /// The run has nothing of that name, or too little to measure.
    pub fn ask(&self, metric: &Metric) -> Result<Asked, NoMetric> {
        let places = Places::find(metric, self)?;
        let series = places.measure(&self.moments.time);
        Ok(Asked { metric: metric.clone(), was: Figures::new(&series), places, series })
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
        asked: &Asked,
        speeds: &Speeds,
        resampling: Resampling,
    ) -> Result<Answer, Refusal> {
        let critical_share = self.critical_share(asked, speeds)?;
        self.answer_with(asked, speeds, resampling, critical_share)
    }

    /// The same for several speeds, each for all these activities.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub fn sweep(
        &self,
        asked: &Asked,
        speeds: &Speeds,
        times: &[f64],
        resampling: Resampling,
    ) -> Result<Vec<Answer>, Refusal> {
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
        asked: &Asked,
        times: f64,
        resampling: Resampling,
    ) -> Result<Vec<Ranked>, Refusal> {
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
        asked: &Asked,
        speeds: &Speeds,
        resampling: Resampling,
        critical_share: f64,
    ) -> Result<Answer, Refusal> {
        let series = asked.places.measure(&self.replay(speeds)?.time);
        let intervals = resampling.intervals(&asked.series, &series);
        let gains = intervals.map(|[_, (low, high)]| {
            let ends = [gain(&asked.metric, low), gain(&asked.metric, high)];
            (ends[0].min(ends[1]), ends[0].max(ends[1]))
        });
        Ok(Answer {
            metric: asked.metric.clone(),
            speeds: speeds.clone(),
            was: asked.was,
            predicted: Figures::new(&series),
            mean: intervals.map(|it| it[0]),
            gains,
            critical_share,
        })
    }

    fn critical_share(&self, asked: &Asked, speeds: &Speeds) -> Result<f64, Refusal> {
        let marked = self.contexts.each(false, |name| {
            let name = self.names.written(Name(name));
            speeds.iter().any(|it| it.activity == name).then_some(true)
        });
        let ones = vec![1.0; marked.len()];
        let trace = Trace::new(self, marked);
        let (replay, trace) = Engine::new(self, &ones, Some(trace)).run()?;
        Ok(trace.map_or(0.0, |it| asked.places.critical(&it, &replay.time)))
    }
}
