//! Processes detached by another command. ppt does not enable their buffers again.

use ppt_agent::{Buffer, Target};

use crate::code::Code;
use crate::report;

/// The most processes that the message names.
const NAMED: usize = 8;

#[derive(Default)]
pub(super) struct Detached(Vec<DetachedProcess>);

struct DetachedProcess {
    pid: i32,
    start_time: u64,
    comm: String,
    /// The disabled buffers.
    buffers: Vec<Buffer>,
}

impl DetachedProcess {
    fn is(&self, target: &Target) -> bool {
        (self.pid, self.start_time) == (target.pid(), target.start_time())
    }
}

impl Detached {
    /// Records that another command disabled this buffer or took it over.
    pub(super) fn add(&mut self, target: &Target, buffer: &Buffer) {
        match self.0.iter_mut().find(|process| process.is(target)) {
            Some(process) => process.buffers.push(buffer.clone()),
            None => self.0.push(DetachedProcess {
                pid: target.pid(),
                start_time: target.start_time(),
                comm: target.comm().into(),
                buffers: vec![buffer.clone()],
            }),
        }
    }

    /// Whether this buffer stays disabled. If no buffer of a process `is_captured` any more, its
    /// later plugins and programs stay disabled, too.
    pub(super) fn has(&self, target: &Target, buffer: &Buffer, is_captured: bool) -> bool {
        let process = self.0.iter().find(|process| process.is(target));
        process.is_some_and(|process| {
            !is_captured || process.buffers.iter().any(|disabled| disabled.is_copy_of(buffer))
        })
    }

    /// Reports at the end the processes with missing frames.
    pub(super) fn report(&self) {
        let named =
            self.0.iter().take(NAMED).map(|process| format!("{} ({})", process.pid, process.comm));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match self.0.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !self.0.is_empty() {
            report::warning(
                Code::NotCaptured,
                format_args!(
                    "detached during the capture: process {named}{more}; what was written after \
                     that is not in the capture"
                ),
            );
        }
    }
}
