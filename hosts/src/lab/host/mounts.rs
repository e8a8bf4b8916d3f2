//! The `/proc` and `/dev/shm` of programs in their own namespaces. They are invisible outside, and
//! vanish with the last process.

use std::fs;

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

/// The folder of POSIX shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// The private mounts of programs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mounts {
    shared_memory: bool,
}

impl Mounts {
    /// Gives programs a `/proc` with only their own processes, as in any complete PID namespace,
    /// and their own shared memory. Where that is forbidden, they see those of the whole machine.
    pub(super) fn make() -> Self {
        let apart = unshare(CloneFlags::CLONE_NEWNS).is_ok();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        if !apart || mount_change("/", private).is_err() {
            return Self::default();
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let _ = mount("proc", "/proc", "proc", flags | MountFlags::NOEXEC, None);
        let shared_memory = mount("shm", SHARED_MEMORY, "tmpfs", flags, c"mode=1777").is_ok();
        Self { shared_memory }
    }

    /// Removes the shared memory that programs left; a killed program removes nothing.
    pub(super) fn empty_shared_memory(self) {
        let entries = fs::read_dir(SHARED_MEMORY).ok().filter(|_| self.shared_memory);
        for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
            // Removes a link itself, not its target.
            let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            let _ = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}
