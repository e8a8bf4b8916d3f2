//! Runs the rounds of an experiment, in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ppt_kernel::{Round, RoundLog};

use super::ends::MetricEnds;
use super::{Arm, Experiment};

/// How often ppt says that it lives.
const BEAT: Duration = Duration::from_millis(10);
/// If it says so later, threads may not have waited.
const LATE_NS: u64 = 100_000_000;
/// The least ends of the metric in a round.
const LEAST_ENDS: u64 = 30;

impl Experiment {
    /// Begins it. Its rounds are written into `log`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(self, log: RoundLog) -> std::io::Result<RunningExperiment> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("ppt-rounds".into());
        let thread = thread.spawn(move || Conductor { experiment: self, log, stopped }.run())?;
        Ok(RunningExperiment { stop, thread: Some(thread) })
    }
}

/// An experiment that runs until this is [stopped](Self::stop), or dropped.
#[derive(Debug)]
pub(crate) struct RunningExperiment {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunningExperiment {
    /// Ends the round that runs, which does not count.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it panicked, targets stop waiting by themselves.
            let _ = thread.join();
        }
    }
}

impl Drop for RunningExperiment {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    Whole,
    /// ppt said too late that it lives: the round is worth nothing.
    Late,
    /// Somebody stops the experiment.
    Stopped,
}

/// The rounds of an experiment, while they run.
struct Conductor {
    experiment: Experiment,
    log: RoundLog,
    stopped: Arc<AtomicBool>,
}

impl Conductor {
    fn run(mut self) {
        self.experiment.buffers.iter().for_each(|buffer| buffer.begin());
        let start = now_ns();
        if self.wait(self.experiment.untouched) != RoundEnd::Stopped {
            self.write(start, 0, None);
            self.permutations();
        }
    }

    fn permutations(&mut self) {
        let mut round = 0;
        for permutation in 1.. {
            for arm in shuffled(self.experiment.arms.len()) {
                let mut end = RoundEnd::Late;
                while end == RoundEnd::Late {
                    round += 1;
                    end = self.round(arm, round, permutation);
                }
                if end == RoundEnd::Stopped {
                    return;
                }
            }
        }
    }

    /// A round of an arm, which is written if it is whole.
    fn round(&mut self, arm: usize, number: u64, permutation: u32) -> RoundEnd {
        let start = now_ns();
        let Arm { speed, sleeps, places, .. } = &self.experiment.arms[arm];
        for &(buffer, stamps) in places {
            self.experiment.buffers[buffer].slow(number, stamps, 1.0 / speed, *sleeps);
        }
        let end = self.wait(self.experiment.round);
        let Arm { places, .. } = &self.experiment.arms[arm];
        for &(buffer, stamps) in places {
            self.experiment.buffers[buffer].end(stamps);
        }
        if end == RoundEnd::Whole {
            self.write(start, permutation, Some(arm));
        }
        end
    }

    /// Says that ppt lives: for so long, and until the metric has ended often enough.
    fn wait(&mut self, time: Duration) -> RoundEnd {
        let Experiment { buffers, ends, .. } = &mut self.experiment;
        ends.iter_mut().for_each(MetricEnds::restart);
        let end = now_ns() + time.as_nanos() as u64;
        let mut last = now_ns();
        let mut is_late = false;
        loop {
            let now = now_ns();
            buffers.iter().for_each(|buffer| buffer.beat(now));
            is_late |= now_ns() - last > LATE_NS;
            last = now;
            if self.stopped.load(Relaxed) {
                return RoundEnd::Stopped;
            }
            if now >= end && ends.as_mut().is_none_or(|ends| ends.are_there(LEAST_ENDS)) {
                return if is_late { RoundEnd::Late } else { RoundEnd::Whole };
            }
            let left = Duration::from_nanos(end.saturating_sub(now));
            thread::sleep(if left.is_zero() { BEAT } else { BEAT.min(left) });
        }
    }

    fn write(&mut self, start: u64, permutation: u32, arm: Option<usize>) {
        let arm = arm.map(|arm| &self.experiment.arms[arm]);
        self.log.write(&Round {
            time: (start, now_ns()),
            permutation,
            speed: arm.map_or(1.0, |arm| arm.speed),
            sleeps: arm.is_some_and(|arm| arm.sleeps),
            slowed: arm.map_or("", |arm| &arm.slowed),
            metric: &self.experiment.metric,
        });
    }
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// All numbers below `count`, in random order.
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (ppt_agent::random() % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_each_arm_once() {
        for _ in 0..20 {
            let mut order = shuffled(7);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}
