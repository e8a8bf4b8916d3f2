//! Attaches to processes that say hello, and searches for those that cannot.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

use ppt_agent::{
    AgentError, AttachOptions, Buffer, Hold, Origin, Searcher, SegmentChoice, Session, System,
    Target, escaped, may_be_of, was_started_with,
};

use super::missed::Relation;
use super::reception::{Hello, Sender};
use super::{FollowedCommand, ProgramFacts, is_gone};
use crate::code::Code;
use crate::descriptors;
use crate::failure::Failure;
use crate::live::{Live, options};
use crate::report;

/// Most hellos that ppt handles in a row. A process may send them without end.
const AT_ONCE: usize = 256;

/// Most searches for the children of captured processes that have all ended.
const GENERATIONS: usize = 8;

/// The way in which ppt found a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discovery {
    Hello,
    Scan,
}

/// Why ppt did not attach to a process.
enum NotAttached {
    /// The process has ended.
    Gone,
    Refused {
        comm: String,
        why: Failure,
    },
}

impl NotAttached {
    fn new(comm: &str, why: AgentError) -> Self {
        if is_gone(&why) {
            Self::Gone
        } else {
            Self::Refused { comm: comm.into(), why: why.into() }
        }
    }
}

impl Live<'_> {
    /// Records the process of the command. Its descendants belong to the command, too. `is_named`:
    /// ppt has already said why it cannot be captured.
    pub(crate) fn began(&mut self, pid: i32, is_named: bool) {
        if let Some(command) = self.command() {
            command.strays.begin(pid);
        }
        self.follow.iter_mut().filter(|_| is_named).for_each(|it| _ = it.refused.insert(pid));
    }

    /// Records that a captured process of the command runs another program.
    pub(in crate::live) fn began_anew(&mut self, pid: i32) {
        // A process that takes long to end has no program any more.
        let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
        let is_ending = exe.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if let Some(command) = self.command().filter(|_| !is_ending) {
            command.strays.begin_anew(pid, comm(pid));
        }
    }

    /// The message about a process of the command that lacks one of the requested buffers.
    pub(crate) fn without(&mut self) -> Option<String> {
        self.command()?.without.take()
    }

    fn command(&mut self) -> Option<&mut FollowedCommand> {
        self.follow.as_mut()?.command.as_mut()
    }

    /// Attaches to processes that say hello, and answers them.
    pub(in crate::live) fn receive(&mut self) {
        let mut left = AT_ONCE;
        while let Some(hello) = self.next_hello(&mut left) {
            let attached = match hello.sender {
                Sender::Child => {
                    if let Some(follow) = &mut self.follow {
                        follow.missed.said_hello(hello.pid);
                    }
                    // A process that says hello again has made its segment, and waits until ppt has
                    // fetched it.
                    self.check_process(hello.pid);
                    self.attach_child(hello.pid, Discovery::Hello)
                }
                Sender::Program => self.attach_program(&hello),
            };
            self.note(hello.pid, attached);
            hello.answer();
        }
    }

    fn next_hello(&mut self, left: &mut usize) -> Option<Hello> {
        let (follow, members) = (self.follow.as_mut()?, &self.members);
        let us = nix::unistd::geteuid().as_raw();
        let of_member =
            |user| members.iter().any(|member| member.session.target().owner().0 == user);
        // The parent may have ended.
        let programs = &follow.programs;
        let of_program =
            |user| programs.values().any(|facts| facts.owners.iter().any(|owner| owner.0 == user));
        let knows = |user| user == us || of_member(user) || of_program(user);
        match follow.reception.as_mut()?.next(left, knows) {
            Ok(hello) => hello,
            Err(failure) => {
                failure.report();
                follow.reception = None;
                self.ok = false;
                None
            }
        }
    }

    /// Closes the reception: ppt waits for no process any more, and no process waits for ppt.
    pub(crate) fn close_reception(&mut self) {
        if let Some(follow) = &mut self.follow {
            follow.reception = None;
        }
    }

    /// Searches for processes that could not say hello.
    pub(in crate::live) fn search_unannounced(&mut self) {
        let Some(follow) = &mut self.follow else { return };
        follow.last_search = Instant::now();
        self.members.iter_mut().for_each(|member| member.session.mind_filters());
        let newcomers = follow.newcomers.look();
        // A new process may be about to say hello, so ppt attaches to it in the next search.
        let seen_before = std::mem::replace(&mut follow.newly_seen, newcomers.clone());
        if !seen_before.is_empty() {
            self.receive();
        }
        for pid in seen_before {
            let Some(follow) = &self.follow else { return };
            if follow.newcomers.lives(pid)
                && !follow.refused.contains(&pid)
                && !follow.attached.contains(&pid)
                && may_be_of(&System::default(), pid, follow.programs.keys())
            {
                let attached = self.attach_child(pid, Discovery::Scan);
                self.note(pid, attached);
            }
        }
        self.search_strays(newcomers);
        let (Some(follow), members) = (&mut self.follow, &self.members) else { return };
        follow.refused.retain(|&pid| follow.newcomers.lives(pid));
        follow.attached.retain(|&pid| follow.newcomers.lives(pid));
        let has_member =
            |origin: &Origin| members.iter().any(|member| member.origin.as_ref() == Some(origin));
        if !follow.programs.keys().all(has_member) {
            // Children of ended processes may not have run yet. This list has all of them.
            let newcomers = follow.newcomers.list();
            let system = System::default();
            let (programs, processes) = (&mut follow.programs, &follow.newcomers);
            let has_child = |origin: &Origin| {
                processes.recent().any(|pid| may_be_of(&system, pid, [origin].into_iter()))
            };
            programs.retain(|origin, _| has_member(origin) || has_child(origin));
            follow.note_newcomers(newcomers);
        }
    }

    /// Attaches to the living children of captured processes that have all ended. This does not wait
    /// for hellos, because the children may not have run yet.
    pub(in crate::live) fn attach_orphans(&mut self) {
        // A listed process may fork and end before ppt attaches; its child is in the next list.
        for _ in 0..GENERATIONS {
            let Some(follow) = &mut self.follow else { return };
            let newcomers = follow.newcomers.list();
            let was_last = newcomers.is_empty();
            follow.note_newcomers(newcomers);
            let orphans = follow.newcomers.recent().filter(|pid| {
                !follow.refused.contains(pid)
                    && !follow.attached.contains(pid)
                    && may_be_of(&System::default(), *pid, follow.programs.keys())
            });
            for pid in orphans.collect::<Vec<_>>() {
                let attached = self.attach_child(pid, Discovery::Scan);
                self.note(pid, attached);
            }
            if was_last {
                return;
            }
        }
    }

    /// Attaches to processes of the command that had the time to say hello and did not.
    fn search_strays(&mut self, newcomers: Vec<i32>) {
        let Some(follow) = &mut self.follow else { return };
        let Some(command) = &mut follow.command else { return };
        command.strays.see(newcomers, &command.variable);
        let due = command.strays.due();
        follow.forget_ended_strays();
        if due.is_empty() {
            return;
        }
        // A process whose hello is on the way is no stray.
        self.receive();
        for pid in due.into_iter().filter(|&pid| !self.has(pid)).collect::<Vec<_>>() {
            let target = match Target::open(&System::default(), pid) {
                Ok(target) => target,
                Err(error) => {
                    self.lacks_library(pid, &error);
                    continue;
                }
            };
            let (comm, age) = (target.comm().to_owned(), target.age());
            let Some(command) = self.command() else { return };
            let mut searcher = std::mem::replace(&mut command.searcher, Searcher::of_many());
            let attached = self.attach_all_new(target, &mut searcher, Discovery::Scan);
            let Some(command) = self.command() else { return };
            command.searcher = searcher;
            let (Some(follow), Ok(true)) = (&mut self.follow, &attached) else {
                self.note(pid, attached.map(|_| ()));
                continue;
            };
            follow.missed.late(pid, comm, age, Relation::Program);
        }
    }

    /// Remembers that a process may lack the preloaded library, because of this error.
    fn lacks_library(&mut self, pid: i32, error: &AgentError) {
        if let Some(follow) = self.follow.as_mut().filter(|_| !is_gone(error)) {
            follow.lack_library(vec![(pid, comm(pid))]);
        }
    }

    /// Remembers why a process is not captured.
    fn note(&mut self, pid: i32, attached: Result<(), NotAttached>) {
        let Some(follow) = &mut self.follow else { return };
        match attached {
            Ok(()) => {}
            Err(NotAttached::Gone) => follow.missed.gone(),
            Err(NotAttached::Refused { .. }) if !follow.refused.insert(pid) => {}
            Err(NotAttached::Refused { comm, why }) => {
                // A process that waits for ppt would have been captured completely.
                self.ok &= follow.command.is_none();
                follow.missed.refused(pid, comm, why);
            }
        }
    }

    /// Attaches to a child of a captured process. If another process has that pid by now, ppt
    /// leaves it alone.
    fn attach_child(&mut self, pid: i32, discovery: Discovery) -> Result<(), NotAttached> {
        let target = match Target::open(&System::default(), pid) {
            Ok(target) => target,
            // Processes that ppt may not read are no children of captured processes.
            Err(_) if discovery == Discovery::Scan => return Ok(()),
            Err(error) => return Err(NotAttached::new("", error)),
        };
        let Some(follow) = &self.follow else { return Ok(()) };
        let Some(origin) = target.origin_among(follow.programs.keys()) else { return Ok(()) };
        if discovery == Discovery::Scan
            && follow.command.is_none()
            && !self.descends(&target, origin)
        {
            return Ok(());
        }
        self.learn_from_newest(origin);
        let Some(follow) = &mut self.follow else { return Ok(()) };
        if follow.spares(origin) {
            follow.spare(pid);
            return Ok(());
        }
        // A forked child waits for the answer to its hello if a command started its program.
        let waits = discovery == Discovery::Hello && follow.command.is_some();
        let Some(program) = follow.programs.get(&origin) else { return Ok(()) };
        let copies = target
            .copies_of(&program.buffers)
            .map_err(|error| NotAttached::new(target.comm(), error))?;
        let new = copies.into_iter().filter(|copy| !self.holds(&target, copy)).collect();
        let (before, comm, age) = (self.members.len(), target.comm().to_owned(), target.age());
        self.attach_new(target, new, Hold::Free, waits)?;
        for member in &mut self.members[before..] {
            // The process may have ended by now.
            (member.origin, member.forked) = (Some(origin), true);
        }
        if let (Discovery::Scan, Some(follow)) = (discovery, &mut self.follow)
            && self.members.len() > before
        {
            follow.missed.late(pid, comm, age, Relation::Child);
        }
        Ok(())
    }

    /// Whether a process of that origin descends from a captured process: yes, unless its parent has
    /// the same origin and is not captured. A parent that has ended counts as captured.
    fn descends(&self, target: &Target, origin: Origin) -> bool {
        let Some(parent) = target.parent() else { return false };
        let is_same = |target: Target| target.origin_among([&origin]).is_some();
        self.has(parent) || !Target::open(&System::default(), parent).is_ok_and(is_same)
    }

    /// Attaches to a program that a command started, or to what it has loaded since.
    fn attach_program(&mut self, hello: &Hello) -> Result<(), NotAttached> {
        let pid = hello.pid;
        let target =
            Target::open(&System::default(), pid).map_err(|error| NotAttached::new("", error))?;
        let (Some(follow), of_us) = (&mut self.follow, hello.is_of_us()) else { return Ok(()) };
        let Some(command) = &follow.command else { return Ok(()) };
        if !of_us.unwrap_or_else(|| was_started_with(&System::default(), pid, &command.variable)) {
            return Ok(());
        }
        follow.missed.said_hello(pid);
        // An exec ended the program that ran in this process before.
        self.check_process(pid);
        if let Some(command) = self.command() {
            command.strays.say_hello(pid);
        }
        self.attach_all_new(target, &mut Searcher::of_one(), Discovery::Hello).map(|_| ())
    }

    /// Attaches to the buffers that a search finds in a process; returns whether any of them is
    /// new.
    fn attach_all_new(
        &mut self,
        target: Target,
        searcher: &mut Searcher,
        discovery: Discovery,
    ) -> Result<bool, NotAttached> {
        let (pid, wanted) = (target.pid(), &self.options.buffers);
        let failed = |error| NotAttached::new(target.comm(), error);
        let found = searcher.buffers(&target).map_err(failed)?;
        if wanted.is_empty() {
            found.refused.iter().for_each(|text| report::warning(Code::BufferRefused, text));
        }
        let mut buffers = match target.choose(found, &[]) {
            Ok(buffers) => buffers,
            // ppt has reported these already.
            Err(AgentError::BufferRefused { .. }) => return Ok(false),
            Err(error @ AgentError::NoBuffers { .. }) => {
                self.lacks_library(pid, &error);
                return Ok(false);
            }
            Err(error) => return Err(failed(error)),
        };
        let names: Vec<_> = buffers.iter().map(|buffer| buffer.name.clone()).collect();
        let command = self.follow.as_ref().and_then(|follow| follow.command.as_ref());
        let leaves_out =
            |buffer: &Buffer| command.is_some_and(|command| command.leaves_out(buffer));
        if wanted.is_empty() {
            buffers.retain(|buffer| !leaves_out(buffer));
        } else {
            buffers.retain(|buffer| wanted.iter().any(|name| buffer.answers_to(name)));
        }
        if buffers.is_empty() {
            if let Some(command) = self.command() {
                command.without = Some(format!("process {pid} has only {}", names.join(", ")));
            }
            return Ok(false);
        }
        buffers.retain(|buffer| !self.holds(&target, buffer));
        let is_new = !buffers.is_empty();
        self.attach_new(target, buffers, Hold::Held, discovery == Discovery::Hello).map(|()| is_new)
    }

    /// Attaches to the new buffers of a process. `waits`: the process waits until ppt has attached,
    /// and has written no frame yet.
    fn attach_new(
        &mut self,
        target: Target,
        new: Vec<Buffer>,
        hold: Hold,
        waits: bool,
    ) -> Result<(), NotAttached> {
        let Some(follow) = self.follow.as_ref().filter(|_| !new.is_empty()) else { return Ok(()) };
        // An ended process with the same pid may still be a member.
        let mut targets = self.members.iter().map(|member| member.session.target());
        if targets.any(|former| former.pid() == target.pid() && former.ended()) {
            self.choice.forget(target.pid());
        }
        let choose: Arc<dyn ppt_agent::Choose> = self.choice.clone();
        let options = options::attach_options(self.options, Some(follow.socket));
        let mut options = AttachOptions { choose: Some(choose), ..options };
        let family = target.origin_among(follow.programs.keys());
        let origin = family.filter(|_| options.segment == SegmentChoice::Auto);
        let program = origin.and_then(|origin| follow.programs.get(&origin));
        if program.is_some_and(ProgramFacts::makes_own_segments) {
            options.segment = SegmentChoice::Memfd;
        }
        let (pid, comm) = (target.pid(), target.comm().to_owned());
        if !descriptors::has_room() {
            return Err(NotAttached::new(&comm, descriptors::no_room(pid)));
        }
        let session = match Session::attach(target, new, &AttachOptions { hold, ..options }) {
            Ok(session) => session,
            // The parent's capture has its frames.
            Err(AgentError::SharesMemory { .. }) => return Ok(()),
            Err(error) => {
                if let (Hold::Free, Some(origin), Some(follow)) = (hold, family, &mut self.follow) {
                    self.status.clear();
                    follow.refused_by_filter(origin, &error);
                }
                return Err(NotAttached::new(&comm, error));
            }
        };
        self.add(session, waits).map_err(|why| NotAttached::Refused { comm, why })
    }
}

/// The name of a process, also if ppt may not read more of it.
fn comm(pid: i32) -> String {
    let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    escaped(String::from_utf8_lossy(&comm).trim_end_matches('\n'))
}
