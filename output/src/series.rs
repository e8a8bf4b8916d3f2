//! Consecutive files: `out.000001.bin`, `out.000002.bin`, ….

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::OutputError;
use crate::identity::FileId;
use crate::name::OutputName;
use crate::output::Output;
use crate::rules::Rules;

/// The largest number of names in a row that may be taken.
const TRIES: u32 = 1000;
/// The number of times that a changing folder is checked again.
const LOOKS: u32 = 16;

/// The names of consecutive files.
#[derive(Debug)]
pub struct Series {
    path: PathBuf,
    rules: Rules,
    /// The number of files that are kept, if not all.
    keep: Option<u32>,
    number: u32,
    /// The existing files that are kept.
    made: VecDeque<(PathBuf, Option<FileId>)>,
}

impl Series {
    /// Names files `NAME.000001.EXTENSION`, … for a path `NAME.EXTENSION`. It fails now rather than
    /// an hour later if files are in the way: without `--force` any file of an earlier run, with
    /// `--force` a file that is being written.
    ///
    /// # Errors
    /// Files are in the way, or the folder cannot be read.
    pub fn new(path: &Path, rules: &Rules, keep: Option<u32>) -> Result<Self, OutputError> {
        let made = VecDeque::new();
        let series = Self { path: path.into(), rules: rules.clone(), keep, number: 0, made };
        series.is_free()?;
        Ok(series)
    }

    /// Names the successors of the file `path`. The first has number 2. They use only free names,
    /// and replace nothing.
    pub fn after(path: &Path, rules: &Rules) -> Self {
        let rules = Rules { force: false, ..rules.clone() };
        Self { path: path.into(), rules, keep: None, number: 1, made: VecDeque::new() }
    }

    /// The number of files that are kept. `None`: all.
    pub fn keep(&self) -> Option<u32> {
        self.keep
    }

    /// The name of the series in messages.
    pub fn name(&self) -> String {
        self.numbered("*").display().to_string()
    }

    /// Opens the next file. It skips names that were taken since the series began.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open_next(&mut self) -> Result<Output, OutputError> {
        for attempt in 1.. {
            self.number += 1;
            match Output::open(&self.numbered(&digits(self.number)), &self.rules) {
                Err(
                    OutputError::Exists(_) | OutputError::NotAFile(..) | OutputError::InUse(..),
                ) if attempt < TRIES && (self.number > 1) => {}
                opened => return opened,
            }
        }
        unreachable!("it returns in the last attempt")
    }

    /// The file that was opened last is never published: the next one gets its number.
    pub fn not_published(&mut self) {
        self.number = self.number.saturating_sub(1);
    }

    /// Records that this output was published.
    pub fn published(&mut self, output: &Output) {
        let path = output.path().map(Path::to_owned);
        self.made.extend(path.map(|path| (path, FileId::of_file(output.file()))));
        if self.keep.is_none() {
            self.made.clear();
        }
    }

    /// Removes the oldest complete files, so that the number to keep remains.
    pub fn remove_old(&mut self) {
        while self.keep.is_some_and(|keep| self.made.len() > keep as usize) {
            if let Some((path, Some(id))) = self.made.pop_front() {
                // Only our file: another one may have its name by now.
                let _ = OutputName::new(&path, &self.rules).and_then(|name| name.remove(id));
            }
        }
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

    /// Whether no files have these names, or, with `--force`, no process writes one.
    fn is_free(&self) -> Result<(), OutputError> {
        let mut files = self.existing();
        for _ in 0..LOOKS {
            for file in &files {
                OutputName::new(file, &self.rules)?.may_be_taken()?;
            }
            // A writer that has continued in its next file has that one locked.
            let again = self.existing();
            if again == files {
                break;
            }
            files = again;
        }
        Ok(())
    }

    /// The files with these names, in order.
    fn existing(&self) -> Vec<PathBuf> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let pattern = self.numbered("*");
        let pattern = pattern.file_name().and_then(OsStr::to_str);
        let Some((before, after)) = pattern.and_then(|pattern| pattern.rsplit_once('*')) else {
            return Vec::new();
        };
        let is_part = |name: &str| {
            let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(|number| {
                number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut found: Vec<_> = names.filter(|name| is_part(name)).collect();
        found.sort();
        found.iter().map(|name| self.path.with_file_name(name)).collect()
    }
}

fn digits(number: u32) -> String {
    format!("{number:06}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::output::tests::names;

    fn publish(series: &mut Series) -> Output {
        let mut output = series.open_next().unwrap();
        output.publish().unwrap();
        series.published(&output);
        series.remove_old();
        output
    }

    #[test]
    fn the_last_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b.bin");
        let mut series = Series::new(&path, &Rules::default(), Some(2)).unwrap();
        assert!(series.name().ends_with("/a.b.*.bin"));
        publish(&mut series);
        assert_eq!(names(folder.path()), ["a.b.000001.bin"]);
        publish(&mut series);
        // Another program needs the first file, and replaces it.
        fs::rename(folder.path().join("a.b.000001.bin"), folder.path().join("mine")).unwrap();
        fs::write(folder.path().join("a.b.000001.bin"), "mine, too").unwrap();
        publish(&mut series);
        publish(&mut series);
        let left = ["a.b.000001.bin", "a.b.000003.bin", "a.b.000004.bin", "mine"];
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn an_earlier_run_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(folder.path().join("out.000007"), "").unwrap();
        fs::write(folder.path().join("out.notes"), "").unwrap();
        let error = Series::new(&path, &Rules::default(), None).unwrap_err();
        assert!(matches!(error, OutputError::Exists(path) if path.ends_with("out.000007")));
        assert_eq!(names(folder.path()), ["out.000007", "out.notes"]);
        Series::new(&path, &Rules { force: true, ..Rules::default() }, None).unwrap();
    }

    #[test]
    fn a_series_that_is_being_written_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let rules = Rules { force: true, ..Rules::default() };
        let mut first = Series::new(&path, &rules, None).unwrap();
        drop(publish(&mut first));
        let third = publish(&mut first);
        let error = Series::new(&path, &rules, None).unwrap_err();
        assert!(matches!(error, OutputError::InUse(path, _) if path.ends_with("out.000002.bin")));
        drop(third);
        Series::new(&path, &rules, None).unwrap();
    }

    #[test]
    fn names_that_are_taken_later_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let mut series = Series::new(&path, &Rules::default(), None).unwrap();
        publish(&mut series);
        fs::write(folder.path().join("out.000002.bin"), "mine").unwrap();
        fs::create_dir(folder.path().join("out.000003.bin")).unwrap();
        publish(&mut series);
        assert!(folder.path().join("out.000004.bin").is_file());
        assert_eq!(fs::read(folder.path().join("out.000002.bin")).unwrap(), b"mine");
    }
}
