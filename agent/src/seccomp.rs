//! System call filters: whether the calls of a first frame may end the target.
//!
//! ppt cannot ask what a filter does: PTRACE_SECCOMP_GET_FILTER needs a stopped target (otherwise
//! it fails with ESRCH), and ppt never stops a target. The kernel reports the number of filters of
//! each thread. A process can add filters but never remove them, and children inherit them. So
//! filters that both a thread and its ancestors have come from outside. These filters are harmless:
//!
//! - those of ppt itself, if they come from an ancestor that ppt shares with the target: ppt's own
//!   calls are the proof;
//! - those of a container's runtime, which return an error: as many as the first process of the
//!   container has, unless that program installed them itself.
//!
//! Cgroup names prove nothing: a daemon of the host may be named like a container, and a program in
//! a container may filter itself.

use std::collections::HashSet;

use crate::danger::Danger;
use crate::kin;
use crate::system::System;
use crate::target::{self, Target};

/// The filtering of a thread's system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Free,
    Strict,
    /// By this number of filters. `None` if the kernel does not count them (before 5.9).
    Filtered(Option<u32>),
}

/// The facts about a process, or about one of its threads.
#[derive(Debug, Clone)]
struct Status {
    mode: Mode,
    parent: i32,
    /// The pid in each pid namespace of the process, from ppt's inwards.
    numbers: Vec<i32>,
    /// Whether it may have installed its filters itself.
    may_install: bool,
}

const CAP_SYS_ADMIN: u32 = 21;
/// Longest chain of ancestors that is followed.
const GENERATIONS: usize = 1024;
/// Most threads that a glance inspects.
const GLANCE: usize = 32;

impl Status {
    fn read(system: &System, path: &str) -> Option<Self> {
        let text = system.proc_text(&format!("{path}/status"))?;
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let mode = match field("Seccomp") {
            // A kernel without seccomp.
            None | Some("0") => Mode::Free,
            Some("1") => Mode::Strict,
            Some(_) => {
                Mode::Filtered(field("Seccomp_filters").and_then(|value| value.parse().ok()))
            }
        };
        let numbers = field("NSpid").into_iter().flat_map(str::split_whitespace);
        // Installing a filter needs one of these, and neither can be regained.
        let bounds = field("CapBnd").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let may_install = field("NoNewPrivs") != Some("0")
            || bounds.is_none_or(|caps| caps >> CAP_SYS_ADMIN & 1 == 1);
        Some(Self {
            mode,
            parent: field("PPid")?.parse().ok()?,
            numbers: numbers.filter_map(|number| number.parse().ok()).collect(),
            may_install,
        })
    }

    fn from_pid(system: &System, pid: i32) -> Option<Self> {
        Self::read(system, &pid.to_string())
    }

    /// The number of pid namespaces that it is in, counted from ours.
    fn depth(&self) -> usize {
        self.numbers.len()
    }
}

/// Checks every thread of the target.
pub(crate) fn danger(target: &Target) -> Option<Danger> {
    of_process(target.system(), target.pid())
}

/// Checks some threads of the target, always including the leader. This is for frequent checks. If
/// there were no filters before, the program installed those that are found now.
pub(crate) fn glance(target: &Target) -> Option<Danger> {
    let system = target.system();
    let pid = target.pid();
    let threads = std::fs::read_dir(system.proc.join(format!("{pid}/task"))).ok()?;
    let threads = threads.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let others = threads.filter(|&tid| tid != pid).take(GLANCE - 1);
    let threads = std::iter::once(pid).chain(others);
    judge(system, pid, threads.filter_map(|tid| Some((tid, mode(system, pid, tid)?))).collect())
}

fn of_process(system: &System, pid: i32) -> Option<Danger> {
    // New threads may inherit filters that their creator got while this runs.
    let mut seen = HashSet::new();
    let mut modes = Vec::new();
    for _ in 0..8 {
        let before = seen.len();
        let threads = std::fs::read_dir(system.proc.join(format!("{pid}/task"))).into_iter();
        let threads = threads.flatten().flatten();
        let threads: Vec<i32> =
            threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect();
        for tid in threads {
            // A thread that ends during the check writes nothing any more.
            if seen.insert(tid)
                && let Some(mode) = mode(system, pid, tid)
            {
                modes.push((tid, mode));
            }
        }
        if seen.len() == before {
            break;
        }
    }
    judge(system, pid, modes)
}

fn mode(system: &System, pid: i32, tid: i32) -> Option<Mode> {
    Status::read(system, &format!("{pid}/task/{tid}")).map(|status| status.mode)
}

fn judge(system: &System, pid: i32, modes: Vec<(i32, Mode)>) -> Option<Danger> {
    if let Some((tid, _)) = modes.iter().find(|(_, mode)| *mode == Mode::Strict) {
        return Some(Danger::Strict(*tid));
    }
    let (first, _) = modes.iter().find(|(_, mode)| *mode != Mode::Free)?;
    let Some(harmless) = harmless(system, pid) else { return Some(Danger::Filtered(*first)) };
    let is_danger = |mode| mode != Mode::Free && mode != Mode::Filtered(Some(harmless));
    let danger = modes.iter().find(|&&(_, mode)| is_danger(mode));
    danger.map(|&(tid, _)| Danger::Filtered(tid))
}

/// The number of filters that are known not to kill a process such as `pid`. `None` if none are.
fn harmless(system: &System, pid: i32) -> Option<u32> {
    let ourselves = std::process::id() as i32;
    let ours = filters(&Status::read(system, "self")?);
    let lines = |pid| ancestors(system, pid).map(|(pid, _)| pid).collect::<Vec<_>>();
    let our_line = lines(ourselves);
    let shared = lines(pid).into_iter().find(|line| our_line.contains(line));
    let of_shared = shared.and_then(|pid| filters(&Status::from_pid(system, pid)?));
    if ours.is_some() && of_shared == ours {
        return ours;
    }
    let (first, of_first) = first_of_namespace(system, pid)?;
    let count = filters(&of_first)?;
    let with_us = Status::from_pid(system, pid)?.depth() == 1;
    let from_outside = (with_us && ours == Some(count))
        || !of_first.may_install
        || (first != pid && differ(system, first, pid));
    from_outside.then_some(count)
}

/// The number of filters, if there are any and the kernel counts them.
fn filters(status: &Status) -> Option<u32> {
    match status.mode {
        Mode::Filtered(count) => count,
        _ => None,
    }
}

/// A process, its parent, and further ancestors.
fn ancestors(system: &System, pid: i32) -> impl Iterator<Item = (i32, Status)> {
    let next = |(_, status): &(i32, Status)| {
        let parent = status.parent;
        Some((parent, Status::from_pid(system, parent).filter(|_| parent > 0)?))
    };
    let first = Status::from_pid(system, pid).map(|status| (pid, status));
    std::iter::successors(first, next).take(GENERATIONS)
}

/// The first process of `pid`'s pid namespace: that of the container, if it is in one.
fn first_of_namespace(system: &System, pid: i32) -> Option<(i32, Status)> {
    let status = Status::from_pid(system, pid)?;
    let is_first = |other: &Status| {
        other.depth() == status.depth() && other.numbers.last().is_some_and(|&n| n == 1)
    };
    if let Some(found) = ancestors(system, pid).find(|(_, status)| is_first(status)) {
        return Some(found);
    }
    // The process was put into the namespace from outside.
    let namespace = |pid: i32| system.namespace(&pid.to_string(), "pid");
    let theirs = namespace(pid)?;
    crate::target::processes(system).into_iter().find_map(|pid| {
        let status = Status::from_pid(system, pid).filter(is_first)?;
        (namespace(pid) == Some(theirs)).then_some((pid, status))
    })
}

/// Whether two processes run different programs.
fn differ(system: &System, one: i32, other: i32) -> bool {
    let program = |pid: i32| {
        let exe = target::program(&kin::process(system, pid)?, pid)?;
        Some((exe.stat.device, exe.stat.inode))
    };
    program(one).zip(program(other)).is_some_and(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A procfs. ppt is process 50.
    struct Fake {
        root: tempfile::TempDir,
    }

    /// The facts that a test states about a process. All others have usual values.
    #[derive(Clone, Copy)]
    struct TestProcess<'a> {
        pid: i32,
        parent: i32,
        numbers: &'a str,
        seccomp: &'a str,
        filters: &'a str,
        no_new_privs: &'a str,
        bounds: &'a str,
        exe: &'a str,
    }

    const USUAL: TestProcess = TestProcess {
        pid: 0,
        parent: 0,
        numbers: "",
        seccomp: "0",
        filters: "0",
        no_new_privs: "1",
        bounds: "000001ffffffffff",
        exe: "program",
    };

    /// The capabilities that Docker leaves to its containers.
    const DOCKERS: &str = "00000000a80425fb";

    impl Fake {
        fn new(processes: &[TestProcess]) -> Self {
            let fake = Self { root: tempfile::tempdir().unwrap() };
            for test_process in processes {
                fake.add(*test_process);
            }
            let ourselves = std::process::id().to_string();
            let root = fake.root.path();
            if root.join("50").exists() {
                std::os::unix::fs::symlink("50", root.join("self")).unwrap();
                std::os::unix::fs::symlink("50", root.join(ourselves)).unwrap();
            }
            fake
        }

        fn add(&self, process: TestProcess) {
            let root = self.root.path();
            let folder = root.join(process.pid.to_string());
            std::fs::create_dir_all(folder.join(format!("task/{}", process.pid))).unwrap();
            std::fs::create_dir_all(folder.join("ns")).unwrap();
            let numbers = if process.numbers.is_empty() {
                process.pid.to_string()
            } else {
                process.numbers.to_string()
            };
            let depth = numbers.split(' ').count();
            let namespace = format!("pid:[{depth}]");
            std::os::unix::fs::symlink(namespace, folder.join("ns/pid")).unwrap();
            std::fs::write(root.join(process.exe), "").unwrap();
            std::os::unix::fs::symlink(format!("../{}", process.exe), folder.join("exe")).unwrap();
            std::fs::write(folder.join("stat"), "").unwrap();
            let status = self.status(process, &numbers);
            std::fs::write(folder.join("status"), &status).unwrap();
            std::fs::write(folder.join(format!("task/{}/status", process.pid)), status).unwrap();
        }

        fn status(&self, process: TestProcess, numbers: &str) -> String {
            let TestProcess { parent, seccomp, filters, no_new_privs, bounds, .. } = process;
            let count = match filters {
                "" => String::new(),
                filters => format!("Seccomp_filters:\t{filters}\n"),
            };
            format!(
                "Name:\tx\nPPid:\t{parent}\nNSpid:\t{}\nCapBnd:\t{bounds}\nNoNewPrivs:\t{no_new_privs}\n\
                 Seccomp:\t{seccomp}\n{count}",
                numbers.replace(' ', "\t"),
            )
        }

        /// Another thread of a process.
        fn thread(&self, tid: i32, process: TestProcess) {
            let folder = self.root.path().join(format!("{}/task/{tid}", process.pid));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("status"), self.status(process, &tid.to_string())).unwrap();
        }

        fn cgroup(&self, pid: i32, text: &str) {
            std::fs::write(self.root.path().join(format!("{pid}/cgroup")), text).unwrap();
        }

        fn system(&self) -> System {
            System { proc: self.root.path().into(), ..System::default() }
        }

        fn danger(&self, pid: i32) -> Option<Danger> {
            of_process(&self.system(), pid)
        }
    }

    const INIT: TestProcess = TestProcess { pid: 1, exe: "init", ..USUAL };
    const SHELL: TestProcess = TestProcess { pid: 40, parent: 1, exe: "sh", ..USUAL };
    const PPT: TestProcess = TestProcess { pid: 50, parent: 40, exe: "ppt", ..USUAL };
    const TARGET: TestProcess = TestProcess { pid: 7, parent: 1, ..USUAL };

    /// Adds a filter.
    const fn filtered(process: TestProcess) -> TestProcess {
        TestProcess { seccomp: "2", filters: "1", ..process }
    }

    #[test]
    fn without_filters_there_is_no_danger() {
        assert_eq!(Fake::new(&[INIT, SHELL, PPT, TARGET]).danger(7), None);
    }

    #[test]
    fn a_single_thread_counts() {
        let fake = Fake::new(&[INIT, SHELL, PPT, TARGET]);
        fake.thread(9, filtered(TARGET));
        assert_eq!(fake.danger(7), Some(Danger::Filtered(9)));
        fake.thread(8, TestProcess { seccomp: "1", ..TARGET });
        assert_eq!(fake.danger(7), Some(Danger::Strict(8)));
    }

    /// Daemons of the host may be named like containers, too.
    #[test]
    fn names_of_cgroups_tell_nothing() {
        let fake = Fake::new(&[INIT, SHELL, PPT, filtered(TARGET)]);
        for name in ["system.slice/containerd.service", "docker/1", "kubepods/pod1", "lxc/a"] {
            fake.cgroup(7, &format!("0::/{name}\n"));
            assert_eq!(fake.danger(7), Some(Danger::Filtered(7)), "{name}");
        }
    }

    #[test]
    fn filters_of_a_shared_ancestor_are_ppts_own() {
        // `ppt run`, and a shell that was started under a filter.
        let child = TestProcess { pid: 7, parent: 50, ..USUAL };
        let sibling = TestProcess { pid: 7, parent: 40, ..USUAL };
        for target in [child, sibling] {
            let line = [INIT, filtered(SHELL), filtered(PPT)];
            let with = |target| Fake::new(&[&line[..], &[target]].concat());
            assert_eq!(with(filtered(target)).danger(7), None);
            let more = TestProcess { filters: "2", ..filtered(target) };
            assert_eq!(with(more).danger(7), Some(Danger::Filtered(7)), "one of its own");
        }
        // The same number of filters, but not the same filters.
        let strangers = [INIT, SHELL, filtered(PPT), filtered(sibling)];
        assert_eq!(Fake::new(&strangers).danger(7), Some(Danger::Filtered(7)));
    }

    /// Seen from the host: process 30 is the first of a container, and 31 its child.
    #[test]
    fn filters_of_a_containers_first_process_are_the_runtimes() {
        let shim = TestProcess { pid: 20, parent: 1, exe: "shim", ..USUAL };
        let first =
            filtered(TestProcess { pid: 30, parent: 20, numbers: "30 1", exe: "sh", ..USUAL });
        let child = filtered(TestProcess { pid: 31, parent: 30, numbers: "31 9", ..USUAL });
        let with = |first, child| Fake::new(&[INIT, SHELL, PPT, shim, first, child]);
        assert_eq!(with(first, child).danger(31), None);
        let own = TestProcess { filters: "2", ..child };
        assert_eq!(with(first, own).danger(31), Some(Danger::Filtered(31)));
        let unconfined = TestProcess { seccomp: "0", filters: "0", ..first };
        assert_eq!(with(unconfined, child).danger(31), Some(Danger::Filtered(31)));
        // The process was put there from outside (docker exec).
        let entered = TestProcess { parent: 20, ..child };
        assert_eq!(with(first, entered).danger(31), None);
    }

    #[test]
    fn the_first_process_itself_may_have_filtered_itself() {
        let first = filtered(TestProcess { pid: 30, parent: 1, numbers: "30 1", ..USUAL });
        let worker = filtered(TestProcess { pid: 31, parent: 30, numbers: "31 9", ..USUAL });
        let with = |first, worker| Fake::new(&[INIT, SHELL, PPT, first, worker]);
        for pid in [30, 31] {
            let danger = with(first, worker).danger(pid);
            assert_eq!(danger, Some(Danger::Filtered(pid)), "its own, perhaps");
        }
        // The process cannot have installed a filter: it has neither no_new_privs nor the capability.
        let first = TestProcess { no_new_privs: "0", bounds: DOCKERS, ..first };
        for pid in [30, 31] {
            assert_eq!(with(first, worker).danger(pid), None);
        }
        let privileged = TestProcess { bounds: USUAL.bounds, ..first };
        assert_eq!(with(privileged, worker).danger(30), Some(Danger::Filtered(30)));
    }

    /// `docker exec`: ppt is in the container, under the same runtime's filter.
    #[test]
    fn inside_a_container_ppts_own_filters_are_the_measure() {
        let first = filtered(TestProcess { pid: 1, ..USUAL });
        let ppt = filtered(TestProcess { pid: 50, parent: 0, exe: "ppt", ..USUAL });
        let target = filtered(TestProcess { pid: 7, parent: 1, ..USUAL });
        let fake = Fake::new(&[first, ppt, target]);
        assert_eq!((fake.danger(1), fake.danger(7)), (None, None));
        let own = TestProcess { filters: "2", ..target };
        assert_eq!(Fake::new(&[first, ppt, own]).danger(7), Some(Danger::Filtered(7)));
    }

    /// Kernels before 5.9 do not count.
    #[test]
    fn what_is_not_counted_is_not_compared() {
        let old = |process| TestProcess { filters: "", ..filtered(process) };
        let fake = Fake::new(&[old(INIT), old(SHELL), old(PPT), old(TARGET)]);
        assert_eq!(fake.danger(7), Some(Danger::Filtered(7)));
    }
}
