//! The thread that turns records into frames.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ppt_segment::{RingWriter, Segment};

use crate::filter::TidWraparound;
use crate::memory::Share;
use crate::perf::{PerfEvent, PerfRing, now};
use crate::probe_reader::{ProbeCounts, ProbeHeard, ProbeHearing, ProbeReader};
use crate::records::{Content, Record, records};
use crate::schema::{Builtin, Comm, KernelEvent, Waker, state};
use crate::sources::{EventSource, Sources};
use crate::stack_frames::StackCounts;
use crate::stack_reader::{StackHeard, StackHearing, StackReader};
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
/// Bits of a tracepoint's flags: it was hit in an interrupt, or after one.
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;

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

/// A record whose raw bytes have been read.
#[derive(Debug, Clone)]
enum Heard {
    In {
        tid: i32,
        cpu: u32,
    },
    Out {
        tid: i32,
        cpu: u32,
        preempted: bool,
    },
    Fork {
        tid: i32,
        parent: i32,
    },
    Exit {
        tid: i32,
    },
    /// So many records of a CPU, since the time of the one before.
    Lost {
        count: u64,
        cpu: u32,
        since: u64,
    },
    Enter {
        tid: i32,
        cpu: u32,
        call: u16,
    },
    Left {
        tid: i32,
        cpu: u32,
        call: u16,
        result: i64,
    },
    Fault {
        tid: i32,
        cpu: u32,
        major: bool,
        address: u64,
    },
    Woken {
        tid: i32,
        cpu: u32,
        by: Waker,
        waker: i32,
    },
    Followed {
        tid: i32,
        cpu: u32,
        state: u8,
        next: i32,
        name: Comm,
    },
    Stack(StackHeard),
    Probe(ProbeHeard),
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
        let mut frames = FrameWriter::new(&segment);
        let of_stacks =
            self.stacks.as_ref().map(|stack| (stack.segment.clone(), stack.counts.clone()));
        let mut stacks = of_stacks
            .as_ref()
            .zip(self.stacks.as_ref())
            .map(|(of, reader)| StackHearing::begin(&of.0, &of.1, &reader.events, self.begun_ns));
        let of_probes =
            self.probes.as_ref().map(|probes| (probes.segment.clone(), probes.counts.clone()));
        let mut probes = of_probes
            .as_ref()
            .zip(self.probes.as_ref())
            .map(|(of, reader)| ProbeHearing::begin(&of.0, &of.1, reader, self.begun_ns));
        let only_stacks = |reader: &StackReader| {
            !self.has_events && self.probes.is_none() && !reader.events.wanted.waits
        };
        let longest = match &self.stacks {
            Some(reader) if only_stacks(reader) => LONGEST_OF_STACKS,
            _ => LONGEST,
        };
        let (mut bytes, mut heard) = (Vec::new(), Vec::new());
        let mut wakes = vec![Wakes::default(); self.rings.len()];
        let mut latest = vec![Latest { time: self.begun_ns, full: None }; self.rings.len()];
        let mut sleep = SHORTEST;
        let mut threads: Vec<_> =
            self.threads.all().filter_map(|tid| self.threads.number(tid)).collect();
        threads.sort_unstable();
        for thread in threads {
            frames.write(self.begun_ns, &KernelEvent::Watched { thread });
        }
        loop {
            let is_last = stop.load(Ordering::Acquire);
            // An earlier record may still arrive in a ring that was already read: the beginning of a
            // thread after its wake-up, for example. So younger records wait for the next pass.
            let known_ns = match now() {
                Ok(now) if !is_last => now.saturating_sub(COMMIT_NS),
                _ => u64::MAX,
            };
            let looked = now().unwrap_or_default();
            let mut fullest = 0.0f64;
            for ((ring, wakes), latest) in self.rings.iter_mut().zip(&mut wakes).zip(&mut latest) {
                bytes.clear();
                ring.take(&mut bytes);
                let full = bytes.len() as f64 / ring.size() as f64;
                fullest = fullest.max(full);
                let read = |record: Record<'_>| {
                    let before = latest.take(&record);
                    read(
                        &record,
                        before,
                        &self.sources,
                        self.threads.pid(),
                        (&self.waking, wakes),
                        &self.switch,
                        &self.calls,
                    )
                };
                heard.extend(records(&bytes).filter_map(read));
                if full > 0.5 {
                    latest.full = Some(latest.time);
                }
            }
            if let (Some(stacks), Some(reader)) = (&mut stacks, &mut self.stacks) {
                let of = (&self.sources, self.threads.pid());
                let full = stacks.take(reader, &mut bytes, of, |time, voice, said| {
                    heard.push((time, voice, Heard::Stack(said)));
                });
                fullest = fullest.max(full);
            }
            if let (Some(probes), Some(reader)) = (&mut probes, &mut self.probes) {
                let of = (&self.sources, self.threads.pid());
                let full = probes.take(&mut reader.events, &mut bytes, of, |time, said| {
                    heard.push((time, 0, Heard::Probe(said)));
                });
                fullest = fullest.max(full);
                probes.stop_frequent(&mut reader.events, looked);
            }
            heard.sort_by_key(|entry: &(u64, i32, Heard)| entry.0);
            let known = heard.partition_point(|entry| entry.0 <= known_ns);
            for (time, voice, heard) in heard.drain(..known) {
                if let (Some(probes), Heard::Exit { tid }) = (&mut probes, &heard) {
                    probes.forget(*tid);
                }
                match (&mut stacks, &mut probes, heard) {
                    (Some(stacks), _, Heard::Stack(said)) => {
                        stacks.hear(time, voice, said, &mut self.threads);
                    }
                    (_, Some(probes), Heard::Probe(said)) => {
                        probes.hear(time, said, &self.threads);
                    }
                    (_, _, heard) => self.hear(time, voice, heard, &mut frames),
                }
            }
            if is_last {
                if let (Some(stacks), Some(reader)) = (&mut stacks, &self.stacks) {
                    stacks.finish(&reader.events);
                }
                if let (Some(probes), Some(reader)) = (&mut probes, &self.probes) {
                    probes.finish(&reader.events);
                }
                let all = self.of_cpus.iter().chain(&self.events);
                let lost: u64 = self.lost_before + all.map(PerfEvent::lost).sum::<u64>();
                // No later record states these, so their ring was full to the last, or where they
                // were is unknown.
                let full = latest.iter().filter_map(|latest| latest.full).min();
                let (since, cpu) = (full.unwrap_or(self.begun_ns), u32::MAX);
                let count = lost.saturating_sub(frames.lost);
                frames.lose(MissingRecords { since, thread: 0, cpu, count });
                frames.latest = frames.latest.max(looked);
                frames.state_losses(u64::MAX);
                frames.write(looked, &KernelEvent::WatchEnd);
                return;
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

    fn hear(&mut self, time: u64, voice: i32, heard: Heard, frames: &mut FrameWriter<'_>) {
        let threads = &mut self.threads;
        let knows_wakeups = !self.of_cpus.is_empty();
        let knows_successors = self.sources.values().any(|source| source.0 == EventSource::Switch);
        let event = match heard {
            Heard::Stack(_) | Heard::Probe(_) => None,
            Heard::Lost { count, cpu, since } => {
                frames.latest = frames.latest.max(time);
                frames.lose(MissingRecords { since, thread: 0, cpu, count });
                // Their wake-ups may be among those.
                threads.forget_waits();
                return;
            }
            Heard::In { tid, cpu } => threads.heard(tid, voice).map(|thread| {
                // Nobody gets a CPU after a wait without having been woken.
                if threads.switch_in(tid) && knows_wakeups {
                    frames.owe(MissingRecords { since: time, thread, cpu, count: 1 });
                }
                KernelEvent::SwitchIn { thread, cpu }
            }),
            Heard::Out { tid, cpu, preempted } => threads.heard(tid, voice).map(|thread| {
                // The kernel names the successor first.
                if !threads.switch_out(tid, !preempted) && knows_successors && time > self.begun_ns
                {
                    frames.owe(MissingRecords { since: time, thread, cpu, count: 1 });
                }
                KernelEvent::SwitchOut { thread, cpu, preempted }
            }),
            Heard::Fork { tid, parent } => threads
                .born(tid, parent, voice)
                .map(|(thread, parent)| KernelEvent::ThreadStart { thread, parent }),
            Heard::Exit { tid } => {
                threads.ended(tid, voice).map(|thread| KernelEvent::ThreadEnd { thread })
            }
            Heard::Enter { tid, cpu, call } => threads
                .heard(tid, voice)
                .map(|thread| KernelEvent::SyscallEnter { thread, cpu, call }),
            Heard::Left { tid, cpu, call, result } => threads
                .heard(tid, voice)
                .map(|thread| KernelEvent::SyscallExit { thread, cpu, call, result }),
            Heard::Fault { tid, cpu, major, address } => threads
                .heard(tid, voice)
                .map(|thread| KernelEvent::PageFault { thread, cpu, major, address }),
            Heard::Woken { tid, cpu, by, waker } => threads.number(tid).map(|thread| {
                threads.note_wakeup(tid);
                let waker = threads.number(waker).filter(|_| by == Waker::Thread).unwrap_or(0);
                KernelEvent::Wakeup { thread, cpu, by, waker }
            }),
            Heard::Followed { tid, cpu, state, next, name } => {
                threads.heard(tid, voice).map(|thread| {
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

/// What a record says, if it is one of process `pid`; the one before it in its ring was at `before`.
fn read(
    record: &Record<'_>,
    before: u64,
    sources: &Sources,
    pid: i32,
    (waking, wakes): (&Option<Waking>, &mut Wakes),
    switch: &Option<Switch>,
    calls: &Option<Calls>,
) -> Option<(u64, i32, Heard)> {
    let Record { time, id, tid, cpu, content, .. } = *record;
    if let Content::Lost(count) = content {
        return Some((time, 0, Heard::Lost { count, cpu, since: before }));
    }
    let (source, voice) = *sources.get(&id)?;
    if !matches!(source, EventSource::Waking | EventSource::WakingOfAll) {
        wakes.end_wakeup();
    }
    let heard = match (content, source) {
        // Of other processes, nothing but these is known.
        (Content::Sample { raw, .. }, EventSource::Waking | EventSource::WakingOfAll) => {
            let it = waking.as_ref()?;
            if !wakes.is_another(source == EventSource::WakingOfAll, raw) {
                return None;
            }
            let by = match () {
                () if it.flags.number(raw)? & IN_INTERRUPT != 0 => Waker::Interrupt,
                () if record.pid == pid => Waker::Thread,
                () => Waker::Process,
            };
            Heard::Woken {
                tid: it.pid.number(raw)? as i32,
                cpu: it.target_cpu.number(raw)? as u32,
                by,
                waker: tid,
            }
        }
        (Content::Sample { raw, .. }, EventSource::Switch) => {
            let it = switch.as_ref()?;
            Heard::Followed {
                tid: it.prev_pid.number(raw)? as i32,
                cpu,
                state: state(it.prev_state.number(raw)? as u64),
                next: it.next_pid.number(raw)? as i32,
                name: it.next_comm.text(raw)?,
            }
        }
        (Content::Fork { pid: of, tid, parent }, EventSource::Thread) if of == pid => {
            Heard::Fork { tid, parent }
        }
        (Content::Exit { tid }, EventSource::Thread) => Heard::Exit { tid },
        _ if record.pid != pid => return None,
        (Content::In, EventSource::Thread) => Heard::In { tid, cpu },
        (Content::Out { preempted }, EventSource::Thread) => Heard::Out { tid, cpu, preempted },
        (Content::Sample { raw, .. }, EventSource::Enter) => {
            Heard::Enter { tid, cpu, call: calls.as_ref()?.enter_call.number(raw)? as u16 }
        }
        (Content::Sample { raw, .. }, EventSource::Exit) => {
            let it = calls.as_ref()?;
            let call = it.exit_call.number(raw)? as u16;
            Heard::Left { tid, cpu, call, result: it.result.number(raw)? }
        }
        (Content::Sample { address, .. }, EventSource::Minor) => {
            Heard::Fault { tid, cpu, major: false, address }
        }
        (Content::Sample { address, .. }, EventSource::Major) => {
            Heard::Fault { tid, cpu, major: true, address }
        }
        _ => return None,
    };
    Some((time, voice, heard))
}

/// What is missing.
#[derive(Debug, Clone, Copy)]
struct MissingRecords {
    /// It happened from then until it is stated.
    since: u64,
    /// Whose it is, if that is known.
    thread: i32,
    cpu: u32,
    count: u64,
}

/// Writes frames, and states what was lost.
struct FrameWriter<'a> {
    builtin: &'static Builtin,
    writer: RingWriter<'a, AtomicU64>,
    words: usize,
    /// The time of the latest frame.
    latest: u64,
    /// Records that the kernel lost, so far.
    lost: u64,
    /// What is missing and not stated yet.
    owed: VecDeque<MissingRecords>,
}

impl<'a> FrameWriter<'a> {
    fn new(segment: &'a Segment) -> Self {
        let ring = segment.ring(0);
        Self {
            builtin: Builtin::get(),
            words: ring.stride() - 1,
            writer: RingWriter::new(ring),
            latest: 0,
            lost: 0,
            owed: VecDeque::new(),
        }
    }

    fn write(&mut self, at: u64, event: &KernelEvent) {
        self.latest = self.latest.max(at);
        let words = self.builtin.encode(at, event);
        self.writer.write(words.into_iter().take(self.words));
    }

    /// The kernel counted these.
    fn lose(&mut self, loss: MissingRecords) {
        self.lost = self.lost.saturating_add(loss.count);
        self.owe(loss);
    }

    fn owe(&mut self, loss: MissingRecords) {
        if loss.count > 0 {
            self.owed.push_back(loss);
        }
    }

    /// Skips up to `most` sequence numbers for lost records, then writes frames that describe the losses.
    fn state_losses(&mut self, most: u64) {
        let (mut stated, mut left) = (Vec::new(), most);
        while let Some(loss) = self.owed.front_mut().filter(|_| left > 0) {
            let count = loss.count.min(left);
            stated.push(MissingRecords { count, ..*loss });
            left -= count;
            loss.count -= count;
            if loss.count == 0 {
                self.owed.pop_front();
            }
        }
        // Names come last: this many numbers may take the place of what was before them.
        (0..most - left).for_each(|_| _ = self.writer.lose());
        for MissingRecords { since, thread, cpu, count } in stated {
            self.write(self.latest.max(since), &KernelEvent::Lost { since, thread, cpu, count });
        }
    }
}
