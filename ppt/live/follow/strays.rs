//! Processes of a command that did not say hello: their program was built with an older pptc, or
//! lost what it should have inherited.

use std::collections::{BTreeSet, VecDeque};
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
    waiting: VecDeque<WaitingProcess>,
}

/// A process that may still say hello.
struct WaitingProcess {
    pid: i32,
    /// The time at which ppt found the process.
    since: Instant,
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
            self.waiting.push_back(WaitingProcess { pid, since: Instant::now() });
        }
    }

    /// Removes processes that have ended.
    pub(super) fn forget(&mut self, gone: impl Fn(i32) -> bool) {
        self.family.retain(|&pid| !gone(pid));
        self.waiting.retain(|process| !gone(process.pid));
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
