//! Adds the names of the threads in an answer.

use ppt_tables::ThreadLabels;

use super::answer::SlowInterval;
use super::cut::{TimeUse, WokenBy};

impl SlowInterval {
    /// Adds the names of its thread, of the threads that woke it or took its CPU, and of those that it
    /// waited for.
    pub(super) fn name_threads(&mut self, labels: &ThreadLabels) {
        let pid = self.pid.and_then(|pid| u32::try_from(pid).ok());
        let name = |tid: Option<i32>| {
            let tid = u32::try_from(tid?).ok()?;
            labels.name(&self.host, pid?, tid).map(str::to_owned)
        };
        self.thread = name(self.tid);
        for part in &mut self.parts {
            part.state.name_threads(&name);
            for hop in &mut part.hops {
                hop.name = name(Some(hop.thread));
                hop.state.name_threads(&name);
            }
        }
    }
}

impl TimeUse {
    fn name_threads(&mut self, name_of: &impl Fn(Option<i32>) -> Option<String>) {
        match self {
            TimeUse::Blocked { by, .. } | TimeUse::Faulting(by) | TimeUse::WokenLate(by) => {
                by.name = name_of(by.thread);
            }
            // A name from the kernel's frame stays: it is the name at that time.
            TimeUse::Preempted { by, name: name @ None } => *name = name_of(*by),
            TimeUse::Running | TimeUse::Preempted { .. } | TimeUse::Unknown => {}
        }
    }
}

impl WokenBy {
    /// The number and name of the thread, if it is one of the program.
    pub(super) fn label(&self) -> Option<String> {
        Some(labelled(self.thread?, self.name.as_deref()))
    }
}

/// `7 (worker)`, or `7` where no name is known.
pub(super) fn labelled(tid: i32, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{tid} ({name})"),
        None => tid.to_string(),
    }
}
