//! A process to attach to. A target is checked and identified. Its open descriptors ensure that ppt
//! notices when its pid belongs to another process.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use ppt_foreign::{FoundFile, Links, Lookup, Subject, find};
use ppt_now::MemoryGroup;
use procfs::process::{FDTarget, LimitValue, Process, Status, Task};
use procfs::{FromRead, ProcError, ProcResult};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::danger::Danger;
use crate::denied::{self, DeniedTarget};
use crate::error::{AgentError, Result};
use crate::escape::escaped;
use crate::mapping::{Kept, MAPS_LIMIT, Mapping, read_maps};
use crate::memory::ProcessMemory;
use crate::system::System;
use crate::threads::Threads;
use crate::timed_cache::TimedCache;

const PF_KTHREAD: u32 = 0x0020_0000;

/// A living process whose memory may be read and written.
#[derive(Debug)]
pub struct Target {
    system: System,
    /// The process: threads, state, identity.
    process: Process,
    /// A live thread of it, used for memory, maps and program.
    view: Process,
    pidfd: Option<OwnedFd>,
    memory: ProcessMemory,
    pid: i32,
    start_time: u64,
    comm: String,
    euid: u32,
    egid: u32,
    ns_pid: i32,
    danger: TimedCache<Option<Danger>>,
}

/// What bounds the mappings of a process. `None`: nothing, or it is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapLimits {
    /// The number of its mappings.
    pub mappings: u64,
    /// vm.max_map_count.
    pub most: Option<u64>,
    /// RLIMIT_MEMLOCK.
    pub locked: Option<u64>,
    /// RLIMIT_AS.
    pub space: Option<u64>,
}

/// The pids of all current processes except this one.
pub fn processes(system: &System) -> Vec<i32> {
    let entries = std::fs::read_dir(&system.proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let ourselves = std::process::id() as i32;
    let mut pids: Vec<i32> = pids.filter(|&pid| pid > 0 && pid != ourselves).collect();
    pids.sort_unstable();
    pids
}

impl Target {
    /// Checks process `pid` and opens its files. It writes nothing.
    ///
    /// # Errors
    /// There is no such process, or it cannot be examined.
    pub fn open(system: &System, pid: i32) -> Result<Self> {
        check_descriptors(pid)?;
        let root = system.proc.join(pid.to_string());
        let process = Process::new_with_root(root).map_err(|error| no_process(pid, error))?;
        let number = rustix::process::Pid::from_raw(pid).ok_or(AgentError::NoProcess { pid })?;
        // Before the first check: everything seen from here on belongs to this process.
        let pidfd = pidfd_open(number, PidfdFlags::empty()).ok();
        let stat = process.stat().map_err(|error| no_process(pid, error))?;
        let status = status(&process).map_err(|error| no_process(pid, error))?;
        let comm = escaped(&stat.comm);
        if stat.flags & PF_KTHREAD != 0 {
            return Err(AgentError::KernelThread { pid, comm });
        }
        // A leader that left by pthread_exit has no memory any more, but its siblings do.
        let tid = if is_dead(stat.state) {
            match live_tasks(&process).into_iter().min() {
                Some(tid) => tid,
                None => return Err(AgentError::Zombie { pid, comm, parent: stat.ppid }),
            }
        } else {
            pid
        };
        let denied = |tracer| {
            denied::explain(
                system,
                DeniedTarget {
                    pid,
                    comm: comm.clone(),
                    tracer,
                    euid: status.euid,
                    uids_agree: [status.ruid, status.suid].iter().all(|&id| id == status.euid),
                    dumpable: is_dumpable(&process, status.euid),
                },
            )
        };
        let root = system.proc.join(format!("{pid}/task/{tid}"));
        let view = Process::new_with_root(root).map_err(|error| no_process(pid, error))?;
        let mem = view.open_relative_flags("mem", OFlags::RDWR | OFlags::CLOEXEC);
        let memory = match mem {
            Ok(file) => ProcessMemory::new(tid, file),
            // Another tracer does not block this descriptor, so it is not the cause.
            Err(ProcError::PermissionDenied(_)) => {
                let maps = view.open_relative("maps").ok();
                maps.and_then(|maps| ProcessMemory::by_call(tid, maps))
                    .ok_or_else(|| AgentError::Denied(Box::new(denied(0))))?
            }
            Err(other) => return Err(no_process(pid, other)),
        };
        let nspid = status.nspid.as_ref().and_then(|pids| pids.last());
        let target = Self {
            system: system.clone(),
            pidfd,
            memory,
            pid,
            start_time: stat.starttime,
            comm,
            euid: status.euid,
            egid: status.egid,
            ns_pid: nspid.copied().unwrap_or(pid),
            process,
            view,
            danger: TimedCache::default(),
        };
        target.check_architecture(stat.startstack)?;
        Ok(target)
    }

    fn check_architecture(&self, stack: u64) -> Result<()> {
        let mut header = [0; 20];
        let exe = || program(&self.view, self.pid)?.open();
        // A 32-bit program has no memory there.
        if stack >> 32 > 0
            || !exe().is_some_and(|file| matches!(file.read_at(0, &mut header), Ok(20)))
        {
            return Ok(()); // The descriptor shows it.
        }
        let (class, machine) = (header[4], u16::from_le_bytes([header[18], header[19]]));
        let (ours, name) =
            if cfg!(target_arch = "aarch64") { (183, "AArch64") } else { (62, "x86-64") };
        if &header[..4] != b"\x7fELF" || (class == 2 && machine == ours) {
            return Ok(());
        }
        let bits = if class == 1 { "a 32-bit program" } else { "a 64-bit program" };
        let found = format!("{bits} of ELF machine {machine}");
        Err(AgentError::Architecture { pid: self.pid, found, ours: name })
    }

    /// The pid in ppt's pid namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The pid in the innermost namespace of the target.
    pub fn ns_pid(&self) -> i32 {
        self.ns_pid
    }

    /// The start time, in clock ticks since boot.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// The time since the start of the process.
    pub fn age(&self) -> Option<Duration> {
        self.system.age(self.start_time)
    }

    /// The start time since the epoch, rounded down to a second.
    pub(crate) fn began(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        now.checked_sub(self.system.age(self.start_time)? + Duration::from_secs(1))
    }

    /// The short name, escaped.
    pub fn comm(&self) -> &str {
        &self.comm
    }

    /// Effective user and group.
    pub fn owner(&self) -> (u32, u32) {
        (self.euid, self.egid)
    }

    /// Whether it may be traced by its own user (prctl(2), PR_SET_DUMPABLE).
    pub(crate) fn is_dumpable(&self) -> bool {
        is_dumpable(&self.process, self.euid)
    }

    /// Path of its program, escaped. Empty if it cannot be read.
    pub fn exe(&self) -> String {
        self.view.exe().map_or(String::new(), |path| escaped(&path.to_string_lossy()))
    }

    /// Inodes of its namespaces, by name, as far as they can be read.
    pub fn namespaces(&self) -> Vec<(String, u64)> {
        let pid = self.pid.to_string();
        let names = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
        let inode = |name: &str| Some((name.to_string(), self.system.namespace(&pid, name)?));
        names.into_iter().filter_map(inode).collect()
    }

    /// The target's CLOCK_MONOTONIC minus ppt's, ns. Not 0 in a time namespace.
    pub fn monotonic_offset(&self) -> i64 {
        let offset = |pid: &str| self.system.monotonic_offset(pid).unwrap_or(0);
        offset(&self.pid.to_string()).saturating_sub(offset("self"))
    }

    /// Number of its threads, at least 1.
    pub fn threads(&self) -> u32 {
        self.process.stat().map_or(1, |stat| stat.num_threads.clamp(1, 1 << 22) as u32)
    }

    /// Bytes that larger rings may take at once. 0 if the process has a limit of its address space
    /// or of file sizes, because rings count towards these.
    pub(crate) fn spare_memory(&self) -> u64 {
        let is_bounded = |limits: procfs::process::Limits| {
            [limits.max_address_space, limits.max_file_size]
                .iter()
                .any(|limit| !matches!(limit.soft_limit, LimitValue::Unlimited))
        };
        match self.process.limits().map(is_bounded) {
            Ok(false) => crate::plan::spare(self.system.available_memory()),
            _ => 0,
        }
    }

    /// What the kernel says of it.
    pub(crate) fn status(&self) -> Option<Status> {
        status(&self.process).ok()
    }

    /// The limit of the memory that it may lock, in bytes. `None`: no limit, or unknown.
    pub(crate) fn locked_limit(&self) -> Option<u64> {
        soft(self.process.limits().ok()?.max_locked_memory)
    }

    /// The control groups that limit its memory.
    pub(crate) fn memory_groups(&self) -> Vec<MemoryGroup> {
        ppt_now::memory_groups(&self.system.proc, &self.pid.to_string())
    }

    /// What bounds the mappings of the process.
    pub fn map_limits(&self) -> MapLimits {
        let maps = self.view.open_relative("maps").map(|maps| maps.take(MAPS_LIMIT));
        let lines = maps.map_or(0, |maps| BufReader::new(maps).split(b'\n').count());
        let most = self.system.proc_text("sys/vm/max_map_count");
        let limits = self.process.limits().ok();
        let (locked, space) = limits.map_or((None, None), |limits| {
            (soft(limits.max_locked_memory), soft(limits.max_address_space))
        });
        MapLimits {
            mappings: lines as u64,
            most: most.and_then(|it| it.parse().ok()),
            locked,
            space,
        }
    }

    /// A descriptor that becomes readable when the process ends. `None` before Linux 5.3.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process has ended.
    pub fn ended(&self) -> bool {
        match &self.pidfd {
            Some(fd) => {
                let mut fds = [PollFd::new(fd, PollFlags::IN)];
                poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
            }
            None => !self.process.is_alive(),
        }
    }

    /// The status of a process that has ended and has not been reaped yet.
    pub(crate) fn zombie_status(&self) -> Option<i32> {
        let stat = self.process.stat().ok()?;
        let is_ours = stat.starttime == self.start_time && is_dead(stat.state);
        // While other threads live, the leader's status is not that of the process.
        stat.exit_code.filter(|_| is_ours && (self.ended() || self.has_only_zombies()))
    }

    /// Fails unless this is still the process that was opened.
    pub(crate) fn recheck(&self) -> Result<()> {
        match self.process.stat() {
            _ if self.ended() => Err(AgentError::Ended { pid: self.pid }),
            Ok(stat) if stat.starttime == self.start_time => Ok(()),
            Ok(_) => Err(AgentError::ProcessChanged { pid: self.pid }),
            Err(_) => Err(AgentError::Ended { pid: self.pid }),
        }
    }

    /// Whether the opened address space is still the process's, which an exec ends.
    pub(crate) fn maps_same_memory(&self) -> bool {
        self.memory.is_there()
    }

    /// Whether it has any memory. False while it exits.
    pub(crate) fn has_memory(&self) -> bool {
        self.process.stat().is_ok_and(|stat| stat.vsize > 0)
    }

    /// Whether all of its threads have ended. This precedes [`Self::ended`] as long as a tracer of
    /// one of them does not wait for it, as ppt itself may for a moment.
    pub(crate) fn has_only_zombies(&self) -> bool {
        let tasks = self.process.tasks();
        // A task without a state is gone.
        let states =
            tasks.map(|tasks| tasks.flatten().filter_map(|task| Some(task.stat().ok()?.state)));
        states.is_ok_and(|mut map| map.all(|state| matches!(state, 'Z' | 'X')))
    }

    /// Fails unless this is still the opened process and program. If it is, what was not found does
    /// not exist.
    pub(crate) fn still_there(&self) -> Result<()> {
        self.recheck()?;
        if self.maps_same_memory() {
            Ok(())
        } else {
            Err(AgentError::ProgramChanged { pid: self.pid })
        }
    }

    /// The values that the kernel passed to its program at the start (getauxval(3)). `None` if they
    /// cannot be read.
    pub(crate) fn auxiliary(&self) -> Option<HashMap<u64, u64>> {
        self.view.auxv().ok()
    }

    /// The result of the last glance at the filters of its threads.
    pub(crate) fn danger(&self) -> &TimedCache<Option<Danger>> {
        &self.danger
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    pub(crate) fn memory(&self) -> &ProcessMemory {
        &self.memory
    }

    /// A duplicate of its descriptor `number`, by pidfd_getfd(2), which needs permission to trace
    /// it.
    pub(crate) fn descriptor(&self, number: i32) -> io::Result<OwnedFd> {
        let pidfd = self.pidfd.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let flags = PidfdGetfdFlags::empty();
        match pidfd_getfd(pidfd, number, flags) {
            // A leader that left by pthread_exit has no descriptors any more, but its siblings do.
            Err(rustix::io::Errno::BADF | rustix::io::Errno::SRCH) => {
                let thread = self.live_threads().next().unwrap_or(self.pid);
                let thread =
                    rustix::process::Pid::from_raw(thread).ok_or(rustix::io::Errno::SRCH)?;
                let of_thread = PidfdFlags::from_bits_retain(OFlags::EXCL.bits()); // PIDFD_THREAD
                let pidfd = pidfd_open(thread, of_thread).map_err(|_| rustix::io::Errno::BADF)?;
                Ok(pidfd_getfd(pidfd, number, flags)?)
            }
            other => Ok(other?),
        }
    }

    /// Whether it has a descriptor of an io_uring. What it reads and writes through that calls no function.
    #[must_use]
    pub fn has_io_uring(&self) -> bool {
        has_io_uring(&self.view)
    }

    /// The root of the file system that it sees.
    pub(crate) fn root(&self) -> Option<OwnedFd> {
        let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        Some(self.view.open_relative_flags("root", look).ok()?.into())
    }

    /// The file of a mapping. If its path was replaced, that needs privileges.
    pub(crate) fn mapped_file(&self, mapping: &Mapping) -> Option<FoundFile> {
        if mapping.file.inode == 0 {
            return None;
        }
        let located = self.root().and_then(|root| mapping.locate(&root, self.pid));
        if located.is_some() {
            return located;
        }
        let path = format!("map_files/{:x}-{:x}", mapping.start, mapping.end);
        linked(&self.process, &path, &mapping.subject(self.pid))
    }

    /// The current mappings of this kind, and all from file systems that may not answer, within the first
    /// `limit` bytes of the list, and whether they are all.
    pub(crate) fn mappings(&self, kept: Kept, limit: u64) -> Result<(Vec<Mapping>, bool)> {
        let read = || -> ProcResult<_> {
            let (mappings, is_whole) = read_maps(self.view.open_relative("maps")?, kept, limit)?;
            let foreign = mappings.iter().filter(|mapping| mapping.is_foreign());
            let foreign =
                foreign.map(|mapping| (mapping.start..mapping.end, mapping.subject(self.pid)));
            self.memory.set_foreign(foreign.collect());
            Ok((mappings, is_whole))
        };
        read().map_err(|error| match error {
            ProcError::PermissionDenied(_) => self.denied(0).into(),
            other => no_process(self.pid, other),
        })
    }

    /// Live threads: the leader first if it lives, then by number. The iterator is lazy, because
    /// there may be thousands of threads.
    pub(crate) fn live_threads(&self) -> impl Iterator<Item = i32> {
        let leader = self.process.stat().is_ok_and(|stat| !is_dead(stat.state)).then_some(self.pid);
        let others = std::iter::once_with(|| {
            let mut tids = live_tasks(&self.process);
            tids.retain(|&tid| tid != self.pid);
            tids.sort_unstable();
            tids
        });
        leader.into_iter().chain(others.flatten())
    }

    /// The thread that traces it, 0 if none does.
    pub(crate) fn tracer(&self) -> i32 {
        status(&self.process).map_or(0, |status| status.tracerpid)
    }

    /// Returns a [`Threads`], which reports the living threads by the target's own numbers. `None`
    /// if procfs belongs to another pid namespace.
    pub fn threads_there(&self) -> Option<Threads> {
        let own = std::fs::read_link(self.system.proc.join("self")).ok()?;
        if own.to_str()? != std::process::id().to_string() {
            return None;
        }
        let spaces = status(&self.process).ok()?.nspid?.len();
        let tasks = self.system.proc.join(self.pid.to_string()).join("task");
        Some(match spaces {
            1 => Threads::of_our_namespace(self.pid),
            _ => Threads::of_another_namespace(self.pid, tasks),
        })
    }

    /// Reads the file `path` below its folder in procfs, up to `limit` bytes. The file is that of
    /// this process, not of a later one with the same pid.
    pub(crate) fn read_file(&self, path: &str, limit: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.process.open_relative(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    pub(crate) fn denied(&self, tracer: i32) -> Box<denied::Denied> {
        let status = status(&self.process).ok();
        let uids_agree = status
            .as_ref()
            .is_some_and(|status| status.ruid == status.euid && status.suid == status.euid);
        Box::new(denied::explain(
            &self.system,
            DeniedTarget {
                pid: self.pid,
                comm: self.comm.clone(),
                tracer,
                euid: self.euid,
                uids_agree,
                dumpable: is_dumpable(&self.process, self.euid),
            },
        ))
    }
}

/// The value of a limit. `None`: there is none.
fn soft(limit: procfs::process::Limit) -> Option<u64> {
    match limit.soft_limit {
        LimitValue::Value(value) => Some(value),
        LimitValue::Unlimited => None,
    }
}

/// The file of its program.
pub(crate) fn program(process: &Process, pid: i32) -> Option<FoundFile> {
    let path = process.exe().ok()?.to_string_lossy().into_owned();
    linked(process, "exe", &Subject { pid, path, device: None })
}

/// The file that a link in its folder in procfs leads to.
fn linked(process: &Process, path: &str, subject: &Subject) -> Option<FoundFile> {
    let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let folder = process.open_relative_flags(".", look).ok()?;
    let (folder, path) = (folder.as_fd(), path.as_bytes());
    find(&Lookup { folder, path, links: Links::Followed, subject })
}

/// Whether one of its descriptors is that of an io_uring.
pub(crate) fn has_io_uring(process: &Process) -> bool {
    let is_io_uring = |target| matches!(target, FDTarget::AnonInode(name) if name == "[io_uring]");
    process.fd().is_ok_and(|mut all| all.any(|fd| fd.is_ok_and(|fd| is_io_uring(fd.target))))
}

fn status(process: &Process) -> ProcResult<Status> {
    read(process, "status")
}

/// Buffer size that holds most files of procfs in one read.
const ROOM: usize = 8192;

/// A file of a process. Bytes that are not UTF-8 are replaced: names of threads and of files may
/// hold any bytes, and the rest of the file must still be readable.
fn read<T: FromRead>(process: &Process, path: &str) -> ProcResult<T> {
    T::from_read(text(process, path)?.as_bytes())
}

fn text(process: &Process, path: &str) -> ProcResult<String> {
    let mut bytes = Vec::with_capacity(ROOM);
    process.open_relative(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn no_process(pid: i32, error: ProcError) -> AgentError {
    match error {
        ProcError::NotFound(_) => AgentError::NoProcess { pid },
        ProcError::Io(error, _) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {
            AgentError::NoProcess { pid }
        }
        ProcError::Io(cause, _) => AgentError::System { action: "look at", pid, cause },
        other => AgentError::System { action: "look at", pid, cause: io::Error::other(other) },
    }
}

/// Files of a process that is not dumpable belong to root; its folder, which every user may read,
/// does not.
fn is_dumpable(process: &Process, euid: u32) -> bool {
    let file = process.open_relative("stat").and_then(|file| Ok(file.metadata()?));
    file.is_ok_and(|metadata| metadata.uid() == euid)
}

fn is_dead(state: char) -> bool {
    matches!(state, 'Z' | 'X')
}

fn live_tasks(process: &Process) -> Vec<i32> {
    let tasks = process.tasks().into_iter().flatten();
    let live = tasks.filter_map(|task: ProcResult<Task>| {
        let task = task.ok()?;
        (!is_dead(task.stat().ok()?.state)).then_some(task.tid)
    });
    live.collect()
}

/// Fails unless enough file descriptors are free for a target. Otherwise a file that could not be
/// opened would be taken for a process that has ended.
fn check_descriptors(pid: i32) -> Result<()> {
    const NEEDED: usize = 16;
    let open = || -> io::Result<()> {
        let one = File::open("/dev/null")?;
        let more: io::Result<Vec<_>> = (1..NEEDED).map(|_| one.try_clone()).collect();
        more.map(drop)
    };
    open().map_err(|cause| AgentError::TooManyFiles { pid, cause })
}
