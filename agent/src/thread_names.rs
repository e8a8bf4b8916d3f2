//! The names of a process's threads, read repeatedly at a bounded cost.
//!
//! The kernel does not notify unprivileged processes when a thread changes its name. So each look
//! reads the names of a bounded number of threads and returns the changes. Every user may read
//! them.

use std::collections::HashMap;
use std::fs::ReadDir;

use rustix::time::{ClockId, clock_gettime};

use crate::target::Target;
use crate::threads::numbers;

/// Most threads whose names one look at a process reads.
pub const NAMES_A_LOOK: usize = 4096;
/// Most bytes of a name that are read. The kernel keeps 16 with the final zero.
const MAX_NAME_BYTES: u64 = 64;
/// Most bytes of a thread's status that are read.
const STATUS: u64 = 8192;

/// The name of a thread at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadName {
    /// The thread, in the process's own pid namespace.
    pub tid: u32,
    /// CLOCK_MONOTONIC in ns when the name was read.
    pub mono_ns: u64,
    /// The name: any bytes, zero-padded.
    pub name: [u8; 16],
}

/// The result of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameChanges {
    /// Threads that are new, or have another name.
    pub named: Vec<ThreadName>,
    /// Threads that have ended, by their numbers in the process's own pid namespace.
    pub ended: Vec<u32>,
}

/// The names of a process's threads, as last read.
#[derive(Debug, Default)]
pub struct ThreadNames {
    /// The last name of each thread, by its number in ppt's pid namespace.
    known: HashMap<i32, KnownThread>,
    /// Number of the pass through all threads.
    pass: u32,
    /// The rest of that pass.
    rest: Option<ReadDir>,
    /// Whether the process and ppt use the same thread numbers; `None` until known.
    same_numbers: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
struct KnownThread {
    tid: u32,
    name: [u8; 16],
    /// The last pass that found it.
    seen: u32,
}

impl ThreadNames {
    /// Reads the names of the next threads, at most `most`, and returns the changes.
    pub fn look(&mut self, target: &Target, most: usize) -> NameChanges {
        let mut changes = NameChanges::default();
        if self.rest.is_none() {
            self.pass = self.pass.wrapping_add(1);
            let tasks = target.system().proc.join(target.pid().to_string()).join("task");
            self.rest = tasks.read_dir().ok();
        }
        for _ in 0..most {
            match self.rest.as_mut().map(Iterator::next) {
                Some(Some(Ok(task))) => {
                    let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
                    changes.named.extend(tid.and_then(|tid| self.read(target, tid)));
                }
                Some(None) => {
                    self.end_pass(&mut changes);
                    break;
                }
                // The process is gone, which other code notices.
                Some(Some(Err(_))) | None => {
                    self.rest = None;
                    break;
                }
            }
        }
        changes
    }

    /// Whether the last look stopped before it had read all names.
    pub fn is_unfinished(&self) -> bool {
        self.rest.is_some()
    }

    /// Forgets all names, so that the next looks return all of them again.
    pub fn forget(&mut self) {
        self.known.clear();
        self.rest = None;
    }

    /// Reads the name of thread `ours`; returns it if it has changed.
    fn read(&mut self, target: &Target, ours: i32) -> Option<ThreadName> {
        let comm = target.read_file(&format!("task/{ours}/comm"), MAX_NAME_BYTES)?;
        let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
        let mut name = [0; 16];
        let len = comm.len().min(name.len());
        name[..len].copy_from_slice(&comm[..len]);
        if let Some(known) = self.known.get_mut(&ours)
            && known.name == name
        {
            known.seen = self.pass;
            return None;
        }
        let tid = self.number(target, ours)?;
        self.known.insert(ours, KnownThread { tid, name, seen: self.pass });
        let now = clock_gettime(ClockId::Monotonic);
        let mono_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Some(ThreadName { tid, mono_ns, name })
    }

    /// The process's own number of thread `ours`.
    fn number(&mut self, target: &Target, ours: i32) -> Option<u32> {
        if self.same_numbers == Some(true) {
            return u32::try_from(ours).ok();
        }
        let status = target.read_file(&format!("task/{ours}/status"), STATUS)?;
        let (inner, depth) = numbers(&status)?;
        self.same_numbers = Some(depth == 1);
        Some(inner)
    }

    fn end_pass(&mut self, changes: &mut NameChanges) {
        self.rest = None;
        let pass = self.pass;
        let gone = self.known.extract_if(|_, known| known.seen != pass);
        changes.ended.extend(gone.map(|(_, known)| known.tid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    fn named(changes: &NameChanges, tid: u32) -> Option<String> {
        let found = changes.named.iter().rfind(|name| name.tid == tid)?;
        Some(String::from_utf8_lossy(&found.name).trim_end_matches('\0').to_owned())
    }

    #[test]
    fn a_change_is_told_once() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let target = Target::open(&System::default(), pid as i32).unwrap();
        let mut names = ThreadNames::default();
        // Between fork and exec it has the name of our thread.
        while named(&names.look(&target, NAMES_A_LOOK), pid).as_deref() != Some("sleep") {
            std::thread::yield_now();
        }
        assert_eq!(names.look(&target, NAMES_A_LOOK), NameChanges::default());
        names.forget();
        assert_eq!(named(&names.look(&target, NAMES_A_LOOK), pid).as_deref(), Some("sleep"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names.look(&target, NAMES_A_LOOK).named, [], "it is gone");
    }
}
