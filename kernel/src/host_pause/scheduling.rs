//! Scheduling of threads: real-time for payers, heavier for threads in the span. See sched_setattr(2).
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::errno::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, CpuSet, capabilities, gettid, sched_setaffinity,
    set_capabilities,
};

/// The priority of payers among real-time threads.
const PRIORITY: u32 = 50;
/// The longest time in µs for which a real-time thread may run without a wait: the kernel ends ppt if a mistake
/// keeps one running.
const REALTIME_LIMIT_US: u64 = 50_000;
const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
/// Threads that are made by a heavier thread are not heavier. ppt also knows by this flag which weights it set.
const RESET_ON_FORK: u64 = 1;
/// The most steps of nice(2) by which ppt makes a thread heavier: 1.25² is nearest to [`super::MAX_FACTOR`].
pub(super) const MAX_STEPS: i32 = 2;

/// The structure of sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Why a thread's weight was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotWeighed {
    /// The thread has ended.
    Gone,
    /// Its program has chosen a policy or a nice value.
    OwnPriority,
    /// The kernel refuses.
    System,
}

impl From<io::Error> for NotWeighed {
    fn from(error: io::Error) -> Self {
        if error.raw_os_error() == Some(Errno::ESRCH as i32) { Self::Gone } else { Self::System }
    }
}

fn set(tid: i32, attr: SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: size_of::<SchedAttr>() as u32, ..attr };
    // SAFETY: the kernel reads a structure of the size that it states, and writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn get(tid: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: the kernel writes at most `size` bytes into a structure of that size, in which all values are valid.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(attr) }
}

/// The number of the calling thread.
pub(super) fn own_tid() -> i32 {
    gettid().as_raw_pid()
}

/// Lets the calling thread run on one CPU, before all ordinary threads.
pub(super) fn be_realtime(cpu: u32) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu as usize);
    sched_setaffinity(None, &cpus)?;
    set(0, SchedAttr { policy: SCHED_FIFO, priority: PRIORITY, ..SchedAttr::default() })
}

/// Gives up every capability of the calling thread except CAP_SYS_NICE: it reads memory that targets write.
///
/// # Errors
/// The kernel refuses.
pub fn keep_only_nice() -> io::Result<()> {
    let kept = capabilities(None)?.permitted & CapabilitySet::SYS_NICE;
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?)
}

/// Limits the time for which a real-time thread of this process runs without a wait.
pub(super) fn limit_realtime() -> io::Result<()> {
    let limit = Rlimit { current: Some(REALTIME_LIMIT_US), ..getrlimit(Resource::Rttime) };
    Ok(setrlimit(Resource::Rttime, limit)?)
}

/// Makes a thread that is `was` steps of nice(2) heavier than an ordinary one `steps` heavier. A priority that its
/// program has set meanwhile stays.
pub(super) fn weigh(tid: i32, was: i32, steps: i32) -> Result<(), NotWeighed> {
    let now = get(tid)?;
    let has_mark = now.flags & RESET_ON_FORK != 0;
    if now.policy != SCHED_OTHER || now.nice != -was || has_mark != (was != 0) {
        if now.policy == SCHED_OTHER && has_mark && was != 0 {
            set(tid, SchedAttr { nice: now.nice, ..SchedAttr::default() })?;
        }
        return Err(NotWeighed::OwnPriority);
    }
    let flags = if steps == 0 { 0 } else { RESET_ON_FORK };
    Ok(set(tid, SchedAttr { policy: SCHED_OTHER, flags, nice: -steps, ..SchedAttr::default() })?)
}

/// The numbers of the threads of a process that are heavier, and bear ppt's mark. Programs can set both, too.
pub fn heavier_threads(pid: i32) -> BTreeSet<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return BTreeSet::new() };
    let numbers = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|&tid| get(tid).is_ok_and(|now| is_heavier(&now))).collect()
}

fn is_heavier(now: &SchedAttr) -> bool {
    let is_marked = now.policy == SCHED_OTHER && now.flags & RESET_ON_FORK != 0;
    is_marked && (-MAX_STEPS..0).contains(&now.nice)
}

/// Makes a thread ordinary again that ppt has made heavier.
///
/// # Errors
/// The kernel refuses.
pub fn restore_weight(tid: i32) -> io::Result<()> {
    match get(tid) {
        Ok(now) if is_heavier(&now) => set(tid, SchedAttr::default()),
        // It has ended, or is ordinary.
        _ => Ok(()),
    }
}

/// Whether ppt may not see threads of other programs.
pub(super) fn is_in_pid_namespace() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    // The kernel's threads are children of thread 2 in the first namespace only.
    let has_kernel_threads =
        fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim_end() == "kthreadd");
    own.is_some_and(|numbers| numbers.split_whitespace().count() > 1) || !has_kernel_threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_restored_by_its_mark() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let thread = std::thread::spawn(|| {
            let tid = own_tid();
            weigh(tid, 0, 2).unwrap();
            let heavier = get(tid).unwrap();
            assert_eq!((heavier.nice, heavier.flags & RESET_ON_FORK), (-2, RESET_ON_FORK));
            let child = std::thread::spawn(|| get(own_tid()).unwrap().nice).join().unwrap();
            assert_eq!(child, 0);
            let pid = std::process::id() as i32;
            assert_eq!(heavier_threads(pid), BTreeSet::from([tid]));
            restore_weight(tid).unwrap();
            assert_eq!((get(tid).unwrap().nice, get(tid).unwrap().flags), (0, 0));
            // A nice value of its own is left alone.
            set(tid, SchedAttr { nice: 5, ..SchedAttr::default() }).unwrap();
            assert_eq!(weigh(tid, 0, 2), Err(NotWeighed::OwnPriority));
            // The program chose another one while ppt had made it heavier.
            set(tid, SchedAttr::default()).unwrap();
            weigh(tid, 0, 2).unwrap();
            set(tid, SchedAttr { nice: -1, flags: RESET_ON_FORK, ..SchedAttr::default() }).unwrap();
            assert_eq!(weigh(tid, 2, 0), Err(NotWeighed::OwnPriority));
            assert_eq!((get(tid).unwrap().nice, get(tid).unwrap().flags), (-1, 0));
            assert_eq!(heavier_threads(pid), BTreeSet::new());
            // The program has set the flag, with and without a weight: rtkit does.
            for nice in [0, -11] {
                let own = SchedAttr { nice, flags: RESET_ON_FORK, ..SchedAttr::default() };
                set(tid, own).unwrap();
                assert_eq!(weigh(tid, 0, 2), Err(NotWeighed::OwnPriority));
                assert_eq!(heavier_threads(pid), BTreeSet::new());
                assert_eq!((get(tid).unwrap().nice, get(tid).unwrap().flags), (nice, 1));
            }
        });
        thread.join().unwrap();
    }
}
