//! The sources of facts about processes and the machine. Tests replace them to simulate other
//! kernels.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use crate::confined::Confined;
use crate::timed_cache::TimedCache;
use ppt_now::{CpuCounter, Distrust};

/// Roots of procfs and of the running system.
#[derive(Debug, Clone)]
pub struct System {
    /// The folder where procfs is mounted.
    pub proc: PathBuf,
    /// The folder where sysfs is mounted.
    pub sys: PathBuf,
    /// Reads what the CPU reports about its counter.
    pub counter: fn() -> CpuCounter,
    /// Finds the sandboxes and filters around this process.
    pub confined: fn() -> Confined,
    /// Whether ticks are trusted.
    pub trust: TimedCache<Result<(), Distrust>>,
}

impl Default for System {
    fn default() -> Self {
        let (counter, confined) = (CpuCounter::of_this_cpu, Confined::tried);
        let trust = TimedCache::default();
        Self { proc: "/proc".into(), sys: "/sys".into(), counter, confined, trust }
    }
}

impl System {
    /// Content of a file below the proc root, trimmed. `None` if it does not exist. Bytes that are
    /// not UTF-8 are replaced, because a process may have any name.
    pub(crate) fn proc_text(&self, path: &str) -> Option<String> {
        // The size is not known in advance: this capacity lets most files be read at once.
        let (mut bytes, file) = (Vec::with_capacity(4096), File::open(self.proc.join(path)).ok()?);
        file.take(u64::MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Available memory in bytes.
    pub(crate) fn available_memory(&self) -> Option<u64> {
        let memory = self.proc_text("meminfo")?;
        let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    }

    /// The name of the kernel's current clock source.
    pub(crate) fn clocksource(&self) -> Option<String> {
        let path = "devices/system/clocksource/clocksource0/current_clocksource";
        Some(std::fs::read_to_string(self.sys.join(path)).ok()?.trim().to_owned())
    }

    /// `pid`'s CLOCK_MONOTONIC minus the host's, ns. Not 0 in a time namespace.
    pub(crate) fn monotonic_offset(&self, pid: &str) -> Option<i64> {
        let text = self.proc_text(&format!("{pid}/timens_offsets"))?;
        let line = text.lines().find(|line| line.starts_with("monotonic"))?;
        let mut numbers = line.split_whitespace().skip(1).map(|word| word.parse::<i64>().ok());
        let (seconds, ns) = (numbers.next()??, numbers.next()??);
        seconds.checked_mul(1_000_000_000)?.checked_add(ns)
    }

    /// Yama's `ptrace_scope`. `None` if the kernel has no Yama.
    pub(crate) fn ptrace_scope(&self) -> Option<u32> {
        self.proc_text("sys/kernel/yama/ptrace_scope")?.parse().ok()
    }

    /// Inode of a namespace of `pid`, which identifies it.
    pub(crate) fn namespace(&self, pid: &str, name: &str) -> Option<u64> {
        let link = std::fs::read_link(self.proc.join(pid).join("ns").join(name)).ok()?;
        let text = link.to_str()?;
        text.strip_prefix(name)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
    }

    /// Whether a container runtime put `pid` into its cgroup.
    pub(crate) fn contained(&self, pid: i32) -> bool {
        let cgroup = self.proc_text(&format!("{pid}/cgroup")).unwrap_or_default();
        ["docker", "kubepods", "containerd", "libpod", "lxc"]
            .iter()
            .any(|text| cgroup.contains(text))
    }

    /// Field 22 of `/proc/PID/stat`: the start of the process, in ticks since boot. `None` if there
    /// is no such process, or only a zombie.
    pub(crate) fn start_time(&self, pid: u64) -> Option<u64> {
        let process = procfs::process::Process::new_with_root(self.proc.join(pid.to_string()));
        let stat = process.ok()?.stat().ok()?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
    }
    /// How long ago a process started, from its [`System::start_time`].
    pub(crate) fn age(&self, start_time: u64) -> Option<Duration> {
        let uptime: f64 = self.proc_text("uptime")?.split(' ').next()?.parse().ok()?;
        let started = start_time as f64 / procfs::ticks_per_second() as f64;
        Duration::try_from_secs_f64((uptime - started).max(0.0)).ok()
    }
}
