//! The context switches of a CPU.

use std::io;

use crate::perf::{CountedEvent, EventTarget, PerfEvent, PerfRing};
use crate::records::{Content, records};

/// The size of the ring: a switch takes 48 bytes.
const RING_BYTES: usize = 1 << 18;

/// A thread got or gave up a CPU. Preempted threads are left out: they did not give it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadSwitch {
    /// The time, in ns of CLOCK_MONOTONIC.
    pub at: i64,
    /// 0: the CPU became idle.
    pub tid: i32,
    /// Whether it got the CPU. Else it waits.
    pub runs: bool,
}

/// Switches were lost.
#[derive(Debug)]
pub(super) struct SwitchesLost;

#[derive(Debug)]
pub(super) struct CpuSwitches {
    ring: PerfRing,
    bytes: Vec<u8>,
    _event: PerfEvent,
}

impl CpuSwitches {
    pub fn open(cpu: u32) -> io::Result<Self> {
        let target = EventTarget {
            counted: CountedEvent::Nothing,
            samples: false,
            raw: false,
            stack: false,
            stack_copy: false,
            switches: true,
            tasks: false,
            kernel: true,
            inherit: false,
        };
        let event = PerfEvent::open(&target, None, cpu)?;
        let ring = PerfRing::map(&event, RING_BYTES)?;
        event.enable()?;
        Ok(Self { ring, bytes: Vec::new(), _event: event })
    }

    /// Calls `take` with each switch since the last call.
    pub fn read(&mut self, mut take: impl FnMut(ThreadSwitch)) -> Result<(), SwitchesLost> {
        self.bytes.clear();
        self.ring.take(&mut self.bytes);
        let mut result = Ok(());
        for record in records(&self.bytes) {
            let (at, tid) = (record.time as i64, record.tid);
            match record.content {
                Content::In => take(ThreadSwitch { at, tid, runs: true }),
                Content::Out { preempted: false } => take(ThreadSwitch { at, tid, runs: false }),
                Content::Lost(_) => result = Err(SwitchesLost),
                _ => {}
            }
        }
        result
    }
}
