//! Talks to the controller, and starts and stops programs: one thread, one loop.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ppt_text::exit::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getpid, set_child_subreaper};

use super::error::{HostError, cannot};
use super::isolation::FIRST;
use super::mounts::Mounts;
use super::programs::{Folders, StartedProgram};
use super::self_start::SelfStart;
use super::{clock, facts, files, tree};
use crate::lab::plan;
use crate::lab::wire::{
    self, CaptureRequest, ClockRole, HelperMessage, HelperRequest, Isolation, Problem, ProgramEnd,
    WireError, WireFrame,
};

/// Time that a program asked to end may take.
const GRACE: Duration = Duration::from_secs(2);
/// Interval at which ports, files and output are checked while a request waits for them.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// A controller sends a message every other second. After this silence it counts as gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Longest delay until the start of a phase.
const MAX_AHEAD: Duration = Duration::from_secs(60);
pub(super) fn work(
    own: &SelfStart,
    how: &str,
    life: &str,
    folder: &Path,
) -> Result<ExitStatus, HostError> {
    let number: u32 = life.parse().map_err(|_| HostError::Arguments)?;
    let life = File::open(format!("/proc/self/fd/{number}")).map_err(cannot("open a pipe"))?;
    // An existing name belongs to another process.
    let made = fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(cannot("make a folder for programs"))?;
    let (isolation, mounts) = if how == FIRST {
        (Isolation::Namespaces, Mounts::make())
    } else {
        set_child_subreaper(Some(getpid())).map_err(cannot("adopt orphans"))?;
        (Isolation::Guard, Mounts::default())
    };
    let mut worker = Worker {
        own: own.clone(),
        isolation,
        mounts,
        folder: folder.to_owned(),
        folders: None,
        cells: 0,
        programs: Vec::new(),
        captures: Vec::new(),
        awaited: Awaited::Nothing,
        heard: Instant::now(),
        out: io::stdout(),
    };
    let served = worker.serve(&life);
    worker.end_all(served.is_ok());
    let _ = fs::remove_dir_all(folder);
    if isolation == Isolation::Guard {
        tree::end_descendants(getpid());
    }
    match served {
        Ok(()) => Ok(ExitStatus::DONE),
        // The controller is gone, so the error cannot be reported.
        Err(WireError::Io(_)) => Ok(ExitStatus::FAILED),
        Err(error) => Err(cannot("understand the controller")(io::Error::other(error))),
    }
}

struct Worker {
    own: SelfStart,
    isolation: Isolation,
    mounts: Mounts,
    folder: PathBuf,
    folders: Option<Folders>,
    cells: u32,
    /// The programs, in the order of their start.
    programs: Vec<StartedProgram>,
    /// Names of captures.
    captures: Vec<String>,
    awaited: Awaited,
    heard: Instant,
    out: io::Stdout,
}

/// The request that the controller waits for.
enum Awaited {
    Nothing,
    /// The start time of a phase.
    Time {
        phase: String,
        command: plan::ShellCommand,
        capture: Option<CaptureRequest>,
        at: i64,
    },
    /// The last program is ready or has ended.
    Program {
        started: i64,
    },
    /// The programs of a phase have ended.
    Stop {
        phase: String,
        until: Instant,
    },
    /// All programs have ended, one after the other, in reverse order.
    End {
        until: Instant,
    },
}

impl Worker {
    /// Serves until the controller closes the pipe.
    fn serve(&mut self, life: &File) -> Result<(), WireError> {
        self.send(&HelperMessage::Hello(Box::new(facts::facts(self.isolation))))?;
        let stdin = io::stdin();
        loop {
            let mut fds =
                vec![PollFd::new(&stdin, PollFlags::IN), PollFd::new(life, PollFlags::IN)];
            let running = self.programs.iter().filter(|program| program.end.is_none());
            fds.extend(running.map(|program| PollFd::new(&program.fd, PollFlags::IN)));
            match poll(&mut fds, Some(&self.timeout())) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let (is_asked, is_alive) = (!fds[0].revents().is_empty(), fds[1].revents().is_empty());
            if !is_alive {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
            }
            if is_asked {
                // A standard buffer would hide requests from poll(2).
                match wire::read(&mut Unbuffered)? {
                    None => return Ok(()),
                    Some(WireFrame::Message(request)) => self.answer(request)?,
                    Some(WireFrame::Data(_)) => {
                        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
                    }
                }
                self.heard = Instant::now();
            }
            if self.heard.elapsed() > SILENCE {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            self.reap()?;
            self.advance()?;
        }
    }

    fn send(&mut self, message: &HelperMessage) -> io::Result<()> {
        wire::write_message(&mut self.out, message)
    }

    /// Time until the next timer; how long poll(2) may wait.
    fn timeout(&self) -> Timespec {
        let silence = SILENCE.saturating_sub(self.heard.elapsed()) + POLL_INTERVAL;
        let wait = match &self.awaited {
            Awaited::Nothing => silence,
            Awaited::Time { at, .. } => ahead(*at),
            Awaited::Program { .. } if self.programs.last().is_some_and(|program| program.ends) => {
                silence
            }
            Awaited::Program { .. } => POLL_INTERVAL,
            Awaited::Stop { until, .. } | Awaited::End { until } => {
                until.saturating_duration_since(Instant::now())
            }
        };
        Timespec::try_from(wait.min(silence)).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
    }

    fn answer(&mut self, request: HelperRequest) -> Result<(), WireError> {
        match request {
            HelperRequest::Ping => {}
            HelperRequest::Identify { programs } => {
                let found = programs.iter().map(|program| facts::identify(program)).collect();
                self.send(&HelperMessage::Identified(found))?;
            }
            HelperRequest::Tool { words, input } => {
                let (end, output) = tool(&words, &input);
                self.send(&HelperMessage::Tool { end, output })?;
            }
            HelperRequest::Begin => {
                self.end_all(true);
                self.cells += 1;
                let cell = self.folder.join(self.cells.to_string());
                let folders = Folders { run: cell.join("run"), logs: cell.join("logs") };
                fs::create_dir_all(&folders.run)?;
                fs::create_dir(&folders.logs)?;
                self.folders = Some(folders);
                self.send(&HelperMessage::Begun)?;
            }
            HelperRequest::Start { phase, command, capture, at } => {
                self.awaited = Awaited::Time { phase, command, capture, at };
            }
            HelperRequest::Measure { phase, name, key, part } => {
                self.measure(phase, &name, &key, &part)?;
            }
            HelperRequest::Offsets { phase } => {
                let others = self.offsets(&phase);
                self.send(&HelperMessage::Offsets { now: realtime(), others })?;
            }
            HelperRequest::Stop { phase } => {
                for program in self.programs.iter_mut().filter(|program| program.phase == phase) {
                    program.ask_to_end();
                }
                self.awaited = Awaited::Stop { phase, until: Instant::now() + GRACE };
            }
            HelperRequest::GiveUp => {
                let unfinished = self.unfinished();
                self.awaited = Awaited::Nothing;
                self.send(&HelperMessage::Unfinished(unfinished))?;
            }
            HelperRequest::Collect { patterns } => self.collect(&patterns)?,
            HelperRequest::End => self.ask_last_to_end(),
        }
        Ok(())
    }

    /// Records which programs have ended. An unexpected end is reported once.
    fn reap(&mut self) -> io::Result<()> {
        let mut failures = Vec::new();
        for program in &mut self.programs {
            if let Some(end) = program.reap()
                && !program.stopped
                && end != ProgramEnd::Code(0)
            {
                failures.push(program.failure(Problem::Ended(end)));
            }
        }
        failures
            .into_iter()
            .try_for_each(|failure| self.send(&HelperMessage::Failed(Box::new(failure))))
    }

    /// Continues the request that the controller waits for.
    fn advance(&mut self) -> Result<(), WireError> {
        match &self.awaited {
            Awaited::Nothing => Ok(()),
            Awaited::Time { at, .. } if !ahead(*at).is_zero() => Ok(()),
            Awaited::Time { .. } => Ok(self.start()?),
            Awaited::Program { started } => {
                let started = *started;
                let Some(program) = self.programs.last_mut() else { return Ok(()) };
                let ended = program.end;
                let done = match (program.ends, ended) {
                    // The failure of the program has been reported.
                    (_, Some(end)) if end != ProgramEnd::Code(0) => None,
                    (true, end) => end.map(|_| true),
                    (false, _) if program.missing.look().is_none() => Some(true),
                    // The program may have become ready and ended since the last check.
                    (false, Some(_)) => Some(false),
                    (false, None) => return Ok(()),
                };
                let reply = match done {
                    Some(true) => HelperMessage::Done { started },
                    Some(false) => {
                        let end = ended.unwrap_or(ProgramEnd::Code(0));
                        HelperMessage::Failed(Box::new(program.failure(Problem::Ended(end))))
                    }
                    None if ended.is_none() => return Ok(()),
                    None => {
                        self.awaited = Awaited::Nothing;
                        return Ok(());
                    }
                };
                self.awaited = Awaited::Nothing;
                Ok(self.send(&reply)?)
            }
            Awaited::Stop { phase, until } => {
                let mut left = self
                    .programs
                    .iter_mut()
                    .filter(|program| program.end.is_none() && program.phase == *phase);
                if left.by_ref().next().is_none() {
                    self.awaited = Awaited::Nothing;
                    return Ok(self.send(&HelperMessage::Stopped)?);
                }
                if Instant::now() >= *until {
                    let left = self.programs.iter_mut().filter(|program| program.phase == *phase);
                    left.for_each(|program| program.kill());
                    let (phase, until) = (phase.clone(), Instant::now() + GRACE);
                    self.awaited = Awaited::Stop { phase, until };
                }
                Ok(())
            }
            Awaited::End { until } => {
                let late = Instant::now() >= *until;
                match self.programs.iter_mut().rfind(|program| program.end.is_none()) {
                    None => self.finish_cell()?,
                    Some(last) if !last.stopped => self.ask_last_to_end(),
                    Some(last) if late => {
                        last.kill();
                        self.awaited = Awaited::End { until: Instant::now() + GRACE };
                    }
                    Some(_) => {}
                }
                Ok(())
            }
        }
    }

    /// Starts the awaited program: its start time has come.
    fn start(&mut self) -> io::Result<()> {
        let awaited = std::mem::replace(&mut self.awaited, Awaited::Nothing);
        let Awaited::Time { phase, command, capture, .. } = awaited else { return Ok(()) };
        let started = realtime();
        let Some(folders) = self.folders.clone() else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        let (own, isolation) = (&self.own, self.isolation);
        let capture = capture.as_ref();
        match StartedProgram::start(own, isolation, &folders, &phase, &command, capture) {
            Ok(program) => {
                self.captures.extend(capture.map(|capture| capture.file.clone()));
                self.programs.push(program);
                self.awaited = Awaited::Program { started };
                Ok(())
            }
            Err(failure) => self.send(&HelperMessage::Failed(Box::new(failure))),
        }
    }

    /// Starts this program as one that measures clocks.
    fn measure(
        &mut self,
        phase: String,
        name: &str,
        key: &[u8],
        part: &ClockRole,
    ) -> io::Result<()> {
        let Some(folders) = &self.folders else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        let path = folders.logs.join(format!("{phase}.key"));
        let mut file = fs::OpenOptions::new();
        file.write(true).create_new(true).mode(0o600).open(&path)?.write_all(key)?;
        let own = [self.own.program.as_os_str()]
            .into_iter()
            .chain(self.own.words.iter().map(|name| &**name));
        let mut words: Vec<String> = own.map(|name| name.to_string_lossy().into_owned()).collect();
        let key = path.to_string_lossy().into_owned();
        let output = match part {
            ClockRole::Answer(address) => {
                words.extend(["answer".to_owned(), name.to_owned(), key, address.clone()]);
                clock::ANSWERS
            }
            ClockRole::Ask { clock: goal, others } => {
                let file = format!("{phase}.{name}.sync");
                let ns = [goal.until, goal.give_up].map(|duration| duration.as_nanos().to_string());
                words.extend(["ask".to_owned(), name.to_owned(), key, file.clone()]);
                words.extend(ns);
                words.extend(others.iter().cloned());
                self.captures.push(file);
                clock::KNOWN
            }
        };
        let ready =
            plan::Readiness { output: Some(output.to_owned()), ..plan::Readiness::default() };
        let command =
            plan::ShellCommand { words, env: Vec::new(), ends: false, ready, capture: false };
        self.awaited = Awaited::Time { phase, command, capture: None, at: 0 };
        Ok(())
    }

    /// The latest clock readings that a phase's program reports.
    fn offsets(&self, phase: &str) -> Vec<(String, i64, i64)> {
        let program = self.programs.iter().find(|program| program.phase == phase);
        let output = program.map(StartedProgram::output_text).unwrap_or_default();
        let mut latest: Vec<(String, i64, i64)> = Vec::new();
        for line in output.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["offset", name, offset, half] = words[..]
                && let (Ok(offset), Ok(half)) = (offset.parse(), half.parse())
            {
                latest.retain(|entry| entry.0 != name);
                latest.push((name.to_owned(), offset, half));
            }
        }
        latest
    }

    fn unfinished(&mut self) -> Vec<wire::HelperFailure> {
        if let Awaited::Time { phase, command, .. } = &self.awaited {
            return vec![wire::HelperFailure {
                phase: phase.clone(),
                words: command.words.clone(),
                problem: Problem::NotStarted("its time has not come".to_owned()),
                tail: String::new(),
            }];
        }
        let waits = matches!(self.awaited, Awaited::Program { .. });
        let Some(program) =
            self.programs.last_mut().filter(|program| waits && program.end.is_none())
        else {
            return Vec::new();
        };
        let missing = if program.ends { None } else { program.missing.look() };
        vec![program.failure(missing.map_or(Problem::Running, Problem::NotReady))]
    }

    /// Asks the last running program to end.
    fn ask_last_to_end(&mut self) {
        if let Some(last) = self.programs.iter_mut().rfind(|program| program.end.is_none()) {
            last.ask_to_end();
        }
        self.awaited = Awaited::End { until: Instant::now() + GRACE };
    }

    fn collect(&mut self, patterns: &[String]) -> io::Result<()> {
        let mut sent = files::Sent::default();
        if let Some(folders) = self.folders.clone() {
            sent = files::send(&mut self.out, &folders.run, patterns, &self.captures)?;
        }
        let files::Sent { unmatched, left_out } = sent;
        self.send(&HelperMessage::Collected { unmatched, left_out, ends: Vec::new() })
    }

    /// Sends the files that ppt itself wrote, and forgets the cell.
    fn finish_cell(&mut self) -> io::Result<()> {
        self.awaited = Awaited::Nothing;
        let ends = self.programs.iter_mut().filter_map(StartedProgram::ended).collect();
        if let Some(folders) = self.folders.take() {
            for name in std::mem::take(&mut self.captures) {
                files::send_file(&mut self.out, &folders.run.join(&name), &name)?;
            }
            for program in &self.programs {
                for end in ["out", "err"] {
                    let name = format!("{}.{end}", program.phase);
                    let path = folders.logs.join(&name);
                    if path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                        files::send_file(&mut self.out, &path, &name)?;
                    }
                }
            }
            if let Some(cell) = folders.run.parent() {
                fs::remove_dir_all(cell)?;
            }
        }
        self.programs.clear();
        self.mounts.empty_shared_memory();
        self.send(&HelperMessage::Collected { unmatched: Vec::new(), left_out: Vec::new(), ends })
    }

    /// Ends all programs in reverse order without reporting. `gently` gives each some time.
    fn end_all(&mut self, gently: bool) {
        for program in self.programs.iter_mut().rev() {
            if gently && program.end.is_none() {
                program.ask_to_end();
                let grace = Timespec::try_from(GRACE).ok();
                let _ = poll(&mut [PollFd::new(&program.fd, PollFlags::IN)], grace.as_ref());
            }
            program.reap();
            program.kill();
            let _ = poll(&mut [PollFd::new(&program.fd, PollFlags::IN)], None);
            program.reap();
        }
        self.programs.clear();
        self.mounts.empty_shared_memory();
        self.captures.clear();
        self.awaited = Awaited::Nothing;
        if let Some(cell) = self.folders.take().as_ref().and_then(|folder| folder.run.parent()) {
            let _ = fs::remove_dir_all(cell);
        }
    }
}

/// stdin as poll(2) sees it.
struct Unbuffered;

impl Read for Unbuffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(rustix::stdio::stdin(), buffer)?)
    }
}

fn realtime() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

fn ahead(at: i64) -> Duration {
    let ns = at.saturating_sub(realtime()).max(0) as u64;
    Duration::from_nanos(ns).min(MAX_AHEAD)
}

/// Runs a system program to its end.
fn tool(words: &[String], input: &str) -> (ProgramEnd, String) {
    let missing = |why: String| (ProgramEnd::Code(127), why);
    let Some((first, arguments)) = words.split_first() else { return missing(String::new()) };
    let mut command = Command::new(first);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return missing(format!("{first}: {error}")),
    };
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    match child.wait_with_output() {
        Err(error) => missing(error.to_string()),
        Ok(done) => {
            let signal = || ProgramEnd::Signal(done.status.signal().unwrap_or_default());
            let mut message = String::from_utf8_lossy(&done.stderr).into_owned();
            if let Some(Err(error)) = written {
                message.push_str(&error.to_string());
            }
            (done.status.code().map_or_else(signal, ProgramEnd::Code), message)
        }
    }
}
