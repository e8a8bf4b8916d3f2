//! Processes that were seen but not captured, which ppt reports at the end.

use std::time::Duration;

use crate::code::Code;
use crate::failure::Failure;
use crate::report;

/// The most processes that the message names for each reason.
const NAMED: usize = 8;
/// The most reasons that ppt reports.
const REASONS: usize = 8;

#[derive(Default)]
pub(super) struct Missed {
    gone: u64,
    never_fetched: u64,
    spared: u64,
    late: Vec<Late>,
    refused: Vec<RefusedProcesses>,
}

/// A process that was captured, but not from its start.
struct Late {
    pid: i32,
    comm: String,
    age: Option<Duration>,
    relation: Relation,
}

/// The relation of a process to the capture.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    /// A captured process forked it.
    Child,
    /// The command started it.
    Program,
}

/// Processes that were refused for one reason, with the message of the first one.
struct RefusedProcesses {
    code: &'static str,
    message: String,
    others: Vec<String>,
    count: usize,
}

impl Missed {
    /// Counts a process that ended before ppt could attach.
    pub(super) fn gone(&mut self) {
        self.gone += 1;
    }

    /// Counts a process whose own segment vanished with it.
    pub(super) fn never_fetched(&mut self) {
        self.never_fetched += 1;
    }

    /// Counts a process that ppt left alone.
    pub(super) fn spared(&mut self) {
        self.spared += 1;
    }

    /// Remembers a refused process.
    pub(super) fn refused(&mut self, pid: i32, comm: String, why: Failure) {
        let (code, reasons) = (why.code(), self.refused.len());
        match self.refused.iter_mut().find(|processes| processes.code == code) {
            Some(reason) => {
                reason.count += 1;
                if reason.others.len() < NAMED {
                    reason.others.push(format!("{pid} ({comm})"));
                }
            }
            None if reasons < REASONS => {
                let message = format!("process {pid} ({comm}) was not captured: {}", why.message());
                self.refused.push(RefusedProcesses { code, message, others: Vec::new(), count: 0 });
            }
            None => {}
        }
    }

    /// Remembers a process that ppt found without a hello.
    pub(super) fn late(
        &mut self,
        pid: i32,
        comm: String,
        age: Option<Duration>,
        relation: Relation,
    ) {
        self.late.push(Late { pid, comm, age, relation });
    }

    /// Forgets a process whose hello has arrived after all, before its first frame.
    pub(super) fn said_hello(&mut self, pid: i32) {
        self.late.retain(|late| late.pid != pid);
    }

    pub(super) fn report(&self) {
        if self.gone > 0 {
            let (count, s) = (self.gone, if self.gone == 1 { "" } else { "es" });
            report::warning(
                Code::NotCaptured,
                format_args!(
                    "{count} forked process{s} ended, or started another program, before ppt could attach"
                ),
            );
        }
        if self.never_fetched > 0 {
            let (count, s) = (self.never_fetched, if self.never_fetched == 1 { "" } else { "es" });
            report::warning(
                Code::NotFetched,
                format_args!(
                    "{count} process{s} ended before ppt could fetch the segment: the frames of \
                     their last moments, if any, are not in the capture"
                ),
            );
        }
        if self.spared > 0 {
            let (count, s) = (self.spared, if self.spared == 1 { "" } else { "es" });
            report::warning(
                Code::ChildrenSpared,
                format_args!("{count} forked process{s} were left alone, and not captured"),
            );
        }
        for Late { pid, comm, age, relation } in self.late.iter().take(NAMED) {
            let age = age.map_or(" frames".into(), |age| format!(" {:.1} s", age.as_secs_f64()));
            let why = match relation {
                Relation::Program => {
                    "it was started without PPT_RUN and PPT_HELLO in its environment, or built \
                     with an older pptc"
                }
                Relation::Child => {
                    "it was forked before its parent was captured, by clone(2) without fork \
                     handlers, in another network namespace, or under a filter of system calls, or \
                     built with an older pptc"
                }
            };
            report::warning(
                Code::NotCaptured,
                format_args!(
                    "process {pid} ({comm}) did not report to ppt: its first{age} were not \
                     captured\n  {why}"
                ),
            );
        }
        if let Some(more) = self.late.len().checked_sub(NAMED).filter(|&more| more > 0) {
            report::warning(
                Code::NotCaptured,
                format_args!("{more} more processes did not report to ppt"),
            );
        }
        for RefusedProcesses { message, others, count, .. } in &self.refused {
            let others = match count - others.len() {
                _ if others.is_empty() => String::new(),
                0 => format!("\n  the same of {}", others.join(", ")),
                more => format!("\n  the same of {}, and {more} more", others.join(", ")),
            };
            report::warning(Code::NotCaptured, format_args!("{message}{others}"));
        }
    }
}
