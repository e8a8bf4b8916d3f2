//! The rounds of `ppt whatif --live`: in random order, an interval is slowed down, or nothing is.
//!
//! A thread of its own runs them, because targets stop waiting if ppt does not say for 100 ms that it lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ppt_agent::{IntervalStamps, Session, SlowableBuffer};
use ppt_kernel::{Round, RoundLog};
use ppt_text::escaped;

use crate::args::{AskedSpeeds, LiveWhatIf};
use crate::code::Code;
use crate::failure::Failure;

/// How often ppt says that it lives.
const BEAT: Duration = Duration::from_millis(10);
/// The longest time before the first round, to measure the programs as they are.
const UNTOUCHED: Duration = Duration::from_secs(10);
/// The part of the whole time that this takes at most.
const UNTOUCHED_PART: u32 = 6;
/// What is not slower is extrapolated up to here.
const MOST_EXTRAPOLATED: f64 = 1.25;
/// From these speeds.
const EXTRAPOLATED_FROM: [f64; 2] = [1.0 / 1.25, 1.0 / 1.5];

/// What is slowed down in a round.
#[derive(Debug, Clone)]
struct Arm {
    slowed: String,
    speed: f64,
    sleeps: bool,
    /// Where, by number of the buffer.
    places: Vec<(usize, IntervalStamps)>,
}

/// An experiment that has not begun.
#[derive(Debug)]
pub(crate) struct Experiment {
    buffers: Vec<(SlowableBuffer, Vec<u16>)>,
    /// Two of them slow nothing down.
    arms: Vec<Arm>,
    metric: String,
    round: Duration,
    untouched: Duration,
}

impl Experiment {
    /// Finds the intervals in attached processes.
    ///
    /// # Errors
    /// An interval is not there, or cannot be slowed down; or a speed cannot be had.
    pub(crate) fn new(asked: &LiveWhatIf, sessions: &[Session]) -> Result<Self, Failure> {
        let mut new = Self {
            buffers: Vec::new(),
            arms: Vec::new(),
            metric: asked.metric.clone().unwrap_or_default(),
            round: asked.round,
            untouched: UNTOUCHED.min(asked.time / UNTOUCHED_PART),
        };
        for speeds in &asked.speed {
            let (slowed, places) = new.find(&speeds.interval, sessions)?;
            let wanted = |name: &String| is_named(&slowed, name);
            let sleeps = asked.wall.iter().any(wanted);
            for speed in really_run(speeds)? {
                let (slowed, places) = (slowed.clone(), places.clone());
                new.arms.push(Arm { slowed, speed, sleeps, places });
            }
        }
        if let Some(name) =
            asked.wall.iter().find(|name| !new.arms.iter().any(|arm| is_named(&arm.slowed, name)))
        {
            let what = format!("--wall {}: --speed names no such interval", escaped(name));
            return Err(Failure::usage(Code::NotSlowed, what));
        }
        let as_it_is = Arm { slowed: String::new(), speed: 1.0, sleeps: false, places: Vec::new() };
        new.arms.extend([as_it_is.clone(), as_it_is]);
        Ok(new)
    }

    /// The interval's whole name, and where it is.
    fn find(
        &mut self,
        name: &str,
        sessions: &[Session],
    ) -> Result<(String, Vec<(usize, IntervalStamps)>), Failure> {
        let refuse = |what: String| Failure::usage(Code::NotSlowed, what);
        let mut found: Option<(String, Vec<(usize, IntervalStamps)>)> = None;
        let mut there = Vec::new();
        for session in sessions {
            for (index, attached) in session.attached().iter().enumerate() {
                let frames = &attached.buffer.schema.frames;
                let named = frames.iter().enumerate().flat_map(|(id, frame)| {
                    let halves = frame.fields.iter().filter_map(|field| field.interval.as_ref());
                    let mut names: Vec<_> = halves.map(|half| half.name.as_str()).collect();
                    names.dedup();
                    names.into_iter().map(move |interval| (id, frame, interval))
                });
                for (id, frame, interval) in named {
                    let whole = format!("{}.{interval}", frame.name);
                    there.push(whole.clone());
                    if !is_named(&whole, name) {
                        continue;
                    }
                    if let Some((other, _)) = found.as_ref().filter(|found| found.0 != whole) {
                        return Err(refuse(format!("`{name}` may be {other} or {whole}")));
                    }
                    let of = format!("{whole} of process {}", session.target().pid());
                    let place = session.slowable(index);
                    let place = place.map_err(|error| {
                        Failure::failed(
                            Code::NotSlowed,
                            format!("{of} cannot be slowed down: {error}"),
                        )
                    })?;
                    let stamps = IntervalStamps::find(id as u16, frame, interval);
                    let stamps = stamps.ok_or_else(|| {
                        refuse(format!(
                            "{of} cannot be slowed down: its times are not `option time tsc`, nor `ns` of a \
                             clock that goes on"
                        ))
                    })?;
                    let number = self.number(place, stamps.frame);
                    found.get_or_insert_with(|| (whole, Vec::new())).1.push((number, stamps));
                }
            }
        }
        there.sort_unstable();
        there.dedup();
        found.ok_or_else(|| {
            let there = there.iter().map(|name| escaped(name).to_string()).collect::<Vec<_>>();
            refuse(format!(
                "there is no interval `{}` in these processes; there are: {}",
                escaped(name),
                there.join(", ")
            ))
        })
    }

    /// The number of a buffer, in which this frame may be slowed down.
    fn number(&mut self, place: SlowableBuffer, frame: u16) -> usize {
        let there = self.buffers.iter().position(|(other, _)| other.is(&place));
        let number = there.unwrap_or_else(|| {
            self.buffers.push((place, Vec::new()));
            self.buffers.len() - 1
        });
        self.buffers[number].1.push(frame);
        number
    }

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

/// Whether a name means this interval: all of it, or its last part.
fn is_named(whole: &str, name: &str) -> bool {
    let ends = whole.strip_suffix(name);
    ends.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// The speeds at which an interval really runs, to answer about `speeds`.
fn really_run(speeds: &AskedSpeeds) -> Result<Vec<f64>, Failure> {
    let mut really: Vec<f64> = Vec::new();
    for &speed in &speeds.times {
        if speed > MOST_EXTRAPOLATED {
            let interval = escaped(&speeds.interval);
            let what = format!(
                "{interval}={speed}x cannot be had while a program runs: ppt slows it down, and extrapolates up to \
                 {MOST_EXTRAPOLATED}x; ask for {interval}={MOST_EXTRAPOLATED}x, or capture it (ppt attach --kernel \
                 sched) and ask without --live"
            );
            return Err(Failure::usage(Code::TooFast, what));
        }
        let run: &[f64] = if speed > 1.0 { &EXTRAPOLATED_FROM } else { &[speed] };
        let new = run.iter().filter(|one| !really.iter().any(|there| (there - **one).abs() < 1e-6));
        let new: Vec<f64> = new.copied().collect();
        really.extend(new);
    }
    Ok(really)
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

/// The rounds of an experiment, while they run.
struct Conductor {
    experiment: Experiment,
    log: RoundLog,
    stopped: Arc<AtomicBool>,
}

impl Conductor {
    fn run(mut self) {
        for (buffer, frames) in &self.experiment.buffers {
            buffer.begin(frames);
        }
        let start = now_ns();
        if self.wait(self.experiment.untouched) {
            self.write(start, 0, None);
            self.permutations();
        }
    }

    fn permutations(&mut self) {
        let mut round = 0;
        for permutation in 1.. {
            for arm in shuffled(self.experiment.arms.len()) {
                round += 1;
                let start = now_ns();
                self.slow(arm, round);
                let is_whole = self.wait(self.experiment.round);
                self.experiment.buffers.iter().for_each(|(buffer, _)| buffer.end());
                if !is_whole {
                    return;
                }
                self.write(start, permutation, Some(arm));
            }
        }
    }

    fn slow(&self, arm: usize, round: u64) {
        let Arm { speed, sleeps, places, .. } = &self.experiment.arms[arm];
        for &(buffer, stamps) in places {
            self.experiment.buffers[buffer].0.slow(round, stamps, 1.0 / speed, *sleeps);
        }
    }

    /// Says for so long that ppt lives. Returns whether nobody stops the experiment.
    fn wait(&self, time: Duration) -> bool {
        let end = now_ns() + time.as_nanos() as u64;
        loop {
            let now = now_ns();
            self.experiment.buffers.iter().for_each(|(buffer, _)| buffer.beat(now));
            if self.stopped.load(Relaxed) {
                return false;
            }
            if now >= end {
                return true;
            }
            thread::sleep(BEAT.min(Duration::from_nanos(end - now)));
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
    fn a_little_faster_is_extrapolated_and_more_is_refused() {
        let run = |times: &[f64]| {
            really_run(&AskedSpeeds { interval: "work".into(), times: times.into() })
        };
        assert_eq!(run(&[0.8, 0.5]).unwrap(), [0.8, 0.5]);
        assert_eq!(run(&[1.25, 0.8]).unwrap(), [0.8, 1.0 / 1.5]);
        assert!(run(&[0.8, 2.0]).is_err());
    }

    #[test]
    fn a_permutation_has_each_arm_once() {
        for _ in 0..20 {
            let mut order = shuffled(7);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn the_last_part_of_a_name_will_do() {
        assert!(is_named("serve.work", "work") && is_named("serve.work", "serve.work"));
        assert!(!is_named("serve.work", "ork") && !is_named("serve.work", "serve"));
    }
}
