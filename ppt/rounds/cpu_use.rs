//! How much of the CPUs programs use. If they fill them, the end of an interval is no measure of its work.

use std::fs;
use std::time::{Duration, Instant};

/// The largest share of all CPUs that the programs may use if an interval is to take longer by computing. At 100 %, a
/// prediction was 22 % off (docs/measured/what-if.md).
const MAX_SHARE: f64 = 0.85;
/// The fields `utime` and `stime` of /proc/PID/stat, behind the name: see proc(5).
const TIMES: [usize; 2] = [11, 12];

/// The CPU time that programs have used so far.
#[derive(Debug)]
pub(super) struct CpuUse {
    pids: Vec<i32>,
    since: Instant,
    used: Duration,
}

impl CpuUse {
    pub(super) fn begin(pids: Vec<i32>) -> Self {
        Self { since: Instant::now(), used: used(&pids), pids }
    }

    /// The reason for which computing longer would not show the truth.
    pub(super) fn refusal(&self) -> Option<String> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let time = self.since.elapsed().as_secs_f64().max(0.001);
        let share = used(&self.pids).saturating_sub(self.used).as_secs_f64() / (cpus * time);
        (share > MAX_SHARE).then(|| {
            format!(
                "the program uses {:.0} % of the CPUs, so how long its intervals take does not show how long they run; \
                 pause CPUs for a span (--pause-host), or capture it (ppt attach --kernel sched) and ask without --live",
                share * 100.0
            )
        })
    }
}

fn used(pids: &[i32]) -> Duration {
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let of_process = |pid: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let times = TIMES.map(|field| fields.get(field)?.parse::<u64>().ok());
        Some(times.into_iter().flatten().sum::<u64>())
    };
    let sum: u64 = pids.iter().filter_map(of_process).sum();
    Duration::from_secs_f64(sum as f64 / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_uses_cpu_time() {
        let own = vec![std::process::id() as i32];
        let before = CpuUse::begin(own);
        let began = Instant::now();
        while used(&before.pids) < before.used + Duration::from_millis(100) {
            std::hint::spin_loop();
            assert!(began.elapsed() < Duration::from_secs(60), "{before:?}");
        }
        let idle = CpuUse { since: Instant::now() - Duration::from_secs(1000), ..before };
        assert_eq!(idle.refusal(), None);
        let full = CpuUse { used: Duration::ZERO, since: Instant::now(), ..idle };
        std::thread::sleep(Duration::from_millis(1));
        assert!(full.refusal().unwrap().contains("% of the CPUs"));
    }
}
