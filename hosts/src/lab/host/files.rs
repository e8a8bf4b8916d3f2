//! Sends files of a cell to the controller.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::lab::wire::{self, HelperMessage};

/// The outcome of matching patterns.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) unmatched: Vec<String>,
    pub(super) left_out: Vec<String>,
}

/// Sends the files below `folder` that match, except those named in `held`, which are sent later. A
/// pattern that matches a folder stands for all files below it.
pub(super) fn send(
    to: &mut impl Write,
    folder: &Path,
    patterns: &[String],
    held: &[String],
) -> io::Result<Sent> {
    let mut sent = Sent::default();
    let root = fs::canonicalize(folder)?;
    let mut done = BTreeSet::new();
    for pattern in patterns {
        let mut matched = false;
        for path in matching(&root, pattern) {
            let Ok(name) = path.strip_prefix(&root) else { continue };
            let name = name.to_string_lossy().into_owned();
            // A link may point anywhere.
            let is_link = fs::canonicalize(&path).map_or(true, |target| target != path);
            // Wildcards also match folders; only files are wanted.
            if path.is_dir() && !is_link {
                continue;
            }
            matched = true;
            if held.contains(&name) || done.contains(&name) {
                continue;
            }
            if is_link || !path.is_file() {
                sent.left_out.push(name);
            } else {
                send_file(to, &path, &name)?;
                done.insert(name);
            }
        }
        if !matched {
            sent.unmatched.push(pattern.clone());
        }
    }
    Ok(sent)
}

/// The matches of a pattern below `root`. A link to a folder counts as a link.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let named = root.join(pattern.trim_end_matches('/'));
    if named.symlink_metadata().is_ok_and(|known| known.is_dir()) {
        return below(named);
    }
    let whole = format!("{}/{pattern}", glob::Pattern::escape(&root.to_string_lossy()));
    glob::glob(&whole).into_iter().flatten().flatten().collect()
}

/// Everything below a folder except folders, sorted by name.
fn below(folder: PathBuf) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|known| known.is_dir());
            if is_folder { &mut folders } else { &mut found }.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Sends one file. Only writing to the controller can fail; a file that vanishes is sent shorter.
pub(super) fn send_file(to: &mut impl Write, path: &Path, name: &str) -> io::Result<()> {
    const O_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let Ok(mut file) = File::options().read(true).custom_flags(O_NOFOLLOW).open(path) else {
        return Ok(());
    };
    wire::write_message(to, &HelperMessage::File { name: name.to_owned() })?;
    let mut buffer = vec![0; wire::MAX_DATA_BYTES];
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        wire::write_data(to, &buffer[..read])?;
    }
    wire::write_message(to, &HelperMessage::FileEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_files_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(run.join("logs/old")).unwrap();
        fs::create_dir_all(run.join("empty")).unwrap();
        for name in ["logs/new.log", "logs/old/a.log", "logs/held.log", "other"] {
            fs::write(run.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/etc", run.join("logs/link")).unwrap();
        let send = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
            let mut bytes = Vec::new();
            let sent = send(&mut bytes, &run, &patterns, &["logs/held.log".to_owned()]).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let paths = ["logs/new.log", "logs/old/a.log", "logs/held.log", "other", "passwd"];
            let names: Vec<&str> = paths.into_iter().filter(|name| text.contains(name)).collect();
            (names, sent)
        };
        for pattern in ["logs", "logs/"] {
            let (names, sent) = send(&[pattern]);
            assert_eq!(names, ["logs/new.log", "logs/old/a.log"], "{pattern}");
            assert_eq!((sent.left_out, sent.unmatched), (vec!["logs/link".to_owned()], vec![]));
        }
        let (names, sent) = send(&["empty", "log*", "oth*"]);
        assert_eq!(names, ["other"]);
        assert_eq!(sent.unmatched, ["empty", "log*"], "there is no file of these names");
    }
}
