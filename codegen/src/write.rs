//! Generated files on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Output;

/// A generated file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub cause: io::Error,
}

/// Writes the files into `folder`, which is made if need be; a file that would not change keeps
/// its modification time, so that nothing is rebuilt for it. Returns the paths.
pub fn write_outputs(folder: &Path, outputs: &[Output]) -> Result<Vec<PathBuf>, WriteError> {
    let fail = |path: &Path| {
        let path = path.to_path_buf();
        move |cause| WriteError { path, cause }
    };
    if !folder.as_os_str().is_empty() {
        fs::create_dir_all(folder).map_err(fail(folder))?;
    }
    let mut paths = Vec::with_capacity(outputs.len());
    for output in outputs {
        let path = folder.join(&output.name);
        if !fs::read(&path).is_ok_and(|old| old == output.text.as_bytes()) {
            fs::write(&path, &output.text).map_err(fail(&path))?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The rule for make(1): every output depends on the frame file.
pub fn depfile(outputs: &[PathBuf], source: &Path) -> String {
    let escape = |path: &Path| {
        let text = path.to_string_lossy();
        text.replace('$', "$$").replace('#', "\\#").replace(' ', "\\ ")
    };
    let targets: Vec<_> = outputs.iter().map(|path| escape(path)).collect();
    format!("{}: {}\n", targets.join(" "), escape(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = [Output { name: "a.h".into(), text: "x".into() }];
        let path = &write_outputs(folder.path(), &outputs).unwrap()[0];
        let old = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        write_outputs(folder.path(), &outputs).unwrap();
        assert_eq!(fs::metadata(path).unwrap().modified().unwrap(), old);
    }

    #[test]
    fn the_depfile_escapes_for_make() {
        let rule = depfile(&[PathBuf::from("out dir/a.h")], Path::new("a#1$.frame"));
        assert_eq!(rule, "out\\ dir/a.h: a\\#1$$.frame\n");
    }
}
