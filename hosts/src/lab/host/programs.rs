//! Programs. Each starts in a new folder and in its own process group.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use super::facts;
use super::output::ProgramOutput;
use super::ready::Missing;
use super::self_start::SelfStart;
use crate::lab::plan;
use crate::lab::wire::{CaptureRequest, Ended, HelperFailure, Isolation, Problem, ProgramEnd};

/// Bytes and lines of a failed program's output that are shown.
const TAIL_BYTES: u64 = 8 << 10;
const TAIL_LINES: usize = 20;

/// A started program.
pub(super) struct StartedProgram {
    pub(super) phase: String,
    words: Vec<String>,
    child: Child,
    /// Readable once the program has ended.
    pub(super) fd: OwnedFd,
    outputs: [ProgramOutput; 2],
    /// Whether the phase waits for it to end.
    pub(super) ends: bool,
    pub(super) missing: Missing,
    pub(super) end: Option<ProgramEnd>,
    pub(super) stopped: bool,
}

/// The folders of programs.
#[derive(Clone)]
pub(super) struct Folders {
    /// Their working folder.
    pub(super) run: PathBuf,
    /// The folder of their output.
    pub(super) logs: PathBuf,
}

impl StartedProgram {
    pub(super) fn start(
        own: &SelfStart,
        isolation: Isolation,
        folders: &Folders,
        phase: &str,
        command: &plan::ShellCommand,
        capture: Option<&CaptureRequest>,
    ) -> Result<Self, HelperFailure> {
        let failed = |why: String| HelperFailure {
            phase: phase.to_owned(),
            words: command.words.clone(),
            problem: Problem::NotStarted(why),
            tail: String::new(),
        };
        Self::spawn(own, isolation, folders, phase, command, capture).map_err(failed)
    }

    fn spawn(
        own: &SelfStart,
        isolation: Isolation,
        folders: &Folders,
        phase: &str,
        command: &plan::ShellCommand,
        capture: Option<&CaptureRequest>,
    ) -> Result<Self, String> {
        let (first, arguments) = command.words.split_first().ok_or("it has no name")?;
        let program = facts::find(first)?;
        let io = |error: io::Error| error.to_string();
        let output = |end: &str| ProgramOutput::create(folders.logs.join(format!("{phase}.{end}")));
        let (out, stdout) = output("out").map_err(io)?;
        let (err, stderr) = output("err").map_err(io)?;
        let mut words: Vec<PathBuf> = Vec::new();
        if let Some(capture) = capture {
            words.push(facts::find(&capture.ppt)?);
            words.extend(["run", "--quiet", "-o", &capture.file, "--"].map(PathBuf::from));
        }
        words.push(program);
        words.extend(arguments.iter().map(PathBuf::from));
        let mut started = match isolation {
            Isolation::Namespaces => Command::new(&words[0]),
            Isolation::Guard => {
                let mut guard = own.command("guard");
                guard.arg(getpid().as_raw_nonzero().to_string()).arg("--").arg(&words[0]);
                guard
            }
        };
        started.args(&words[1..]).env_clear().envs(facts::environment());
        started.envs(command.env.iter().map(|(name, text)| (name, text)));
        started.current_dir(&folders.run).process_group(0).stdin(Stdio::null());
        started.stdout(stdout).stderr(stderr);
        let mut child = started.spawn().map_err(io)?;
        let fd = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.to_string());
            }
        };
        let missing = Missing::new(&command.ready, [out.path(), err.path()], &folders.run);
        Ok(Self {
            phase: phase.to_owned(),
            words: command.words.clone(),
            child,
            fd,
            outputs: [out, err],
            ends: command.ends,
            missing,
            end: None,
            stopped: false,
        })
    }

    /// Records the end of the program, if it just ended. Processes left in its group are ended, too.
    pub(super) fn reap(&mut self) -> Option<ProgramEnd> {
        if self.end.is_some() {
            return None;
        }
        let status = self.child.try_wait().ok().flatten()?;
        let signal = || ProgramEnd::Signal(status.signal().unwrap_or_default());
        self.end = Some(status.code().map_or_else(signal, ProgramEnd::Code));
        self.kill_group();
        self.outputs.iter_mut().for_each(ProgramOutput::flush);
        self.end
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&mut self) {
        self.stopped |= self.end.is_none();
        if self.end.is_none() {
            let _ = pidfd_send_signal(&self.fd, Signal::TERM);
        }
    }

    /// Ends it and its process group unless it has ended; the group of an ended program is gone.
    pub(super) fn kill(&self) {
        if self.end.is_none() {
            self.kill_group();
            let _ = pidfd_send_signal(&self.fd, Signal::KILL);
        }
    }

    /// No other group can have the number: it belongs to the group until its last process has ended, and
    /// the child has just been reaped.
    fn kill_group(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    pub(super) fn failure(&mut self, problem: Problem) -> HelperFailure {
        self.outputs.iter_mut().for_each(ProgramOutput::flush);
        let (phase, words) = (self.phase.clone(), self.words.clone());
        HelperFailure { phase, words, problem, tail: self.tail() }
    }

    /// The end of the program. Its output files are complete then. None if it runs.
    pub(super) fn ended(&mut self) -> Option<Ended> {
        let left_out = self.outputs.iter_mut().map(ProgramOutput::finish).sum();
        let end = self.end?;
        Some(Ended { phase: self.phase.clone(), end, stopped: self.stopped, left_out })
    }

    /// The end of its stdout.
    pub(super) fn output_text(&self) -> String {
        String::from_utf8_lossy(&end_of(self.outputs[0].path())).into_owned()
    }

    /// The last lines of stderr, or of stdout if there are none.
    fn tail(&self) -> String {
        let [out, err] = &self.outputs;
        let tail = last_lines(err.path());
        if tail.is_empty() { last_lines(out.path()) } else { tail }
    }
}

fn end_of(path: &Path) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

fn last_lines(path: &Path) -> String {
    let bytes = end_of(path);
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
