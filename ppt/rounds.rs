//! The rounds of `ppt whatif --live`: in random order, an interval is slowed down, CPUs are paused, or nothing is done.
//!
//! A thread of its own runs them, because targets stop waiting if ppt shows no sign of life for 100 ms.

mod conductor;
mod cpu_use;
mod ends;
mod names;
mod pausing;
mod sleepers;

use std::time::Duration;

use ppt_agent::{IntervalStamps, Session, SlowableBuffer};
use ppt_text::escaped;

use crate::args::{AskedSpeeds, LiveWhatIf};
use crate::code::Code;
use crate::failure::Failure;
pub(crate) use conductor::RunningExperiment;
use ends::MetricEnds;
use names::is_named;
use pausing::Pausing;

/// The longest time before the first round, to measure the programs as they are.
const UNTOUCHED: Duration = Duration::from_secs(10);
/// The part of the whole time that this takes at most.
const UNTOUCHED_PART: u32 = 6;
/// The largest speed that is extrapolated: `EXTRAPOLATED` of analysis/causality/src/experiment.rs.
const MAX_EXTRAPOLATED: f64 = 1.25;
/// The slower speeds from which it is extrapolated, as there.
const EXTRAPOLATED_FROM: [f64; 2] = [1.0 / 1.25, 1.0 / 1.5];

/// An interval or a span, and its speed in a round.
#[derive(Debug, Clone)]
struct Arm {
    /// The name; empty in a baseline.
    slowed: String,
    speed: f64,
    sleeps: bool,
    /// The places at which the interval is slowed down, by number of the buffer. If it is faster, CPUs
    /// are paused instead.
    places: Vec<(usize, IntervalStamps)>,
}

impl Arm {
    fn baseline() -> Self {
        Self { slowed: String::new(), speed: 1.0, sleeps: false, places: Vec::new() }
    }

    fn is_paused(&self) -> bool {
        self.speed > 1.0
    }

    /// Whether a thread computes longer.
    fn computes(&self) -> bool {
        self.speed < 1.0 && !self.sleeps
    }
}

/// An experiment that has not begun.
#[derive(Debug)]
pub(crate) struct Experiment {
    buffers: Vec<SlowableBuffer>,
    /// Two of them slow nothing down.
    arms: Vec<Arm>,
    metric: String,
    /// The ends of the metric, if it is known which frames show them.
    ends: Option<MetricEnds>,
    /// The processes.
    pids: Vec<i32>,
    /// The pauses of CPUs, with `--pause-host`.
    pausing: Option<Pausing>,
    round: Duration,
    untouched: Duration,
}

impl Experiment {
    /// Finds the intervals in attached processes.
    ///
    /// # Errors
    /// An interval is not there, or cannot be slowed down; or a speed is too fast.
    pub(crate) fn new(asked: &LiveWhatIf, sessions: &[Session]) -> Result<Self, Failure> {
        let mut new = Self {
            buffers: Vec::new(),
            arms: Vec::new(),
            metric: asked.metric.clone().unwrap_or_default(),
            ends: asked.metric.as_deref().and_then(|metric| MetricEnds::find(metric, sessions)),
            pids: sessions.iter().map(|session| session.target().pid()).collect(),
            pausing: None,
            round: asked.round,
            untouched: UNTOUCHED.min(asked.time / UNTOUCHED_PART),
        };
        let (faster, slower) = asked.speed.iter().partition::<Vec<_>, _>(|speeds| {
            asked.pause_host && speeds.times.iter().all(|&factor| factor > 1.0)
        });
        for speeds in slower {
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
        new.pause_for(asked, &faster, sessions)?;
        new.arms.extend([Arm::baseline(), Arm::baseline()]);
        Ok(new)
    }

    /// Adds the speeds of a span for which CPUs pause.
    fn pause_for(
        &mut self,
        asked: &LiveWhatIf,
        faster: &[&AskedSpeeds],
        sessions: &[Session],
    ) -> Result<(), Failure> {
        let [speeds] = faster else {
            let what = "--pause-host takes one span and its speeds, faster than 1x: --speed work=1.25x,1.5x";
            let is_wrong = asked.pause_host || !faster.is_empty();
            return if is_wrong { Err(Failure::usage(Code::NotPaused, what)) } else { Ok(()) };
        };
        for &factor in &speeds.times {
            Pausing::check(&speeds.interval, factor)?;
        }
        let pausing = Pausing::new(&speeds.interval, sessions)?;
        let arm = |&speed| Arm { slowed: pausing.span.clone(), speed, ..Arm::baseline() };
        self.arms.extend(speeds.times.iter().map(arm));
        self.pausing = Some(pausing);
        Ok(())
    }

    /// Whether CPUs pause in some rounds.
    pub(crate) fn pauses(&self) -> bool {
        self.pausing.is_some()
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
                    let number = self.number(place);
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

    /// The number of a buffer.
    fn number(&mut self, place: SlowableBuffer) -> usize {
        let there = self.buffers.iter().position(|other| other.is(&place));
        there.unwrap_or_else(|| {
            self.buffers.push(place);
            self.buffers.len() - 1
        })
    }
}

/// The speeds at which an interval really runs, to answer about `speeds`.
fn really_run(speeds: &AskedSpeeds) -> Result<Vec<f64>, Failure> {
    let mut really: Vec<f64> = Vec::new();
    for &speed in &speeds.times {
        if speed > MAX_EXTRAPOLATED {
            let interval = escaped(&speeds.interval);
            let what = format!(
                "{interval}={speed}x cannot be had while a program runs: ppt slows it down, and extrapolates up to \
                 {MAX_EXTRAPOLATED}x; ask for {interval}={MAX_EXTRAPOLATED}x, pause CPUs for a span (--pause-host), or \
                 capture it (ppt attach --kernel sched) and ask without --live"
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
}
