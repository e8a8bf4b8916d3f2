//! Why a part of what the kernel knows cannot be captured.

use std::fmt;
use std::io;
use std::path::PathBuf;

use strum::VariantNames;
use thiserror::Error;

/// A part of what the kernel knows. Each needs rights of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFeature {
    /// When threads run: PERF_RECORD_SWITCH.
    Switches,
    /// Who wakes threads, and who follows them on a CPU: sched_waking, sched_switch.
    Wakeups,
    /// raw_syscalls.
    Syscalls,
    /// Page faults.
    Faults,
    /// Stacks of threads that run.
    Stacks,
    /// The same while the kernel works for them.
    KernelStacks,
    /// Stacks of threads that begin to wait.
    Waits,
    /// Places in programs.
    Probes,
}

impl fmt::Display for KernelFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelFeature::Switches => "context switches",
            KernelFeature::Wakeups => "wake-ups and successors",
            KernelFeature::Syscalls => "system calls",
            KernelFeature::Faults => "page faults",
            KernelFeature::Stacks => "stacks",
            KernelFeature::KernelStacks => "stacks while the kernel works for the program",
            KernelFeature::Waits => "stacks of waits",
            KernelFeature::Probes => "probes",
        })
    }
}

/// Why a part cannot be captured. The others can.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum KernelError {
    /// perf_event_open(2) refuses.
    #[strum(serialize = "perf-denied")]
    #[error(
        "the kernel does not let ppt capture {part}: kernel.perf_event_paranoid is {paranoid}, and \
         ppt has no CAP_PERFMON"
    )]
    Denied {
        /// What.
        part: KernelFeature,
        /// The setting, `unknown` if it cannot be read.
        paranoid: String,
    },
    /// There is no tracefs.
    #[error("ppt cannot capture {part}: tracefs is not mounted")]
    NoTracefs {
        /// What.
        part: KernelFeature,
    },
    /// The tracefs does not let itself be read.
    #[error("ppt cannot capture {part}: it may not read {path}: {source}")]
    TracefsDenied {
        /// What.
        part: KernelFeature,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The numbers of threads in tracepoints are those of another pid namespace than ppt's.
    #[error(
        "ppt cannot capture {part}: it runs in a pid namespace of its own, and tracepoints name \
         threads by their numbers outside"
    )]
    PidNamespace {
        /// What.
        part: KernelFeature,
    },
    /// This kernel cannot do it.
    #[strum(serialize = "perf-unsupported")]
    #[error("this kernel cannot capture {part}: {source}")]
    Unsupported {
        /// What.
        part: KernelFeature,
        /// Its answer.
        source: io::Error,
    },
    /// Each thread takes several descriptors for each CPU.
    #[error(
        "ppt cannot capture {part} of {threads} threads on {cpus} CPUs: it may not open so many \
         files"
    )]
    TooManyDescriptors {
        /// What.
        part: KernelFeature,
        /// Threads of the process.
        threads: usize,
        /// CPUs of the machine.
        cpus: usize,
    },
    /// Another system call failed.
    #[strum(serialize = "perf-failed")]
    #[error("ppt cannot capture {part}: {source}")]
    System {
        /// What.
        part: KernelFeature,
        /// Why not.
        source: io::Error,
    },
}

impl KernelError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// Every code.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }

    /// The answer of perf_event_open(2), mmap(2) or an ioctl.
    pub(crate) fn new(part: KernelFeature, source: io::Error, threads: usize, cpus: usize) -> Self {
        use nix::errno::Errno;
        match Errno::from_raw(source.raw_os_error().unwrap_or_default()) {
            Errno::EACCES | Errno::EPERM => {
                let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                let paranoid =
                    paranoid.map_or("unknown".into(), |paranoid| paranoid.trim().to_owned());
                Self::Denied { part, paranoid }
            }
            Errno::EMFILE | Errno::ENFILE => Self::TooManyDescriptors { part, threads, cpus },
            Errno::ENOSYS | Errno::EINVAL | Errno::ENOENT | Errno::EOPNOTSUPP | Errno::E2BIG => {
                Self::Unsupported { part, source }
            }
            _ => Self::System { part, source },
        }
    }
}
