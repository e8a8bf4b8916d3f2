//! The state of all pauses, which payers share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::edges::{SpanEdge, SpanEdges};
use super::errors::RoundFault;
use super::ledger::{CpuSwitch, Ledger, Stretch};
use super::span_threads::SpanThreads;
use super::span_waits::SpanWaits;
use super::switches::CpuSwitches;

/// The interval between two looks at a CPU.
pub const LOOK_INTERVAL: Duration = Duration::from_micros(500);

/// The data that payers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub state: Mutex<PauseState>,
    /// Payers look from when this is set.
    pub has_begun: Mutex<bool>,
    pub begins: Condvar,
    pub stops: AtomicBool,
    /// The number of looks, and their CPU time in ns, which has the pauses in it.
    pub looks: AtomicU64,
    pub ran_ns: AtomicU64,
}

impl Shared {
    pub fn new(edges: Box<dyn SpanEdges>, switches: Vec<CpuSwitches>) -> Self {
        let state = PauseState {
            edges,
            found: Vec::new(),
            threads: SpanThreads::default(),
            waits: SpanWaits::default(),
            ledger: Ledger::new(switches.len()),
            fault: None,
            switches,
        };
        Self {
            state: Mutex::new(state),
            has_begun: Mutex::new(false),
            begins: Condvar::new(),
            stops: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            ran_ns: AtomicU64::new(0),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of all pauses.
#[derive(Debug)]
pub(super) struct PauseState {
    pub edges: Box<dyn SpanEdges>,
    pub found: Vec<SpanEdge>,
    pub switches: Vec<CpuSwitches>,
    pub threads: SpanThreads,
    pub waits: SpanWaits,
    pub ledger: Ledger,
    pub fault: Option<RoundFault>,
}

impl PauseState {
    /// Reads everything that happened until now.
    pub fn look(&mut self) {
        let now = now_ns();
        for (cpu, switches) in self.switches.iter_mut().enumerate() {
            let (ledger, waits) = (&mut self.ledger, &mut self.waits);
            let read = switches.read(|switch| {
                if switch.runs {
                    ledger.switched(cpu, CpuSwitch { at: switch.at, tid: switch.tid });
                }
                waits.switched(switch);
            });
            if read.is_err() {
                self.fault.get_or_insert(RoundFault::Switches);
            }
        }
        self.waits.settle(now);
        self.found.clear();
        if let Err(error) = self.edges.poll(&mut self.found) {
            self.fault.get_or_insert(error.into());
        }
        let mut spent = |tid, stretch: Stretch| {
            self.ledger.ran(tid, stretch);
            self.waits.spent(tid, stretch);
        };
        for edge in &self.found {
            if let Some((tid, stretch)) = self.threads.pass(edge) {
                spent(tid, stretch);
            }
        }
        for (tid, stretch) in self.threads.until(now) {
            spent(tid, stretch);
        }
        self.waits.keep(|tid| self.threads.is_in_span(tid));
    }

    /// Gives threads in the span `steps` of weight more, and all others none.
    pub fn weigh(&mut self) {
        if let Err(fault) = self.threads.weigh() {
            self.fault.get_or_insert(fault);
        }
    }

    /// Whether the payer of `cpu`, which has it, may keep it: it owes, and does not keep the span from it.
    pub fn may_pay(&self, cpu: usize) -> bool {
        let before = self.ledger.preempted(cpu);
        self.owes(cpu) && before.is_some_and(|tid| tid != 0 && !self.threads.is_in_span(tid))
    }

    /// Whether `cpu` owes a pause now. After the span, the threads that were ahead are gone, and others would
    /// pay: the debt stays for the next time.
    pub fn owes(&self, cpu: usize) -> bool {
        self.ledger.debt(cpu) > 0.0 && self.threads.is_any_in_span()
    }
}

/// CLOCK_MONOTONIC in ns.
pub(super) fn now_ns() -> i64 {
    crate::perf::now().map_or(0, |now| now as i64)
}
