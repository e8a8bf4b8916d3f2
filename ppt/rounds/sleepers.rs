//! Threads that sleep by the clock. A pause does not make their sleep longer, so they would look faster than they are.

use std::fs;

/// The largest accepted share of a thread's time.
const MAX_SHARE: f64 = 0.05;
/// Fewer samples say nothing.
const MIN_SAMPLES: u32 = 200;
/// The largest number of threads that are sampled at once.
const MAX_THREADS: usize = 64;
/// Numbers of nanosleep(2) and clock_nanosleep(2).
const SLEEPS: [i64; 2] = [nix::libc::SYS_nanosleep, nix::libc::SYS_clock_nanosleep];

/// Samples of what threads wait for.
#[derive(Debug)]
pub(super) struct Sleepers {
    pids: Vec<i32>,
    samples: u32,
    /// The mean number of threads that slept, as a sum over samples of shares.
    asleep: f64,
    /// Whether the system call of a thread can be read.
    is_readable: bool,
}

impl Sleepers {
    pub(super) fn new(pids: Vec<i32>) -> Self {
        Self { pids, samples: 0, asleep: 0.0, is_readable: false }
    }

    /// Samples the threads once.
    pub(super) fn look(&mut self) {
        let (mut threads, mut asleep) = (0u32, 0u32);
        for pid in &self.pids {
            let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for entry in entries.flatten().take(MAX_THREADS) {
                let Ok(text) = fs::read_to_string(entry.path().join("syscall")) else { continue };
                self.is_readable = true;
                threads += 1;
                asleep += u32::from(is_asleep(&text));
            }
        }
        if threads > 0 {
            self.samples += 1;
            self.asleep += f64::from(asleep) / f64::from(threads);
        }
    }

    /// The reason for which pauses would not show the truth.
    pub(super) fn refusal(&self) -> Option<String> {
        if !self.is_readable || self.samples < MIN_SAMPLES {
            return None;
        }
        let share = self.asleep / f64::from(self.samples);
        (share > MAX_SHARE).then(|| {
            format!(
                "threads of the program sleep by the clock for {:.1} % of the time (nanosleep); a pause does not make \
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
        let sleeper = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(1)));
        let mut sleepers = Sleepers::new(vec![std::process::id() as i32]);
        assert_eq!(sleepers.refusal(), None, "nothing is known yet");
        while !sleeper.is_finished() && sleepers.refusal().is_none() {
            sleepers.look();
        }
        let refusal = sleepers.refusal().unwrap();
        assert!(refusal.contains("sleep by the clock"), "{refusal}");
        sleeper.join().unwrap();
    }
}
