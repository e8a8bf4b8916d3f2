//! What threads are called, for people.

use std::collections::HashMap;

use crate::set::CaptureSet;

/// The last name of each thread of a set.
#[derive(Debug, Clone, Default)]
pub struct ThreadLabels(HashMap<(String, u32), HashMap<u32, String>>);

impl ThreadLabels {
    /// Those of `set`.
    pub fn of(set: &CaptureSet) -> ThreadLabels {
        let mut last: HashMap<(String, u32), HashMap<u32, (Option<i64>, String)>> = HashMap::new();
        for capture in set.captures() {
            let catalog = capture.catalog();
            for ((pid, _), names) in catalog.threads.iter() {
                let Some(name) = names.last() else { continue };
                let time = catalog.epoch(name.mono_ns);
                let threads = last.entry((catalog.host().to_owned(), pid)).or_default();
                let known = threads.entry(name.tid).or_default();
                // Captures come in any order.
                if known.1.is_empty() || time >= known.0 {
                    *known = (time, name.text().into_owned());
                }
            }
        }
        let without_times = |threads: HashMap<u32, (Option<i64>, String)>| {
            threads.into_iter().map(|(tid, (_, name))| (tid, name)).collect()
        };
        ThreadLabels(last.into_iter().map(|(key, it)| (key, without_times(it))).collect())
    }

    /// The last name of thread `tid` of process `pid` of `host`, if it has one. It comes from the
    /// target, so escape it before you show it.
    pub fn name(&self, host: &str, pid: u32, tid: u32) -> Option<&str> {
        let threads = self.0.get(&(host.to_owned(), pid))?;
        threads.get(&tid).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// `TID (NAME)`, or `TID` where no name is known. None for a number that no thread has.
    pub fn label(&self, host: &str, pid: Option<i32>, tid: i32) -> Option<String> {
        let tid = u32::try_from(tid).ok()?;
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        Some(match pid.and_then(|pid| self.name(host, pid, tid)) {
            Some(name) => format!("{tid} ({name})"),
            None => tid.to_string(),
        })
    }
}
