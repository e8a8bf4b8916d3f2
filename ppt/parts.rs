//! The files of a capture that goes on in one after another: `out.000001.bin`, `out.000002.bin`, ….

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ppt_listener::Rotation;

use crate::output::{Output, OutputError};

/// When to begin another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Every {
    Time(Duration),
    Size(u64),
}

/// The files that this run makes.
#[derive(Debug)]
pub(crate) struct Parts {
    path: PathBuf,
    force: bool,
    keep: Option<u32>,
    number: u32,
}

impl Parts {
    /// Opens the first file. Without `force`, no file of these names may exist: what is in the way
    /// is found now, not an hour later.
    pub(crate) fn open(
        path: &Path,
        force: bool,
        keep: Option<u32>,
    ) -> Result<(Self, Output), OutputError> {
        let mut parts = Self { path: path.into(), force, keep, number: 0 };
        if let (false, Some(file)) = (force, parts.existing()) {
            return Err(OutputError::Exists(file));
        }
        let first = parts.next()?;
        Ok((parts, first))
    }

    /// What to call all of them.
    pub(crate) fn name(&self) -> String {
        self.numbered("*").display().to_string()
    }

    /// The way to them, for the listener.
    pub(crate) fn rotation(mut self, every: Every, tool: &'static str) -> Rotation<File> {
        let (every, size) = match every {
            Every::Time(time) => (Some(time), None),
            Every::Size(size) => (None, Some(size)),
        };
        let next = move || match self.next() {
            Ok(output) => Ok((output.file, ppt_listener::header(tool))),
            Err(error) => Err(io::Error::other(error)),
        };
        Rotation { every, size, next: Box::new(next) }
    }

    /// The next file; of those before it only as many stay as are to be kept.
    fn next(&mut self) -> Result<Output, OutputError> {
        let number = self.number + 1;
        let output = Output::open(&self.numbered(&digits(number)), self.force)?;
        self.number = number;
        if let Some(old) = self.keep.and_then(|keep| number.checked_sub(keep)).filter(|&it| it > 0)
        {
            let _ = std::fs::remove_file(self.numbered(&digits(old)));
        }
        Ok(output)
    }

    /// `out.bin` as `out.NUMBER.bin`.
    fn numbered(&self, number: &str) -> PathBuf {
        let mut name = self.path.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(number);
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.path.with_file_name(name)
    }

    /// A file of an earlier run that this one would come upon.
    fn existing(&self) -> Option<PathBuf> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let pattern = self.numbered("*");
        let pattern = pattern.file_name()?.to_str()?;
        let (before, after) = pattern.rsplit_once('*')?;
        let is_part = |name: &str| {
            let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(|it| it.len() >= 6 && it.bytes().all(|it| it.is_ascii_digit()))
        };
        let mut found: Vec<_> = std::fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().and_then(|it| it.to_str()).is_some_and(is_part))
            .collect();
        found.sort();
        found.into_iter().next()
    }
}

fn digits(number: u32) -> String {
    format!("{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_last_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mut parts, _) = Parts::open(&folder.path().join("a.b.bin"), false, Some(2)).unwrap();
        assert_eq!(names(folder.path()), ["a.b.000001.bin"]);
        parts.next().unwrap();
        parts.next().unwrap();
        assert_eq!(names(folder.path()), ["a.b.000002.bin", "a.b.000003.bin"]);
        assert!(parts.name().ends_with("/a.b.*.bin"));
    }

    #[test]
    fn an_earlier_run_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(folder.path().join("out.000007"), "").unwrap();
        std::fs::write(folder.path().join("out.notes"), "").unwrap();
        let error = Parts::open(&path, false, None).unwrap_err();
        assert!(matches!(error, OutputError::Exists(path) if path.ends_with("out.000007")));
        assert_eq!(names(folder.path()), ["out.000007", "out.notes"]);
        Parts::open(&path, true, None).unwrap();
    }
}
