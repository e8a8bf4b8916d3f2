//! The file that a capture goes to: opened before the target is touched, and never another file
//! than the one that was meant.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// An opened output.
#[derive(Debug)]
pub(crate) struct Output {
    /// Where the bytes go.
    pub(crate) file: File,
    /// Its path; `None` for stdout.
    path: Option<PathBuf>,
    created: bool,
    name: Option<String>,
}

/// Why an output cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("{} exists; choose another name with -o, or overwrite it with --force", .0.display())]
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
    #[error("cannot write {path}: {cause}", path = .0.display(), cause = .1)]
    System(PathBuf, #[source] io::Error),
}

impl Output {
    /// Opens `path` for writing; `-` is stdout. An existing file is refused unless `force`.
    pub(crate) fn open(path: &Path, force: bool) -> Result<Self, OutputError> {
        if path == Path::new("-") {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let file = stdout.map_err(|cause| OutputError::System("-".into(), cause))?.into();
            return Ok(Self { file, path: None, created: false, name: None });
        }
        let fail = |cause| OutputError::System(path.into(), cause);
        check_folder(path)?;
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).bits();
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(flags).mode(0o600);
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                give_to_invoker(&file);
                return Ok(Self { file, path: Some(path.into()), created: true, name: None });
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fail(error)),
            Err(_) => {}
        }
        let found = std::fs::symlink_metadata(path).map_err(fail)?;
        if let Some(what) = not_a_file(&found) {
            return Err(OutputError::NotAFile(path.into(), what));
        }
        if !force {
            return Err(OutputError::Exists(path.into()));
        }
        let file = options.open(path).map_err(fail)?;
        // What was opened is what counts, not what was there before.
        let opened = file.metadata().map_err(fail)?;
        if let Some(what) = not_a_file(&opened) {
            return Err(OutputError::NotAFile(path.into(), what));
        }
        if opened.nlink() != 1 || ![euid(), invoker()].contains(&opened.uid()) {
            return Err(OutputError::NotYours(path.into()));
        }
        file.set_len(0).map_err(fail)?;
        Ok(Self { file, path: Some(path.into()), created: false, name: None })
    }

    /// Removes the file again, if this run made it: nothing was captured.
    pub(crate) fn discard(self) {
        if let (Some(path), true) = (&self.path, self.created) {
            let _ = std::fs::remove_file(path);
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

fn not_a_file(metadata: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_symlink() => Some("a symbolic link, which ppt does not follow"),
        () if kind.is_fifo() => Some("a FIFO"),
        () => Some("not a regular file"),
    }
}

/// Others must not be able to swap the file under us.
fn check_folder(path: &Path) -> Result<(), OutputError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let fail = |cause| OutputError::System(path.into(), cause);
    let metadata = std::fs::metadata(folder).map_err(fail)?;
    let mode = metadata.permissions().mode();
    if mode & 0o002 != 0 && mode & 0o1000 == 0 {
        return Err(OutputError::OpenFolder(folder.into(), mode & 0o7777));
    }
    if euid() == 0 && ![0, invoker()].contains(&metadata.uid()) {
        return Err(OutputError::ForeignFolder(folder.into()));
    }
    Ok(())
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
