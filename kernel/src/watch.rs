//! Opens the events of a process.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;
use ppt_segment::{Geometry, Segment, SegmentIdentity};

use crate::error::{KernelError, KernelFeature};
use crate::filter::{Filter, TidWraparound};
use crate::memory::{self, Memory, map_ring, no_memory};
use crate::perf::{self, CountedEvent, EventTarget, PerfEvent, PerfRing, is_gone};
use crate::probe_events::ProbeEvents;
use crate::probe_frames;
use crate::probe_reader::{ProbeCounts, ProbeReader};
use crate::probes::Probe;
use crate::reader::{Reader, ReaderThread};
use crate::schema::Builtin;
use crate::sources::{EventSource, Sources};
use crate::stack_events::{StackEvents, Stacks};
use crate::stack_reader::StackReader;
use crate::successors::SuccessorNames;
use crate::threads::{self, Threads};
use crate::tracepoints::{Calls, Switch, Waking};
use crate::unwind::StackUnwinder;

/// The largest number of searches for new threads; threads that are made later inherit events.
const MAX_SEARCHES: usize = 100;

/// The information to capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Context switches and wake-ups: when threads run, wait, and are ready.
    pub sched: bool,
    /// System calls.
    pub syscalls: bool,
    /// Page faults.
    pub faults: bool,
    /// Stacks.
    pub stacks: Option<Stacks>,
    /// The largest number of hits of a probe in a second. A probe with more hits is stopped.
    pub probe_limit: u64,
}

impl Wanted {
    /// Whether frames of the buffer `kernel` are wanted.
    fn events(&self) -> bool {
        self.sched || self.syscalls || self.faults
    }
}

/// The wanted information, and the tracepoints for it.
#[derive(Debug, Clone)]
pub struct KernelRequest {
    wanted: Wanted,
    memory: Memory,
    waking: Option<Waking>,
    switch: Option<Switch>,
    calls: Option<Calls>,
}

/// The open events of a process. Records wait in the rings of the kernel.
#[derive(Debug)]
pub struct ProcessEvents(Reader);

impl KernelRequest {
    /// Looks up the tracepoints for `wanted`, while ppt has its privileges, which tracefs requires. Also
    /// returns the errors of parts that are not available. The rings of all processes share `memory` bytes, and
    /// each process gets at least the smallest rings.
    pub fn new(wanted: Wanted, memory: u64) -> (Self, Vec<KernelError>) {
        let mut missing = Vec::new();
        let (mut waking, mut switch, mut calls) = (None, None, None);
        if wanted.sched {
            match Waking::find().and_then(|waking| Ok((waking, Switch::find()?))) {
                Ok(found) => (waking, switch) = (Some(found.0), Some(found.1)),
                Err(error) => missing.push(error),
            }
        }
        if wanted.syscalls {
            match Calls::find() {
                Ok(found) => calls = Some(found),
                Err(error) => missing.push(error),
            }
        }
        (Self { wanted, memory: Memory::new(memory), waking, switch, calls }, missing)
    }

    /// Opens the events of process `pid`, which belongs to `user`, and of `probes` in it. Also returns the
    /// errors of parts that could not be opened; without events if there are none.
    pub fn watch(
        &self,
        pid: i32,
        user: u32,
        probes: Vec<Probe>,
    ) -> (Option<ProcessEvents>, Vec<KernelError>) {
        let mut missing = Vec::new();
        let has_events = self.wanted.sched || self.wanted.faults || self.calls.is_some();
        if !has_events && self.wanted.stacks.is_none() && probes.is_empty() {
            return (None, missing);
        }
        let reader = match self.open(pid, user, probes, &mut missing) {
            Ok(reader) => Some(ProcessEvents(reader)),
            Err(error) => {
                missing.push(error);
                None
            }
        };
        (reader, missing)
    }

    fn open(
        &self,
        pid: i32,
        user: u32,
        probes: Vec<Probe>,
        missing: &mut Vec<KernelError>,
    ) -> Result<Reader, KernelError> {
        let cpus = cpus();
        let ring_bytes = match self.wanted.events() {
            true => self.memory.ring_bytes(cpus.len()),
            // The only records are those of starts and ends of threads.
            false => memory::min_ring_bytes() as usize,
        };
        // Stacks come first; the other events take the remaining memory.
        let stacks = self.open_stacks(pid, &cpus, !probes.is_empty(), missing)?;
        let mut sources = Sources::new();
        let probes = match probes.is_empty() {
            true => None,
            false => {
                let opened = self.open_probes(probes, &cpus, &mut sources);
                or_missing(opened, self.wanted.events() || stacks.is_some(), missing)?
            }
        };
        let mut opening = Opening::new(cpus, ring_bytes);
        opening.sources = sources;
        self.open_events(pid, &mut opening, missing)?;
        let stacks =
            stacks.map(|events| stack_reader(events, &mut opening, missing)).transpose()?;
        let threads = Threads::new(pid, opening.opened.iter().copied());
        let begun_ns = opening.enable()?;
        stacks.iter().for_each(|stack| stack.events.enable());
        probes.iter().for_each(|probe| probe.events.enable());
        let segment = segment(Builtin::get()).map_err(system(KernelFeature::Switches))?;
        let of_stacks = stacks.iter().flat_map(|stack| &stack.events.rings);
        let of_probes = probes.iter().flat_map(|probe| &probe.events.rings);
        let rings = opening.rings.iter().chain(of_stacks).chain(of_probes);
        let bytes = rings.map(|ring| ring.size() as u64).sum();
        Ok(Reader {
            has_events: self.wanted.events(),
            stacks,
            probes,
            rings: opening.rings,
            _memory: self.memory.take(bytes),
            events: opening.events,
            cpu_events: opening.cpu_events,
            unfiltered_cpu_events: opening.unfiltered_cpu_events,
            tid_wraparound: opening.tid_wraparound,
            sources: opening.sources,
            waking: self.waking,
            switch: self.switch,
            calls: self.calls,
            threads,
            successor_names: SuccessorNames::new(user),
            segment: Arc::new(segment),
            lost_before: 0,
            begun_ns,
        })
    }

    /// Opens the events that take stacks. Their error is fatal only if no other events are wanted.
    fn open_stacks(
        &self,
        pid: i32,
        cpus: &[u32],
        has_probes: bool,
        missing: &mut Vec<KernelError>,
    ) -> Result<Option<StackEvents>, KernelError> {
        let Some(wanted) = self.wanted.stacks else { return Ok(None) };
        let opened = StackEvents::new(wanted, pid, cpus, self.memory.ring_bytes(cpus.len()));
        let opened = or_missing(opened, self.wanted.events() || has_probes, missing)?;
        Ok(opened.map(|(events, refused)| {
            missing.extend(refused);
            events
        }))
    }

    /// Opens the events of every thread, and those of faults, system calls and wake-ups, if wanted.
    fn open_events(
        &self,
        pid: i32,
        opening: &mut Opening,
        missing: &mut Vec<KernelError>,
    ) -> Result<(), KernelError> {
        let of_threads = EventTarget {
            counted: CountedEvent::Nothing,
            samples: false,
            raw: false,
            stack: false,
            stack_copy: false,
            switches: self.wanted.sched,
            tasks: true,
            kernel: false,
            inherit: true,
        };
        opening.threads(pid, &of_threads)?;
        let sampled = EventTarget { samples: true, switches: false, tasks: false, ..of_threads };
        if self.wanted.faults {
            missing.extend(open_faults(opening, sampled).err());
        }
        if let Some(calls) = self.calls {
            missing.extend(open_calls(opening, sampled, calls).err());
        }
        if let (Some(waking), Some(switch)) = (self.waking, self.switch) {
            missing.extend(open_wakeups(opening, sampled, waking, switch).err());
        }
        Ok(())
    }

    /// Opens the events of probes.
    fn open_probes(
        &self,
        probes: Vec<Probe>,
        cpus: &[u32],
        sources: &mut Sources,
    ) -> Result<ProbeReader, KernelError> {
        let system = system(KernelFeature::Probes);
        let builtin =
            probe_frames::schema(&probes).map_err(|error| system(io::Error::other(error)))?;
        let bytes = self.memory.ring_bytes(cpus.len());
        let segment = segment_of(&builtin, probe_frames::RINGS).map_err(system)?;
        let names = probes.iter().map(|probe| probe.name.clone());
        let counts = ProbeCounts::new(names, self.wanted.probe_limit);
        let events = ProbeEvents::new(probes, cpus, bytes, sources)?;
        let (builtin, segment, counts) = (Arc::new(builtin), Arc::new(segment), Arc::new(counts));
        Ok(ProbeReader { events, builtin, segment, counts })
    }
}

fn system(part: KernelFeature) -> impl Fn(io::Error) -> KernelError {
    move |source| KernelError::System { part, source }
}

/// The opened events. An error is noted in `missing` if there are others, and returned if not.
fn or_missing<T>(
    opened: Result<T, KernelError>,
    has_others: bool,
    missing: &mut Vec<KernelError>,
) -> Result<Option<T>, KernelError> {
    match opened {
        Err(error) if has_others => {
            missing.push(error);
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Opens the other events that take stacks, and creates the segment of their frames.
fn stack_reader(
    mut events: StackEvents,
    opening: &mut Opening,
    missing: &mut Vec<KernelError>,
) -> Result<StackReader, KernelError> {
    missing.extend(events.open(&opening.opened, &mut opening.sources)?);
    let segment = segment(Builtin::stacks()).map_err(system(KernelFeature::Stacks))?;
    let unwinder = events.wanted.unwind.then(Arc::default);
    Ok(StackReader { events, segment: Arc::new(segment), counts: Arc::default(), unwinder })
}

/// Opens the events of page faults, including those in the kernel on behalf of the program, if ppt has the
/// right.
fn open_faults(opening: &mut Opening, sampled: EventTarget) -> Result<(), KernelError> {
    let all = |kernel| {
        let sources = [
            (EventSource::Minor, CountedEvent::MinorFaults),
            (EventSource::Major, CountedEvent::MajorFaults),
        ];
        sources.map(|(source, counted)| (source, EventTarget { counted, kernel, ..sampled }))
    };
    match opening.part(KernelFeature::Faults, &all(true)) {
        Err(KernelError::Denied { .. }) => opening.part(KernelFeature::Faults, &all(false)),
        done => done,
    }
}

/// Opens the events of system calls.
fn open_calls(
    opening: &mut Opening,
    sampled: EventTarget,
    calls: Calls,
) -> Result<(), KernelError> {
    let target = |id| EventTarget {
        counted: CountedEvent::Tracepoint(id),
        raw: true,
        kernel: true,
        ..sampled
    };
    let all = [(EventSource::Enter, target(calls.enter)), (EventSource::Exit, target(calls.exit))];
    opening.part(KernelFeature::Syscalls, &all)
}

/// Opens the events of wake-ups and of successors on CPUs.
fn open_wakeups(
    opening: &mut Opening,
    sampled: EventTarget,
    waking: Waking,
    switch: Switch,
) -> Result<(), KernelError> {
    let wakeups = EventTarget {
        counted: CountedEvent::Tracepoint(waking.id),
        raw: true,
        kernel: true,
        inherit: false,
        ..sampled
    };
    let successors =
        EventTarget { counted: CountedEvent::Tracepoint(switch.id), inherit: true, ..wakeups };
    opening.wakeups(&wakeups)?;
    opening.part(KernelFeature::Wakeups, &[(EventSource::Switch, successors)])
}

impl ProcessEvents {
    /// The buffers of its frames, and their segments.
    pub fn buffers(&self) -> Vec<(&Builtin, Arc<Segment>)> {
        let events = self.0.has_events.then(|| (Builtin::get(), self.0.segment.clone()));
        let stacks = self.0.stacks.as_ref().map(|stack| (Builtin::stacks(), stack.segment.clone()));
        let probes = self.0.probes.as_ref();
        let probes = probes.map(|probes| (&*probes.builtin, probes.segment.clone()));
        events.into_iter().chain(stacks).chain(probes).collect()
    }

    /// The unwinder of copies of stacks, which needs the mappings of the process.
    pub fn unwinder(&self) -> Option<&Arc<StackUnwinder>> {
        self.0.stacks.as_ref()?.unwinder.as_ref()
    }

    /// Starts the thread that reads the records, which needs no rights.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(self) -> io::Result<ReaderThread> {
        self.0.start()
    }
}

/// Events that are being opened.
struct Opening {
    cpus: Vec<u32>,
    ring_bytes: usize,
    /// Threads with events of their own.
    opened: BTreeSet<i32>,
    /// For each CPU, the event whose ring all others use.
    firsts: Vec<PerfEvent>,
    rings: Vec<PerfRing>,
    events: Vec<PerfEvent>,
    cpu_events: Vec<PerfEvent>,
    /// Events of CPUs without a filter, which are not enabled yet.
    unfiltered_cpu_events: Vec<PerfEvent>,
    /// The value is read before the threads are listed, so that threads that are made later have higher
    /// numbers.
    tid_wraparound: TidWraparound,
    is_close: bool,
    sources: Sources,
}

impl Opening {
    fn new(cpus: Vec<u32>, ring_bytes: usize) -> Self {
        let (firsts, rings, events, cpu_events) = Default::default();
        let (opened, sources, unfiltered_cpu_events) = Default::default();
        let mut tid_wraparound = TidWraparound::new();
        let is_close = tid_wraparound.is_close();
        Self {
            cpus,
            ring_bytes,
            opened,
            firsts,
            rings,
            events,
            cpu_events,
            unfiltered_cpu_events,
            tid_wraparound,
            is_close,
            sources,
        }
    }

    fn failed(&self, part: KernelFeature) -> impl Fn(io::Error) -> KernelError + use<> {
        let (threads, cpus) = (self.opened.len(), self.cpus.len());
        move |error| KernelError::new(part, error, threads, cpus)
    }

    /// Opens the first event of every thread, and the rings. Threads that are made meanwhile get events of
    /// their own, until a search finds no new ones. Later threads inherit.
    fn threads(&mut self, pid: i32, kind: &EventTarget) -> Result<(), KernelError> {
        for _ in 0..MAX_SEARCHES {
            let new: Vec<_> = threads::list(pid)
                .into_iter()
                .filter(|number| !self.opened.contains(number))
                .collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                self.opened.insert(tid);
                let failed = self.failed(KernelFeature::Switches);
                if !self.thread(tid, kind).map_err(failed)? {
                    self.opened.remove(&tid);
                }
            }
        }
        if self.rings.is_empty() {
            Err(self.failed(KernelFeature::Switches)(Errno::ESRCH.into()))
        } else {
            Ok(())
        }
    }

    /// Opens the first event of a thread. Returns false if the thread has ended.
    fn thread(&mut self, tid: i32, kind: &EventTarget) -> io::Result<bool> {
        for (at, &cpu) in self.cpus.iter().enumerate() {
            let event = match PerfEvent::open(kind, Some(tid), cpu) {
                Err(error) if is_gone(&error) => return Ok(false),
                opened => opened?,
            };
            self.sources.insert(event.id()?, (EventSource::Thread, tid));
            match self.firsts.get(at) {
                Some(first) => {
                    event.redirect(first)?;
                    self.events.push(event);
                }
                None => {
                    self.rings.push(map_ring(&event, self.ring_bytes).map_err(no_memory)?);
                    self.firsts.push(event);
                }
            }
        }
        Ok(true)
    }

    /// Opens further events of every thread: all of them, or none.
    fn part(
        &mut self,
        part: KernelFeature,
        kinds: &[(EventSource, EventTarget)],
    ) -> Result<(), KernelError> {
        let failed = self.failed(part);
        let mut opened = Vec::new();
        for (source, kind) in kinds {
            for &tid in &self.opened {
                for (at, &cpu) in self.cpus.iter().enumerate() {
                    match PerfEvent::open(kind, Some(tid), cpu) {
                        Ok(event) => opened.push((event, at, *source, tid)),
                        Err(error) if is_gone(&error) => {}
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
        }
        for (event, at, source, tid) in opened {
            event.redirect(&self.firsts[at]).map_err(&failed)?;
            self.sources.insert(event.id().map_err(&failed)?, (source, tid));
            self.events.push(event);
        }
        Ok(())
    }

    /// Opens events of every CPU for the wake-ups there: all of them, or none. A wake-up is an event of the
    /// waker, which may belong to another process.
    fn wakeups(&mut self, kind: &EventTarget) -> Result<(), KernelError> {
        let failed = self.failed(KernelFeature::Wakeups);
        let newest = self.tid_wraparound.newest();
        let filter = if self.is_close {
            None
        } else {
            Some(Filter::new(self.opened.iter().copied(), newest).text("pid"))
        };
        let (mut filtered, mut of_all) = (Vec::new(), Vec::new());
        for (first, &cpu) in self.firsts.iter().zip(&self.cpus) {
            let mut open = |source| {
                let event = PerfEvent::open(kind, None, cpu)?;
                event.redirect(first)?;
                self.sources.insert(event.id()?, (source, 0));
                Ok(event)
            };
            of_all.push(open(EventSource::WakingOfAll).map_err(&failed)?);
            if let Some(filter) = &filter {
                let event = open(EventSource::Waking).map_err(&failed)?;
                event.filter(filter).map_err(&failed)?;
                filtered.push(event);
            }
        }
        (self.cpu_events, self.unfiltered_cpu_events) = match filter {
            Some(_) => (filtered, of_all),
            None => (of_all, Vec::new()),
        };
        Ok(())
    }

    /// Enables all events. Returns the time since which everything is captured, in ns of CLOCK_MONOTONIC.
    fn enable(&mut self) -> Result<u64, KernelError> {
        self.events.append(&mut self.firsts);
        let all = self.cpu_events.iter().chain(&self.events);
        for event in all {
            match event.enable() {
                Err(error) if !is_gone(&error) => {
                    return Err(self.failed(KernelFeature::Switches)(error));
                }
                _ => {}
            }
        }
        perf::now().map_err(self.failed(KernelFeature::Switches))
    }
}

/// A segment for frames of a buffer that only ppt writes.
pub(crate) fn segment(builtin: &Builtin) -> io::Result<Segment> {
    segment_of(builtin, 1)
}

/// A segment with this many rings.
fn segment_of(builtin: &Builtin, rings: u32) -> io::Result<Segment> {
    let schema = &builtin.schema;
    let geometry =
        Geometry::new(schema.stride, schema.slots.ilog2(), rings).map_err(io::Error::other)?;
    let mut nonce = [0; 8];
    while nonce == [0; 8] {
        rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
    }
    let nonce = u64::from_ne_bytes(nonce);
    Segment::create_for_self(SegmentIdentity { nonce, schema_hash: builtin.hash, geometry })
}

/// The CPUs that are online.
pub(crate) fn cpus() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpus(text.trim());
    if !cpus.is_empty() {
        return cpus;
    }
    let count = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    (0..count as u32).collect()
}

fn parse_cpus(text: &str) -> Vec<u32> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let error = || io::Error::from(Errno::EPERM);
        let code = |error| KernelError::new(KernelFeature::Switches, error, 1, 1).code();
        assert_eq!((code(error()), code(no_memory(error()))), ("perf-denied", "perf-failed"));
        let gone = io::Error::from(Errno::EMFILE);
        assert_eq!(code(gone), "too-many-descriptors");
    }

    #[test]
    fn cpus_are_a_list_of_ranges() {
        assert_eq!(parse_cpus("0-3,5,8-9"), [0, 1, 2, 3, 5, 8, 9]);
        assert!(parse_cpus("").is_empty());
        assert!(!cpus().is_empty());
    }
}
