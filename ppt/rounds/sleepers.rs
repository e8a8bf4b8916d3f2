//! Threads that sleep by the clock. A pause does not make their sleep longer, so they would look faster than they are.

use std::fs;

use ppt_agent::RingOwners;

/// The largest accepted share of their time.
const MAX_SHARE: f64 = 0.05;
/// Fewer samples are inconclusive.
const MIN_SAMPLES: u32 = 200;
/// The largest number of threads of a process that are sampled at once.
const MAX_THREADS: usize = 64;
/// Numbers of nanosleep(2) and clock_nanosleep(2).
const SLEEPS: [i64; 2] = [nix::libc::SYS_nanosleep, nix::libc::SYS_clock_nanosleep];

/// Samples of the waits of threads that write frames.
#[derive(Debug)]
pub(super) struct Sleepers {
    /// The processes, and their threads that write frames.
    processes: Vec<(i32, RingOwners)>,
    /// The number of samples of one thread each.
    samples: u32,
    /// The number of those in which it slept.
    asleep: u32,
}

impl Sleepers {
    pub(super) fn new(processes: Vec<(i32, RingOwners)>) -> Self {
        Self { processes, samples: 0, asleep: 0 }
    }

    /// Samples the threads once.
    pub(super) fn look(&mut self) {
        for (pid, owners) in &self.processes {
            for tid in owners.tids().into_iter().take(MAX_THREADS) {
                // A thread that has ended, or is not the process's, has no such file.
                let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) else {
                    continue;
                };
                self.samples += 1;
                self.asleep += u32::from(is_asleep(&text));
            }
        }
    }

    /// The reason for which pauses would not show the truth.
    pub(super) fn refusal(&self) -> Option<String> {
        if self.samples < MIN_SAMPLES {
            return None;
        }
        let share = f64::from(self.asleep) / f64::from(self.samples);
        (share > MAX_SHARE).then(|| {
            format!(
                "threads that write frames sleep by the clock for {:.1} % of the time (nanosleep); a pause does not make \
                 that longer, so the answer would be wrong",
                share * 100.0
            )
        })
    }
}

/// Whether a line of /proc/PID/task/TID/syscall shows a sleep.
fn is_asleep(text: &str) -> bool {
    let number = text.split_whitespace().next().and_then(|word| word.parse().ok());
    number.is_some_and(|number: i64| SLEEPS.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_system_call() {
        let asleep =
            format!("{} 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7f", nix::libc::SYS_clock_nanosleep);
        assert!(is_asleep(&asleep) && !is_asleep("running\n") && !is_asleep("202 0x0\n"));
    }

    #[test]
    fn a_program_that_sleeps_is_refused() {
        let mut sleepers =
            Sleepers { samples: MIN_SAMPLES - 1, asleep: 20, ..Sleepers::new(Vec::new()) };
        assert_eq!(sleepers.refusal(), None, "too little is known yet");
        sleepers.samples += 1;
        let refusal = sleepers.refusal().unwrap();
        assert!(refusal.contains("sleep by the clock for 10.0 %"), "{refusal}");
        sleepers.asleep = 10;
        assert_eq!(sleepers.refusal(), None);
    }
}
