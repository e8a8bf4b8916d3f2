//! Runs the rounds of an experiment, in a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ppt_kernel::{Round, RoundLog, VirtualClockLog};

use super::cpu_use::CpuUse;
use super::ends::MetricEnds;
use super::{Arm, Experiment};
use crate::code::Code;

/// The interval at which ppt shows that it lives.
const BEAT: Duration = Duration::from_millis(10);
/// If a sign of life comes later, threads may not have waited.
const LATE_NS: u64 = 100_000_000;
/// The least ends of the metric in a round.
const LEAST_ENDS: u64 = 30;
/// The number of faulty rounds with pauses in a row after which ppt gives up.
const MAX_FAULTS: u32 = 20;

impl Experiment {
    /// Begins it. Its rounds are written into the logs; the second one has their pauses.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(
        self,
        log: RoundLog,
        clock: Option<VirtualClockLog>,
    ) -> std::io::Result<RunningExperiment> {
        let (stop, refusal) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (stopped, refused) = (stop.clone(), refusal.clone());
        let conductor =
            Conductor { experiment: self, log, clock, faults: 0, stopped, refusal: refused };
        let thread = thread::Builder::new().name("ppt-rounds".into());
        let thread = Some(thread.spawn(move || conductor.run())?);
        Ok(RunningExperiment { stop, refusal, thread })
    }
}

/// An experiment that runs until this is [stopped](Self::stop), or dropped.
#[derive(Debug)]
pub(crate) struct RunningExperiment {
    stop: Arc<AtomicBool>,
    refusal: Arc<Mutex<Option<(Code, String)>>>,
    thread: Option<JoinHandle<()>>,
}

impl RunningExperiment {
    /// The reason for which it cannot go on.
    pub(crate) fn refusal(&self) -> Option<(Code, String)> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

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
    /// A sign of life came too late: the round does not count.
    Late,
    /// Somebody stops the experiment.
    Stopped,
}

/// The rounds of an experiment, while they run.
struct Conductor {
    experiment: Experiment,
    log: RoundLog,
    clock: Option<VirtualClockLog>,
    /// The number of rounds with pauses since the last good one.
    faults: u32,
    stopped: Arc<AtomicBool>,
    refusal: Arc<Mutex<Option<(Code, String)>>>,
}

impl Conductor {
    fn run(mut self) {
        self.experiment.buffers.iter().for_each(|buffer| buffer.begin());
        let start = now_ns();
        let cpu_use = CpuUse::begin(self.experiment.pids.clone());
        if self.wait(self.experiment.untouched, true) == RoundEnd::Stopped {
            return;
        }
        self.write(start, 0, None);
        if self.experiment.arms.iter().any(Arm::computes)
            && let Some(refusal) = cpu_use.refusal()
        {
            return self.refuse(Code::NotSlowed, refusal);
        }
        if let Some(pausing) = &self.experiment.pausing {
            if let Some(refusal) = pausing.refusal() {
                return self.refuse(Code::NotPaused, refusal);
            }
            pausing.begin_looks();
        }
        self.permutations();
    }

    /// Ends the experiment without an answer.
    fn refuse(&self, code: Code, why: String) {
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.get_or_insert((code, why));
        drop(refusal);
        self.stopped.store(true, Relaxed);
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
        if self.experiment.arms[arm].is_paused() {
            return self.paused_round(arm, permutation);
        }
        let start = now_ns();
        let Arm { speed, sleeps, places, .. } = &self.experiment.arms[arm];
        for &(buffer, stamps) in places {
            self.experiment.buffers[buffer].slow(number, stamps, 1.0 / speed, *sleeps);
        }
        let end = self.wait(self.experiment.round, false);
        let Arm { places, .. } = &self.experiment.arms[arm];
        for &(buffer, stamps) in places {
            self.experiment.buffers[buffer].end(stamps);
        }
        if end == RoundEnd::Whole {
            self.write(start, permutation, Some(arm));
        }
        end
    }

    /// A round in which CPUs pause, as long in virtual time as others are.
    fn paused_round(&mut self, arm: usize, permutation: u32) -> RoundEnd {
        let start = now_ns();
        let speed = self.experiment.arms[arm].speed;
        if let Some(pausing) = &self.experiment.pausing {
            pausing.begin(speed);
        }
        let end = self.wait(self.experiment.round.mul_f64(speed), false);
        let Some(pausing) = &self.experiment.pausing else { return RoundEnd::Stopped };
        let paused = pausing.end();
        if end != RoundEnd::Whole {
            return end;
        }
        match paused {
            Ok(paused) if paused.clock.len() <= VirtualClockLog::MAX_POINTS => {
                self.faults = 0;
                if let Some(clock) = &mut self.clock {
                    clock.write((start, now_ns()), &paused);
                }
                self.write(start, permutation, Some(arm));
                RoundEnd::Whole
            }
            faulty => {
                self.faults += 1;
                if self.faults < MAX_FAULTS {
                    return RoundEnd::Late;
                }
                let fault = faulty.err().map(|fault| fault.to_string());
                let too_many = || "the span is too short, and begins too often".to_owned();
                self.refuse(Code::NotPaused, fault.unwrap_or_else(too_many));
                RoundEnd::Stopped
            }
        }
    }

    /// Says that ppt lives: for so long, and until the metric has ended often enough. `samples`: it also looks at
    /// what the program's threads wait for.
    fn wait(&mut self, time: Duration, samples: bool) -> RoundEnd {
        let refusal = self.refusal.clone();
        let Experiment { buffers, ends, pausing, .. } = &mut self.experiment;
        ends.iter_mut().for_each(MetricEnds::restart);
        let end = now_ns() + time.as_nanos() as u64;
        let mut last = now_ns();
        let mut is_late = false;
        loop {
            let now = now_ns();
            buffers.iter().for_each(|buffer| buffer.beat(now));
            is_late |= now_ns() - last > LATE_NS;
            last = now;
            if let Some(pausing) = pausing {
                if !pausing.beat() {
                    let why = "the process that guards the weights of threads has ended".to_owned();
                    let mut refusal = refusal.lock().unwrap_or_else(PoisonError::into_inner);
                    refusal.get_or_insert((Code::NotPaused, why));
                    self.stopped.store(true, Relaxed);
                }
                if samples {
                    pausing.sample();
                }
            }
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
