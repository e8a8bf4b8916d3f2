//! The file that a capture goes to: opened before the target is touched, and never another file
//! than the one that was meant.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, ftruncate, openat, statat, unlinkat,
};

/// An opened output.
#[derive(Debug)]
pub(crate) struct Output {
    /// Where the bytes go.
    pub(crate) file: File,
    /// Its path; `None` for stdout.
    path: Option<PathBuf>,
    /// The folder that this run made it in.
    created: Option<OwnedFd>,
    name: Option<String>,
}

/// Why an output cannot be had.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OutputError {
    #[error("{} exists; choose another name with -o, or overwrite it with --force", .0.display())]
    #[strum(serialize = "output-exists")]
    Exists(PathBuf),
    #[error("{} is {}; choose another name with -o", .0.display(), .1)]
    NotAFile(PathBuf, &'static str),
    #[error("{} is not your own file alone; ppt does not overwrite it", .0.display())]
    NotYours(PathBuf),
    #[error(
        "{} can be changed by everybody (its mode is {:o}); choose another folder with -o",
        .0.display(), .1
    )]
    OpenFolder(PathBuf, u32),
    #[error("{} belongs to another user; choose another folder with -o", .0.display())]
    ForeignFolder(PathBuf),
    #[strum(serialize = "cannot-write")]
    #[error("cannot write {path}: {cause}", path = .0.display(), cause = .1)]
    System(PathBuf, #[source] io::Error),
}

impl Output {
    /// Opens `path` for writing; `-` is stdout. An existing file is refused unless `force`.
    pub(crate) fn open(path: &Path, force: bool) -> Result<Self, OutputError> {
        if path == Path::new("-") {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let file = stdout.map_err(|cause| OutputError::System("-".into(), cause))?.into();
            return Ok(Self { file, path: None, created: None, name: None });
        }
        let fail = |cause: rustix::io::Errno| OutputError::System(path.into(), cause.into());
        let name = path.file_name().ok_or(OutputError::NotAFile(path.into(), "a directory"))?;
        let folder = open_folder(path)?;
        let open = |flags| {
            let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW;
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
        };
        match open(OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => {
                give_to_invoker(&file);
                let created = Some(folder);
                return Ok(Self { file, path: Some(path.into()), created, name: None });
            }
            Err(error) if error != rustix::io::Errno::EXIST => return Err(fail(error)),
            Err(_) => {}
        }
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
        if let Some(what) = not_a_file(FileType::from_raw_mode(found.st_mode)) {
            return Err(OutputError::NotAFile(path.into(), what));
        }
        if !force {
            return Err(OutputError::Exists(path.into()));
        }
        let file = open(OFlags::empty()).map_err(fail)?;
        // What was opened is what counts, not what was there before.
        let opened = fstat(&file).map_err(fail)?;
        if let Some(what) = not_a_file(FileType::from_raw_mode(opened.st_mode)) {
            return Err(OutputError::NotAFile(path.into(), what));
        }
        if opened.st_nlink != 1 || ![euid(), invoker()].contains(&opened.st_uid) {
            return Err(OutputError::NotYours(path.into()));
        }
        ftruncate(&file, 0).map_err(fail)?;
        Ok(Self { file, path: Some(path.into()), created: None, name: None })
    }

    /// Removes the file again, if this run made it: nothing was captured.
    pub(crate) fn discard(self) {
        let name = self.path.as_deref().and_then(Path::file_name);
        if let (Some(name), Some(folder)) = (name, &self.created) {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// Has it called by the name of all that follow it.
    pub(crate) fn rename(&mut self, name: String) {
        self.name = Some(name);
    }

    /// What to call it.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        self.path.as_ref().map_or("stdout".into(), |path| path.display().to_string())
    }
}

fn not_a_file(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Symlink => Some("a symbolic link, which ppt does not follow"),
        FileType::Fifo => Some("a FIFO"),
        _ => Some("not a regular file"),
    }
}

/// The folder of `path`. Others must not be able to swap the file under us; and the folder that was
/// looked at is the one that is used, whatever its path comes to mean.
fn open_folder(path: &Path) -> Result<OwnedFd, OutputError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let fail = |cause: rustix::io::Errno| OutputError::System(path.into(), cause.into());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, folder, flags, Mode::empty()).map_err(fail)?;
    let found = fstat(&opened).map_err(fail)?;
    let mode = found.st_mode & 0o7777;
    if mode & 0o002 != 0 && mode & 0o1000 == 0 {
        return Err(OutputError::OpenFolder(folder.into(), mode));
    }
    if euid() == 0 && ![0, invoker()].contains(&found.st_uid) {
        return Err(OutputError::ForeignFolder(folder.into()));
    }
    Ok(opened)
}

fn euid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Who called sudo, or who we are.
fn invoker() -> u32 {
    let sudo = || std::env::var("SUDO_UID").ok()?.parse().ok();
    if euid() == 0 { sudo().unwrap_or(0) } else { euid() }
}

/// Under sudo, captures belong to whoever asked for them.
fn give_to_invoker(file: &File) {
    if invoker() != euid() {
        let gid = std::env::var("SUDO_GID").ok().and_then(|gid| gid.parse().ok());
        let _ = std::os::unix::fs::fchown(file, Some(invoker()), gid);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_new_file_or_ones_own_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let output = Output::open(&path, false).unwrap();
        assert_eq!(output.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Output::open(&path, false), Err(OutputError::Exists(_))));
        Output::open(&path, true).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Output::open(&link, true), Err(OutputError::NotAFile(..))));
        assert!(matches!(Output::open(folder.path(), true), Err(OutputError::NotAFile(..))));
        let hard = folder.path().join("hard");
        std::fs::hard_link(&path, &hard).unwrap();
        assert!(matches!(Output::open(&hard, true), Err(OutputError::NotYours(_))));
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(Output::open(&fifo, true), Err(OutputError::NotAFile(..))));
    }

    #[test]
    fn a_folder_that_everybody_writes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), mode(0o777)).unwrap();
        let path = folder.path().join("out.bin");
        assert!(matches!(Output::open(&path, false), Err(OutputError::OpenFolder(..))));
        std::fs::set_permissions(folder.path(), mode(0o1777)).unwrap();
        Output::open(&path, false).unwrap();
    }

    #[test]
    fn what_was_made_for_nothing_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        Output::open(&path, false).unwrap().discard();
        assert!(!path.exists());
    }
}
