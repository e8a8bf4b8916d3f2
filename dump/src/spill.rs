//! Unnamed files, which disappear when they are closed.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Creates an empty, unnamed file in `folder`, for writing and reading.
pub(crate) fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Some file systems, such as NFS, do not support unnamed files.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => named_for_a_moment(folder),
        Err(error) => Err(error.into()),
    }
}

fn named_for_a_moment(folder: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
    let path = folder.join(format!(".ppt-{process}-{number}.rows"));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn neither_leaves_a_name() {
        let folder = tempfile::tempdir().unwrap();
        for create in [unnamed, named_for_a_moment] {
            let mut file = create(folder.path()).unwrap();
            file.write_all(b"rows").unwrap();
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "rows");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
