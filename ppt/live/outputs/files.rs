//! The files of a capture that is written while it runs.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_listener::{DirectFile, FileHeader, Rotation};
use ppt_output::{Displaced, Guarded, Output, OutputError, Readers, Rules, Series, Whereabouts};

use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::live::outputs::about::{Kept, News, header};
use crate::measure::Every;
use crate::privileges::{self, WithRights};
use crate::signals;

/// The writer of frames.
pub(in crate::live) type CaptureFile = Guarded<DirectFile>;

/// The first file of a capture, and the opener of further ones. A file gets its name when it is
/// [published](Self::publish). A file that is never published leaves nothing behind.
pub(crate) struct Files {
    files: Arc<Mutex<Opened>>,
    every: Option<Every>,
    /// Publishes the first file.
    publisher: Option<WithRights<Result<(), OutputError>>>,
}

/// The files of a capture, up to the current one.
struct Opened {
    /// The file that was opened last.
    current: Arc<Mutex<Output>>,
    /// The file before it, until `current` has begun.
    before: Option<Arc<Mutex<Output>>>,
    /// The names of further files.
    series: Series,
    /// Rules for a file that replaces one that was taken away.
    rules: Rules,
    /// Set while much data waits for the disk.
    behind: Arc<AtomicBool>,
    /// Whether written frames are in no file of the capture any more.
    lost: bool,
    /// Whether the capture continues in another file than the one in which it began.
    moved_on: bool,
    news: Vec<News>,
}

impl Files {
    /// Opens the output that the command line names.
    pub(in crate::live) fn open(args: &args::CaptureArgs) -> Result<Self, Failure> {
        let rules = Rules {
            force: args.force,
            readers: Readers::Owner,
            inputs: Vec::new(),
            invoker: privileges::invoker(),
        };
        if args.rotate.is_some() && args.to_stdout() {
            return Err(Failure::usage(
                Code::StdoutTaken,
                "--rotate makes several files, and stdout is only one",
            ));
        }
        if args.to_stdout() && signals::stdout_was_closed() {
            return Err(Failure::usage(
                Code::StdoutTaken,
                "stdout is closed; choose a file for the capture with -o",
            ));
        }
        let path = &args.output;
        let (series, mut first) = match args.rotate {
            None => (Series::after(path, &rules), Output::open(path, &rules)?),
            Some(_) => {
                let mut series = Series::new(path, &rules, args.keep)?;
                let first = series.open_next()?;
                (series, first)
            }
        };
        first.claim()?;
        let opened = Opened {
            current: Arc::new(Mutex::new(first)),
            before: None,
            series,
            rules: Rules { force: false, ..rules },
            behind: Arc::default(),
            lost: false,
            moved_on: false,
            news: Vec::new(),
        };
        let files = Arc::new(Mutex::new(opened));
        Ok(Self { files, every: args.rotate, publisher: None })
    }

    /// Whether the capture may consist of several files.
    pub(in crate::live) fn are_many(&self) -> bool {
        self.every.is_some()
    }

    /// Keeps the current rights for publishing the first file.
    pub(in crate::live) fn keep_rights(&mut self) -> Result<(), Failure> {
        let files = self.files.clone();
        let publisher = WithRights::keep(move || locked(&files).publish());
        let fail = |error| Failure::failed(Code::System, format!("cannot start a thread: {error}"));
        self.publisher = Some(publisher.map_err(fail)?);
        Ok(())
    }

    /// Gives the file its name, because its content is worth keeping from now on. Further calls do
    /// nothing.
    pub(in crate::live) fn publish(&mut self) -> Result<(), OutputError> {
        match self.publisher.take() {
            Some(publisher) => publisher.work(),
            None => locked(&self.files).publish(),
        }
    }

    /// The name for messages about all files.
    pub(in crate::live) fn name(&self) -> String {
        let files = locked(&self.files);
        match self.every {
            Some(_) => files.series.name(),
            None => locked(&files.current).name(),
        }
    }

    /// The absolute path by which readers find all files; None if the capture has no path.
    pub(in crate::live) fn full_name(&self) -> Option<String> {
        let files = locked(&self.files);
        let path = match self.every {
            Some(_) => files.series.name().into(),
            None => locked(&files.current).path()?.to_owned(),
        };
        std::path::absolute(path).ok()?.into_os_string().into_string().ok()
    }

    /// The writer of the first file.
    pub(in crate::live) fn first(&self, behind: &Arc<AtomicBool>) -> io::Result<CaptureFile> {
        let mut files = locked(&self.files);
        files.behind = behind.clone();
        files.sink()
    }

    /// The rule for continuing the capture in another file, and the opener of these files.
    pub(in crate::live) fn rotation(&self) -> Rotation<CaptureFile> {
        let (every, size) = match self.every {
            Some(Every::Time(time)) => (Some(time), None),
            Some(Every::Size(size)) => (None, Some(size)),
            None => (None, None),
        };
        let keep = locked(&self.files).series.keep();
        Rotation { every, size, keep, files: Box::new(Opener(self.files.clone())) }
    }

    /// Messages about the files since the last call.
    pub(in crate::live) fn news(&self) -> Vec<News> {
        std::mem::take(&mut locked(&self.files).news)
    }

    /// The part of the capture that its files still hold.
    pub(in crate::live) fn kept(&self) -> Kept {
        let files = locked(&self.files);
        match files.last_whereabouts() {
            Whereabouts::Gone if self.every.is_none() => Kept::None,
            Whereabouts::Gone => Kept::Some,
            _ if files.lost || (files.moved_on && self.every.is_none()) => Kept::Some,
            _ => Kept::All,
        }
    }

    /// The message if the last file is not in its place at the end.
    pub(in crate::live) fn astray(&self) -> Option<News> {
        let files = locked(&self.files);
        let name = locked(files.last()).name();
        match files.last_whereabouts() {
            Whereabouts::There => None,
            Whereabouts::Moved(Some(path)) => Some((
                Code::OutputMoved,
                format!(
                    "{name} is not the capture: the capture was moved to {} while ppt wrote it",
                    path.display()
                ),
            )),
            Whereabouts::Moved(None) => Some((
                Code::OutputMoved,
                format!("{name} is not the capture: the capture was moved while ppt wrote it"),
            )),
            Whereabouts::Gone => Some((
                Code::OutputRemoved,
                format!("{name} was removed or replaced while ppt wrote it: the capture is lost"),
            )),
        }
    }
}

/// Other threads may hold the files longer than this.
impl Drop for Files {
    fn drop(&mut self) {
        let files = locked(&self.files);
        locked(&files.current).discard();
        files.before.iter().for_each(|before| locked(before).discard());
    }
}

impl Opened {
    /// The last file that has begun.
    fn last(&self) -> &Mutex<Output> {
        self.before.as_ref().unwrap_or(&self.current)
    }

    fn last_whereabouts(&self) -> Whereabouts {
        locked(self.last()).whereabouts()
    }

    fn sink(&self) -> io::Result<CaptureFile> {
        Guarded::new(&self.current, direct(&self.current, &self.behind))
    }

    fn publish(&mut self) -> Result<(), OutputError> {
        let mut current = locked(&self.current);
        if !current.is_published() {
            current.publish()?;
            self.series.published(&current);
        }
        Ok(())
    }

    fn open(&mut self, output: Output) -> io::Result<(CaptureFile, FileHeader)> {
        let before = std::mem::replace(&mut self.current, Arc::new(Mutex::new(output)));
        self.before.get_or_insert(before);
        Ok((self.sink()?, header()))
    }

    /// Opens a file in place of one that was taken away: under the same name, if that is free.
    fn replace(&mut self, displaced: Displaced) -> Result<Output, OutputError> {
        let path = locked(&self.current).path().map(Path::to_owned);
        let path = path.filter(|_| displaced == Displaced::Removed);
        match path.map(|path| Output::open(&path, &self.rules)) {
            Some(Ok(output)) => Ok(output),
            _ => self.series.open_next(),
        }
    }

    fn report(&mut self, displaced: Displaced, name: &str) {
        match displaced {
            Displaced::Emptied | Displaced::Removed => self.lost = true,
            Displaced::Changed { .. } | Displaced::Overwritten => self.moved_on = true,
        }
        let next = locked(&self.current).name();
        let (code, message) = match displaced {
            Displaced::Emptied => (
                Code::OutputTruncated,
                format!(
                    "{name} was truncated while ppt wrote it: it no longer holds the earlier \
                     frames\n  the capture continues from the start of the file"
                ),
            ),
            Displaced::Changed { written, found } => (
                Code::OutputChanged,
                format!(
                    "{name} was changed by another program while ppt wrote it: it should have \
                     {written} bytes, and has {found}\n  ppt leaves it as it is, and the capture \
                     continues in {next}"
                ),
            ),
            Displaced::Overwritten => (
                Code::OutputChanged,
                format!(
                    "{name} was changed by another program while ppt wrote it: its first or last \
                     bytes are not those that ppt wrote\n  ppt leaves it as it is, and the capture \
                     continues in {next}"
                ),
            ),
            Displaced::Removed => (
                Code::OutputRemoved,
                format!(
                    "{name} was removed or replaced while ppt wrote it: the earlier frames are \
                     gone\n  the capture continues in {next}"
                ),
            ),
        };
        self.news.push((code, message));
    }
}

/// Opens files for the listener.
struct Opener(Arc<Mutex<Opened>>);

impl ppt_listener::CaptureFiles<CaptureFile> for Opener {
    fn next(&mut self) -> io::Result<(CaptureFile, FileHeader)> {
        let mut files = locked(&self.0);
        let output = files.series.open_next().map_err(io::Error::other)?;
        files.open(output)
    }

    fn begun(&mut self) -> io::Result<()> {
        let mut files = locked(&self.0);
        // Until the first file is published, no further file is.
        if files.before.take().is_some_and(|before| locked(&before).is_published()) {
            files.publish().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn ended(&mut self) {
        locked(&self.0).series.remove_old();
    }

    fn instead(&mut self, error: &io::Error) -> Option<io::Result<(CaptureFile, FileHeader)>> {
        let displaced = Displaced::from_error(error)?;
        let mut files = locked(&self.0);
        let name = locked(&files.current).name();
        let opened = match displaced {
            Displaced::Emptied => {
                let sink = Guarded::again(&files.current, direct(&files.current, &files.behind));
                sink.map(|sink| (sink, header()))
            }
            _ if locked(&files.current).is_stdout() => return None,
            _ => {
                let opened = files.replace(displaced);
                let fail = |error| format!("{displaced}, and there is no other file: {error}");
                let opened = opened.map_err(|error| io::Error::other(fail(error)));
                opened.and_then(|output| files.open(output))
            }
        };
        if opened.is_ok() {
            files.report(displaced, &name);
        }
        Some(opened)
    }
}

/// Chooses how a file is written. Other programs may share our stdout.
fn direct(
    output: &Mutex<Output>,
    behind: &Arc<AtomicBool>,
) -> impl FnOnce(std::fs::File) -> DirectFile + use<> {
    let (is_stdout, behind) = (locked(output).is_stdout(), behind.clone());
    move |file| if is_stdout { DirectFile::plain(file) } else { DirectFile::new(file, behind) }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn what_comes_to_nothing_is_gone_though_a_thread_still_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let path = path.to_str().unwrap();
        let parsed = args::Args::parse_from(["ppt", "attach", "1", "-o", path]);
        let args::Command::Attach(attach) = parsed.command else { unreachable!() };
        let mut outputs = Files::open(&attach.capture).unwrap();
        outputs.keep_rights().unwrap();
        let held = outputs.files.clone();
        drop(outputs);
        locked(&held).publish().unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
