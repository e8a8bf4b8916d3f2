//! Processes of a command that did not say hello: their program was built with an older pptc, lost
//! what it should have inherited, or has no buffers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ppt_agent::{System, parent, was_started_with};

/// The time for which ppt waits for the hello of a process.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// Most processes that one check searches.
const AT_ONCE: usize = 32;

#[derive(Default)]
pub(super) struct Strays {
    /// Live descendants of the command.
    family: BTreeSet<i32>,
    /// The unsearched processes, oldest first.
    waiting: Vec<WaitingProcess>,
}

/// A process that may still say hello.
struct WaitingProcess {
    pid: i32,
    /// The time at which ppt found the process, or that it runs another program.
    since: Instant,
    /// The name of the program, if a captured one started it by exec.
    after: Option<String>,
}

impl Strays {
    /// Begins with the command itself.
    pub(super) fn begin(&mut self, pid: i32) {
        self.add(pid);
    }

    /// Adds new processes. A process belongs to the command by its ancestors, or by a `variable` in
    /// its environment.
    pub(super) fn see(&mut self, newcomers: Vec<i32>, variable: &[u8]) {
        let system = System::default();
        let mut left = newcomers;
        loop {
            // A parent may have the higher pid.
            let before = left.len();
            left.retain(|&pid| {
                let is_ours =
                    parent(&system, pid).is_some_and(|number| self.family.contains(&number));
                if is_ours {
                    self.add(pid);
                }
                !is_ours
            });
            if left.len() == before {
                break;
            }
        }
        for pid in left {
            if was_started_with(&system, pid, variable) {
                self.add(pid);
            }
        }
    }

    fn add(&mut self, pid: i32) {
        if self.family.insert(pid) {
            self.waiting.push(WaitingProcess { pid, since: Instant::now(), after: None });
        }
    }

    /// Adds a captured process again, because it runs another program now.
    pub(super) fn begin_anew(&mut self, pid: i32, comm: String) {
        self.family.insert(pid);
        self.say_hello(pid);
        let process = WaitingProcess { pid, since: Instant::now(), after: Some(comm) };
        self.waiting.push(process);
    }

    /// Records that a process has said hello.
    pub(super) fn say_hello(&mut self, pid: i32) {
        self.waiting.retain(|process| process.pid != pid);
    }

    /// Removes processes that have ended. Returns pids and names of those that a captured program
    /// became without another hello.
    pub(super) fn forget(&mut self, gone: impl Fn(i32) -> bool) -> Vec<(i32, String)> {
        self.family.retain(|&pid| !gone(pid));
        let ended = self.waiting.extract_if(.., |process| gone(process.pid));
        ended.filter_map(|process| Some((process.pid, process.after?))).collect()
    }

    /// Whether one of those that `counts` accepts is yet to be searched.
    pub(super) fn are_awaited(&self, counts: impl Fn(i32) -> bool) -> bool {
        self.waiting.iter().any(|process| counts(process.pid))
    }

    /// Takes some of the processes that had the time to say hello.
    pub(super) fn due(&mut self) -> Vec<i32> {
        let is_due = |process: &&WaitingProcess| process.since.elapsed() >= HELLO_TIMEOUT;
        let count = self.waiting.iter().take(AT_ONCE).take_while(is_due).count();
        self.waiting.drain(..count).map(|process| process.pid).collect()
    }
}
