//! The threads of a process, their numbers, and the events that report them.
//!
//! Threads inherit the events of the thread that makes them. While ppt opens events, threads may make threads:
//! some of these have an event of their own and an inherited one, and both write records. So each thread has
//! one *reporter*: the thread whose event reports it. Reports of other events are repetitions.

use std::collections::HashMap;
use std::fs;

/// The known threads of a process.
#[derive(Debug)]
pub(crate) struct Threads {
    pid: i32,
    /// The pid namespace of the process has the same numbers as ppt's.
    same_numbers: bool,
    known: HashMap<i32, TracedThread>,
}

#[derive(Debug, Clone, Copy)]
struct TracedThread {
    reporter: i32,
    /// The number in its own pid namespace; 0 if unknown.
    inner: i32,
    /// Whether the thread gave up its CPU to wait.
    waits: bool,
    /// Whether the thread was woken since it got a CPU.
    woken: bool,
    /// The successor on its CPU was reported.
    has_successor: bool,
}

impl TracedThread {
    fn new(reporter: i32, inner: i32) -> Self {
        Self { reporter, inner, waits: false, woken: false, has_successor: false }
    }
}

impl Threads {
    /// The threads of process `pid` that have events of their own.
    pub fn new(pid: i32, opened: impl IntoIterator<Item = i32>) -> Self {
        let same_numbers = inner(pid, pid).is_none_or(|inner| inner == pid) && depth(pid) <= 1;
        let mut all = Self { pid, same_numbers, known: HashMap::new() };
        for tid in opened {
            let thread = TracedThread::new(tid, all.look_up(tid));
            all.known.insert(tid, thread);
        }
        all
    }

    /// The number of the process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The numbers of the threads in ppt's pid namespace.
    pub fn all(&self) -> impl Iterator<Item = i32> {
        self.known.keys().copied()
    }

    /// The number of `tid` in its own pid namespace, if it is a thread of the process.
    pub fn number(&self, tid: i32) -> Option<i32> {
        Some(self.known.get(&tid)?.inner)
    }

    /// The number of a thread that runs code of the process in its own pid namespace; 0 if unknown.
    pub fn number_or_look_up(&self, tid: i32) -> i32 {
        self.number(tid).unwrap_or_else(|| self.look_up(tid))
    }

    /// The number of a thread that an event of `reporter` reports; None if another event reports it.
    pub fn report(&mut self, tid: i32, reporter: i32) -> Option<i32> {
        let thread = match self.known.get(&tid) {
            Some(thread) => *thread,
            // The record of its start was lost, or comes later.
            None => self.insert(tid, reporter),
        };
        (thread.reporter == reporter).then_some(thread.inner)
    }

    /// Notes that the successor on a thread's CPU was reported.
    pub fn note_successor(&mut self, tid: i32) {
        if let Some(thread) = self.known.get_mut(&tid) {
            thread.has_successor = true;
        }
    }

    /// Notes that a thread gave up its CPU, either to wait or because it was preempted. Returns whether its
    /// successor was reported.
    pub fn switch_out(&mut self, tid: i32, waits: bool) -> bool {
        let Some(thread) = self.known.get_mut(&tid) else { return false };
        thread.waits = waits;
        std::mem::take(&mut thread.has_successor)
    }

    /// Notes that a thread was woken. The record may come before that of the switch.
    pub fn note_wakeup(&mut self, tid: i32) {
        if let Some(thread) = self.known.get_mut(&tid) {
            thread.woken = true;
        }
    }

    /// Notes that a thread got a CPU. Returns whether it waited without a record of its wake-up.
    pub fn switch_in(&mut self, tid: i32) -> bool {
        let Some(thread) = self.known.get_mut(&tid) else { return false };
        let is_missing = thread.waits && !thread.woken;
        (thread.waits, thread.woken) = (false, false);
        is_missing
    }

    /// Forgets which threads wait, and which successors are due, after a loss of records.
    pub fn forget_waits(&mut self) {
        for thread in self.known.values_mut() {
            (thread.waits, thread.has_successor) = (false, true);
        }
    }

    /// Adds a thread that an event of `reporter` reports. Returns its number and its parent's, unless another
    /// event reports it.
    pub fn born(&mut self, tid: i32, parent: i32, reporter: i32) -> Option<(i32, i32)> {
        let of_parent = self.known.get(&parent).map_or(reporter, |thread| thread.reporter);
        if of_parent != reporter {
            return None;
        }
        let inner = self.insert(tid, reporter).inner;
        Some((inner, self.number(parent).unwrap_or(0)))
    }

    /// Removes a thread that ended. Returns its number, unless another event reports it.
    pub fn ended(&mut self, tid: i32, reporter: i32) -> Option<i32> {
        let thread = *self.known.get(&tid)?;
        (thread.reporter == reporter).then(|| {
            self.known.remove(&tid);
            thread.inner
        })
    }

    fn insert(&mut self, tid: i32, reporter: i32) -> TracedThread {
        let thread = TracedThread::new(reporter, self.look_up(tid));
        self.known.insert(tid, thread);
        thread
    }

    fn look_up(&self, tid: i32) -> i32 {
        if self.same_numbers { tid } else { inner(self.pid, tid).unwrap_or(0) }
    }
}

/// The current threads of process `pid`.
pub(crate) fn list(pid: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The number of thread `tid` in its innermost pid namespace.
fn inner(pid: i32, tid: i32) -> Option<i32> {
    numbers(pid, tid)?.last().copied()
}

/// The number of pid namespaces, from ppt's on, in which the process has a number.
fn depth(pid: i32) -> usize {
    numbers(pid, pid).map_or(0, |number| number.len())
}

fn numbers(pid: i32, tid: i32) -> Option<Vec<i32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Threads {
        // No such process exists, so numbers are not looked up.
        let mut threads = Threads::new(0, []);
        threads.same_numbers = true;
        for tid in [10, 11] {
            threads.known.insert(tid, TracedThread::new(tid, tid));
        }
        threads
    }

    #[test]
    fn each_thread_has_one_reporter() {
        let mut threads = threads();
        // 10 made 11 while events were opened: 11 has its own event and an inherited one.
        assert_eq!(threads.report(11, 11), Some(11));
        assert_eq!(threads.report(11, 10), None, "reported already");
        // Threads that 11 makes inherit both.
        assert_eq!(threads.born(12, 11, 10), None);
        assert_eq!(threads.born(12, 11, 11), Some((12, 11)));
        assert_eq!(threads.report(12, 10), None);
        assert_eq!(threads.report(12, 11), Some(12));
        assert_eq!(threads.ended(12, 10), None);
        assert_eq!(threads.ended(12, 11), Some(12));
        assert_eq!(threads.number(12), None);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let mut threads = threads();
        assert_eq!(threads.ended(11, 11), Some(11));
        assert_eq!(threads.born(11, 10, 10), Some((11, 10)));
        assert_eq!(threads.report(11, 10), Some(11));
        // The record of its end was lost.
        assert_eq!(threads.born(10, 11, 10), Some((10, 11)));
        assert_eq!(threads.report(10, 10), Some(10));
    }

    #[test]
    fn who_waited_was_woken() {
        let mut threads = threads();
        assert!(!threads.switch_in(10), "what it did before is not known");
        threads.switch_out(10, true);
        threads.note_wakeup(10);
        assert!(!threads.switch_in(10));
        // The wake-up comes before the switch.
        threads.note_wakeup(10);
        threads.switch_out(10, true);
        assert!(!threads.switch_in(10));
        threads.switch_out(10, true);
        assert!(threads.switch_in(10));
        threads.switch_out(10, true);
        threads.forget_waits();
        assert!(!threads.switch_in(10));
        threads.note_successor(10);
        assert!(threads.switch_out(10, false));
        assert!(!threads.switch_out(10, false));
        assert!(!threads.switch_in(10), "it wanted its CPU all the time");
    }

    #[test]
    fn a_thread_whose_beginning_was_lost_is_known() {
        let mut threads = threads();
        assert_eq!(threads.report(77, 10), Some(77));
        assert_eq!(threads.report(77, 11), None);
        assert!(threads.all().any(|tid| tid == 77));
    }

    #[test]
    fn our_own_threads_are_listed() {
        let pid = std::process::id() as i32;
        assert!(list(pid).contains(&pid));
        assert_eq!(inner(pid, pid), Some(pid));
    }
}
