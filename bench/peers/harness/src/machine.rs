//! What was measured on.

use std::fs::read_to_string;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cpus: usize,
    pub kernel: String,
    pub governor: String,
    pub clock_source: String,
    pub load_before: String,
    pub compiler: String,
    /// The kind of file system that outputs go to.
    pub file_system: String,
}

fn read(path: &str) -> Option<String> {
    Some(read_to_string(path).ok()?.trim().to_owned())
}

/// Of the folder for temporary files, by the mount that has most of its path.
fn file_system() -> Option<String> {
    let folder = std::env::temp_dir().canonicalize().ok()?;
    let mounts = read("/proc/mounts")?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let on = mounts.filter(|mount| folder.starts_with(mount.0)).max_by_key(|mount| mount.0.len())?;
    Some(on.1.to_owned())
}

impl Machine {
    pub fn this() -> Machine {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let model =
            cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let guest = cpuinfo.lines().any(|line| line.starts_with("flags") && line.contains("hypervisor"));
        let model = model.map_or("unknown CPU", |model| model.1);
        let unknown = || "not known".to_owned();
        Machine {
            cpu: format!("{model}{}", if guest { ", in a virtual machine" } else { "" }),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .unwrap_or_else(unknown),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .unwrap_or_else(unknown),
            load_before: read("/proc/loadavg").unwrap_or_else(unknown),
            file_system: file_system().unwrap_or_else(unknown),
            compiler: crate::process::line("gcc", &["--version"]).unwrap_or_else(|_| unknown()),
        }
    }

    pub fn print(&self) -> String {
        format!(
            "{}, {} CPUs\nLinux {}, governor {}, clock source {}\nload before: {}\n{}, -O2\noutputs go to {}\n",
            self.cpu,
            self.cpus,
            self.kernel,
            self.governor,
            self.clock_source,
            self.load_before,
            self.compiler,
            self.file_system
        )
    }
}
