//! Rounds in which CPUs pause.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::edges::SpanEdges;
use super::errors::{HostPauseError, MAX_CPUS, RoundFault};
use super::ledger::{ClockPoint, RoundAccount};
use super::payer::Payer;
use super::scheduling;
use super::state::{LOOK_INTERVAL, Shared, now_ns};
use super::switches::CpuSwitches;
use crate::watch::cpus;

/// The largest factor. At 2.0, a program with a lock was predicted 16 % too slow (docs/measured/what-if.md).
pub const MAX_FACTOR: f64 = 1.5;
/// The longest wait for payers at the end of a round.
const UNWEIGH_PATIENCE: Duration = Duration::from_secs(1);

/// A round in which CPUs were paused.
#[derive(Debug, Clone, PartialEq)]
pub struct PausedRound {
    /// G, where its growth changes.
    pub clock: Vec<ClockPoint>,
    /// The pauses that all CPUs together owed, in ns.
    pub owed_ns: u64,
    /// The pauses that all CPUs together paid, in ns.
    pub paid_ns: u64,
    /// The mean CPU time of a look, in ns.
    pub look_ns: u64,
    /// The time that all threads together were in the span, in ns.
    pub in_span_ns: u64,
    /// How much of it they waited, in ns: for other threads, devices and timers, and then for a CPU.
    pub waited_ns: u64,
}

/// The real-time threads of all CPUs, until this is dropped.
#[derive(Debug)]
pub struct HostPause {
    shared: Arc<Shared>,
    payers: Vec<JoinHandle<()>>,
    /// Locked: nobody else pauses the CPUs of this host.
    _only: File,
}

impl HostPause {
    /// Starts the real-time threads, which wait for [`Self::begin_looks`]. They keep the rights of the calling
    /// thread.
    ///
    /// # Errors
    /// See [`HostPauseError`].
    pub fn start(edges: Box<dyn SpanEdges>) -> Result<Self, HostPauseError> {
        let cpus = cpus();
        match cpus.len() {
            0 | 1 => return Err(HostPauseError::OneCpu),
            count if count > MAX_CPUS => return Err(HostPauseError::TooManyCpus(count)),
            _ => {}
        }
        if scheduling::is_in_pid_namespace() {
            return Err(HostPauseError::PidNamespace);
        }
        let only = lock()?;
        let switches: io::Result<Vec<_>> = cpus.iter().map(|&cpu| CpuSwitches::open(cpu)).collect();
        scheduling::limit_realtime().map_err(HostPauseError::Denied)?;
        let switches = switches.map_err(HostPauseError::Denied)?;
        let shared = Arc::new(Shared::new(edges, switches));
        let mut pause = Self { shared, payers: Vec::new(), _only: only };
        for (number, &cpu) in cpus.iter().enumerate() {
            let payer = Payer::start(pause.shared.clone(), number, cpu);
            pause.payers.push(payer.map_err(HostPauseError::Denied)?);
        }
        Ok(pause)
    }

    /// Payers look at their CPUs from now on, in baselines, too.
    pub fn begin_looks(&self) {
        *self.shared.has_begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.begins.notify_all();
    }

    /// Begins a round in which the span looks `factor` times as fast.
    pub fn begin(&self, factor: f64) {
        let mut state = self.shared.state();
        state.look();
        state.fault = None;
        state.threads.begin(factor, now_ns());
        state.waits.begin();
        state.ledger.begin(1.0 - 1.0 / factor, now_ns());
        self.shared.looks.store(0, Relaxed);
        self.shared.ran_ns.store(0, Relaxed);
    }

    /// Ends the round. All weights are as they were.
    ///
    /// # Errors
    /// The round does not count.
    pub fn end(&self) -> Result<PausedRound, RoundFault> {
        let (now, (in_span_ns, waited_ns)) = {
            let mut state = self.shared.state();
            state.look();
            (now_ns(), state.waits.sums())
        };
        self.unweigh();
        let mut state = self.shared.state();
        let round = state.ledger.end(now);
        if state.threads.is_across_threads() {
            state.fault.get_or_insert(RoundFault::OtherThread);
        }
        if let Some(fault) = state.fault.take() {
            return Err(fault);
        }
        let (looks, ran) = (self.shared.looks.load(Relaxed), self.shared.ran_ns.load(Relaxed));
        let look_ns = ran.saturating_sub(round.paid_ns).checked_div(looks).unwrap_or(0);
        let RoundAccount { clock, owed_ns, paid_ns } = round;
        Ok(PausedRound { clock, owed_ns, paid_ns, look_ns, in_span_ns, waited_ns })
    }
}

/// Locks a file that all programs of the host share, and that nobody removes.
fn lock() -> Result<File, HostPauseError> {
    let file =
        File::open("/proc/sys/kernel/sched_rt_runtime_us").map_err(HostPauseError::Denied)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(HostPauseError::AnotherPauses),
        Err(error) => Err(HostPauseError::Denied(error.into())),
    }
}

impl HostPause {
    /// Waits until payers, which have the right, have made all threads ordinary again.
    fn unweigh(&self) {
        let deadline = now_ns() + UNWEIGH_PATIENCE.as_nanos() as i64;
        self.shared.state().threads.end();
        while self.shared.state().threads.is_any_heavier() && now_ns() < deadline {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for HostPause {
    fn drop(&mut self) {
        self.unweigh();
        self.shared.stops.store(true, Relaxed);
        self.begin_looks();
        for payer in self.payers.drain(..) {
            let _ = payer.join();
        }
    }
}
