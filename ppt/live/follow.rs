//! Children that captured processes fork are taken in while a capture runs; of a command, whatever
//! else it starts, too.
//!
//! Most of them say hello ([`reception`]). Those that cannot (in another net namespace, under
//! a filter, built with an older pptc) are looked for in `/proc`. Neither is believed: a child is
//! what has its parent's [`Origin`], a program of the command what its environment or its ancestors
//! show as one.

mod missed;
mod mourn;
mod reception;
mod strays;
mod take_in;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::time::Instant;

use ppt_agent::{AgentError, Buffer, Newcomers, Origin, Searcher, Session, System};

use super::timer::FIRST_LOOK;
use crate::failure::Failure;
use missed::Missed;
pub(crate) use reception::Guest;
use reception::Reception;
use strays::Strays;

/// What is needed to take processes in.
pub(crate) struct Follow {
    /// Until nobody can be heard any more.
    reception: Option<Reception>,
    socket: u64,
    newcomers: Newcomers,
    looked: Instant,
    /// Each program that is captured.
    known: HashMap<Origin, Known>,
    /// What a command starts is taken in whatever it is.
    command: Option<Command>,
    missed: Missed,
    /// Those that live, and were refused: once is enough.
    refused: BTreeSet<i32>,
    /// Those that live, or did so a moment ago, and were attached to: they are no news.
    taken: BTreeSet<i32>,
    /// Programs whose children are to be left alone from now on.
    alarms: Vec<Origin>,
}

/// What is known of a program.
#[derive(Default)]
struct Known {
    buffers: Vec<Buffer>,
    /// The users as whom its processes were attached to.
    owners: HashSet<(u32, u32)>,
    /// A process of it could not map what ppt makes.
    fell_over: bool,
    /// Its children are left alone: a first frame may end them.
    spared: bool,
    /// Children that were gone before their first frame, and nobody knows why, since one wrote some.
    vanished: u32,
}

impl Known {
    /// Whether its processes become another user, as the workers of root's servers do, perhaps
    /// after they were attached to. The next ones make their segments themselves from the start.
    fn makes_its_own(&self) -> bool {
        self.fell_over || (self.owners.len() > 1 && !ppt_agent::reserves_all(&System::default()))
    }
}

/// What tells of the processes of a command.
struct Command {
    /// What the environment of its programs has.
    variable: Vec<u8>,
    strays: Strays,
    searcher: Searcher,
    /// A process that had not one of the buffers that were asked for.
    without: Option<String>,
}

impl Follow {
    /// Follows forks.
    pub(crate) fn forks() -> Result<Self, Failure> {
        Ok(Self::new(Reception::of_children()?, None))
    }

    /// Follows a command, which is to be given the other end.
    pub(crate) fn command() -> Result<(Self, Guest), Failure> {
        let (reception, guest) = Reception::of_command()?;
        let command = Command {
            variable: guest.hello().into_bytes(),
            strays: Strays::default(),
            searcher: Searcher::of_many(),
            without: None,
        };
        Ok((Self::new(reception, Some(command)), guest))
    }

    fn new(reception: Reception, command: Option<Command>) -> Self {
        Self {
            socket: reception.of_forks(),
            reception: Some(reception),
            newcomers: Newcomers::new(&System::default()),
            looked: Instant::now(),
            known: HashMap::new(),
            command,
            missed: Missed::default(),
            refused: BTreeSet::new(),
            taken: BTreeSet::new(),
            alarms: Vec::new(),
        }
    }

    /// The socket that children are to find.
    pub(crate) fn socket(&self) -> u64 {
        self.socket
    }

    /// Readable when somebody says hello.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.reception.iter().flat_map(Reception::fds)
    }

    /// Whether it is time to look around.
    pub(super) fn is_due(&self) -> bool {
        self.looked.elapsed() >= FIRST_LOOK
    }

    /// A process has been attached.
    pub(super) fn enter(&mut self, session: &Session) -> Option<Origin> {
        self.taken.insert(session.target().pid());
        let origin = session.target().origin()?;
        let known = self.known.entry(origin).or_default();
        known.owners.insert(session.target().owner());
        for it in session.attached() {
            if !known.buffers.iter().any(|known| known.is_copy_of(&it.buffer)) {
                known.buffers.push(it.buffer.clone());
            }
        }
        Some(origin)
    }

    /// A process of that origin cannot map what ppt makes.
    pub(super) fn fell_over(&mut self, origin: Origin) {
        self.known.entry(origin).or_default().fell_over = true;
    }

    /// A process ended before the segment that it made was fetched.
    pub(super) fn never_fetched(&mut self) {
        self.missed.never_fetched();
    }

    /// What was seen, and not captured.
    pub(super) fn tell_missed(&self) {
        self.missed.tell();
    }
}

/// Whether a process was there a moment ago.
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
