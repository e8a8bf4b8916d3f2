//! Converts records of stacks into frames.

use std::collections::HashMap;
use std::sync::Arc;

use ppt_segment::Segment;

use crate::records::{Content, Record, stack_records};
use crate::sources::{EventSource, Sources};
use crate::stack_events::StackEvents;
use crate::stack_frames::{CallChain, StackCounts, StackFrame, StackWhy, StackWriter};
use crate::threads::Threads;
use crate::unwind::StackUnwinder;

/// The events that take stacks, and the segment of their frames.
#[derive(Debug)]
pub(crate) struct StackReader {
    pub events: StackEvents,
    pub segment: Arc<Segment>,
    pub counts: Arc<StackCounts>,
    /// The unwinder, if the events copy stacks.
    pub unwinder: Option<Arc<StackUnwinder>>,
}

/// A decoded record of a ring of stacks.
#[derive(Debug, Clone)]
pub(crate) struct StackRecord {
    tid: i32,
    cpu: u32,
    step: StackStep,
}

#[derive(Debug, Clone)]
enum StackStep {
    /// The thread runs.
    Runs { in_kernel: bool, chain: Box<CallChain> },
    /// The thread gives up its CPU.
    Leaves(Box<CallChain>),
    /// The thread has given up its CPU, because it was preempted or in order to wait.
    HasLeft { preempted: bool },
}

/// Converts records of stacks into frames.
pub(crate) struct StackDecoder<'a> {
    writer: StackWriter<'a>,
    /// For each thread that gives up its CPU, its stack.
    leaving: HashMap<i32, Box<CallChain>>,
}

impl<'a> StackDecoder<'a> {
    /// Begins with a frame that states the settings from `at` on.
    pub fn begin(
        segment: &'a Segment,
        counts: &'a StackCounts,
        events: &StackEvents,
        at: u64,
    ) -> Self {
        let mut writer = StackWriter::new(segment, counts);
        writer.begin(at, events.wanted, events.kernel);
        Self { writer, leaving: HashMap::new() }
    }

    /// Takes the records of all rings that are about process `pid`, and calls `report` with the time, the
    /// reporter and the decoded record of each. Returns the fill level of the fullest ring, from 0 to 1.
    pub fn take(
        &mut self,
        reader: &mut StackReader,
        bytes: &mut Vec<u8>,
        (sources, pid): (&Sources, i32),
        mut report: impl FnMut(u64, i32, StackRecord),
    ) -> f64 {
        let mut fullest = 0.0f64;
        for ring in &mut reader.events.rings {
            bytes.clear();
            ring.take(bytes);
            fullest = fullest.max(bytes.len() as f64 / ring.size() as f64);
            for record in stack_records(bytes) {
                if let Content::Lost(count) = record.content {
                    self.writer.lose(count);
                } else if let Some((reporter, stack)) =
                    read(&record, sources, pid, reader.unwinder.as_deref())
                {
                    report(record.time, reporter, stack);
                }
            }
        }
        fullest
    }

    /// Writes the frame of a record, unless another event reports it, too.
    pub fn write(&mut self, time: u64, reporter: i32, record: StackRecord, threads: &mut Threads) {
        let StackRecord { tid, cpu, step } = record;
        let Some(thread) = threads.report(tid, reporter) else { return };
        match step {
            StackStep::Runs { in_kernel, chain } => {
                let why = if in_kernel { StackWhy::Kernel } else { StackWhy::Running };
                self.writer.write_stack(time, &StackFrame { thread, cpu, why, chain: &chain });
            }
            StackStep::Leaves(chain) => _ = self.leaving.insert(tid, chain),
            StackStep::HasLeft { preempted } => {
                let chain = self.leaving.remove(&tid);
                // A thread that ends no longer has a stack.
                if let Some(chain) = chain.filter(|chain| !preempted && !chain.is_empty()) {
                    let why = StackWhy::Waiting;
                    self.writer.write_stack(time, &StackFrame { thread, cpu, why, chain: &chain });
                }
            }
        }
    }

    /// States the losses that no record has stated, after the last record.
    pub fn finish(&mut self, events: &StackEvents) {
        let unstated = events.lost().saturating_sub(self.writer.lost);
        self.writer.lose(unstated);
    }
}

fn read(
    record: &Record<'_>,
    sources: &Sources,
    pid: i32,
    unwinder: Option<&StackUnwinder>,
) -> Option<(i32, StackRecord)> {
    let Record { id, tid, cpu, content, .. } = *record;
    let (source, reporter) = *sources.get(&id)?;
    if record.pid != pid {
        return None;
    }
    let step = match (content, source) {
        (Content::Stack { in_kernel, chain, copy }, EventSource::Running) => {
            StackStep::Runs { in_kernel, chain: Box::new(call_chain(chain, copy, unwinder)) }
        }
        (Content::Stack { chain, copy, .. }, EventSource::Leaving) => {
            StackStep::Leaves(Box::new(call_chain(chain, copy, unwinder)))
        }
        (Content::Out { preempted }, EventSource::Leaving) => StackStep::HasLeft { preempted },
        _ => return None,
    };
    Some((reporter, StackRecord { tid, cpu, step }))
}

/// The stack by unwind tables. Newly mapped code, and code that a program makes itself, has no tables; then,
/// the stack that the kernel found by frame pointers.
fn call_chain(chain: &[u8], copy: &[u8], unwinder: Option<&StackUnwinder>) -> CallChain {
    let unwound = unwinder.and_then(|unwinder| unwinder.unwind(copy)).map(CallChain::unwound);
    unwound.filter(CallChain::has_callers).unwrap_or_else(|| CallChain::of_record(chain))
}
