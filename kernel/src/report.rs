//! What a record of the kernel says about a thread of the process.

use crate::probe_reader::ProbeRecord;
use crate::records::{Content, Record};
use crate::schema::{Comm, Waker, state};
use crate::sources::{EventSource, Sources};
use crate::stack_reader::StackRecord;
use crate::tracepoints::{Calls, Switch, Waking};
use crate::wakes::Wakes;

/// Bits of a tracepoint's flags: it was hit in an interrupt, or after one.
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;

/// A record, and whose event left it.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The thread whose event left the record; 0: an event of a CPU or of a probe.
    pub reporter: i32,
    pub record: KernelRecord,
}

/// A record whose raw bytes have been read.
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
    /// The kernel lost so many records of a CPU, since the time of the one before.
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

/// What a record says, if it is one of process `pid`; the one before it in its ring was at `before`.
pub(crate) fn read(
    record: &Record<'_>,
    before: u64,
    sources: &Sources,
    pid: i32,
    (waking, wakes): (&Option<Waking>, &mut Wakes),
    switch: &Option<Switch>,
    calls: &Option<Calls>,
) -> Option<Report> {
    let Record { time, id, tid, cpu, content, .. } = *record;
    if let Content::Lost(count) = content {
        return Some(Report {
            time,
            reporter: 0,
            record: KernelRecord::Lost { count, cpu, since: before },
        });
    }
    let (source, reporter) = *sources.get(&id)?;
    if !matches!(source, EventSource::Waking | EventSource::WakingOfAll) {
        wakes.end_wakeup();
    }
    let record_read = match (content, source) {
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
            KernelRecord::Wakeup {
                tid: it.pid.number(raw)? as i32,
                cpu: it.target_cpu.number(raw)? as u32,
                by,
                waker: tid,
            }
        }
        (Content::Sample { raw, .. }, EventSource::Switch) => {
            let it = switch.as_ref()?;
            KernelRecord::Successor {
                tid: it.prev_pid.number(raw)? as i32,
                cpu,
                state: state(it.prev_state.number(raw)? as u64),
                next: it.next_pid.number(raw)? as i32,
                name: it.next_comm.text(raw)?,
            }
        }
        (Content::Fork { pid: of, tid, parent }, EventSource::Thread) if of == pid => {
            KernelRecord::Fork { tid, parent }
        }
        (Content::Exit { tid }, EventSource::Thread) => KernelRecord::ThreadExit { tid },
        _ if record.pid != pid => return None,
        (Content::In, EventSource::Thread) => KernelRecord::SwitchIn { tid, cpu },
        (Content::Out { preempted }, EventSource::Thread) => {
            KernelRecord::SwitchOut { tid, cpu, preempted }
        }
        (Content::Sample { raw, .. }, EventSource::Enter) => KernelRecord::SyscallEnter {
            tid,
            cpu,
            call: calls.as_ref()?.enter_call.number(raw)? as u16,
        },
        (Content::Sample { raw, .. }, EventSource::Exit) => {
            let it = calls.as_ref()?;
            let call = it.exit_call.number(raw)? as u16;
            KernelRecord::SyscallExit { tid, cpu, call, result: it.result.number(raw)? }
        }
        (Content::Sample { address, .. }, EventSource::Minor) => {
            KernelRecord::PageFault { tid, cpu, major: false, address }
        }
        (Content::Sample { address, .. }, EventSource::Major) => {
            KernelRecord::PageFault { tid, cpu, major: true, address }
        }
        _ => return None,
    };
    Some(Report { time, reporter, record: record_read })
}
