//! The decoder of records of the kernel about the threads of a process.

use crate::latest_wakeup::LatestWakeup;
use crate::probe_reader::ProbeRecord;
use crate::records::{Content, Record};
use crate::schema::{Comm, Waker, state};
use crate::sources::{EventSource, Sources};
use crate::stack_reader::StackRecord;
use crate::tracepoints::{Calls, Switch, Waking};

/// The flags of a tracepoint that was hit in a hard or soft interrupt.
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;

/// A decoded record, and the thread whose event wrote it.
#[derive(Debug, Clone)]
pub(crate) struct ReportedRecord {
    /// ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The thread whose event wrote the record; 0 for an event of a CPU or of a probe.
    pub reporter: i32,
    pub record: KernelRecord,
}

/// A decoded record.
#[derive(Debug, Clone)]
pub(crate) enum KernelRecord {
    SwitchIn {
        tid: i32,
        cpu: u32,
    },
    SwitchOut {
        tid: i32,
        cpu: u32,
        preempted: bool,
    },
    Fork {
        tid: i32,
        parent: i32,
    },
    ThreadExit {
        tid: i32,
    },
    /// The kernel lost records of a CPU, since the time of the previous one.
    Lost {
        count: u64,
        cpu: u32,
        since: u64,
    },
    SyscallEnter {
        tid: i32,
        cpu: u32,
        call: u16,
    },
    SyscallExit {
        tid: i32,
        cpu: u32,
        call: u16,
        result: i64,
    },
    PageFault {
        tid: i32,
        cpu: u32,
        major: bool,
        address: u64,
    },
    Wakeup {
        tid: i32,
        cpu: u32,
        by: Waker,
        waker: i32,
    },
    Successor {
        tid: i32,
        cpu: u32,
        state: u8,
        next: i32,
        name: Comm,
    },
    Stack(StackRecord),
    Probe(ProbeRecord),
}

/// Decodes the records of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordDecoder<'a> {
    pub sources: &'a Sources,
    /// The process.
    pub pid: i32,
    pub waking: Option<&'a Waking>,
    pub switch: Option<&'a Switch>,
    pub calls: Option<&'a Calls>,
}

impl RecordDecoder<'_> {
    /// Decodes a record; None if it is not about the process. The previous record of its ring was at
    /// `previous_ns`, and `wakes` has the latest wake-up of that ring.
    pub fn decode(
        &self,
        record: &Record<'_>,
        previous_ns: u64,
        wakes: &mut LatestWakeup,
    ) -> Option<ReportedRecord> {
        let Record { time, id, tid, cpu, content, .. } = *record;
        if let Content::Lost(count) = content {
            return Some(ReportedRecord {
                time,
                reporter: 0,
                record: KernelRecord::Lost { count, cpu, since: previous_ns },
            });
        }
        let (source, reporter) = *self.sources.get(&id)?;
        if !matches!(source, EventSource::Waking | EventSource::WakingOfAll) {
            wakes.end_wakeup();
        }
        let decoded = match (content, source) {
            // Only these records may come from other processes.
            (Content::Sample { raw, .. }, EventSource::Waking | EventSource::WakingOfAll) => {
                let waking = self.waking?;
                if !wakes.is_another(source == EventSource::WakingOfAll, raw) {
                    return None;
                }
                let by = match () {
                    () if waking.flags.number(raw)? & IN_INTERRUPT != 0 => Waker::Interrupt,
                    () if record.pid == self.pid => Waker::Thread,
                    () => Waker::Process,
                };
                KernelRecord::Wakeup {
                    tid: waking.pid.number(raw)? as i32,
                    cpu: waking.target_cpu.number(raw)? as u32,
                    by,
                    waker: tid,
                }
            }
            (Content::Sample { raw, .. }, EventSource::Switch) => {
                let switch = self.switch?;
                KernelRecord::Successor {
                    tid: switch.prev_pid.number(raw)? as i32,
                    cpu,
                    state: state(switch.prev_state.number(raw)? as u64),
                    next: switch.next_pid.number(raw)? as i32,
                    name: switch.next_comm.text(raw)?,
                }
            }
            (Content::Fork { pid, tid, parent }, EventSource::Thread) if pid == self.pid => {
                KernelRecord::Fork { tid, parent }
            }
            (Content::Exit { tid }, EventSource::Thread) => KernelRecord::ThreadExit { tid },
            _ if record.pid != self.pid => return None,
            (Content::In, EventSource::Thread) => KernelRecord::SwitchIn { tid, cpu },
            (Content::Out { preempted }, EventSource::Thread) => {
                KernelRecord::SwitchOut { tid, cpu, preempted }
            }
            (Content::Sample { raw, .. }, EventSource::Enter) => KernelRecord::SyscallEnter {
                tid,
                cpu,
                call: self.calls?.enter_call.number(raw)? as u16,
            },
            (Content::Sample { raw, .. }, EventSource::Exit) => {
                let calls = self.calls?;
                let call = calls.exit_call.number(raw)? as u16;
                KernelRecord::SyscallExit { tid, cpu, call, result: calls.result.number(raw)? }
            }
            (Content::Sample { address, .. }, EventSource::Minor) => {
                KernelRecord::PageFault { tid, cpu, major: false, address }
            }
            (Content::Sample { address, .. }, EventSource::Major) => {
                KernelRecord::PageFault { tid, cpu, major: true, address }
            }
            _ => return None,
        };
        Some(ReportedRecord { time, reporter, record: decoded })
    }
}
