//! Holding a target for the microseconds of a write, without stopping it.
//!
//! PTRACE_SEIZE without PTRACE_INTERRUPT is a permission check and a lock held by the kernel: one
//! tracer at a time, released when the tracing thread ends for any reason. The tracee keeps
//! running. A short-lived thread does it, so that nothing is left behind.

use std::thread::Builder;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use crate::error::{AgentError, Result};
use crate::escape::escaped;
use crate::target::Target;

/// The time for which ppt waits for another tracer of the same kind to finish.
const TRACER_TIMEOUT: Duration = Duration::from_millis(200);

/// The result of `work`, and how long the target was held.
pub(crate) struct HeldResult<T> {
    pub(crate) result: T,
    pub(crate) time: Duration,
}

/// Runs `work` while this process traces `target`. With `beside_tracer`, runs it without tracing if
/// another tracer is attached.
pub(crate) fn held<T: Send>(
    target: &Target,
    beside_tracer: bool,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<HeldResult<T>> {
    let joined: Result<(HeldResult<T>, i32)> = std::thread::scope(|scope| {
        let helper = Builder::new().spawn_scoped(scope, || {
            // No signal handler of ours may run in the thread that the target waits for. The
            // exception is the signal that a truncated segment raises: see the guard of
            // ppt-segment.
            let mut signals = SigSet::all();
            signals.remove(Signal::SIGBUS);
            let _ = signals.thread_block();
            let start =
                if beside_tracer && target.tracer() != 0 { Instant::now() } else { seize(target)? };
            let result = work()?;
            Ok((
                HeldResult { result, time: start.elapsed() },
                rustix::thread::gettid().as_raw_pid(),
            ))
        });
        let action = "start a thread that traces";
        let helper =
            helper.map_err(|cause| AgentError::System { action, pid: target.pid(), cause })?;
        helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let (held, tid) = joined?;
    // The kernel releases the tracee when the thread is completely gone, which is after its join.
    let start = Instant::now();
    while target.tracer() == tid && start.elapsed() < TRACER_TIMEOUT {
        std::thread::yield_now();
    }
    Ok(held)
}

/// Runs `work` without holding anything.
pub(crate) fn free<T>(work: impl FnOnce() -> Result<T>) -> Result<HeldResult<T>> {
    let start = Instant::now();
    Ok(HeldResult { result: work()?, time: start.elapsed() })
}

/// Seizes the leader, or else the lowest live thread: a fixed choice, so that two agents exclude
/// each other. Returns the start of the hold.
fn seize(target: &Target) -> Result<Instant> {
    let pid = target.pid();
    let start = Instant::now();
    loop {
        let mut refused = false;
        for tid in target.live_threads() {
            let began = Instant::now();
            match ptrace::seize(Pid::from_raw(tid), ptrace::Options::empty()) {
                Ok(()) => return Ok(began),
                // A dying thread returns EPERM, too. The next thread gives the answer.
                Err(Errno::ESRCH) => {}
                Err(Errno::EPERM) => {
                    refused = true;
                    break;
                }
                Err(errno) => {
                    return Err(AgentError::System { action: "trace", pid, cause: errno.into() });
                }
            }
        }
        if target.ended() || (!refused && target.live_threads().next().is_none()) {
            return Err(AgentError::Ended { pid });
        }
        let tracer = target.tracer();
        if start.elapsed() > TRACER_TIMEOUT || (tracer != 0 && !is_ppt(target, tracer)) {
            return Err(match tracer {
                0 => target.denied(0).into(),
                tracer => AgentError::Traced { pid, tracer: describe(target, tracer) },
            });
        }
        // Another agent holds the target for some microseconds, or a thread is exiting.
        std::thread::yield_now();
    }
}

/// Whether a tracer is an agent, which holds a target for microseconds, or has ended.
pub(crate) fn is_ppt(target: &Target, tracer: i32) -> bool {
    comm(target, tracer).is_none_or(|comm| comm.starts_with("ppt"))
}

fn comm(target: &Target, pid: i32) -> Option<String> {
    target.system().proc_text(&format!("{pid}/comm"))
}

/// "process 12 (gdb)".
pub(crate) fn describe(target: &Target, tracer: i32) -> String {
    let comm = comm(target, tracer).map_or(String::new(), |comm| format!(" ({})", escaped(&comm)));
    format!("process {tracer}{comm}")
}
