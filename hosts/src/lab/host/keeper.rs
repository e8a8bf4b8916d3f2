//! The keeper: isolates the worker and all programs, and cleans up after them.

use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use nix::sched::{CloneFlags, unshare};
use ppt_text::exit::ExitStatus;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::pipe;
use rustix::process::{Pid, getpid, set_child_subreaper};
use rustix::system::sethostname;

use super::error::{HostError, cannot};
use super::isolation::{FIRST, HUB, ISOLATED, NETWORK};
use super::self_start::SelfStart;
use super::tree;

/// Starts the worker of the named host, waits for its end, and cleans up.
pub(super) fn keep(own: &SelfStart, how: &str, name: &str) -> Result<ExitStatus, HostError> {
    if [NETWORK, HUB].contains(&how) {
        unshare(CloneFlags::CLONE_NEWNET).map_err(cannot("make a network namespace"))?;
    }
    let together = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    let isolated = [ISOLATED, NETWORK].contains(&how) && unshare(together).is_ok();
    if isolated {
        // Several hosts may share one machine; captures distinguish them by this name.
        sethostname(name.as_bytes()).map_err(cannot("name this host"))?;
    } else {
        set_child_subreaper(Some(getpid())).map_err(cannot("adopt orphans"))?;
    }
    // The worker makes the folder: if this process is killed before it has a worker, no folder
    // remains.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let folder = env::temp_dir().join(format!("ppt-lab-{}-{now}", std::process::id()));
    // The worker inherits one end, and only this process has the other.
    let (life, held) = pipe().map_err(cannot("make a pipe"))?;
    fcntl_setfd(&held, FdFlags::CLOEXEC).map_err(cannot("make a pipe"))?;
    let mut command = own.command("work");
    command.arg(if isolated { FIRST } else { how }).arg(life.as_raw_fd().to_string());
    command.arg(&folder);
    let mut worker = command.spawn().map_err(cannot("start the worker"))?;
    drop(life);
    let status = worker.wait().map_err(cannot("wait for the worker"));
    if !isolated {
        tree::end_descendants(Pid::from_child(&worker));
    }
    drop(held);
    let _ = fs::remove_dir_all(folder);
    let status = status?;
    let signal = || 128 + status.signal().unwrap_or_default();
    Ok(ExitStatus(status.code().unwrap_or_else(signal) as u8))
}
