//! Pauses the CPUs of this host, so that a span looks faster than it is.
//!
//! While a thread in the span runs on one CPU, a real-time thread of ppt occupies every other CPU for the share
//! 1 − 1/k of that time. So everything else is slower by k. Time without these pauses is virtual: V(t) = t − G(t),
//! where G grows by 1 − 1/k while the span runs on any CPU (SCOZ, 2021).
//!
//! - `ledger` is the arithmetic: the debt of each CPU, and G.
//! - `switches` reads which thread runs on each CPU, from the kernel's context switches.
//! - `span_threads` has the threads in the span.
//! - `payer` is the real-time thread of a CPU.
//! - `scheduling` sets policies and weights of threads.

mod ledger;
mod payer;
mod scheduling;
mod span_threads;
mod switches;

use std::fmt::Debug;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;

pub use ledger::ClockPoint;
use ledger::Ledger;
use payer::Payer;
pub use scheduling::restore_weights;
use span_threads::SpanThreads;
use switches::CpuSwitches;

use crate::watch::cpus;

/// The interval between two looks at a CPU.
pub const LOOK_INTERVAL: Duration = Duration::from_micros(500);
/// The largest factor: beyond it, predictions were more than 10 % off.
pub const MAX_FACTOR: f64 = 2.0;
/// The longest wait for payers at the end of a round.
const UNWEIGH_PATIENCE: Duration = Duration::from_secs(1);
/// The largest number of CPUs: each look reads the switches of all.
const MAX_CPUS: usize = 16;

/// A thread enters or leaves the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEdge {
    /// The thread, by its number in ppt's pid namespace.
    pub tid: i32,
    /// The time, in ns of CLOCK_MONOTONIC.
    pub at_ns: i64,
    /// Whether it enters.
    pub is_begin: bool,
}

/// Edges were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("frames of the span were lost")]
pub struct EdgesLost;

/// A source of edges of the span.
pub trait SpanEdges: Debug + Send {
    /// Appends the edges since the last poll, those of each thread in the order of time.
    ///
    /// # Errors
    /// Some are missing.
    fn poll(&mut self, edges: &mut Vec<SpanEdge>) -> Result<(), EdgesLost>;
}

/// Why CPUs cannot be paused.
#[derive(Debug, Error)]
pub enum HostPauseError {
    /// The kernel refuses a right.
    #[error("CPUs cannot be paused without CAP_SYS_NICE and CAP_PERFMON: {0}")]
    Denied(io::Error),
    /// There are too many CPUs.
    #[error("CPUs can be paused on hosts with up to {MAX_CPUS} CPUs; this one has {0}")]
    TooManyCpus(usize),
    /// There is only one CPU.
    #[error("a host with one CPU has no other CPU to pause")]
    OneCpu,
    /// Threads of other programs have no number here.
    #[error(
        "CPUs cannot be paused from within a container: ppt does not see the threads of other programs"
    )]
    PidNamespace,
}

/// Why a round does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoundFault {
    /// Frames of the span are missing.
    #[error(transparent)]
    Edges(#[from] EdgesLost),
    /// The kernel lost context switches.
    #[error("the kernel lost context switches")]
    Switches,
    /// A thread ends the span in another thread.
    #[error("the span ends in other threads than it begins")]
    OtherThread,
    /// A thread has a priority of its own.
    #[error("thread {0} has a priority of its own")]
    Priority(i32),
    /// A weight could not be set.
    #[error("the weight of thread {0} cannot be set")]
    Weight(i32),
}

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
}

/// The real-time threads of all CPUs, until this is dropped.
#[derive(Debug)]
pub struct HostPause {
    shared: Arc<Shared>,
    payers: Vec<JoinHandle<()>>,
}

/// The data that payers share.
#[derive(Debug)]
struct Shared {
    state: Mutex<PauseState>,
    /// Payers look from when this is set.
    has_begun: Mutex<bool>,
    begins: Condvar,
    stops: AtomicBool,
    /// The number of looks, and their CPU time in ns, which has the pauses in it.
    looks: AtomicU64,
    ran_ns: AtomicU64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of all pauses.
#[derive(Debug)]
struct PauseState {
    edges: Box<dyn SpanEdges>,
    found: Vec<SpanEdge>,
    switches: Vec<CpuSwitches>,
    threads: SpanThreads,
    ledger: Ledger,
    fault: Option<RoundFault>,
}

impl PauseState {
    /// Reads everything that happened until now.
    fn look(&mut self) {
        let now = now_ns();
        for (cpu, switches) in self.switches.iter_mut().enumerate() {
            if switches.read(|switch| self.ledger.switched(cpu, switch)).is_err() {
                self.fault.get_or_insert(RoundFault::Switches);
            }
        }
        self.found.clear();
        if let Err(error) = self.edges.poll(&mut self.found) {
            self.fault.get_or_insert(error.into());
        }
        for edge in &self.found {
            if let Some((tid, stretch)) = self.threads.pass(edge) {
                self.ledger.ran(tid, stretch);
            }
        }
        for (tid, stretch) in self.threads.until(now) {
            self.ledger.ran(tid, stretch);
        }
    }

    /// Gives threads in the span `steps` of weight more, and all others none.
    fn weigh(&mut self) {
        if let Err(fault) = self.threads.weigh() {
            self.fault.get_or_insert(fault);
        }
    }

    /// Whether the payer of `cpu`, which has it, may keep it: it owes, and does not keep the span from it.
    fn may_pay(&self, cpu: usize) -> bool {
        let before = self.ledger.preempted(cpu);
        self.owes(cpu) && before.is_some_and(|tid| tid != 0 && !self.threads.is_in_span(tid))
    }

    /// Whether `cpu` owes a pause now. After the span, the threads that were ahead are gone, and others would
    /// pay: the debt stays for the next time.
    fn owes(&self, cpu: usize) -> bool {
        self.ledger.debt(cpu) > 0.0 && self.threads.is_any_in_span()
    }
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
        let switches: io::Result<Vec<_>> = cpus.iter().map(|&cpu| CpuSwitches::open(cpu)).collect();
        scheduling::limit_realtime().map_err(HostPauseError::Denied)?;
        let state = PauseState {
            edges,
            found: Vec::new(),
            switches: switches.map_err(HostPauseError::Denied)?,
            threads: SpanThreads::default(),
            ledger: Ledger::new(cpus.len()),
            fault: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            has_begun: Mutex::new(false),
            begins: Condvar::new(),
            stops: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            ran_ns: AtomicU64::new(0),
        });
        let mut pause = Self { shared, payers: Vec::new() };
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
        state.ledger.begin(1.0 - 1.0 / factor, now_ns());
        self.shared.looks.store(0, Relaxed);
        self.shared.ran_ns.store(0, Relaxed);
    }

    /// Ends the round. All weights are as they were.
    ///
    /// # Errors
    /// The round does not count.
    pub fn end(&self) -> Result<PausedRound, RoundFault> {
        let now = {
            let mut state = self.shared.state();
            state.look();
            now_ns()
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
        let ledger::RoundAccount { clock, owed_ns, paid_ns } = round;
        Ok(PausedRound { clock, owed_ns, paid_ns, look_ns })
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

/// CLOCK_MONOTONIC in ns.
fn now_ns() -> i64 {
    crate::perf::now().map_or(0, |now| now as i64)
}
