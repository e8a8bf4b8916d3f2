//! Labels of threads for people.

use std::collections::HashMap;

use crate::set::CaptureSet;

/// The last name of each thread of a set.
#[derive(Debug, Clone, Default)]
pub struct ThreadLabels(HashMap<ThreadKey, LastName>);

/// Identifies a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ThreadKey {
    host: String,
    pid: u32,
    tid: u32,
}

/// A name, and the time since which the thread has it, ns since the epoch.
#[derive(Debug, Clone)]
struct LastName {
    time: Option<i64>,
    name: String,
}

impl ThreadLabels {
    /// The last names of the threads of `set`.
    pub fn new(set: &CaptureSet) -> ThreadLabels {
        let mut labels = ThreadLabels::default();
        for capture in set.captures() {
            let catalog = capture.catalog();
            for (process, names) in catalog.threads.iter() {
                let Some(last) = names.last() else { continue };
                let (host, pid) = (catalog.host().to_owned(), process.pid);
                let key = ThreadKey { host, pid, tid: last.tid };
                let time = catalog.epoch(last.mono_ns);
                // Captures are in any order of time.
                if labels.0.get(&key).is_none_or(|known| time >= known.time) {
                    labels.0.insert(key, LastName { time, name: last.text().into_owned() });
                }
            }
        }
        labels
    }

    /// The last name of thread `tid` of process `pid` of `host`, if it has one. The name comes from the
    /// target: escape it before you show it.
    pub fn name(&self, host: &str, pid: u32, tid: u32) -> Option<&str> {
        let last = self.0.get(&ThreadKey { host: host.to_owned(), pid, tid })?;
        Some(last.name.as_str()).filter(|name| !name.is_empty())
    }

    /// `TID (NAME)`, or `TID` if the name is unknown; None if `tid` is negative.
    pub fn label(&self, host: &str, pid: Option<i32>, tid: i32) -> Option<String> {
        let tid = u32::try_from(tid).ok()?;
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        Some(match pid.and_then(|pid| self.name(host, pid, tid)) {
            Some(name) => format!("{tid} ({name})"),
            None => tid.to_string(),
        })
    }
}
