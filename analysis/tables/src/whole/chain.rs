//! Steps of one key, in the order of time, become a chain. What is kept is one time for each step.

use super::Missing;

/// The steps that were taken of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainSteps {
    /// By step: the first time it was taken, if it says one.
    times: Vec<Option<i64>>,
    /// By step: how often it was taken.
    counts: Vec<u64>,
    /// A frame says no time, or no step that there is.
    unclear: bool,
}

/// What became of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChainVerdict {
    Complete,
    /// These steps were not taken.
    Missing(Vec<usize>),
    /// These were taken more than once.
    Repeated(Vec<usize>),
    OutOfOrder,
    /// Nobody knows whether it is complete: all that it lacks may be among the missing frames.
    Lost,
}

impl ChainSteps {
    /// None of `steps` steps yet.
    pub fn new(steps: usize) -> Self {
        ChainSteps { times: vec![None; steps], counts: vec![0; steps], unclear: false }
    }

    /// The next frame, in the order of time; those without a time may come anywhere.
    pub fn add_step(&mut self, step: Option<usize>, ts: Option<i64>) {
        let Some(step) = step.filter(|&step| step < self.times.len()) else {
            self.unclear = true;
            return;
        };
        self.unclear |= ts.is_none();
        self.counts[step] += 1;
        if self.times[step].is_none() {
            self.times[step] = ts;
        }
    }

    /// Whether each step was taken.
    pub fn has_all(&self) -> bool {
        self.counts.iter().all(|&count| count > 0)
    }

    /// When a step was taken first.
    pub fn time(&self, step: usize) -> Option<i64> {
        self.times.get(step).copied().flatten()
    }

    /// From one step to a later one, in ns; negative where they were taken the other way round.
    pub fn between(&self, from: usize, to: usize) -> Option<i64> {
        self.time(to)?.checked_sub(self.time(from)?)
    }

    /// From the first step to the last.
    pub fn total(&self) -> Option<i64> {
        self.between(0, self.times.len().checked_sub(1)?)
    }

    /// What became of it, where `missing` frames may hold the steps that are not there.
    pub fn verdict(&self, missing: &Missing) -> ChainVerdict {
        let steps = || 0..self.times.len();
        let repeated: Vec<usize> = steps().filter(|&step| self.counts[step] > 1).collect();
        if !repeated.is_empty() {
            return ChainVerdict::Repeated(repeated);
        }
        let absent: Vec<usize> = steps().filter(|&step| self.counts[step] == 0).collect();
        if self.unclear {
            return ChainVerdict::Lost;
        }
        let sure: Vec<usize> =
            absent.iter().copied().filter(|&step| !self.may_be_among(step, missing)).collect();
        match (absent.is_empty(), sure.is_empty()) {
            (false, false) => ChainVerdict::Missing(sure),
            (false, true) => ChainVerdict::Lost,
            (true, _) if self.times.is_sorted() => ChainVerdict::Complete,
            (true, _) => ChainVerdict::OutOfOrder,
        }
    }

    /// Whether a step that is not there may be missing: after the last of the steps before it, and
    /// before the first of those behind it.
    fn may_be_among(&self, step: usize, missing: &Missing) -> bool {
        let before = self.times[..step].iter().flatten().max();
        let behind = self.times[step + 1..].iter().flatten().min();
        let (from, to) = (before.copied().unwrap_or(i64::MIN), behind.copied().unwrap_or(i64::MAX));
        missing.between(from.min(to), from.max(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(steps: &[(usize, i64)]) -> ChainSteps {
        let mut taken = ChainSteps::new(3);
        steps.iter().for_each(|&(step, ts)| taken.add_step(Some(step), Some(ts)));
        taken
    }

    #[test]
    fn a_chain_is_judged_by_its_steps_and_by_what_is_missing() {
        let gap = Missing::during([(Some(15), Some(17))]);
        let judged = |steps: &[(usize, i64)]| taken(steps).verdict(&gap);
        assert_eq!(judged(&[(0, 1), (1, 2), (2, 2)]), ChainVerdict::Complete);
        assert_eq!(judged(&[(1, 1), (0, 2), (2, 3)]), ChainVerdict::OutOfOrder);
        assert_eq!(
            judged(&[(0, 1), (2, 3)]),
            ChainVerdict::Missing(vec![1]),
            "the gap is behind both"
        );
        assert_eq!(judged(&[(0, 1), (2, 16)]), ChainVerdict::Lost);
        assert_eq!(judged(&[(1, 20)]), ChainVerdict::Missing(vec![2]), "the gap is before it");
        assert_eq!(judged(&[(1, 18), (2, 19)]), ChainVerdict::Lost);
        assert_eq!(judged(&[(0, 18)]), ChainVerdict::Missing(vec![1, 2]));
        assert_eq!(judged(&[(0, 1), (0, 2), (2, 3), (2, 4)]), ChainVerdict::Repeated(vec![0, 2]));
        let mut unclear = taken(&[(0, 1), (1, 2), (2, 3)]);
        unclear.add_step(None, Some(4));
        assert_eq!(unclear.verdict(&gap), ChainVerdict::Lost, "a step that there is not");
    }

    #[test]
    fn the_steps_of_a_chain_add_up_to_its_length() {
        let whole = taken(&[(0, 10), (1, 35), (2, 36), (1, 50)]);
        assert_eq!(
            (whole.total(), whole.between(0, 1), whole.between(1, 2)),
            (Some(26), Some(25), Some(1))
        );
        let part = taken(&[(1, 35), (2, 36)]);
        assert_eq!((part.total(), part.between(0, 1), part.between(1, 2)), (None, None, Some(1)));
        assert_eq!(taken(&[(2, i64::MAX), (0, i64::MIN)]).total(), None, "too long to be counted");
        assert_eq!(ChainSteps::new(0).total(), None);
    }
}
