//! Opens the events that take stacks, in rings of their own, so that their losses are losses of stacks.

use std::collections::BTreeSet;
use std::io;

use nix::errno::Errno;

use crate::error::{KernelError, KernelFeature};
use crate::memory::{map_ring, no_memory};
use crate::perf::{CountedEvent, EventTarget, PerfEvent, PerfRing, is_gone};
use crate::sources::{EventSource, Sources};
use crate::threads;

/// The size in bytes of a ring without stacks of waits, and of one for copies of stacks.
const RING_BYTES: usize = 256 << 10;
const COPIES_RING_BYTES: usize = 2 << 20;

/// The stacks to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stacks {
    /// The number of stacks for each second that a thread runs.
    pub hertz: u32,
    /// Stacks are also taken when threads begin to wait.
    pub waits: bool,
    /// Callers are found by unwind tables, in copies of stacks, instead of by frame pointers.
    pub unwind: bool,
}

impl Stacks {
    /// The largest number of stacks for each second.
    pub const MAX_HERTZ: u32 = 1000;
    /// The default: few programs have periodic work at this frequency, so samples are not synchronous to it.
    pub const HERTZ: u32 = 99;
}

/// Events that take stacks of the threads of a process.
#[derive(Debug)]
pub(crate) struct StackEvents {
    pub wanted: Stacks,
    /// Stacks are also taken while the kernel works for the program.
    pub kernel: bool,
    pub rings: Vec<PerfRing>,
    pub events: Vec<PerfEvent>,
    cpus: Vec<u32>,
    /// The thread whose events have the rings.
    first: i32,
    /// The events, one for each CPU.
    firsts: Vec<PerfEvent>,
}

impl StackEvents {
    /// Opens the events of one thread of process `pid`, and the rings, of `bytes` at most. Also returns the
    /// error of a missing part.
    pub fn new(
        wanted: Stacks,
        pid: i32,
        cpus: &[u32],
        bytes: usize,
    ) -> Result<(Self, Option<KernelError>), KernelError> {
        let bytes = match wanted {
            Stacks { waits: true, .. } => bytes,
            Stacks { unwind: true, .. } => bytes.min(COPIES_RING_BYTES),
            _ => bytes.min(RING_BYTES),
        };
        for thread in threads::list(pid) {
            let of_thread = |kernel| Self::of_thread(wanted, thread, cpus, kernel, bytes);
            let failed = |part, error| KernelError::new(part, error, 1, cpus.len());
            match of_thread(true) {
                Ok(new) => return Ok((new, None)),
                Err(error) if is_gone(&error) => {}
                Err(error) => match failed(KernelFeature::KernelStacks, error) {
                    missing @ KernelError::Denied { .. } => match of_thread(false) {
                        Ok(new) => return Ok((new, Some(missing))),
                        Err(error) if is_gone(&error) => {}
                        Err(error) => return Err(failed(KernelFeature::Stacks, error)),
                    },
                    other => return Err(other),
                },
            }
        }
        Err(KernelError::new(KernelFeature::Stacks, Errno::ESRCH.into(), 0, cpus.len()))
    }

    fn of_thread(
        wanted: Stacks,
        thread: i32,
        cpus: &[u32],
        kernel: bool,
        bytes: usize,
    ) -> io::Result<Self> {
        let (mut rings, mut firsts) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let event = PerfEvent::open(&running(wanted, kernel), Some(thread), cpu)?;
            rings.push(map_ring(&event, bytes).map_err(no_memory)?);
            firsts.push(event);
        }
        let (first, cpus, events) = (thread, cpus.to_vec(), Vec::new());
        Ok(Self { wanted, kernel, rings, events, cpus, first, firsts })
    }

    /// Opens the events of all `threads`, which threads that are made later inherit, and adds them to
    /// `sources`. Returns the error of a missing part.
    pub fn open(
        &mut self,
        threads: &BTreeSet<i32>,
        sources: &mut Sources,
    ) -> Result<Option<KernelError>, KernelError> {
        let failed = |part, error| KernelError::new(part, error, threads.len(), self.cpus.len());
        let mut events = Vec::new();
        let kind = running(self.wanted, self.kernel);
        for &thread in threads.iter().filter(|&&thread| thread != self.first) {
            for (&cpu, first) in self.cpus.iter().zip(&self.firsts) {
                let opened = redirected(&kind, thread, cpu, first, EventSource::Running, sources);
                events.extend(opened.map_err(|error| failed(KernelFeature::Stacks, error))?);
            }
        }
        let mut missing = None;
        if self.wanted.waits {
            let mut of_waits = Vec::new();
            let leaving = EventTarget { stack_copy: self.wanted.unwind, ..LEAVING };
            'all: for &thread in threads {
                for (&cpu, first) in self.cpus.iter().zip(&self.firsts) {
                    match redirected(&leaving, thread, cpu, first, EventSource::Leaving, sources) {
                        Ok(opened) => of_waits.extend(opened),
                        Err(error) => {
                            missing = Some(failed(KernelFeature::Waits, error));
                            break 'all;
                        }
                    }
                }
            }
            match missing {
                None => events.append(&mut of_waits),
                Some(_) => self.wanted.waits = false,
            }
        }
        for first in &self.firsts {
            let id = first.id().map_err(|error| failed(KernelFeature::Stacks, error))?;
            sources.insert(id, (EventSource::Running, self.first));
        }
        self.events = events;
        self.events.append(&mut self.firsts);
        Ok(missing)
    }

    /// Enables the events. Threads that have ended since are ignored.
    pub fn enable(&self) {
        self.events.iter().for_each(|event| _ = event.enable());
    }

    /// The number of lost records, if the kernel counts them.
    pub fn lost(&self) -> u64 {
        self.events.iter().map(PerfEvent::lost).sum()
    }
}

/// Opens an event of a thread that writes to the ring of `first`. None if the thread has ended.
fn redirected(
    kind: &EventTarget,
    thread: i32,
    cpu: u32,
    first: &PerfEvent,
    source: EventSource,
    sources: &mut Sources,
) -> io::Result<Option<PerfEvent>> {
    let event = match PerfEvent::open(kind, Some(thread), cpu) {
        Err(error) if is_gone(&error) => return Ok(None),
        opened => opened?,
    };
    event.redirect(first)?;
    sources.insert(event.id()?, (source, thread));
    Ok(Some(event))
}

/// The event that takes stacks of running threads.
fn running(wanted: Stacks, kernel: bool) -> EventTarget {
    EventTarget {
        counted: CountedEvent::Running(1_000_000_000 / u64::from(wanted.hertz.max(1))),
        samples: true,
        raw: false,
        stack: true,
        stack_copy: wanted.unwind,
        switches: false,
        tasks: false,
        kernel,
        inherit: true,
    }
}

/// The event that takes stacks of threads that give up their CPU. The next record of the thread shows whether
/// it was preempted.
const LEAVING: EventTarget = EventTarget {
    counted: CountedEvent::Leaving,
    samples: true,
    raw: false,
    stack: true,
    stack_copy: false,
    switches: true,
    tasks: false,
    kernel: true,
    inherit: true,
};
