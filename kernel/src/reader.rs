//! The thread that turns records into frames.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ppt_segment::Segment;

use crate::decode::{KernelRecord, RecordDecoder, ReportedRecord};
use crate::event_writer::{EventWriter, MissingRecords};
use crate::filter::TidWraparound;
use crate::latest_wakeup::LatestWakeup;
use crate::memory::Share;
use crate::perf::{PerfEvent, PerfRing, now};
use crate::probe_reader::{ProbeCounts, ProbeDecoder, ProbeReader};
use crate::records::{Content, Record, records};
use crate::schema::{KernelEvent, Waker};
use crate::sources::{EventSource, Sources};
use crate::stack_frames::StackCounts;
use crate::stack_reader::{StackDecoder, StackReader};
use crate::successors::SuccessorNames;
use crate::threads::Threads;
use crate::tracepoints::{Calls, Switch, Waking};
use crate::unwind::StackUnwinder;

/// The shortest and the longest sleep between two passes over the rings.
const MIN_SLEEP: Duration = Duration::from_millis(1);
const MAX_SLEEP: Duration = Duration::from_millis(8);
/// The longest sleep if all records are stacks of running threads.
const MAX_STACKS_SLEEP: Duration = Duration::from_millis(64);
/// The longest time in ns from the stamp of a record until it is in its ring.
const MAX_COMMIT_NS: u64 = 1_000_000;
/// The largest number of losses that are stated at a time. Each takes a slot.
const MAX_STATED_LOSSES: u64 = 1 << 20;

/// The state of the thread.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The buffer `kernel` is captured.
    pub has_events: bool,
    pub stacks: Option<StackReader>,
    pub probes: Option<ProbeReader>,
    pub rings: Vec<PerfRing>,
    /// The memory of the rings, which is returned after they are unmapped.
    pub _memory: Share,
    pub events: Vec<PerfEvent>,
    /// Enabled events of CPUs, which may have a filter of threads.
    pub cpu_events: Vec<PerfEvent>,
    /// Events of CPUs for all threads, which replace the others before numbers of threads wrap around.
    pub unfiltered_cpu_events: Vec<PerfEvent>,
    pub tid_wraparound: TidWraparound,
    pub sources: Sources,
    pub waking: Option<Waking>,
    pub switch: Option<Switch>,
    pub calls: Option<Calls>,
    pub threads: Threads,
    pub successor_names: SuccessorNames,
    pub segment: Arc<Segment>,
    /// The number of lost records of closed events.
    pub lost_before: u64,
    /// The time since which all events are enabled, in ns of CLOCK_MONOTONIC.
    pub begun_ns: u64,
}

/// A thread that converts records into frames. It ends when this is dropped.
#[derive(Debug)]
pub struct ReaderThread {
    counts: Counts,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Results of a reader thread in addition to frames.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The numbers of stacks, if stacks are taken.
    pub stacks: Option<Arc<StackCounts>>,
    /// The counts of probes, if there are any.
    pub probes: Option<Arc<ProbeCounts>>,
    /// The unwinder of copies of stacks, which needs the mappings of the process.
    pub unwinder: Option<Arc<StackUnwinder>>,
}

impl ReaderThread {
    /// The counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Converts all records so far, and ends the thread. Then the segments hold all frames. Returns the final
    /// counts.
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
        // The listener drains only rings that have had an owner. No single thread owns these.
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
            Some(reader) if only_stacks(reader) => MAX_STACKS_SLEEP,
            _ => MAX_SLEEP,
        };
        let mut pending = Pending::new(self.rings.len(), self.begun_ns);
        let mut sleep = MIN_SLEEP;
        self.write_threads(&mut frames);
        loop {
            let is_last = stop.load(Ordering::Acquire);
            // An earlier record may still arrive in a ring that has been read: the start of a thread after its
            // wake-up, for example. So younger records wait for the next pass.
            let known_ns = match now() {
                Ok(now) if !is_last => now.saturating_sub(MAX_COMMIT_NS),
                _ => u64::MAX,
            };
            let looked = now().unwrap_or_default();
            let mut fullest = self.read_rings(&mut pending);
            if let (Some(stacks), Some(reader)) = (&mut stacks, &mut self.stacks) {
                let process = (&self.sources, self.threads.pid());
                let Pending { bytes, reports, .. } = &mut pending;
                let full = stacks.take(reader, bytes, process, |time, reporter, record| {
                    reports.push(ReportedRecord {
                        time,
                        reporter,
                        record: KernelRecord::Stack(record),
                    });
                });
                fullest = fullest.max(full);
            }
            if let (Some(probes), Some(reader)) = (&mut probes, &mut self.probes) {
                let process = (&self.sources, self.threads.pid());
                let Pending { bytes, reports, .. } = &mut pending;
                let full = probes.take(&mut reader.events, bytes, process, |time, record| {
                    let record = KernelRecord::Probe(record);
                    reports.push(ReportedRecord { time, reporter: 0, record });
                });
                fullest = fullest.max(full);
                probes.stop_frequent(&mut reader.events, looked);
            }
            for ReportedRecord { time, reporter, record } in pending.until(known_ns) {
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
                    (_, _, record) => {
                        self.write(ReportedRecord { time, reporter, record }, &mut frames);
                    }
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
            frames.state_losses(MAX_STATED_LOSSES);
            self.replace_filtered_events();
            sleep = match fullest {
                value if value > 0.25 => (sleep / 2).max(MIN_SLEEP),
                value if value < 0.06 => (sleep * 2).min(longest),
                _ => sleep,
            };
            thread::park_timeout(sleep);
        }
    }

    /// Writes the threads that existed at the beginning.
    fn write_threads(&self, frames: &mut EventWriter<'_>) {
        let mut threads: Vec<_> =
            self.threads.all().filter_map(|tid| self.threads.number(tid)).collect();
        threads.sort_unstable();
        for thread in threads {
            frames.write(self.begun_ns, &KernelEvent::Watched { thread });
        }
    }

    /// Reads the rings of the process. Returns the fill level of the fullest ring, from 0 to 1.
    fn read_rings(&mut self, pending: &mut Pending) -> f64 {
        let Pending { bytes, reports, wakes, latest } = pending;
        let mut fullest = 0.0f64;
        let decoder = RecordDecoder {
            sources: &self.sources,
            pid: self.threads.pid(),
            waking: self.waking.as_ref(),
            switch: self.switch.as_ref(),
            calls: self.calls.as_ref(),
        };
        for ((ring, wakes), latest) in self.rings.iter_mut().zip(wakes).zip(latest) {
            bytes.clear();
            ring.take(bytes);
            let full = bytes.len() as f64 / ring.size() as f64;
            fullest = fullest.max(full);
            let decode = |record: Record<'_>| {
                let previous_ns = latest.take(&record);
                decoder.decode(&record, previous_ns, wakes)
            };
            reports.extend(records(bytes).filter_map(decode));
            if full > 0.5 {
                latest.full = Some(latest.time);
            }
        }
        fullest
    }

    /// States the losses that no record has stated, and writes the last frame.
    fn finish(&self, pending: &Pending, looked: u64, frames: &mut EventWriter<'_>) {
        let all = self.cpu_events.iter().chain(&self.events);
        let lost: u64 = self.lost_before + all.map(PerfEvent::lost).sum::<u64>();
        // No later record states these losses, so their ring was full to the last, or their time is unknown.
        let full = pending.latest.iter().filter_map(|latest| latest.full).min();
        let (since, cpu) = (full.unwrap_or(self.begun_ns), u32::MAX);
        let count = lost.saturating_sub(frames.lost);
        frames.lose(MissingRecords { since, thread: 0, cpu, count });
        frames.latest = frames.latest.max(looked);
        frames.state_losses(u64::MAX);
        frames.write(looked, &KernelEvent::WatchEnd);
    }

    /// Replaces the filtered events of CPUs before the numbers of threads wrap around: their filter would
    /// exclude new threads.
    fn replace_filtered_events(&mut self) {
        if self.unfiltered_cpu_events.is_empty() || !self.tid_wraparound.is_close() {
            return;
        }
        let wide = std::mem::take(&mut self.unfiltered_cpu_events);
        // They are open already, so the kernel has no reason to refuse. For a moment, both record.
        wide.iter().for_each(|event| _ = event.enable());
        let filtered = std::mem::replace(&mut self.cpu_events, wide);
        self.lost_before += filtered.iter().map(PerfEvent::lost).sum::<u64>();
    }

    /// Writes the frame of a record, unless the event of another thread reports it, too.
    fn write(&mut self, report: ReportedRecord, frames: &mut EventWriter<'_>) {
        let ReportedRecord { time, reporter, record } = report;
        let threads = &mut self.threads;
        let knows_wakeups = !self.cpu_events.is_empty();
        let knows_successors = self.sources.values().any(|source| source.0 == EventSource::Switch);
        let event = match record {
            KernelRecord::Stack(_) | KernelRecord::Probe(_) => None,
            KernelRecord::Lost { count, cpu, since } => {
                frames.latest = frames.latest.max(time);
                frames.lose(MissingRecords { since, thread: 0, cpu, count });
                // The lost records may include wake-ups.
                threads.forget_waits();
                return;
            }
            KernelRecord::SwitchIn { tid, cpu } => threads.report(tid, reporter).map(|thread| {
                // A thread that waited gets a CPU only after a wake-up, so its record is missing.
                if threads.switch_in(tid) && knows_wakeups {
                    frames.owe(MissingRecords { since: time, thread, cpu, count: 1 });
                }
                KernelEvent::SwitchIn { thread, cpu }
            }),
            KernelRecord::SwitchOut { tid, cpu, preempted } => {
                threads.report(tid, reporter).map(|thread| {
                    // The record of the successor comes first.
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
                        (None, _) => self.successor_names.name(next, name, time),
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

/// Reports that are not written yet.
#[derive(Debug)]
struct Pending {
    /// The raw records of one ring.
    bytes: Vec<u8>,
    reports: Vec<ReportedRecord>,
    /// The latest wake-up of each ring.
    wakes: Vec<LatestWakeup>,
    /// The latest record of each ring.
    latest: Vec<Latest>,
}

impl Pending {
    fn new(rings: usize, begun_ns: u64) -> Self {
        Self {
            bytes: Vec::new(),
            reports: Vec::new(),
            wakes: vec![LatestWakeup::default(); rings],
            latest: vec![Latest { time: begun_ns, full: None }; rings],
        }
    }

    /// Takes the reports up to a time, in order.
    fn until(&mut self, ns: u64) -> impl Iterator<Item = ReportedRecord> + '_ {
        self.reports.sort_by_key(|report| report.time);
        let known = self.reports.partition_point(|report| report.time <= ns);
        self.reports.drain(..known)
    }
}

/// The time of the latest record of a ring.
#[derive(Debug, Clone, Copy)]
struct Latest {
    time: u64,
    /// The time of the latest record when the ring was nearly full: lost records are later.
    full: Option<u64>,
}

impl Latest {
    /// Notes the next record. Returns the time of the previous one.
    fn take(&mut self, record: &Record<'_>) -> u64 {
        if matches!(record.content, Content::Lost(_)) {
            self.full = None;
        }
        std::mem::replace(&mut self.time, record.time)
    }
}
