//! One output, from its creation to its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchown, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};

use crate::error::OutputError;
use crate::identity::FileId;
use crate::lock::{self, Locked};
use crate::name::OutputName;
use crate::rules::{Invoker, Readers, Rules};
use crate::unpublished::{self, Unpublished};

/// The name of standard output in messages, instead of a path.
const STDOUT: &str = "standard output";
/// Most attempts at a name that keeps changing.
const TRIES: usize = 16;

/// An output: standard output, or a file that gets its name when it is published.
#[derive(Debug)]
pub struct Output {
    file: File,
    place: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Standard output. `locked`: we locked it, and must unlock it, because other processes use it,
    /// too.
    Stdout { locked: bool },
    /// A file without its name yet, and the locked file that has the name until then.
    Unpublished { name: OutputName, file_name: Unpublished, replaced: Option<File> },
    /// A file that has its name.
    Published { name: OutputName, entry: Option<NamedFile> },
    /// A file that will not get a name.
    Discarded { name: OutputName },
}

/// A named file. The kernel tracks changes of its path.
#[derive(Debug)]
struct NamedFile {
    fd: OwnedFd,
    /// The path when the name was given.
    path: PathBuf,
}

/// The place of a published output.
#[derive(Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// The file still has its name.
    There,
    /// The file was renamed. The new path, if the kernel shows it.
    Moved(Option<PathBuf>),
    /// The file no longer has a name. Its content is lost when the last descriptor is closed.
    Gone,
}

impl Output {
    /// Opens an output for `path`. It checks the path and changes nothing yet; `-` is standard
    /// output.
    ///
    /// # Errors
    /// The path is refused by `rules`, exists without `force`, or cannot be opened.
    pub fn open(path: &Path, rules: &Rules) -> Result<Self, OutputError> {
        if path.as_os_str() == "-" {
            return Self::stdout(rules);
        }
        let name = OutputName::new(path, rules)?;
        let replaced = name.taken()?;
        unpublished::sweep(&name.folder, rules);
        let mode = match rules.readers {
            Readers::Owner => Mode::RUSR | Mode::WUSR,
            Readers::ByUmask => Mode::from_raw_mode(0o666),
        };
        let made = unpublished::create(&name.folder, mode);
        let (file, file_name) = made.map_err(|error| name.fail(error))?;
        give_to_invoker(&file, rules);
        Ok(Self { file, place: Destination::Unpublished { name, file_name, replaced } })
    }

    fn stdout(rules: &Rules) -> Result<Self, OutputError> {
        let path = Path::new(STDOUT);
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(stdout.map_err(|cause| OutputError::System(path.into(), cause))?);
        if FileId::of_file(&file).is_some_and(|id| rules.inputs.contains(&id)) {
            return Err(OutputError::IsInput(path.into()));
        }
        Ok(Self { file, place: Destination::Stdout { locked: false } })
    }

    /// Locks standard output, if that is a file, so that no other command of ppt writes there.
    ///
    /// # Errors
    /// Another command holds the lock.
    pub fn claim(&mut self) -> Result<(), OutputError> {
        if let (Destination::Stdout { locked }, Some(_)) =
            (&mut self.place, FileId::of_file(&self.file))
        {
            let claimed = lock::lock(&self.file);
            let claimed = claimed.map_err(|error| OutputError::InUse(STDOUT.into(), error))?;
            *locked = claimed == Locked::Yes;
        }
        Ok(())
    }

    /// The file; every write appends. A duplicate of it keeps the lock.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it is standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.place, Destination::Stdout { .. })
    }

    /// Whether it has its name.
    pub fn is_published(&self) -> bool {
        matches!(self.place, Destination::Published { .. })
    }

    /// Whether publishing needs root's capabilities, because the folder or the file belongs to
    /// another user.
    pub fn needs_rights(&self) -> bool {
        let Destination::Unpublished { name, .. } = &self.place else { return false };
        let owner = fstat(&self.file).map_or(0, |found| found.st_uid);
        geteuid().is_root() && (owner != 0 || name.folder.is_foreign())
    }

    /// Gives the file its name in one step. A file that had the name loses it only with `force`.
    /// Call this as soon as the content is worth keeping.
    ///
    /// # Errors
    /// The name was taken in the meantime, or the folder cannot be written.
    pub fn publish(&mut self) -> Result<(), OutputError> {
        if let Destination::Discarded { name } = &self.place {
            return Err(name.fail(Errno::CANCELED));
        }
        let Destination::Unpublished { name, file_name, replaced } = &mut self.place else {
            return Ok(());
        };
        for _ in 0..TRIES {
            let named = match replaced {
                Some(old) if name.leads_to(old)? => {
                    file_name.replace(&self.file, &name.folder, &name.last)
                }
                _ => file_name.take_name(&self.file, &name.folder, &name.last),
            };
            match named {
                Ok(()) => {
                    let (name, entry) = (name.clone(), NamedFile::find(&self.file, name));
                    self.place = Destination::Published { name, entry };
                    return Ok(());
                }
                // Another process has created a file there since the check.
                Err(Errno::EXIST) => *replaced = name.taken()?,
                Err(error) => return Err(name.fail(error)),
            }
        }
        Err(OutputError::Exists(name.path.clone()))
    }

    /// Removes the output unless it was published. Dropping it does the same.
    pub fn discard(&mut self) {
        if let Destination::Unpublished { name, file_name, .. } = &self.place {
            file_name.discard(&name.folder);
            self.place = Destination::Discarded { name: name.clone() };
        }
    }

    /// Checks where the published file is now.
    pub fn whereabouts(&self) -> Whereabouts {
        let Destination::Published { name, entry } = &self.place else { return Whereabouts::There };
        let Ok(ours) = fstat(&self.file) else { return Whereabouts::There };
        let id = FileId::of_stat(&ours);
        let found = statat(CWD, &name.path, AtFlags::SYMLINK_NOFOLLOW);
        let now = entry.as_ref().and_then(NamedFile::now);
        let is_there = match found {
            Ok(found) => FileId::of_stat(&found) == id,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => false,
            // A folder that root may no longer read.
            Err(_) => entry.as_ref().is_none_or(|entry| now.as_ref() == Some(&entry.path)),
        };
        if is_there {
            return Whereabouts::There;
        }
        if ours.st_nlink == 0 {
            return Whereabouts::Gone;
        }
        let leads_to_it = |path: &PathBuf| {
            let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| FileId::of_stat(&found) == id)
        };
        Whereabouts::Moved(now.filter(leads_to_it))
    }

    /// The path that it was opened for, or `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Destination::Stdout { .. } => None,
            Destination::Unpublished { name, .. }
            | Destination::Published { name, .. }
            | Destination::Discarded { name } => Some(&name.path),
        }
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        self.path().map_or("stdout".into(), |path| path.display().to_string())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.discard();
        if let Destination::Stdout { locked: true } = self.place {
            lock::unlock(&self.file);
        }
    }
}

impl NamedFile {
    fn find(file: &File, name: &OutputName) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&name.folder, &name.last, flags, Mode::empty()).ok()?;
        let path = path_of(&fd)?;
        (FileId::of_file(&fd)? == FileId::of_file(file)?).then_some(Self { fd, path })
    }

    /// The current path.
    fn now(&self) -> Option<PathBuf> {
        path_of(&self.fd)
    }
}

fn path_of(fd: &OwnedFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

/// Under sudo, outputs belong to the invoking user.
fn give_to_invoker(file: &File, rules: &Rules) {
    if let Some(Invoker { uid, gid }) = rules.invoker.filter(|_| geteuid().is_root()) {
        let _ = fchown(file, Some(Uid::from_raw(uid)), gid.map(Gid::from_raw));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    pub(crate) fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn forced() -> Rules {
        Rules { force: true, ..Rules::default() }
    }

    fn published(path: &Path, rules: &Rules, text: &str) -> Output {
        let mut output = Output::open(path, rules).unwrap();
        output.file().write_all(text.as_bytes()).unwrap();
        output.publish().unwrap();
        output
    }

    #[test]
    fn only_a_new_file_or_ones_own_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let output = published(&path, &Rules::default(), "");
        assert_eq!(output.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(output);
        assert!(matches!(Output::open(&path, &Rules::default()), Err(OutputError::Exists(_))));
        Output::open(&path, &forced()).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(Output::open(&link, &forced()), Err(OutputError::NotAFile(..))));
        assert!(matches!(Output::open(folder.path(), &forced()), Err(OutputError::NotAFile(..))));
        let hard = folder.path().join("hard");
        fs::hard_link(&path, &hard).unwrap();
        assert!(matches!(Output::open(&hard, &forced()), Err(OutputError::NotYours(_))));
    }

    #[test]
    fn a_folder_that_everybody_writes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path(), mode(0o777)).unwrap();
        let path = folder.path().join("out.bin");
        let opened = Output::open(&path, &Rules::default());
        assert!(matches!(opened, Err(OutputError::OpenFolder(..))));
        fs::set_permissions(folder.path(), mode(0o1777)).unwrap();
        Output::open(&path, &Rules::default()).unwrap();
    }

    #[test]
    fn until_it_is_published_all_is_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut new = Output::open(&path, &Rules::default()).unwrap();
        assert!(!path.exists());
        new.file().write_all(b"new").unwrap();
        new.publish().unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), new.whereabouts()),
            (b"new".into(), Whereabouts::There)
        );
        drop(new);
        let mut next = Output::open(&path, &forced()).unwrap();
        next.file().write_all(b"next").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        next.publish().unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"next".into(), vec!["out".into()])
        );
        drop(next);
        drop(Output::open(&path, &forced()).unwrap());
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"next".into(), vec!["out".into()])
        );
    }

    #[test]
    fn what_was_discarded_is_gone_and_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let name = OutputName::new(&path, &Rules::default()).unwrap();
        let (file, file_name) = unpublished::hidden(&name.folder, Mode::RUSR | Mode::WUSR).unwrap();
        let mut hidden =
            Output { file, place: Destination::Unpublished { name, file_name, replaced: None } };
        let mut nameless = Output::open(&path, &Rules::default()).unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        for output in [&mut hidden, &mut nameless] {
            output.discard();
            output.publish().unwrap_err();
            assert_eq!((names(folder.path()).len(), output.is_published()), (0, false));
        }
        // A published output keeps its name.
        let mut output = published(&path, &Rules::default(), "it");
        output.discard();
        assert_eq!(fs::read(&path).unwrap(), b"it");
    }

    #[test]
    fn the_input_is_no_output_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("in"), "in").unwrap();
        symlink("in", path("symbolic")).unwrap();
        fs::hard_link(path("in"), path("hard")).unwrap();
        for (input, output) in [("in", "in"), ("in", "hard"), ("hard", "in"), ("symbolic", "in")] {
            let inputs = vec![FileId::of_input(&path(input)).unwrap()];
            for force in [false, true] {
                let rules = Rules { force, inputs: inputs.clone(), ..Rules::default() };
                let opened = Output::open(&path(output), &rules);
                assert!(matches!(opened, Err(OutputError::IsInput(_))), "{input} to {output}");
            }
        }
        assert_eq!(FileId::of_input(folder.path()), None);
        assert_eq!(FileId::of_input(&path("nowhere")), None);
    }

    #[test]
    fn of_two_writers_the_second_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let first = published(&path, &Rules::default(), "first");
        for rules in [Rules::default(), forced()] {
            let error = Output::open(&path, &rules).unwrap_err();
            let us = format!("is being written by process {} (", std::process::id());
            assert!(error.to_string().contains(&us), "{error}");
        }
        drop(first);
        // Two outputs do not replace the same file, or take the same name.
        let mut replacing = Output::open(&path, &forced()).unwrap();
        assert!(matches!(Output::open(&path, &forced()), Err(OutputError::InUse(..))));
        fs::remove_file(&path).unwrap();
        let mut second = Output::open(&path, &forced()).unwrap();
        replacing.publish().unwrap();
        assert!(matches!(second.publish(), Err(OutputError::InUse(..))));
        drop(replacing);
        second.publish().unwrap();
    }

    #[test]
    fn a_file_that_takes_the_name_first_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut new = Output::open(&path, &Rules::default()).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(new.publish(), Err(OutputError::Exists(_))));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        let mut forcing = Output::open(&path, &forced()).unwrap();
        fs::remove_file(&path).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(matches!(forcing.publish(), Err(OutputError::NotAFile(..))));
        fs::remove_file(&path).unwrap();
        forcing.publish().unwrap();
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn where_it_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("out"), folder.path().join("other"));
        let output = published(&path, &Rules::default(), "it");
        fs::rename(&path, &other).unwrap();
        let other = other.canonicalize().unwrap();
        assert_eq!(output.whereabouts(), Whereabouts::Moved(Some(other.clone())));
        fs::write(&path, "another").unwrap();
        assert_eq!(output.whereabouts(), Whereabouts::Moved(Some(other.clone())));
        fs::rename(&path, &other).unwrap();
        assert_eq!(output.whereabouts(), Whereabouts::Gone);
    }
}
