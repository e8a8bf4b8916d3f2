//! Sends files of a cell to the controller.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::lab::wire::{self, Tell};

/// What became of patterns.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) unmatched: Vec<String>,
    pub(super) left_out: Vec<String>,
}

/// Sends the files below `folder` that match, but not those named in `held`, which are sent later.
pub(super) fn send(
    to: &mut impl Write,
    folder: &Path,
    patterns: &[String],
    held: &[String],
) -> io::Result<Sent> {
    let mut sent = Sent::default();
    let root = fs::canonicalize(folder)?;
    let mut done = Vec::new();
    for pattern in patterns {
        let whole = format!("{}/{pattern}", glob::Pattern::escape(&root.to_string_lossy()));
        let mut matched = false;
        for path in glob::glob(&whole).into_iter().flatten().flatten() {
            let Ok(name) = path.strip_prefix(&root) else { continue };
            matched = true;
            let name = name.to_string_lossy().into_owned();
            if held.contains(&name) || done.contains(&name) {
                continue;
            }
            // A link may lead anywhere, and the name of a folder alone says nothing.
            let is_link = fs::canonicalize(&path).map_or(true, |it| it != path);
            let is_folder = path.is_dir();
            if is_link || (!is_folder && !path.is_file()) {
                sent.left_out.push(name);
            } else if !is_folder {
                send_file(to, &path, &name)?;
                done.push(name);
            }
        }
        if !matched {
            sent.unmatched.push(pattern.clone());
        }
    }
    Ok(sent)
}

/// Sends one file. Only writing to the controller can fail: a file that vanishes is shorter.
pub(super) fn send_file(to: &mut impl Write, path: &Path, name: &str) -> io::Result<()> {
    const O_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let Ok(mut file) = File::options().read(true).custom_flags(O_NOFOLLOW).open(path) else {
        return Ok(());
    };
    wire::write_message(to, &Tell::File { name: name.to_owned() })?;
    let mut buffer = vec![0; wire::MOST_DATA];
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        wire::write_data(to, &buffer[..read])?;
    }
    wire::write_message(to, &Tell::FileEnd)
}
