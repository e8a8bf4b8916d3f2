//! Combines the steps of one key, in the order of time, to a chain. Memory: one time for each step.

use super::Missing;

/// The taken steps of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainSteps {
    /// By step: the time of its first frame, if the frame has a time.
    times: Vec<Option<i64>>,
    /// By step: number of its frames.
    counts: Vec<u64>,
    /// A frame has no time, or an unknown step.
    unclear: bool,
}

/// The state of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChainVerdict {
    Complete,
    /// The chain lacks frames of these steps.
    Missing(Vec<usize>),
    /// The chain has several frames of each of these steps.
    Repeated(Vec<usize>),
    OutOfOrder,
    /// Unknown: all steps without a frame may be among the missing frames.
    Lost,
}

impl ChainSteps {
    /// A chain of `steps` steps, none of them taken.
    pub fn new(steps: usize) -> Self {
        ChainSteps { times: vec![None; steps], counts: vec![0; steps], unclear: false }
    }

    /// Adds the next frame, in the order of time. Frames without a time may come at any point.
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

    /// Whether each step has a frame.
    pub fn has_all(&self) -> bool {
        self.counts.iter().all(|&count| count > 0)
    }

    /// The time of the first frame of a step.
    pub fn time(&self, step: usize) -> Option<i64> {
        self.times.get(step).copied().flatten()
    }

    /// Time from one step to a later one, in ns; negative if their order was reversed.
    pub fn between(&self, from: usize, to: usize) -> Option<i64> {
        self.time(to)?.checked_sub(self.time(from)?)
    }

    /// Time from the first step to the last, in ns.
    pub fn total(&self) -> Option<i64> {
        self.between(0, self.times.len().checked_sub(1)?)
    }

    /// The state of the chain. `missing`: when frames with absent steps may have been written.
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
        let not_lost: Vec<usize> =
            absent.iter().copied().filter(|&step| !self.may_be_lost(step, missing)).collect();
        match (absent.is_empty(), not_lost.is_empty()) {
            (false, false) => ChainVerdict::Missing(not_lost),
            (false, true) => ChainVerdict::Lost,
            (true, _) if self.times.is_sorted() => ChainVerdict::Complete,
            (true, _) => ChainVerdict::OutOfOrder,
        }
    }

    /// Whether a frame may be missing in the period in which an absent step belongs: after all earlier steps,
    /// and before all later ones.
    fn may_be_lost(&self, step: usize, missing: &Missing) -> bool {
        let before = self.times[..step].iter().flatten().max();
        let after = self.times[step + 1..].iter().flatten().min();
        let (from, to) = (before.copied().unwrap_or(i64::MIN), after.copied().unwrap_or(i64::MAX));
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
