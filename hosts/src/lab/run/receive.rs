//! Files that helpers send. Their names, number and sizes are not trusted. They are written into a
//! folder that no other process has written to.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::lab::manifest::FileRecord;

/// Limits for one host and one cell.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 30;
/// Limits on a name's length and on the number of its components.
const MAX_NAME_BYTES: usize = 1024;
const MAX_PARTS: usize = 16;

pub(super) struct Receiver {
    folder: PathBuf,
    hosts: Vec<SendingHost>,
    collecting: bool,
    outputs: Vec<FileRecord>,
}

#[derive(Default)]
struct SendingHost {
    name: String,
    /// Files that ppt writes: their names on the host, and in the folder of the results.
    expected: Vec<(String, String)>,
    captures: BTreeSet<String>,
    open: Option<IncomingFile>,
    files: usize,
    bytes: u64,
}

/// A file that is being received.
struct IncomingFile {
    file: File,
    name: String,
    hash: Sha256,
    bytes: u64,
    capture: bool,
}

/// Why a file is rejected.
pub(super) enum FileRefusal {
    /// The host is at fault.
    Distrust(String),
    /// The controller's machine is at fault.
    Write(PathBuf, io::Error),
}

impl Receiver {
    pub(super) fn new(folder: &Path, names: impl Iterator<Item = String>) -> Self {
        let hosts = names.map(|name| SendingHost { name, ..SendingHost::default() }).collect();
        Self { folder: folder.to_owned(), hosts, collecting: false, outputs: Vec::new() }
    }

    /// Expects the files that ppt itself writes of a program that a phase starts on a host. `more` is
    /// the end of the name of a further file: a capture, or readings of clocks.
    pub(super) fn expect(&mut self, host: usize, phase: &str, more: Option<&str>) {
        let host = &mut self.hosts[host];
        let name = host.name.clone();
        for end in ["out", "err"] {
            host.expected.push((format!("{phase}.{end}"), format!("{phase}.{name}.{end}")));
        }
        if let Some(end) = more {
            let file = format!("{phase}.{name}.{end}");
            host.expected.push((file.clone(), file.clone()));
            if end == "bin" {
                host.captures.insert(file);
            }
        }
    }

    /// Whether the files were requested by a plan, or written by ppt.
    pub(super) fn collecting(&mut self, collecting: bool) {
        self.collecting = collecting;
    }

    pub(super) fn begin(&mut self, number: usize, name: &str) -> Result<(), FileRefusal> {
        let host = &mut self.hosts[number];
        let shown = || ppt_text::shortened(name, 200);
        let distrust = |why: &str| Err(FileRefusal::Distrust(format!("`{}` {why}", shown())));
        if host.open.is_some() {
            return distrust("begins before the file before it has ended");
        }
        host.files += 1;
        if host.files > MAX_FILES {
            return distrust(&format!("is one file too many: at most {MAX_FILES} are taken"));
        }
        let mut capture = false;
        let name = if self.collecting {
            if !is_inside(name) {
                return distrust("is no name of a file within a folder");
            }
            // Files of several hosts may share a name.
            format!("{}/{name}", host.name)
        } else {
            let Some(at) = host.expected.iter().position(|entry| entry.0 == name) else {
                return distrust("is no file that it was asked for");
            };
            capture = host.captures.contains(name);
            host.expected.swap_remove(at).1
        };
        let path = self.folder.join(&name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        // The file must be new: no link is followed and no file overwritten.
        let file = made.and_then(|()| File::create_new(&path));
        match file {
            Ok(file) => {
                let hash = Sha256::new();
                host.open = Some(IncomingFile { file, name, hash, bytes: 0, capture });
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
                    distrust("has been sent before")
                }
                _ => Err(FileRefusal::Write(path, error)),
            },
        }
    }

    pub(super) fn data(&mut self, host: usize, data: &[u8]) -> Result<(), FileRefusal> {
        let host = &mut self.hosts[host];
        let distrust = |why: &str| Err(FileRefusal::Distrust(why.to_owned()));
        host.bytes += data.len() as u64;
        let Some(open) = host.open.as_mut().filter(|_| !data.is_empty()) else {
            return distrust("it sends data of no file");
        };
        if host.bytes > MAX_BYTES {
            return distrust(&format!("it sends more than {MAX_BYTES} bytes"));
        }
        open.bytes += data.len() as u64;
        open.hash.update(data);
        let path = || self.folder.join(&open.name);
        open.file.write_all(data).map_err(|error| FileRefusal::Write(path(), error))
    }

    pub(super) fn end(&mut self, host: usize) -> Result<(), FileRefusal> {
        let Some(open) = self.hosts[host].open.take() else {
            return Err(FileRefusal::Distrust("it ends a file that it has not begun".to_owned()));
        };
        let IncomingFile { name, hash, bytes, capture, .. } = open;
        self.outputs.push(FileRecord {
            name,
            bytes,
            sha256: hex::encode(hash.finalize()),
            capture,
        });
        Ok(())
    }

    /// Checks that the host has ended every file that it began.
    pub(super) fn is_whole(&self, host: usize) -> Result<(), FileRefusal> {
        match self.hosts[host].open {
            None => Ok(()),
            Some(_) => {
                Err(FileRefusal::Distrust("it does not end a file that it began".to_owned()))
            }
        }
    }

    /// The files that were received completely.
    pub(super) fn outputs(self) -> Vec<FileRecord> {
        let mut outputs = self.outputs;
        outputs.sort_by(|a, b| a.name.cmp(&b.name));
        outputs
    }
}

/// Whether a name is relative and stays in its folder.
fn is_inside(name: &str) -> bool {
    let path = Path::new(name);
    let plain = |component: Component<'_>| match component {
        Component::Normal(part) => part.len() <= 255,
        _ => false,
    };
    // Without the normalisation of components(): the name is used as it is.
    let tidy = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.contains(ppt_text::is_unsafe)
        && tidy
        && path.components().count() <= MAX_PARTS
        && path.components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_into_their_folder() {
        for good in ["a", "a/b.log", "...", "-x", "ä/b c"] {
            assert!(is_inside(good), "{good}");
        }
        let long = "x".repeat(256);
        let deep = "d/".repeat(20) + "x";
        for bad in [
            "",
            ".",
            "..",
            "/etc/x",
            "a/../b",
            "../x",
            "a//b",
            "a/",
            "./a",
            "a\nb",
            "\0",
            "a\u{202e}b",
        ] {
            assert!(!is_inside(bad), "{bad:?}");
        }
        assert!(!is_inside(&long) && !is_inside(&deep));
    }

    #[test]
    fn files_come_whole_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut receiver = Receiver::new(folder.path(), ["a".to_owned()].into_iter());
        let why = |result: Result<(), FileRefusal>| match result {
            Err(FileRefusal::Distrust(why)) => why,
            Err(FileRefusal::Write(path, error)) => format!("{}: {error}", path.display()),
            Ok(()) => panic!("taken"),
        };
        receiver.expect(0, "run", Some("bin"));
        receiver.collecting(true);
        assert!(receiver.begin(0, "x/y").is_ok() && receiver.data(0, b"abc").is_ok());
        assert!(why(receiver.begin(0, "z")).contains("before the file before it"));
        assert!(why(receiver.is_whole(0)).contains("does not end"));
        assert!(receiver.end(0).is_ok());
        assert!(why(receiver.begin(0, "x/y")).contains("sent before"));
        assert!(why(receiver.begin(0, "x/y/z")).contains("sent before"));
        assert!(why(receiver.begin(0, "../z")).contains("is no name"));
        assert!(why(receiver.data(0, b"x")).contains("data of no file"));
        assert!(why(receiver.end(0)).contains("has not begun"));
        receiver.collecting(false);
        assert!(why(receiver.begin(0, "x")).contains("was asked for"));
        assert!(receiver.begin(0, "run.a.bin").is_ok() && receiver.end(0).is_ok());
        assert!(why(receiver.begin(0, "run.a.bin")).contains("was asked for"));
        let outputs = receiver.outputs();
        assert_eq!(outputs.len(), 2);
        assert_eq!((&*outputs[0].name, outputs[0].bytes, outputs[0].capture), ("a/x/y", 3, false));
        assert_eq!(
            outputs[0].sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(fs::read(folder.path().join("a/x/y")).unwrap(), b"abc");
    }
}
