//! Finds out which threads of a process exist, by the process's own numbers. It is called often,
//! for many threads.
//!
//! In our own pid namespace, one system call suffices: tgkill(2) with signal 0 sends nothing. It
//! needs no right to send a signal: the call is refused for an existing thread of another user, and
//! fails with "not found" for a thread that has ended. In another pid namespace, the numbers must
//! be learnt from the `NSpid` of every thread. Each call learns a bounded part of them.

use std::collections::HashMap;
use std::fs::ReadDir;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Most threads whose numbers are learnt in one call.
const STEP: usize = 64;
/// Number of complete passes without a match before a thread counts as gone: a directory that
/// changes while it is read may skip an entry.
const PASSES: u32 = 2;

/// Reports which threads of a process exist. Clones share what they have learnt.
#[derive(Debug, Clone)]
pub struct Threads {
    pid: i32,
    /// `None` if the process's numbers are ours.
    theirs: Option<Arc<Mutex<ThreadNumbers>>>,
}

impl Threads {
    /// For process `pid`, whose thread numbers are ours.
    pub(crate) fn of_our_namespace(pid: i32) -> Self {
        Self { pid, theirs: None }
    }

    /// For process `pid` of another pid namespace; `tasks` is its folder `task`.
    pub(crate) fn of_another_namespace(pid: i32, tasks: PathBuf) -> Self {
        let numbers = ThreadNumbers { tasks, ..ThreadNumbers::default() };
        Self { pid, theirs: Some(Arc::new(Mutex::new(numbers))) }
    }

    /// Whether the thread that the process knows as `tid` exists. `None` if that is not known yet;
    /// ask again later. It takes some microseconds, or a millisecond while it learns numbers.
    pub fn has(&self, tid: u32) -> Option<bool> {
        let Some(theirs) = &self.theirs else { return Some(exists(self.pid, tid)) };
        let mut numbers = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.has(self.pid, tid)
    }
}

/// The known threads of a process in another pid namespace.
#[derive(Debug, Default)]
struct ThreadNumbers {
    tasks: PathBuf,
    /// Our number of each thread that the last pass found, by the process's own number.
    ours: HashMap<u32, u32>,
    /// The threads found in the current pass.
    found: HashMap<u32, u32>,
    /// The current pass over all threads of the process.
    pass: Option<ReadDir>,
    /// Threads that were requested but not found.
    missed: HashMap<u32, Missed>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Missed {
    /// Passes that began and ended without it.
    passes: u32,
    /// Whether one more pass has begun.
    under_way: bool,
}

impl ThreadNumbers {
    fn has(&mut self, pid: i32, tid: u32) -> Option<bool> {
        if let Some(ours) = self.known(tid) {
            if exists(pid, ours) {
                // If our number has been reused for another thread of the process, a thread that is
                // gone is taken for a live one. The reverse never happens.
                return Some(true);
            }
            self.ours.remove(&tid);
            self.found.remove(&tid);
        }
        self.missed.entry(tid).or_default();
        self.learn();
        let found = match self.known(tid) {
            Some(_) => Some(true),
            None => (self.missed[&tid].passes >= PASSES).then_some(false),
        };
        if found.is_some() {
            self.missed.remove(&tid);
        }
        found
    }

    fn known(&self, tid: u32) -> Option<u32> {
        self.found.get(&tid).or_else(|| self.ours.get(&tid)).copied()
    }

    /// Continues the pass over the threads.
    fn learn(&mut self) {
        if self.pass.is_none() {
            self.missed.values_mut().for_each(|missed| missed.under_way = true);
            self.pass = self.tasks.read_dir().ok();
        }
        for _ in 0..STEP {
            let task = match self.pass.as_mut().map(Iterator::next) {
                Some(Some(Ok(task))) => task,
                Some(None) => return self.end_pass(),
                // The process is gone, which other code notices.
                Some(Some(Err(_))) | None => return self.pass = None,
            };
            let ours = task.file_name().to_str().and_then(|text| text.parse().ok());
            // A thread that ends during the pass is not the requested one, or the requested one is
            // gone.
            let status = std::fs::read(task.path().join("status"));
            if let (Some(ours), Some(theirs)) =
                (ours, status.ok().and_then(|status| innermost(&status)))
            {
                self.found.insert(theirs, ours);
            }
        }
    }

    fn end_pass(&mut self) {
        self.pass = None;
        self.ours = std::mem::take(&mut self.found);
        self.missed
            .values_mut()
            .filter(|missed| missed.under_way)
            .for_each(|missed| missed.passes += 1);
        // The other threads are no longer requested.
        self.missed.retain(|_, missed| missed.passes < 4 * PASSES);
    }
}

/// The last number of the line `NSpid`: that of the innermost namespace.
fn innermost(status: &[u8]) -> Option<u32> {
    numbers(status).map(|(innermost, _)| innermost)
}

/// The last number of the line `NSpid`, and the count of numbers, one for each pid namespace. Names
/// may hold any bytes.
pub(crate) fn numbers(status: &[u8]) -> Option<(u32, usize)> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    let mut numbers = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let depth = numbers.clone().count();
    Some((numbers.next_back()?.parse().ok()?, depth))
}

/// Whether thread `tid` of process `pid` exists, by our numbers.
fn exists(pid: i32, tid: u32) -> bool {
    let Ok(tid) = i32::try_from(tid) else { return false };
    // SAFETY: no pointers, and signal 0 only checks whether a signal could be sent.
    let found = unsafe { nix::libc::syscall(nix::libc::SYS_tgkill, pid, tid, 0) };
    // A refusal means that it exists: EPERM, or the errno of a security module.
    found == 0 || std::io::Error::last_os_error().raw_os_error() != Some(nix::libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Our own threads under other numbers: the process's numbers are ours plus 100,000.
    fn numbered(tasks: &std::path::Path, tids: &[u32]) {
        let _ = fs::remove_dir_all(tasks);
        for tid in tids {
            let folder = tasks.join(tid.to_string());
            fs::create_dir_all(&folder).unwrap();
            let status = format!("Name:\tit\nNSpid:\t{tid}\t{}\n", tid + 100_000);
            fs::write(folder.join("status"), status).unwrap();
        }
    }

    fn us() -> (i32, u32) {
        let pid = std::process::id();
        (pid as i32, pid)
    }

    #[test]
    fn a_thread_of_ours_is_there_and_another_programs_is_not() {
        let (pid, tid) = us();
        let threads = Threads::of_our_namespace(pid);
        assert_eq!(threads.has(tid), Some(true));
        let (send, tids) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || send.send(rustix::thread::gettid().as_raw_pid()));
        let other_tid = tids.recv().unwrap() as u32;
        other.join().unwrap().unwrap();
        // The kernel may take a moment to remove a thread that has been joined.
        while threads.has(other_tid) == Some(true) {
            std::thread::yield_now();
        }
        assert_eq!(threads.has(1), Some(false), "init is no thread of ours");
        assert_eq!(threads.has(u32::MAX), Some(false));
    }

    #[test]
    fn numbers_of_another_namespace_are_learnt() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = folder.path().join("task");
        let (pid, tid) = us();
        numbered(&tasks, &[tid]);
        let threads = Threads::of_another_namespace(pid, tasks.clone());
        assert_eq!(threads.has(tid + 100_000), Some(true));
        assert_eq!(threads.has(tid), None, "not seen once is not gone");
        assert_eq!(threads.has(tid), Some(false));
        // A thread that was there, and is no longer found by our number, is searched for again.
        numbered(&tasks, &[1]);
        let again = Threads::of_another_namespace(pid, tasks.clone());
        assert_eq!(again.has(100_001), Some(true), "as far as is known");
        assert_eq!([again.has(7), again.has(7)], [None, Some(false)]);
    }

    #[test]
    fn a_question_learns_a_bounded_number() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = folder.path().join("task");
        let tids: Vec<u32> = (1..=4 * STEP as u32).collect();
        numbered(&tasks, &tids);
        let threads = Threads::of_another_namespace(us().0, tasks);
        let mut questions = 0;
        while threads.has(7).is_none() {
            questions += 1;
        }
        assert!(questions >= 2 * 4, "{questions}");
        assert_eq!(threads.has(7), None, "and anew");
    }

    #[test]
    fn any_bytes_are_a_status() {
        assert_eq!(innermost(b"Name:\t\xff\nNSpid:\t77\t5\n"), Some(5));
        assert_eq!(innermost(b"NSpid:\t77\n"), Some(77));
        for bad in [&b""[..], b"NSpid:", b"NSpid:\tx", b"Pid:\t5\n", b"NSpid:\t\xff"] {
            assert_eq!(innermost(bad), None);
        }
    }
}
