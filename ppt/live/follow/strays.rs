//! Processes of a command that have said no hello: they were built with an older pptc, or what they
//! should have inherited was taken away.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use ppt_agent::{System, parent, was_started_with};

/// How long a process may take to say hello.
const PATIENCE: Duration = Duration::from_secs(1);
/// Processes that are searched at one look.
const AT_ONCE: usize = 32;

#[derive(Default)]
pub(super) struct Strays {
    /// What descends from the command, and lives.
    family: BTreeSet<i32>,
    /// Those of them that nobody has looked at, and since when they are known.
    waiting: VecDeque<(i32, Instant)>,
}

impl Strays {
    /// The command itself.
    pub(super) fn begin(&mut self, pid: i32) {
        self.family.insert(pid);
        self.waiting.push_back((pid, Instant::now()));
    }

    /// Processes have come: those that descend from the command, by their ancestors or by
    /// a `variable` in their environment, are of its family.
    pub(super) fn see(&mut self, newcomers: Vec<i32>, variable: &[u8]) {
        let system = System::default();
        let mut left = newcomers;
        loop {
            // A parent may have the higher number.
            let before = left.len();
            left.retain(|&pid| {
                let is_ours = parent(&system, pid).is_some_and(|it| self.family.contains(&it));
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
            self.waiting.push_back((pid, Instant::now()));
        }
    }

    /// Forgets those that are gone.
    pub(super) fn forget(&mut self, gone: impl Fn(i32) -> bool) {
        self.family.retain(|&pid| !gone(pid));
        self.waiting.retain(|&(pid, _)| !gone(pid));
    }

    /// Some of those that had the time to say hello; each once.
    pub(super) fn due(&mut self) -> Vec<i32> {
        let due = |it: &&(i32, Instant)| it.1.elapsed() >= PATIENCE;
        let count = self.waiting.iter().take(AT_ONCE).take_while(due).count();
        self.waiting.drain(..count).map(|(pid, _)| pid).collect()
    }
}
