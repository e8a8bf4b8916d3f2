//! Turns hits of probes into frames, and stops probes that are hit too often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ppt_segment::Segment;

use crate::probe_calls::OpenCalls;
use crate::probe_events::ProbeEvents;
use crate::probe_frames::{ProbeFrame, ProbeWriter};
use crate::probes::{RegisterValues, registers, registers_of};
use crate::records::{Content, Record, register_records};
use crate::schema::Builtin;
use crate::sources::{EventSource, Sources};
use crate::threads::Threads;

/// The window in ns over which hits are counted and compared with the limit per second.
const WINDOW_NS: u64 = 1_000_000_000;
/// The interval between two counts of hits, ns.
const LOOK_NS: u64 = 20_000_000;

/// The events that report hits of probes, and the segment of their frames.
#[derive(Debug)]
pub(crate) struct ProbeReader {
    pub events: ProbeEvents,
    pub builtin: Arc<Builtin>,
    pub segment: Arc<Segment>,
    pub counts: Arc<ProbeCounts>,
}

/// The state of a probe.
#[derive(Debug)]
struct ProbeState {
    name: String,
    is_stopped: AtomicBool,
    /// Its recorded hits by the captured process.
    own: AtomicU64,
}

/// The state of the probes.
#[derive(Debug, Default)]
pub struct ProbeCounts {
    probes: Vec<ProbeState>,
    /// More hits in a second than this stop a probe.
    limit: u64,
    unreturned: AtomicU64,
    open: AtomicU64,
}

impl ProbeCounts {
    pub(crate) fn new(names: impl Iterator<Item = String>, limit: u64) -> Self {
        let probe = |name| ProbeState { name, is_stopped: false.into(), own: 0.into() };
        let probes = names.map(probe).collect();
        Self { probes, limit, ..Self::default() }
    }

    /// Probes that were hit more often in a second than they may, and whether the captured process
    /// was among those that hit them.
    pub fn stopped(&self) -> impl Iterator<Item = (&str, bool)> {
        let stopped = self.probes.iter().filter(|probe| probe.is_stopped.load(Relaxed));
        stopped.map(|probe| (probe.name.as_str(), probe.own.load(Relaxed) > 0))
    }

    /// The maximum number of hits of a probe per second.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Calls of functions that never returned, which have no frame.
    pub fn unreturned(&self) -> u64 {
        self.unreturned.load(Relaxed)
    }

    /// Calls that had not returned at the end, which have no frame either.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }
}

/// A decoded record of a ring of probes.
#[derive(Debug, Clone)]
pub(crate) struct ProbeRecord {
    tid: i32,
    cpu: u32,
    step: ProbeStep,
}

#[derive(Debug, Clone)]
enum ProbeStep {
    /// A place is hit.
    Hit { probe: usize, stack: u64, arguments: Vec<u64> },
    /// A function returns.
    Return { probe: usize, stack: u64, to: u64, returned: u64 },
}

/// The values recorded at the entry of a function.
#[derive(Debug)]
struct Entered {
    at: u64,
    arguments: Vec<u64>,
}

/// Turns records of probes into frames.
pub(crate) struct ProbeDecoder<'a> {
    writer: ProbeWriter<'a>,
    calls: OpenCalls<Entered>,
    counts: &'a ProbeCounts,
    /// For each probe, whether its frames are calls.
    returns: Vec<bool>,
    window: Window,
}

/// The window over which hits are counted.
#[derive(Debug)]
struct Window {
    looked_ns: u64,
    begun_ns: u64,
    /// The hits of each probe at its begin.
    hits: Vec<u64>,
}

impl<'a> ProbeDecoder<'a> {
    /// A decoder of hits from `at` on.
    pub fn begin(
        segment: &'a Segment,
        counts: &'a ProbeCounts,
        reader: &ProbeReader,
        at: u64,
    ) -> Self {
        let hits = vec![0; reader.events.probes.len()];
        Self {
            writer: ProbeWriter::new(segment, reader.builtin.clone()),
            calls: OpenCalls::new(),
            counts,
            returns: reader.events.probes.iter().map(|probe| probe.returns).collect(),
            window: Window { looked_ns: at, begun_ns: at, hits },
        }
    }

    /// Takes the records of all rings that are about process `pid`, and reports the time and the decoded record
    /// of each. Returns the fill level of the fullest ring, from 0 to 1.
    pub fn take(
        &mut self,
        events: &mut ProbeEvents,
        bytes: &mut Vec<u8>,
        (sources, pid): (&Sources, i32),
        mut report: impl FnMut(u64, ProbeRecord),
    ) -> f64 {
        let mut fullest = 0.0f64;
        for ring in &mut events.rings {
            bytes.clear();
            ring.take(bytes);
            fullest = fullest.max(bytes.len() as f64 / ring.size() as f64);
            for record in register_records(bytes) {
                if let Content::Lost(count) = record.content {
                    self.writer.lose(count);
                } else if record.pid == pid
                    && let Some(hit) = read(&record, &events.probes, sources)
                {
                    if let ProbeStep::Hit { probe, .. } = hit.step {
                        self.counts.probes[probe].own.fetch_add(1, Relaxed);
                    }
                    report(record.time, hit);
                }
            }
        }
        fullest
    }

    /// Writes the frame of a record, if it has one.
    pub fn write(&mut self, time: u64, record: ProbeRecord, threads: &Threads) {
        let ProbeRecord { tid, cpu, step } = record;
        let thread = threads.number_or_look_up(tid);
        match step {
            ProbeStep::Hit { probe, stack, arguments } if self.returns[probe] => {
                self.calls.enter(tid, probe, stack, Entered { at: time, arguments });
            }
            ProbeStep::Hit { probe, arguments, .. } => {
                let (start, from, returned) = (None, None, None);
                let at = time;
                self.writer.write(
                    tid,
                    &ProbeFrame { probe, start, at, thread, cpu, from, arguments, returned },
                );
            }
            ProbeStep::Return { probe, stack, to, returned } => {
                // A call that began before, or whose entry was lost.
                let Some(entered) = self.calls.leave(tid, probe, stack) else { return };
                self.writer.write(
                    tid,
                    &ProbeFrame {
                        probe,
                        start: Some(entered.at),
                        at: time,
                        thread,
                        cpu,
                        // The last byte of the call: the address behind it may be of another function.
                        from: Some(to.saturating_sub(1)),
                        arguments: entered.arguments,
                        returned: Some(returned),
                    },
                );
            }
        }
    }

    /// Forgets the open calls of a thread that has ended.
    pub fn forget(&mut self, tid: i32) {
        self.calls.forget(tid);
        self.writer.leave(tid);
    }

    /// Stops probes that are hit more often than they may.
    pub fn stop_frequent(&mut self, events: &mut ProbeEvents, now: u64) {
        let window = &mut self.window;
        if now.saturating_sub(window.looked_ns) < LOOK_NS {
            return;
        }
        window.looked_ns = now;
        let end_wakeup = now.saturating_sub(window.begun_ns) >= WINDOW_NS;
        for (probe, ProbeState { is_stopped, .. }) in self.counts.probes.iter().enumerate() {
            if is_stopped.load(Relaxed) {
                continue;
            }
            let hits = events.hits(probe);
            if hits.saturating_sub(window.hits[probe]) > self.counts.limit {
                // Closing may take long, so the state is stored first.
                is_stopped.store(true, Relaxed);
                events.close(probe);
            }
            if end_wakeup {
                window.hits[probe] = hits;
            }
        }
        if end_wakeup {
            window.begun_ns = now;
        }
    }

    /// States the losses that no record has stated, after the last record.
    pub fn finish(&mut self, events: &ProbeEvents) {
        let unstated = events.lost().saturating_sub(self.writer.lost);
        self.writer.lose(unstated);
        self.counts.unreturned.store(self.calls.unreturned, Relaxed);
        self.counts.open.store(self.calls.open(), Relaxed);
    }
}

fn read(
    record: &Record<'_>,
    probes: &[crate::probes::Probe],
    sources: &Sources,
) -> Option<ProbeRecord> {
    let Record { id, tid, cpu, content, .. } = *record;
    let Content::Registers(bytes) = content else { return None };
    let step = match sources.get(&id)?.0 {
        EventSource::Hit { probe, site } => {
            let probe = usize::from(probe);
            let site = probes.get(probe)?.sites.get(usize::from(site))?;
            let all = RegisterValues::of_record(registers_of(&site.values), bytes)?;
            let arguments = site.values.iter().map(|value| value.read(&all)).collect();
            ProbeStep::Hit { probe, stack: all.get(registers::SP), arguments }
        }
        EventSource::Return { probe } => {
            let all = RegisterValues::of_record(crate::probe_events::AT_RETURN, bytes)?;
            ProbeStep::Return {
                probe: usize::from(probe),
                stack: all.get(registers::SP),
                to: all.get(registers::IP),
                returned: all.get(registers::AX),
            }
        }
        _ => return None,
    };
    Some(ProbeRecord { tid, cpu, step })
}
