//! Attaches to the children that captured processes fork during a capture. For a command, it
//! attaches to everything that the command starts.
//!
//! Most processes say hello ([`reception`]). Others cannot, because they are in another net
//! namespace, under a filter, or built with an older pptc; ppt looks for them in `/proc`. ppt
//! believes neither. A child must have its parent's [`Origin`]. A program of the command must show
//! it by its environment or its ancestors.

mod attach_found;
mod child_ends;
mod missed;
mod reception;
mod strays;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use ppt_agent::{AgentError, Buffer, Newcomers, Origin, Searcher, Session, System};
use ppt_sources::FILE_NAME;

use super::timer::{CHECK_INTERVAL, FIRST_CHECK_INTERVAL};
use crate::args::PreloadSource;
use crate::failure::Failure;
use crate::preload;
use missed::Missed;
pub(crate) use reception::InheritedSocket;
use reception::Reception;
use strays::Strays;

/// Finds further processes, and remembers which programs they run.
pub(crate) struct Follow {
    /// None once no process can say hello any more.
    reception: Option<Reception>,
    /// The name of the socket that children connect to.
    socket: u64,
    newcomers: Newcomers,
    last_search: Instant,
    /// Processes that the last search found for the first time. Their hellos may be on the way.
    newly_seen: Vec<i32>,
    /// The captured programs.
    programs: HashMap<Origin, ProgramFacts>,
    /// Whether ppt attaches to everything that a command starts.
    command: Option<FollowedCommand>,
    missed: Missed,
    /// Live processes to which ppt could not attach. It does not try again.
    refused: BTreeSet<i32>,
    /// Processes to which ppt has attached, until a search finds that they have ended.
    attached: BTreeSet<i32>,
    /// Programs whose children ppt no longer captures, until it has released their members.
    newly_spared: Vec<Origin>,
}

/// Facts about a program.
#[derive(Default)]
struct ProgramFacts {
    buffers: Vec<Buffer>,
    /// The users that its processes ran as when ppt attached.
    owners: HashSet<(u32, u32)>,
    /// Whether one of its processes could not map a segment of ppt's.
    fell_over: bool,
    /// Whether ppt leaves its children alone, because a first frame may end them.
    spared: bool,
    /// Number of children, since one last wrote a frame, that ended before their first frame for
    /// unknown reasons.
    unexplained_ends: u32,
}

impl ProgramFacts {
    /// Whether its processes change their user, as the workers of root's servers do, perhaps after
    /// ppt attached. If so, its next processes make their segments themselves from the start.
    fn makes_own_segments(&self) -> bool {
        self.fell_over || (self.owners.len() > 1 && !ppt_agent::reserves_all(&System::default()))
    }
}

/// Facts about the processes of a command.
struct FollowedCommand {
    /// A variable in the environment of its programs.
    variable: Vec<u8>,
    strays: Strays,
    searcher: Searcher,
    /// The message about a process that lacks one of the requested buffers.
    without: Option<String>,
    /// Whether its programs should have the preloaded library.
    preloads: bool,
    /// Buffers of the preloaded library that were not requested.
    unwanted: Vec<&'static str>,
}

impl FollowedCommand {
    /// Whether a buffer was not requested.
    fn leaves_out(&self, buffer: &Buffer) -> bool {
        let is_of_library = || Path::new(&buffer.object).file_name() == Some(FILE_NAME.as_ref());
        self.unwanted.contains(&&*buffer.schema.buffer) && is_of_library()
    }
}

impl Follow {
    /// Follows forks.
    pub(crate) fn forks() -> Result<Self, Failure> {
        Ok(Self::new(Reception::of_children()?, None))
    }

    /// Follows a command, which inherits the returned socket. `with`: what the preloaded library is
    /// to capture.
    pub(crate) fn command(with: &[PreloadSource]) -> Result<(Self, InheritedSocket), Failure> {
        let (reception, inherited) = Reception::of_command()?;
        let command = FollowedCommand {
            variable: inherited.hello().into_bytes(),
            strays: Strays::default(),
            searcher: Searcher::of_many(),
            without: None,
            preloads: !with.is_empty(),
            unwanted: preload::unwanted(with),
        };
        Ok((Self::new(reception, Some(command)), inherited))
    }

    fn new(reception: Reception, command: Option<FollowedCommand>) -> Self {
        Self {
            socket: reception.of_forks(),
            reception: Some(reception),
            newcomers: Newcomers::new(&System::default()),
            last_search: Instant::now(),
            newly_seen: Vec::new(),
            programs: HashMap::new(),
            command,
            missed: Missed::default(),
            refused: BTreeSet::new(),
            attached: BTreeSet::new(),
            newly_spared: Vec::new(),
        }
    }

    /// The socket that children connect to.
    pub(crate) fn socket(&self) -> u64 {
        self.socket
    }

    /// Descriptors that become readable when a hello arrives.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.reception.iter().flat_map(Reception::fds)
    }

    /// Whether a search for processes is due.
    pub(super) fn is_due(&self) -> bool {
        self.last_search.elapsed() >= FIRST_CHECK_INTERVAL
    }

    /// Time until the next search.
    pub(super) fn search_interval(&self) -> Duration {
        if self.newly_seen.is_empty() { CHECK_INTERVAL } else { FIRST_CHECK_INTERVAL }
    }

    /// Whether a process of the command has not yet had time to say hello.
    pub(super) fn awaits_strays(&self) -> bool {
        let strays = self.command.as_ref().map(|command| &command.strays);
        strays.is_some_and(|stray| stray.are_awaited(|pid| !self.attached.contains(&pid)))
    }

    /// Records processes that a search found for the first time.
    fn note_newcomers(&mut self, newcomers: Vec<i32>) {
        self.newly_seen.extend(&newcomers);
        if let Some(command) = &mut self.command {
            command.strays.see(newcomers, &command.variable);
        }
        self.forget_ended_strays();
    }

    /// Records an attached process; returns its origin. After ppt has given up privileges, it cannot
    /// read the origin of another user's process.
    pub(crate) fn record(&mut self, session: &Session) -> Option<Origin> {
        self.attached.insert(session.target().pid());
        let target = session.target();
        let origin = target.origin().or_else(|| target.origin_among(self.programs.keys()))?;
        let program = self.programs.entry(origin).or_default();
        program.owners.insert(session.target().owner());
        for buffer in session.attached() {
            if !program.buffers.iter().any(|known| known.is_copy_of(&buffer.buffer)) {
                program.buffers.push(buffer.buffer.clone());
            }
        }
        Some(origin)
    }

    /// Records that a process of that origin cannot map a segment of ppt's.
    pub(super) fn fell_over(&mut self, origin: Origin) {
        self.programs.entry(origin).or_default().fell_over = true;
    }

    /// Records that a process ended before ppt fetched the segment that it made.
    pub(super) fn never_fetched(&mut self) {
        self.missed.never_fetched();
    }

    /// Reports processes that were found but not captured.
    pub(super) fn report_missed(&mut self) {
        let command = self.command.iter_mut();
        let silent = command.flat_map(|command| command.strays.forget(|_| true)).collect();
        self.lack_library(silent);
        self.missed.report();
    }

    /// Forgets processes of the command that have ended without a hello.
    fn forget_ended_strays(&mut self) {
        if let Some(command) = &mut self.command {
            let silent = command.strays.forget(|pid| !self.newcomers.lives(pid));
            self.lack_library(silent);
        }
    }

    /// Records processes, with their names, that should have the preloaded library and have not.
    fn lack_library(&mut self, processes: Vec<(i32, String)>) {
        for (pid, comm) in processes {
            if self.command.as_ref().is_some_and(|command| command.preloads)
                && self.refused.insert(pid)
            {
                self.missed.refused(pid, comm, preload::lacking());
            }
        }
    }
}

/// Whether an error means that the process has ended in the meantime.
pub(crate) fn is_gone(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::NoProcess { .. }
            | AgentError::Ended { .. }
            | AgentError::Zombie { .. }
            | AgentError::ProcessChanged { .. }
            | AgentError::ProgramChanged { .. }
    )
}
