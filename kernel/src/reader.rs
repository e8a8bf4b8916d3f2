//! The thread that turns records into frames.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ppt_segment::Segment;

use crate::event_writer::{EventWriter, MissingRecords};
use crate::filter::TidWraparound;
use crate::memory::Share;
use crate::perf::{PerfEvent, PerfRing, now};
use crate::probe_reader::{ProbeCounts, ProbeDecoder, ProbeReader};
use crate::records::{Content, Record, records};
use crate::report::{self, KernelRecord, Report};
use crate::schema::{KernelEvent, Waker};
use crate::sources::{EventSource, Sources};
use crate::stack_frames::StackCounts;
use crate::stack_reader::{StackDecoder, StackReader};
use crate::successors::SuccessorNames;
use crate::threads::Threads;
use crate::tracepoints::{Calls, Switch, Waking};
use crate::unwind::StackUnwinder;
use crate::wakes::Wakes;

/// Shortest and longest sleep between two looks at the rings.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);
/// The longest one where stacks of threads that run are all that comes.
const LONGEST_OF_STACKS: Duration = Duration::from_millis(64);
/// A record has its time before it is in its ring: it is there so much later at the latest, ns.
const COMMIT_NS: u64 = 1_000_000;
/// The most losses that are stated at a time. Each takes a slot.
const MOST_LOST: u64 = 1 << 20;

/// All that the thread has.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Somebody drains the frames of the buffer `kernel`.
    pub has_events: bool,
    pub stacks: Option<StackReader>,
    pub probes: Option<ProbeReader>,
    pub rings: Vec<PerfRing>,
    /// What they take. It is given back after they are unmapped.
    pub _memory: Share,
    pub events: Vec<PerfEvent>,
    /// Events of CPUs, for the threads that a filter lets pass, and others for when that is not enough: those
    /// are of all threads.
    pub of_cpus: Vec<PerfEvent>,
    pub spare: Vec<PerfEvent>,
    pub horizon: TidWraparound,
    pub sources: Sources,
    pub waking: Option<Waking>,
    pub switch: Option<Switch>,
    pub calls: Option<Calls>,
    pub threads: Threads,
    pub neighbours: SuccessorNames,
    pub segment: Arc<Segment>,
    /// Records lost by events that are closed by now.
    pub lost_before: u64,
    /// From when on everything is known, ns of CLOCK_MONOTONIC.
    pub begun_ns: u64,
}

/// A thread that turns records into frames. It ends when this is dropped.
#[derive(Debug)]
pub struct ReaderThread {
    counts: Counts,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What is known beside frames.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// How many stacks there were, if there were to be any.
    pub stacks: Option<Arc<StackCounts>>,
    /// What became of probes, if there were any.
    pub probes: Option<Arc<ProbeCounts>>,
    /// Finds callers in copies of stacks, if it knows the mappings of the process.
    pub unwinder: Option<Arc<StackUnwinder>>,
}

impl ReaderThread {
    /// What is known so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes what the kernel has left until now, and ends. Then the segments hold all frames. Returns
    /// what is known then.
    pub fn stop(mut self) -> Counts {
        self.end();
        std::mem::take(&mut self.counts)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if let Err(panicked) = thread.join() {
                std::panic::resume_unwind(panicked);
            }
        }
    }
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

impl Reader {
    pub fn start(self) -> io::Result<ReaderThread> {
        let (segment, stop) = (self.segment.clone(), Arc::new(AtomicBool::new(false)));
        // The ring has an owner from now on, because the listener looks at rings that have had one.
        // Its frames are of no single thread.
        segment.ring(0).claim(0);
        self.stacks.iter().for_each(|stack| _ = stack.segment.ring(0).claim(0));
        self.probes.iter().for_each(|probes| _ = probes.segment.ring(0).claim(0));
        let counts = Counts {
            stacks: self.stacks.as_ref().map(|stack| stack.counts.clone()),
            probes: self.probes.as_ref().map(|probes| probes.counts.clone()),
            unwinder: self.stacks.as_ref().and_then(|stack| stack.unwinder.clone()),
        };
        let stopped = stop.clone();
        let thread =
            thread::Builder::new().name("ppt-kernel".into()).spawn(move || self.run(&stopped))?;
        Ok(ReaderThread { counts, stop, thread: Some(thread) })
    }

    fn run(mut self, stop: &AtomicBool) {
        let segment = self.segment.clone();
        let mut frames = EventWriter::new(&segment);
        let of_stacks =
            self.stacks.as_ref().map(|stack| (stack.segment.clone(), stack.counts.clone()));
        let mut stacks = of_stacks
            .as_ref()
            .zip(self.stacks.as_ref())
            .map(|(of, reader)| StackDecoder::begin(&of.0, &of.1, &reader.events, self.begun_ns));
        let of_probes =
            self.probes.as_ref().map(|probes| (probes.segment.clone(), probes.counts.clone()));
        let mut probes = of_probes
            .as_ref()
            .zip(self.probes.as_ref())
            .map(|(of, reader)| ProbeDecoder::begin(&of.0, &of.1, reader, self.begun_ns));
        let only_stacks = |reader: &StackReader| {
            !self.has_events && self.probes.is_none() && !reader.events.wanted.waits
        };
        let longest = match &self.stacks {
            Some(reader) if only_stacks(reader) => LONGEST_OF_STACKS,
            _ => LONGEST,
        };
        let mut pending = Pending::new(self.rings.len(), self.begun_ns);
        let mut sleep = SHORTEST;
        self.write_threads(&mut frames);
        loop {
            let is_last = stop.load(Ordering::Acquire);
            // An earlier record may still arrive in a ring that was already read: the beginning of a
            // thread after its wake-up, for example. So younger records wait for the next pass.
            let known_ns = match now() {
                Ok(now) if !is_last => now.saturating_sub(COMMIT_NS),
                _ => u64::MAX,
            };
            let looked = now().unwrap_or_default();
            let mut fullest = self.read_rings(&mut pending);
            if let (Some(stacks), Some(reader)) = (&mut stacks, &mut self.stacks) {
                let process = (&self.sources, self.threads.pid());
                let Pending { bytes, reports, .. } = &mut pending;
                let full = stacks.take(reader, bytes, process, |time, reporter, record| {
                    reports.push(Report { time, reporter, record: KernelRecord::Stack(record) });
                });
                fullest = fullest.max(full);
            }
            if let (Some(probes), Some(reader)) = (&mut probes, &mut self.probes) {
                let process = (&self.sources, self.threads.pid());
                let Pending { bytes, reports, .. } = &mut pending;
                let full = probes.take(&mut reader.events, bytes, process, |time, record| {
                    let record = KernelRecord::Probe(record);
                    reports.push(Report { time, reporter: 0, record });
                });
                fullest = fullest.max(full);
                probes.stop_frequent(&mut reader.events, looked);
            }
            for Report { time, reporter, record } in pending.until(known_ns) {
                if let (Some(probes), KernelRecord::ThreadExit { tid }) = (&mut probes, &record) {
                    probes.forget(*tid);
                }
                match (&mut stacks, &mut probes, record) {
                    (Some(stacks), _, KernelRecord::Stack(record)) => {
                        stacks.write(time, reporter, record, &mut self.threads);
                    }
                    (_, Some(probes), KernelRecord::Probe(record)) => {
                        probes.write(time, record, &self.threads);
                    }
                    (_, _, record) => self.write(Report { time, reporter, record }, &mut frames),
                }
            }
            if is_last {
                if let (Some(stacks), Some(reader)) = (&mut stacks, &self.stacks) {
                    stacks.finish(&reader.events);
                }
                if let (Some(probes), Some(reader)) = (&mut probes, &self.probes) {
                    probes.finish(&reader.events);
                }
                return self.finish(&pending, looked, &mut frames);
            }
            frames.state_losses(MOST_LOST);
            self.widen();
            sleep = match fullest {
                value if value > 0.25 => (sleep / 2).max(SHORTEST),
                value if value < 0.06 => (sleep * 2).min(longest),
                _ => sleep,
            };
            thread::park_timeout(sleep);
        }
    }

    /// Writes which threads there were at the beginning.
    fn write_threads(&self, frames: &mut EventWriter<'_>) {
        let mut threads: Vec<_> =
            self.threads.all().filter_map(|tid| self.threads.number(tid)).collect();
        threads.sort_unstable();
        for thread in threads {
            frames.write(self.begun_ns, &KernelEvent::Watched { thread });
        }
    }

    /// Reads the rings of the process. Returns how full the fullest one was, from 0 to 1.
    fn read_rings(&mut self, pending: &mut Pending) -> f64 {
        let Pending { bytes, reports, wakes, latest } = pending;
        let mut fullest = 0.0f64;
        for ((ring, wakes), latest) in self.rings.iter_mut().zip(wakes).zip(latest) {
            bytes.clear();
            ring.take(bytes);
            let full = bytes.len() as f64 / ring.size() as f64;
            fullest = fullest.max(full);
            let read = |record: Record<'_>| {
                let before = latest.take(&record);
                report::read(
                    &record,
                    before,
                    &self.sources,
                    self.threads.pid(),
                    (&self.waking, wakes),
                    &self.switch,
                    &self.calls,
                )
            };
            reports.extend(records(bytes).filter_map(read));
            if full > 0.5 {
                latest.full = Some(latest.time);
            }
        }
        fullest
    }

    /// States the losses that no record has stated, and ends.
    fn finish(&self, pending: &Pending, looked: u64, frames: &mut EventWriter<'_>) {
        let all = self.of_cpus.iter().chain(&self.events);
        let lost: u64 = self.lost_before + all.map(PerfEvent::lost).sum::<u64>();
        // No later record states these, so their ring was full to the last, or where they were is
        // unknown.
        let full = pending.latest.iter().filter_map(|latest| latest.full).min();
        let (since, cpu) = (full.unwrap_or(self.begun_ns), u32::MAX);
        let count = lost.saturating_sub(frames.lost);
        frames.lose(MissingRecords { since, thread: 0, cpu, count });
        frames.latest = frames.latest.max(looked);
        frames.state_losses(u64::MAX);
        frames.write(looked, &KernelEvent::WatchEnd);
    }

    /// Makes the events of CPUs record every thread before one comes that their filter leaves out:
    /// numbers of threads wrap around after the highest one.
    fn widen(&mut self) {
        if self.spare.is_empty() || !self.horizon.is_close() {
            return;
        }
        let wide = std::mem::take(&mut self.spare);
        // They are open: the kernel has no reason to refuse. For a moment, both record.
        wide.iter().for_each(|event| _ = event.enable());
        let filtered = std::mem::replace(&mut self.of_cpus, wide);
        self.lost_before += filtered.iter().map(PerfEvent::lost).sum::<u64>();
    }

    /// Writes what a record says, unless the event of another thread says it, too.
    fn write(&mut self, report: Report, frames: &mut EventWriter<'_>) {
        let Report { time, reporter, record } = report;
        let threads = &mut self.threads;
        let knows_wakeups = !self.of_cpus.is_empty();
        let knows_successors = self.sources.values().any(|source| source.0 == EventSource::Switch);
        let event = match record {
            KernelRecord::Stack(_) | KernelRecord::Probe(_) => None,
            KernelRecord::Lost { count, cpu, since } => {
                frames.latest = frames.latest.max(time);
                frames.lose(MissingRecords { since, thread: 0, cpu, count });
                // Their wake-ups may be among those.
                threads.forget_waits();
                return;
            }
            KernelRecord::SwitchIn { tid, cpu } => threads.report(tid, reporter).map(|thread| {
                // Nobody gets a CPU after a wait without having been woken.
                if threads.switch_in(tid) && knows_wakeups {
                    frames.owe(MissingRecords { since: time, thread, cpu, count: 1 });
                }
                KernelEvent::SwitchIn { thread, cpu }
            }),
            KernelRecord::SwitchOut { tid, cpu, preempted } => {
                threads.report(tid, reporter).map(|thread| {
                    // The kernel names the successor first.
                    if !threads.switch_out(tid, !preempted)
                        && knows_successors
                        && time > self.begun_ns
                    {
                        frames.owe(MissingRecords { since: time, thread, cpu, count: 1 });
                    }
                    KernelEvent::SwitchOut { thread, cpu, preempted }
                })
            }
            KernelRecord::Fork { tid, parent } => threads
                .born(tid, parent, reporter)
                .map(|(thread, parent)| KernelEvent::ThreadStart { thread, parent }),
            KernelRecord::ThreadExit { tid } => {
                threads.ended(tid, reporter).map(|thread| KernelEvent::ThreadEnd { thread })
            }
            KernelRecord::SyscallEnter { tid, cpu, call } => threads
                .report(tid, reporter)
                .map(|thread| KernelEvent::SyscallEnter { thread, cpu, call }),
            KernelRecord::SyscallExit { tid, cpu, call, result } => threads
                .report(tid, reporter)
                .map(|thread| KernelEvent::SyscallExit { thread, cpu, call, result }),
            KernelRecord::PageFault { tid, cpu, major, address } => threads
                .report(tid, reporter)
                .map(|thread| KernelEvent::PageFault { thread, cpu, major, address }),
            KernelRecord::Wakeup { tid, cpu, by, waker } => threads.number(tid).map(|thread| {
                threads.note_wakeup(tid);
                let waker = threads.number(waker).filter(|_| by == Waker::Thread).unwrap_or(0);
                KernelEvent::Wakeup { thread, cpu, by, waker }
            }),
            KernelRecord::Successor { tid, cpu, state, next, name } => {
                threads.report(tid, reporter).map(|thread| {
                    threads.note_successor(tid);
                    let ours = threads.number(next);
                    let name = match (ours, next) {
                        (Some(_), _) | (_, 0) => name,
                        (None, _) => self.neighbours.name(next, name, time),
                    };
                    KernelEvent::Successor { thread, cpu, state, next: ours.unwrap_or(next), name }
                })
            }
        };
        if let Some(event) = event {
            frames.write(time, &event);
        }
    }
}

/// What was read and is not written yet.
#[derive(Debug)]
struct Pending {
    /// The records of one ring, as the kernel left them.
    bytes: Vec<u8>,
    reports: Vec<Report>,
    /// By ring.
    wakes: Vec<Wakes>,
    /// By ring.
    latest: Vec<Latest>,
}

impl Pending {
    fn new(rings: usize, begun_ns: u64) -> Self {
        Self {
            bytes: Vec::new(),
            reports: Vec::new(),
            wakes: vec![Wakes::default(); rings],
            latest: vec![Latest { time: begun_ns, full: None }; rings],
        }
    }

    /// Takes the reports up to a time, in order.
    fn until(&mut self, ns: u64) -> impl Iterator<Item = Report> + '_ {
        self.reports.sort_by_key(|report| report.time);
        let known = self.reports.partition_point(|report| report.time <= ns);
        self.reports.drain(..known)
    }
}

/// What the latest record of a ring was.
#[derive(Debug, Clone, Copy)]
struct Latest {
    time: u64,
    /// The same when the ring was nearly full: records that found no room are behind that.
    full: Option<u64>,
}

impl Latest {
    /// The next record comes; returns when the one before was.
    fn take(&mut self, record: &Record<'_>) -> u64 {
        if matches!(record.content, Content::Lost(_)) {
            self.full = None;
        }
        std::mem::replace(&mut self.time, record.time)
    }
}
