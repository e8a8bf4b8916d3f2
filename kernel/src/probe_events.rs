//! Opens the events of probes, in rings of their own, so that each lost record is a hit of a probe.
//!
//! An event belongs to a place and a CPU, and covers all processes: that is the only way to see threads that
//! are made later. Threads cannot inherit such an event: the kernel would look up the path once more, in the
//! memory of the program, and fail (tried: pthread_create(3) returned EFAULT). Hits of other processes are
//! ignored.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

use crate::error::{KernelError, KernelFeature};
use crate::memory::{map_ring, no_memory};
use crate::perf::{CountedEvent, EventTarget, PerfEvent, PerfRing, Uprobe};
use crate::probes::{Probe, registers, registers_of};
use crate::sources::{EventSource, Sources};

/// The file with the number of the event type for places in files.
const PMU: &str = "/sys/bus/event_source/devices/uprobe/type";
/// The registers that the event of a return records: the result, the stack pointer and the address to which the
/// function returns.
pub(crate) const AT_RETURN: u64 = 1 << registers::AX | 1 << registers::SP | 1 << registers::IP;

/// The events of the probes of a process.
#[derive(Debug)]
pub(crate) struct ProbeEvents {
    pub probes: Vec<Probe>,
    pub rings: Vec<PerfRing>,
    /// The events of each probe; none for a stopped probe.
    pub events: Vec<Vec<ProbeEvent>>,
    /// One event for each CPU, whose ring all other events of the CPU use.
    _firsts: Vec<PerfEvent>,
    /// Records that closed events lost.
    lost_before: u64,
}

/// An event of a place on a CPU.
#[derive(Debug)]
pub(crate) struct ProbeEvent {
    event: PerfEvent,
    is_return: bool,
}

/// An event that counts nothing, of all processes: its ring stays open when probes are closed.
const FIRST: EventTarget = EventTarget {
    counted: CountedEvent::Nothing,
    samples: false,
    raw: false,
    stack: false,
    stack_copy: false,
    switches: false,
    tasks: false,
    kernel: false,
    inherit: false,
};

impl ProbeEvents {
    /// Opens the events, and rings of `bytes` at most. They do nothing yet.
    pub fn new(
        probes: Vec<Probe>,
        cpus: &[u32],
        bytes: usize,
        sources: &mut Sources,
    ) -> Result<Self, KernelError> {
        let places = probes.iter().map(|probe| probe.sites.len()).sum();
        let failed = |error| KernelError::new(KernelFeature::Probes, error, places, cpus.len());
        let mut open = || {
            let pmu = pmu()?;
            let (mut rings, mut firsts) = (Vec::new(), Vec::new());
            for &cpu in cpus {
                let event = PerfEvent::open(&FIRST, None, cpu)?;
                rings.push(map_ring(&event, bytes).map_err(no_memory)?);
                firsts.push(event);
            }
            let mut events = Vec::new();
            for (number, probe) in probes.iter().enumerate() {
                events.push(of_probe(probe, number as u16, pmu, cpus, &firsts, sources)?);
            }
            Ok((rings, firsts, events))
        };
        let (rings, firsts, events) = open().map_err(failed)?;
        Ok(Self { probes, rings, events, _firsts: firsts, lost_before: 0 })
    }

    /// Enables the events. Those of returns come first, so that every recorded entry has a recorded return.
    pub fn enable(&self) {
        let all = || self.events.iter().flatten();
        let returns = all().filter(|event| event.is_return);
        let others = all().filter(|event| !event.is_return);
        returns.chain(others).for_each(|event| _ = event.event.enable());
    }

    /// The number of hits of a probe, without returns of functions.
    pub fn hits(&self, probe: usize) -> u64 {
        let events = self.events[probe].iter().filter(|event| !event.is_return);
        events.map(|event| event.event.count()).sum()
    }

    /// Closes the events of a probe: the kernel takes its traps out of programs.
    pub fn close(&mut self, probe: usize) {
        let events = std::mem::take(&mut self.events[probe]);
        // A record that found no room after its event was asked would be missing in the account.
        events.iter().for_each(|event| _ = event.event.disable());
        self.lost_before += events.iter().map(|event| event.event.lost()).sum::<u64>();
        // The kernel waits for other CPUs before it closes one. Meanwhile rings must be emptied.
        thread::spawn(move || drop(events));
    }

    /// Records that found no room, where the kernel counts them.
    pub fn lost(&self) -> u64 {
        let events = self.events.iter().flatten().map(|event| event.event.lost());
        self.lost_before + events.sum::<u64>()
    }
}

/// The events of all places of a probe.
fn of_probe(
    probe: &Probe,
    number: u16,
    pmu: u32,
    cpus: &[u32],
    firsts: &[PerfEvent],
    sources: &mut Sources,
) -> io::Result<Vec<ProbeEvent>> {
    let mut events = Vec::new();
    for (place, site) in (0u16..).zip(&probe.sites) {
        // The path of the file may name another one by now.
        let path = CString::new(format!("/proc/self/fd/{}", site.file.as_raw_fd()))?;
        let entry = Uprobe {
            pmu,
            path: &path,
            offset: site.offset,
            semaphore: site.semaphore,
            is_return: false,
            registers: registers_of(&site.values),
        };
        let exit =
            probe.returns.then_some(Uprobe { is_return: true, registers: AT_RETURN, ..entry });
        for uprobe in [entry].into_iter().chain(exit) {
            for (&cpu, first) in cpus.iter().zip(firsts) {
                let event = PerfEvent::open_uprobe(&uprobe, cpu)?;
                event.redirect(first)?;
                let is_return = uprobe.is_return;
                let source = if is_return {
                    EventSource::Return { probe: number }
                } else {
                    EventSource::Hit { probe: number, site: place }
                };
                sources.insert(event.id()?, (source, 0));
                events.push(ProbeEvent { event, is_return });
            }
        }
    }
    Ok(events)
}

/// The reason why ppt cannot probe here, if there is one. It tries, and opens nothing.
pub fn probes_missing() -> Option<KernelError> {
    let nowhere = |pmu| {
        let (offset, semaphore, is_return) = (0, 0, false);
        let uprobe = Uprobe { pmu, path: c"/", offset, semaphore, is_return, registers: 1 };
        match PerfEvent::open_uprobe(&uprobe, 0) {
            // A folder has no code: the kernel looks at rights first.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    };
    let tried = pmu().and_then(nowhere);
    tried.err().map(|error| KernelError::new(KernelFeature::Probes, error, 1, 1))
}

fn pmu() -> io::Result<u32> {
    if !cfg!(target_arch = "x86_64") {
        let what = "ppt reads arguments from registers of x86-64 only";
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    let text = fs::read_to_string(PMU)?;
    text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_reason() {
        let root = nix::unistd::geteuid().is_root();
        match probes_missing() {
            None => assert!(root || cfg!(target_arch = "x86_64")),
            Some(error) => assert!(["perf-denied", "perf-unsupported"].contains(&error.code())),
        }
    }
}
