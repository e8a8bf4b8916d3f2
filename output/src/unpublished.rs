//! A file without a name, or with a hidden one, in the folder of its future name.
//!
//! A file without a name (O_TMPFILE) leaves nothing when its writer is killed, but it can only take
//! a free name: to replace a file it first takes a hidden name for a moment. If the file system
//! does not support such files (NFS, vfat), the file has a hidden name from the start. After a kill
//! that file is no longer locked: the next output in that folder removes it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fstat, linkat, openat, renameat,
    renameat_with, unlinkat,
};
use rustix::io::{Errno, Result};

use crate::folder::Folder;
use crate::lock::{Locked, lock};
use crate::rules::Rules;

/// Hidden names: `.ppt-4711-0.new`.
const PREFIX: &str = ".ppt-";
const SUFFIX: &str = ".new";
/// The number of hidden names that are tried.
const TRIES: u32 = 1000;

/// The way to find a file before it has its name.
#[derive(Debug)]
pub(crate) enum Unpublished {
    Nameless,
    Hidden(OsString),
}

/// A new file for writing, locked, opened for appending.
pub(crate) fn create(folder: &Folder, mode: Mode) -> Result<(File, Unpublished)> {
    match nameless(folder, mode) {
        Ok(file) => Ok((file, Unpublished::Nameless)),
        // Any error leads here. If missing support for unnamed files was not the cause, the error
        // recurs.
        Err(_) => hidden(folder, mode),
    }
}

fn nameless(folder: &Folder, mode: Mode) -> Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    let file = File::from(openat(folder, ".", flags, mode)?);
    // No other process has it.
    let _ = lock(&file);
    Ok(file)
}

/// A file with a hidden name from the start.
pub(crate) fn hidden(folder: &Folder, mode: Mode) -> Result<(File, Unpublished)> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    with_hidden_name(|name| {
        let file = File::from(openat(folder, name, flags, mode)?);
        // Another process may have removed it in a clean-up before it was locked.
        if lock(&file).is_err() || fstat(&file)?.st_nlink == 0 {
            return Err(Errno::EXIST);
        }
        Ok(file)
    })
    .map(|(file, name)| (file, Unpublished::Hidden(name)))
}

/// Calls `take` with hidden names until one is free.
fn with_hidden_name<T>(mut take: impl FnMut(&OsStr) -> Result<T>) -> Result<(T, OsString)> {
    for attempt in 0..TRIES {
        let name = OsString::from(format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id()));
        match take(&name) {
            Ok(taken) => return Ok((taken, name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

impl Unpublished {
    /// Gives `file` the name `name`, which must be free.
    pub(crate) fn take_name(&self, file: &File, folder: &Folder, name: &OsStr) -> Result<()> {
        match self {
            Self::Nameless => link(file, folder, name),
            Self::Hidden(hidden) => {
                match renameat_with(folder, hidden, folder, name, RenameFlags::NOREPLACE) {
                    // Not every file system supports that; most of those have links.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        linkat(folder, hidden, folder, name, AtFlags::empty())?;
                        let _ = unlinkat(folder, hidden, AtFlags::empty());
                        Ok(())
                    }
                    renamed => renamed,
                }
            }
        }
    }

    /// The same for a name that another file may have. That file loses it in the same step.
    pub(crate) fn replace(&self, file: &File, folder: &Folder, name: &OsStr) -> Result<()> {
        match self {
            Self::Hidden(hidden) => renameat(folder, hidden, folder, name),
            Self::Nameless => {
                let ((), hidden) = with_hidden_name(|hidden| link(file, folder, hidden))?;
                let renamed = renameat(folder, &hidden, folder, name);
                if renamed.is_err() {
                    let _ = unlinkat(folder, &hidden, AtFlags::empty());
                }
                renamed
            }
        }
    }

    /// Removes the unpublished file.
    pub(crate) fn discard(&self, folder: &Folder) {
        if let Self::Hidden(hidden) = self {
            let _ = unlinkat(folder, hidden, AtFlags::empty());
        }
    }
}

/// Linking by descriptor needs a rare privilege; linking by /proc needs none.
fn link(file: &File, folder: &Folder, name: &OsStr) -> Result<()> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, path, folder, name, AtFlags::SYMLINK_FOLLOW) {
        Err(Errno::NOENT) => linkat(file, "", folder, name, AtFlags::EMPTY_PATH),
        linked => linked,
    }
}

/// Removes our hidden files whose writers were killed. Their content was never reported to anyone.
pub(crate) fn sweep(folder: &Folder, rules: &Rules) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(folder, ".", flags, Mode::empty());
    let Ok(entries) = opened.and_then(Dir::new) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_ok_and(is_hidden) {
            sweep_one(folder, OsStr::new(name.to_str().unwrap_or_default()), rules);
        }
    }
}

fn is_hidden(name: &str) -> bool {
    let middle = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some((pid, attempt)) = middle.and_then(|middle| middle.split_once('-')) else {
        return false;
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number(pid) && number(attempt)
}

fn sweep_one(folder: &Folder, name: &OsStr, rules: &Rules) {
    let regular = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    let ours = |stat: &rustix::fs::Stat| regular(stat.st_mode) && rules.is_ours(stat.st_uid);
    if !matches!(folder.look(name), Ok(Some(found)) if ours(&found)) {
        return;
    }
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return };
    // Once we have locked it, no other process uses it: its maker checks whether it still exists.
    if fstat(&file).is_ok_and(|fstat| ours(&fstat)) && lock(&file) == Ok(Locked::Yes) {
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::*;
    use crate::output::tests::names;

    fn folder(path: &Path) -> Folder {
        Folder::of_file(&path.join("out"), &Rules::default()).unwrap()
    }

    /// Both kinds, regardless of the file system.
    fn kinds(folder: &Folder) -> Vec<(File, Unpublished)> {
        let mode = Mode::RUSR | Mode::WUSR;
        let mut kinds = vec![hidden(folder, mode).unwrap()];
        match nameless(folder, mode) {
            Ok(file) => kinds.push((file, Unpublished::Nameless)),
            Err(error) => eprintln!("skipped: files without names: {error}"),
        }
        kinds
    }

    #[test]
    fn a_name_is_taken_only_if_it_is_free_and_replaced_only_if_asked_for() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = folder(temporary.path());
        for (mut file, unpublished) in kinds(&folder) {
            let path = temporary.path().join("out");
            fs::write(&path, "old").unwrap();
            file.write_all(b"new").unwrap();
            assert_eq!(unpublished.take_name(&file, &folder, OsStr::new("out")), Err(Errno::EXIST));
            assert_eq!(fs::read(&path).unwrap(), b"old");
            unpublished.replace(&file, &folder, OsStr::new("out")).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(names(temporary.path()), ["out"], "{unpublished:?}");
            fs::remove_file(path).unwrap();
        }
        for (file, unpublished) in kinds(&folder) {
            unpublished.take_name(&file, &folder, OsStr::new("out")).unwrap();
            assert_eq!(names(temporary.path()), ["out"], "{unpublished:?}");
            fs::remove_file(temporary.path().join("out")).unwrap();
        }
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        fs::create_dir(temporary.path().join("out")).unwrap();
        let folder = folder(temporary.path());
        for (file, unpublished) in kinds(&folder) {
            unpublished.replace(&file, &folder, OsStr::new("out")).unwrap_err();
            unpublished.discard(&folder);
        }
        assert_eq!(names(temporary.path()), ["out"]);
    }

    #[test]
    fn what_dead_writers_left_is_removed_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = folder(temporary.path());
        let (alive, unpublished) = hidden(&folder, Mode::RUSR | Mode::WUSR).unwrap();
        let Unpublished::Hidden(living) = unpublished else { unreachable!() };
        let others = [".ppt-x-0.new", ".ppt-1.new", "ppt-1-1.new", ".ppt-1-1.new.bak"];
        for name in others.iter().chain(&[".ppt-1-1.new", ".ppt-1-2.new"]) {
            fs::write(temporary.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", temporary.path().join(".ppt-1-3.new")).unwrap();
        sweep(&folder, &Rules::default());
        let mut left = others.map(String::from).to_vec();
        left.extend([living.into_string().unwrap(), ".ppt-1-3.new".into()]);
        left.sort();
        assert_eq!(names(temporary.path()), left);
        drop(alive);
        sweep(&folder, &Rules::default());
        assert_eq!(names(temporary.path()).len(), left.len() - 1);
    }
}
