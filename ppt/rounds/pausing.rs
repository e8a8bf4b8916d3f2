//! Spans that look faster, because all CPUs pause while they run.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use ppt_agent::{Session, SpanWatch, WatchedEdge};
use ppt_kernel::{EdgesLost, HostPause, MAX_FACTOR, PausedRound, RoundFault, SpanEdge, SpanEdges};
use ppt_text::escaped;

use super::names::is_named;
use super::sleepers::Sleepers;
use crate::code::Code;
use crate::failure::Failure;

/// The span that looks faster, and everything that makes it so.
#[derive(Debug)]
pub(super) struct Pausing {
    /// Its name.
    pub(super) span: String,
    host: HostPause,
    guard: Guard,
    sleepers: Sleepers,
}

impl Pausing {
    /// Finds the span in attached processes, and starts the threads that pause CPUs.
    ///
    /// # Errors
    /// The span is not there, or CPUs cannot be paused.
    pub(super) fn new(name: &str, sessions: &[Session]) -> Result<Self, Failure> {
        let (span, watches) = find(name, sessions)?;
        let pids: Vec<i32> = sessions.iter().map(|session| session.target().pid()).collect();
        let owners = sessions.iter().map(Session::ring_owners);
        let sleepers = pids.iter().copied().zip(owners).collect();
        let system =
            |error| Failure::failed(Code::NotPaused, format!("CPUs cannot be paused: {error}"));
        let guard = Guard::start(&pids).map_err(system)?;
        let host = HostPause::start(Box::new(WatchedSpan(watches)));
        let host = host.map_err(|error| Failure::failed(Code::NotPaused, error.to_string()))?;
        Ok(Self { span, host, guard, sleepers: Sleepers::new(sleepers) })
    }

    /// Refuses factors that CPUs cannot be paused for.
    pub(super) fn check(span: &str, factor: f64) -> Result<(), Failure> {
        if factor <= MAX_FACTOR {
            return Ok(());
        }
        let what = format!(
            "{0}={factor}x: by pausing CPUs, {0} looks up to {MAX_FACTOR}x as fast; ask for {0}={MAX_FACTOR}x, or \
             capture the program (ppt attach --kernel sched) and ask without --live",
            escaped(span)
        );
        Err(Failure::usage(Code::TooFast, what))
    }

    /// CPUs are looked at from now on.
    pub(super) fn begin_looks(&self) {
        self.host.begin_looks();
    }

    pub(super) fn begin(&self, factor: f64) {
        self.host.begin(factor);
    }

    pub(super) fn end(&self) -> Result<PausedRound, RoundFault> {
        self.host.end()
    }

    /// Reports that ppt lives. Returns whether the guard does.
    pub(super) fn beat(&mut self) -> bool {
        self.guard.beat()
    }

    /// Samples what threads of the program wait for.
    pub(super) fn sample(&mut self) {
        self.sleepers.look();
    }

    /// The reason for which the answer would be wrong.
    pub(super) fn refusal(&self) -> Option<String> {
        self.sleepers.refusal()
    }
}

/// The watches of a span in all processes.
#[derive(Debug)]
struct WatchedSpan(Vec<SpanWatch>);

impl SpanEdges for WatchedSpan {
    fn poll(&mut self, edges: &mut Vec<SpanEdge>) -> Result<(), EdgesLost> {
        let mut result = Ok(());
        for watch in &mut self.0 {
            let polled = watch.poll(|WatchedEdge { tid, at_ns, is_begin }| {
                edges.push(SpanEdge { tid, at_ns, is_begin });
            });
            result = result.and(polled.map_err(|_| EdgesLost));
        }
        result
    }
}

/// The span's whole name, and its watches.
fn find(name: &str, sessions: &[Session]) -> Result<(String, Vec<SpanWatch>), Failure> {
    let refuse = |what: String| Failure::usage(Code::NotPaused, what);
    let (mut watches, mut spans, mut intervals) = (Vec::new(), Vec::new(), Vec::new());
    let mut found: Option<String> = None;
    for session in sessions {
        for (index, attached) in session.attached().iter().enumerate() {
            for (id, frame) in (0u16..).zip(&attached.buffer.schema.frames) {
                let halves = frame.fields.iter().filter_map(|field| field.interval.as_ref());
                intervals.extend(halves.map(|half| format!("{}.{}", frame.name, half.name)));
                if frame.span().is_none() {
                    continue;
                }
                spans.push(frame.name.clone());
                if !is_named(&frame.name, name) {
                    continue;
                }
                let process = session.target().pid();
                let watch = session.span_watch(index, id);
                watches.push(watch.map_err(|error| {
                    refuse(format!(
                        "{} of process {process} cannot be watched: {error}",
                        frame.name
                    ))
                })?);
                found = Some(frame.name.clone());
            }
        }
    }
    if let Some(found) = found {
        return Ok((found, watches));
    }
    let name = escaped(name);
    if intervals.iter().any(|interval| is_named(interval, &name.to_string())) {
        return Err(refuse(format!(
            "{name} is an interval, which is known at its end; to pause CPUs, ppt must know where it begins: make it a \
             span (`frame NAME @span`), or slow it down (--speed {name}=0.8x)"
        )));
    }
    spans.sort_unstable();
    spans.dedup();
    let spans: Vec<_> = spans.iter().map(|span| escaped(span).to_string()).collect();
    Err(refuse(format!(
        "there is no span `{name}` in these processes; there are: {}",
        spans.join(", ")
    )))
}

/// A process that makes weights ordinary again if ppt is killed or stopped: see [`crate::cmd::restore_weights`].
#[derive(Debug)]
struct Guard {
    child: Child,
    beats: Option<ChildStdin>,
}

impl Guard {
    fn start(pids: &[i32]) -> std::io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ppt").arg("restore-weights").args(pids.iter().map(i32::to_string));
        // ppt has made no thread heavier yet.
        let own = pids.iter().flat_map(|&pid| ppt_kernel::heavier_threads(pid));
        command.args(own.map(|tid| format!("--except={tid}")));
        // What ends ppt by the terminal, or by its process group, does not end the guard.
        command.env_clear().process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let beats = child.stdin.take();
        if let Some(beats) = &beats {
            // A guard that is stopped must not stop ppt.
            rustix::io::ioctl_fionbio(beats, true)?;
        }
        Ok(Self { child, beats })
    }

    fn beat(&mut self) -> bool {
        self.beats.as_mut().is_some_and(|beats| beats.write_all(b".").is_ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Its input ends: it restores what is left, and ends.
        self.beats = None;
        let _ = self.child.wait();
    }
}
