//! Locks on files that are being written: flock(2), which is released when its holder ends for any
//! reason.

use std::fmt;
use std::fs;
use std::os::fd::AsFd;

use rustix::fs::{FlockOperation, flock, fstat, major, minor};
use rustix::io::Errno;

/// The process that writes a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process and its name, if the kernel reports them.
    process: Option<(i32, Option<String>)>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((pid, Some(name))) => write!(f, "process {pid} ({name})"),
            Some((pid, None)) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// Locks `file` until it and all its duplicates are closed. The result states whether the file
/// system supports locks.
pub(crate) fn lock(file: impl AsFd) -> Result<Locked, Holder> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Locked::Yes),
        Err(Errno::WOULDBLOCK) => Err(holder(&file)),
        Err(_) => Ok(Locked::NoLocks),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    Yes,
    NoLocks,
}

/// Fails if `file` is locked. It stays unlocked.
pub(crate) fn probe(file: impl AsFd) -> Result<(), Holder> {
    // A shared lock, so that two probes do not conflict.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            unlock(file);
            Ok(())
        }
        Err(Errno::WOULDBLOCK) => Err(holder(&file)),
        Err(_) => Ok(()),
    }
}

/// Whether a process that locks its outputs writes `file`. False if the file system has no locks.
pub fn is_written(file: impl AsFd) -> bool {
    probe(file).is_err()
}

/// For files that other processes keep open after us.
pub(crate) fn unlock(file: impl AsFd) {
    let _ = flock(file, FlockOperation::Unlock);
}

fn holder(file: impl AsFd) -> Holder {
    let pid = || {
        let found = fstat(file).ok()?;
        let (major, minor) = (major(found.st_dev), minor(found.st_dev));
        let place = format!("{major:02x}:{minor:02x}:{}", found.st_ino);
        held(&fs::read_to_string("/proc/locks").ok()?, &place)
    };
    let named = |pid| (pid, name(pid));
    Holder { process: pid().map(named) }
}

/// The process that holds the lock on `place`, from a line of `/proc/locks`: `1: FLOCK  ADVISORY
/// WRITE 4711 fe:00:123456 0 EOF`. A process of another PID namespace is 0.
fn held(table: &str, place: &str) -> Option<i32> {
    table.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, at, ..] = words[..] else { return None };
        pid.parse().ok().filter(|&pid| at == place && pid > 0)
    })
}

/// The name of a process, escaped.
fn name(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let name = ppt_text::escaped(name.trim_end());
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_in_the_kernels_table() {
        let table = "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 8 fe:00:12 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 fe:00:12 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 9 fe:00:12 0 EOF\n";
        assert_eq!(held(table, "fe:00:12"), Some(9));
        assert_eq!(held(table, "fe:00:1"), None);
        assert_eq!(held("", "fe:00:12"), None);
    }

    #[test]
    fn a_second_lock_is_refused_and_names_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let first = fs::File::create(&path).unwrap();
        let second = fs::File::open(&path).unwrap();
        assert_eq!(lock(&first), Ok(Locked::Yes));
        assert!(probe(&second).is_err());
        let holder = lock(&second).unwrap_err();
        assert_eq!(holder.process.as_ref().map(|it| it.0), Some(std::process::id() as i32));
        assert!(holder.to_string().starts_with(&format!("process {} (", std::process::id())));
        drop(first);
        assert_eq!(probe(&second), Ok(()));
        assert_eq!(lock(&second), Ok(Locked::Yes));
        assert!(probe(fs::File::open(&path).unwrap()).is_err());
    }
}
