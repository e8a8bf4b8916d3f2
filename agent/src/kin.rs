//! Finds processes by name and by descent, from files that every user may read.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use procfs::process::Process;

use crate::system::System;
use crate::target::processes;

/// Number of bytes of a process's short name that the kernel keeps.
const COMM_BYTES: usize = 15;

pub(crate) fn process(system: &System, pid: i32) -> Option<Process> {
    Process::new_with_root(system.proc.join(pid.to_string())).ok()
}

/// Returns the living processes called `name`. The name is the short name, of which the kernel
/// keeps 15 bytes, or the file name of the program.
pub fn named(system: &System, name: &str) -> Vec<i32> {
    let short = &name.as_bytes()[..name.len().min(COMM_BYTES)];
    let is_called = |pid: &i32| {
        let comm = std::fs::read(system.proc.join(format!("{pid}/comm"))).unwrap_or_default();
        if comm.strip_suffix(b"\n") == Some(short) {
            return true;
        }
        let exe = std::fs::read_link(system.proc.join(format!("{pid}/exe"))).unwrap_or_default();
        let path = exe.as_os_str().as_bytes();
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        path.rsplit(|&byte| byte == b'/').next() == Some(name.as_bytes())
    };
    processes(system).into_iter().filter(is_called).collect()
}

/// Returns `pid` and its living descendants, as far as their ancestors live.
pub fn descendants(system: &System, pid: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for child in processes(system) {
        if let Some(stat) = process(system, child).and_then(|process| process.stat().ok()) {
            children.entry(stat.ppid).or_default().push(child);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A procfs with processes of these names, programs and parents.
    fn system(processes: &[(i32, &str, &str, i32)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for (pid, comm, exe, parent) in processes {
            let folder = root.path().join(pid.to_string());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("comm"), format!("{comm}\n")).unwrap();
            std::os::unix::fs::symlink(exe, folder.join("exe")).unwrap();
            let zeros = "0 ".repeat(48);
            let stat = format!("{pid} ({comm}) S {parent} {zeros}\n");
            std::fs::write(folder.join("stat"), stat).unwrap();
        }
        let system = System { proc: root.path().into(), ..System::default() };
        (root, system)
    }

    #[test]
    fn a_name_is_the_short_one_or_the_file_name() {
        let (_root, system) = system(&[
            (10, "server", "/srv/bin/other", 1),
            (11, "worker:1", "/srv/bin/server", 1),
            (12, "server2", "/srv/server/bin", 1),
            (13, "a-very-long-nam", "/srv/a-very-long-name", 1),
            (14, "x", "/srv/server (deleted)", 1),
        ]);
        assert_eq!(named(&system, "server"), [10, 11, 14]);
        assert_eq!(named(&system, "a-very-long-name"), [13]);
        assert!(named(&system, "serv").is_empty() && named(&system, "").is_empty());
    }

    #[test]
    fn descendants_of_descendants() {
        let tree =
            [(10, "a", "/a", 1), (11, "b", "/b", 10), (12, "c", "/c", 11), (13, "d", "/d", 1)];
        let (_root, system) = system(&tree);
        assert_eq!(descendants(&system, 10), [10, 11, 12]);
        assert_eq!(descendants(&system, 13), [13]);
    }
}
