//! Errors of capturing from the kernel.

use std::fmt;
use std::io;
use std::path::PathBuf;

use strum::VariantNames;
use thiserror::Error;

/// A kind of information that the kernel provides. Each needs rights of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFeature {
    /// When threads run: PERF_RECORD_SWITCH.
    Switches,
    /// The wakers of threads, and their successors on CPUs: sched_waking, sched_switch.
    Wakeups,
    /// System calls: raw_syscalls.
    Syscalls,
    /// Page faults.
    Faults,
    /// Stacks of threads that run.
    Stacks,
    /// Stacks of threads while the kernel works for them.
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

/// Why a kind of information cannot be captured. The others can.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum KernelError {
    /// perf_event_open(2) refuses.
    #[strum(serialize = "perf-denied")]
    #[error("the kernel does not let ppt capture {part}")]
    Denied {
        /// The kind of information.
        part: KernelFeature,
        /// The setting, `unknown` if it cannot be read.
        paranoid: String,
    },
    /// There is no tracefs.
    #[error("ppt cannot capture {part}: tracefs is not mounted")]
    NoTracefs {
        /// The kind of information.
        part: KernelFeature,
    },
    /// Tracefs cannot be read.
    #[error("ppt cannot capture {part}: it may not read {path}: {source}")]
    TracefsDenied {
        /// The kind of information.
        part: KernelFeature,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Tracepoints have the numbers of threads in another pid namespace than ppt's.
    #[error(
        "ppt cannot capture {part}: it runs in a pid namespace of its own, and tracepoints name \
         threads by their numbers outside"
    )]
    PidNamespace {
        /// The kind of information.
        part: KernelFeature,
    },
    /// This kernel does not provide it.
    #[strum(serialize = "perf-unsupported")]
    #[error("this kernel cannot capture {part}: {source}")]
    Unsupported {
        /// The kind of information.
        part: KernelFeature,
        /// The error of the system.
        source: io::Error,
    },
    /// Threads, with several descriptors for each CPU, need too many of them.
    #[error(
        "ppt cannot capture {part} of {threads} {} on {cpus} CPUs: it may not open so many files",
        if *part == KernelFeature::Probes { "places" } else { "threads" }
    )]
    TooManyDescriptors {
        /// The kind of information.
        part: KernelFeature,
        /// The number of threads of the process, or of places of probes.
        threads: usize,
        /// The number of CPUs.
        cpus: usize,
    },
    /// Another system call failed.
    #[strum(serialize = "perf-failed")]
    #[error("ppt cannot capture {part}: {source}")]
    System {
        /// The kind of information.
        part: KernelFeature,
        /// The error of the system.
        source: io::Error,
    },
}

impl KernelError {
    /// The code under which `docs/troubleshooting.md` explains the error.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// All codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }

    /// Converts an error of perf_event_open(2), mmap(2) or an ioctl.
    pub(crate) fn new(part: KernelFeature, source: io::Error, threads: usize, cpus: usize) -> Self {
        use nix::errno::Errno;
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
        let errno = Errno::from_raw(source.raw_os_error().unwrap_or_default());
        match errno {
            // A kernel with that setting has the call: a filter of system calls says it has not.
            Errno::EACCES | Errno::EPERM | Errno::ENOSYS
                if errno != Errno::ENOSYS || paranoid.is_some() =>
            {
                let paranoid =
                    paranoid.map_or("unknown".into(), |paranoid| paranoid.trim().to_owned());
                Self::Denied { part, paranoid }
            }
            Errno::EMFILE => Self::TooManyDescriptors { part, threads, cpus },
            Errno::ENOSYS | Errno::EINVAL | Errno::ENOENT | Errno::EOPNOTSUPP | Errno::E2BIG => {
                Self::Unsupported { part, source }
            }
            _ => Self::System { part, source },
        }
    }
}
