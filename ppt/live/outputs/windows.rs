//! The folder of a flight recorder.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ppt_listener::{FileHeader, Process, WindowFiles};
use ppt_output::{Output, OutputError, Readers, Rules, Series};
use rustix::process::geteuid;

use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::live::outputs::about::header;
use crate::privileges;

/// Names that are tried for the windows of a session.
const TRIES: u32 = 100;

/// A folder for windows.
#[derive(Clone)]
pub(crate) struct Windows {
    folder: PathBuf,
    rules: Rules,
    /// The most windows to keep.
    max: u32,
    /// The time when the session began, as it is in the names of windows.
    begun: String,
}

impl Windows {
    /// Makes the folder if there is none, and checks that files can be made there.
    pub(super) fn open(args: &args::CaptureArgs) -> Result<Self, Failure> {
        let folder = args.output.clone();
        let is_other =
            args.to_stdout() || fs::metadata(&folder).is_ok_and(|metadata| !metadata.is_dir());
        if is_other {
            let problem = "is no folder, and --flight writes a capture for each window; choose a \
                        folder with -o";
            let name =
                if args.to_stdout() { "stdout".into() } else { folder.display().to_string() };
            return Err(Failure::usage(Code::NotAFolder, format!("{name} {problem}")));
        }
        let rules = Rules {
            force: false,
            readers: Readers::Owner,
            inputs: Vec::new(),
            invoker: privileges::invoker(),
        };
        make(&folder, &rules)?;
        let begun = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let begun = begun.replace(['-', ':'], "");
        let windows = Self { folder, rules, max: args.flight.max, begun };
        drop(Output::open(&windows.path(std::process::id(), 0), &windows.rules)?);
        Ok(windows)
    }

    pub(super) fn name(&self) -> String {
        self.folder.display().to_string()
    }

    /// The absolute path of the folder.
    pub(in crate::live) fn full_name(&self) -> String {
        let full = fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
        full.display().to_string()
    }

    /// The name of windows of a session whose first process is `pid`, without their numbers.
    fn path(&self, pid: u32, attempt: u32) -> PathBuf {
        let again = if attempt == 0 { String::new() } else { format!("-{}", attempt + 1) };
        self.folder.join(format!("{pid}-{}{again}.bin", self.begun))
    }

    /// Names that no other session has used.
    fn series(&self, pid: u32) -> Result<Series, OutputError> {
        for attempt in 0.. {
            match Series::new(&self.path(pid, attempt), &self.rules, Some(self.max)) {
                Err(OutputError::Exists(_) | OutputError::InUse(..)) if attempt < TRIES => {}
                series => return series,
            }
        }
        unreachable!("it returns in the last attempt")
    }

    /// The opener of windows' files, for the listener.
    pub(in crate::live) fn files(&self) -> Box<dyn WindowFiles> {
        Box::new(Opener { windows: self.clone(), series: None, current: None })
    }
}

fn make(folder: &Path, rules: &Rules) -> Result<(), Failure> {
    let fail = |error| OutputError::System(folder.into(), error);
    match DirBuilder::new().mode(0o755).create(folder) {
        Ok(()) => {
            if let Some(invoker) = rules.invoker.filter(|_| geteuid().is_root()) {
                chown(folder, Some(invoker.uid), invoker.gid).map_err(fail)?;
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(fail(error).into()),
    }
}

struct Opener {
    windows: Windows,
    /// Known once there is a process.
    series: Option<Series>,
    current: Option<Output>,
}

impl WindowFiles for Opener {
    fn open(&mut self, first: Option<&Process>) -> io::Result<(Box<dyn Write + '_>, FileHeader)> {
        if self.series.is_none() {
            let pid = first.map_or_else(std::process::id, |process| process.pid);
            self.series = Some(self.windows.series(pid).map_err(io::Error::other)?);
        }
        let series = self.series.as_mut().expect("it has just been made");
        let output = match series.open_next() {
            Ok(output) => output,
            Err(error) => {
                series.not_published();
                return Err(io::Error::other(error));
            }
        };
        let file = self.current.insert(output).file().try_clone()?;
        Ok((Box::new(file), header()))
    }

    fn publish(&mut self) -> io::Result<String> {
        let (Some(series), Some(output)) = (&mut self.series, &mut self.current) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        output.publish().map_err(io::Error::other)?;
        series.published(output);
        series.remove_old();
        let name = output.name();
        self.current = None;
        Ok(name)
    }

    fn discard(&mut self) {
        if self.current.take().is_some()
            && let Some(series) = &mut self.series
        {
            series.not_published();
        }
    }
}
