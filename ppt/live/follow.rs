//! Attaches to the children that captured processes fork during a capture. For a command, it
//! attaches to everything that the command starts.
//!
//! Most processes say hello ([`reception`]). Others cannot, because they are in another net
//! namespace, under a filter, or built with an older pptc; ppt looks for them in `/proc`. ppt
//! believes neither. A child must have its parent's [`Origin`]. A program of the command must show
//! it by its environment or its ancestors.

mod missed;
mod mourn;
mod reception;
mod strays;
mod take_in;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use ppt_agent::{AgentError, Buffer, Newcomers, Origin, Searcher, Session, System};
use ppt_sources::FILE_NAME;

use super::timer::{CHECK_INTERVAL, FIRST_CHECK_INTERVAL};
use crate::failure::Failure;
use missed::Missed;
pub(crate) use reception::Guest;
use reception::Reception;
use strays::Strays;

/// State for attaching to further processes.
pub(crate) struct Follow {
    /// None once no process can say hello any more.
    reception: Option<Reception>,
    socket: u64,
    newcomers: Newcomers,
    looked: Instant,
    /// Processes found first by the last search. Their hellos may be on the way.
    sighted: Vec<i32>,
    /// Each captured program.
    known: HashMap<Origin, ProgramFacts>,
    /// Whether ppt attaches to everything that a command starts.
    command: Option<FollowedCommand>,
    missed: Missed,
    /// Live processes that ppt refused: it tries each only once.
    refused: BTreeSet<i32>,
    /// Processes that ppt has attached to and that live, or lived a moment ago.
    taken: BTreeSet<i32>,
    /// Programs whose children ppt leaves alone from now on.
    alarms: Vec<Origin>,
}

/// Facts about a program.
#[derive(Default)]
struct ProgramFacts {
    buffers: Vec<Buffer>,
    /// The users that its processes ran as when ppt attached.
    owners: HashSet<(u32, u32)>,
    /// One of its processes could not map a segment of ppt's.
    fell_over: bool,
    /// ppt leaves its children alone, because a first frame may end them.
    spared: bool,
    /// Number of children that ended before their first frame for unknown reasons, since a child
    /// wrote a frame.
    vanished: u32,
}

impl ProgramFacts {
    /// Whether its processes change their user, as the workers of root's servers do, perhaps after
    /// ppt attached. If so, its next processes make their segments themselves from the start.
    fn makes_its_own(&self) -> bool {
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

    /// Follows a command, which inherits the other end. `unwanted`: buffers of the preloaded
    /// library that were not requested.
    pub(crate) fn command(unwanted: Vec<&'static str>) -> Result<(Self, Guest), Failure> {
        let (reception, guest) = Reception::of_command()?;
        let command = FollowedCommand {
            variable: guest.hello().into_bytes(),
            strays: Strays::default(),
            searcher: Searcher::of_many(),
            without: None,
            unwanted,
        };
        Ok((Self::new(reception, Some(command)), guest))
    }

    fn new(reception: Reception, command: Option<FollowedCommand>) -> Self {
        Self {
            socket: reception.of_forks(),
            reception: Some(reception),
            newcomers: Newcomers::new(&System::default()),
            looked: Instant::now(),
            sighted: Vec::new(),
            known: HashMap::new(),
            command,
            missed: Missed::default(),
            refused: BTreeSet::new(),
            taken: BTreeSet::new(),
            alarms: Vec::new(),
        }
    }

    /// The socket that children connect to.
    pub(crate) fn socket(&self) -> u64 {
        self.socket
    }

    /// Readable if a hello has arrived.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.reception.iter().flat_map(Reception::fds)
    }

    /// Whether a search for processes is due.
    pub(super) fn is_due(&self) -> bool {
        self.looked.elapsed() >= FIRST_CHECK_INTERVAL
    }

    /// Time until the next search.
    pub(super) fn patience(&self) -> Duration {
        if self.sighted.is_empty() { CHECK_INTERVAL } else { FIRST_CHECK_INTERVAL }
    }

    /// Whether a process of the command has not yet had time to say hello.
    pub(super) fn awaits_strays(&self) -> bool {
        let strays = self.command.as_ref().map(|command| &command.strays);
        strays.is_some_and(|stray| stray.are_awaited(|pid| !self.taken.contains(&pid)))
    }

    /// Records processes that a list contains for the first time.
    fn sight(&mut self, newcomers: Vec<i32>) {
        self.sighted.extend(&newcomers);
        if let Some(command) = &mut self.command {
            command.strays.see(newcomers, &command.variable);
            command.strays.forget(|pid| !self.newcomers.lives(pid));
        }
    }

    /// Records a process that is attached before ppt gives up privileges: later, the origin of another
    /// user's process cannot be read.
    pub(crate) fn know(&mut self, session: &Session) {
        let _ = self.enter(session);
    }

    /// Records an attached process.
    pub(super) fn enter(&mut self, session: &Session) -> Option<Origin> {
        self.taken.insert(session.target().pid());
        let target = session.target();
        let origin = target.origin().or_else(|| target.origin_among(self.known.keys()))?;
        let known = self.known.entry(origin).or_default();
        known.owners.insert(session.target().owner());
        for buffer in session.attached() {
            if !known.buffers.iter().any(|known| known.is_copy_of(&buffer.buffer)) {
                known.buffers.push(buffer.buffer.clone());
            }
        }
        Some(origin)
    }

    /// Records that a process of that origin cannot map a segment of ppt's.
    pub(super) fn fell_over(&mut self, origin: Origin) {
        self.known.entry(origin).or_default().fell_over = true;
    }

    /// Records that a process ended before ppt fetched the segment that it made.
    pub(super) fn never_fetched(&mut self) {
        self.missed.never_fetched();
    }

    /// Reports processes that were found but not captured.
    pub(super) fn tell_missed(&self) {
        self.missed.report();
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
