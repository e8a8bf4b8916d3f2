//! The descendants of a process that adopts orphans.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Ends all descendants of this process, a subreaper: children of killed processes become its own.
/// `known` has been waited for already.
pub(super) fn end_descendants(known: Pid) {
    loop {
        let children = children().into_iter().filter(|child| *child != known);
        let killed = children.filter(|child| kill_process(*child, Signal::KILL).is_ok()).count();
        // A killed child ends, so this waits for no other process.
        let waited = match killed {
            0 => wait(WaitOptions::NOHANG),
            _ => wait(WaitOptions::empty()),
        };
        match waited {
            Ok(None) if killed == 0 => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The children of all threads of this process.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero();
    let tasks = fs::read_dir(format!("/proc/{own}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>())
        .flatten()
        .collect();
    pids.into_iter().filter_map(Pid::from_raw).collect()
}
