//! Attaches to processes that say hello, and looks for those that cannot.

use std::sync::Arc;
use std::time::Instant;

use ppt_agent::{
    AgentError, AttachOptions, Buffer, Hold, Origin, Searcher, SegmentChoice, Session, System,
    Target, may_be_of, was_started_with,
};

use super::missed::LateAs;
use super::reception::{Hello, Sender};
use super::{FollowedCommand, ProgramFacts, is_gone};
use crate::code::Code;
use crate::descriptors;
use crate::failure::Failure;
use crate::live::{Live, options};
use crate::report;

/// Number of hellos that ppt handles before anything else. A process may send one after the other.
const AT_ONCE: usize = 256;

/// Number of lists of processes in which ppt looks for what the last of them left.
const GENERATIONS: usize = 8;

/// Why ppt looked at a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discovery {
    Hello,
    Scan,
}

/// Why ppt did not attach to a process.
enum Failed {
    /// The process has ended.
    Gone,
    Refused {
        comm: String,
        why: Failure,
    },
}

impl Failed {
    fn new(comm: &str, why: AgentError) -> Self {
        if is_gone(&why) {
            Self::Gone
        } else {
            Self::Refused { comm: comm.into(), why: why.into() }
        }
    }
}

impl Live<'_> {
    /// The command runs as this process; its descendants belong to the command.
    pub(crate) fn began(&mut self, pid: i32) {
        if let Some(command) = self.command() {
            command.strays.begin(pid);
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
            let done = match hello.sender {
                Sender::Child => {
                    if let Some(follow) = &mut self.follow {
                        follow.missed.said_hello(hello.pid);
                    }
                    // A process that says hello again has made its segment, and waits until ppt has
                    // fetched it.
                    self.look_at(hello.pid);
                    self.take_in_child(hello.pid, Discovery::Hello)
                }
                Sender::Program => self.take_in_program(&hello),
            };
            self.note(hello.pid, done);
            hello.answer();
        }
    }

    fn next_hello(&mut self, left: &mut usize) -> Option<Hello> {
        let (follow, members) = (self.follow.as_mut()?, &self.members);
        let us = nix::unistd::geteuid().as_raw();
        let of_member =
            |user| members.iter().any(|member| member.session.target().owner().0 == user);
        // The parent may have ended.
        let known = &follow.known;
        let of_known =
            |user| known.values().any(|facts| facts.owners.iter().any(|owner| owner.0 == user));
        let knows = |user| user == us || of_member(user) || of_known(user);
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

    /// Looks for processes that could not say hello.
    pub(in crate::live) fn look_around(&mut self) {
        let Some(follow) = &mut self.follow else { return };
        follow.looked = Instant::now();
        self.members.iter_mut().for_each(|member| member.session.mind_filters());
        let newcomers = follow.newcomers.look();
        // One that is new may be about to say hello. It is looked at by the next look.
        let seen = std::mem::replace(&mut follow.sighted, newcomers.clone());
        if !seen.is_empty() {
            self.receive();
        }
        for pid in seen {
            let Some(follow) = &self.follow else { return };
            if follow.newcomers.lives(pid)
                && !follow.refused.contains(&pid)
                && !follow.taken.contains(&pid)
                && may_be_of(&System::default(), pid, follow.known.keys())
            {
                let done = self.take_in_child(pid, Discovery::Scan);
                self.note(pid, done);
            }
        }
        self.look_at_strays(newcomers);
        let (Some(follow), members) = (&mut self.follow, &self.members) else { return };
        follow.refused.retain(|&pid| follow.newcomers.lives(pid));
        follow.taken.retain(|&pid| follow.newcomers.lives(pid));
        let has_member =
            |origin: &Origin| members.iter().any(|member| member.origin.as_ref() == Some(origin));
        if !follow.known.keys().all(has_member) {
            // Children of ended processes may not have run yet. This list has all of them.
            let newcomers = follow.newcomers.list();
            let system = System::default();
            let (known, all) = (&mut follow.known, &follow.newcomers);
            let has_child = |origin: &Origin| {
                all.recent().any(|pid| may_be_of(&system, pid, [origin].into_iter()))
            };
            known.retain(|origin, _| has_member(origin) || has_child(origin));
            follow.sight(newcomers);
        }
    }

    /// Attaches to the children that captured processes have left, all of which have ended. It does not
    /// wait until they say hello: they may not have run yet.
    pub(in crate::live) fn adopt(&mut self) {
        // One that is listed may fork and end before it is looked at; its child is in the next list.
        for _ in 0..GENERATIONS {
            let Some(follow) = &mut self.follow else { return };
            let newcomers = follow.newcomers.list();
            let was_last = newcomers.is_empty();
            follow.sight(newcomers);
            let left = follow.newcomers.recent().filter(|pid| {
                !follow.refused.contains(pid)
                    && !follow.taken.contains(pid)
                    && may_be_of(&System::default(), *pid, follow.known.keys())
            });
            for pid in left.collect::<Vec<_>>() {
                let done = self.take_in_child(pid, Discovery::Scan);
                self.note(pid, done);
            }
            if was_last {
                return;
            }
        }
    }

    /// Looks at processes of the command that had the time to say hello and did not.
    fn look_at_strays(&mut self, newcomers: Vec<i32>) {
        let Some(follow) = &mut self.follow else { return };
        let Some(command) = &mut follow.command else { return };
        command.strays.see(newcomers, &command.variable);
        command.strays.forget(|pid| !follow.newcomers.lives(pid));
        let due = command.strays.due();
        if due.is_empty() {
            return;
        }
        // A process whose hello is on the way is no stray.
        self.receive();
        for pid in due.into_iter().filter(|&pid| !self.has(pid)).collect::<Vec<_>>() {
            let Ok(target) = Target::open(&System::default(), pid) else { continue };
            let (comm, age) = (target.comm().to_owned(), target.age());
            let Some(command) = self.command() else { return };
            let mut searcher = std::mem::replace(&mut command.searcher, Searcher::of_many());
            let done = self.take_in_all(target, &mut searcher, Discovery::Scan);
            let Some(command) = self.command() else { return };
            command.searcher = searcher;
            let (Some(follow), Ok(true)) = (&mut self.follow, &done) else {
                self.note(pid, done.map(|_| ()));
                continue;
            };
            follow.missed.late(pid, comm, age, LateAs::Program);
        }
    }

    /// Remembers why a process is not captured.
    fn note(&mut self, pid: i32, done: Result<(), Failed>) {
        let Some(follow) = &mut self.follow else { return };
        match done {
            Ok(()) => {}
            Err(Failed::Gone) => follow.missed.gone(),
            Err(Failed::Refused { .. }) if !follow.refused.insert(pid) => {}
            Err(Failed::Refused { comm, why }) => {
                // A process that waits for ppt would have been captured completely.
                self.ok &= follow.command.is_none();
                follow.missed.refused(pid, comm, why);
            }
        }
    }

    /// Attaches to a child of a captured process. If another process has that pid by now, ppt
    /// leaves it alone.
    fn take_in_child(&mut self, pid: i32, discovery: Discovery) -> Result<(), Failed> {
        let target = match Target::open(&System::default(), pid) {
            Ok(target) => target,
            // Processes that ppt may not read are no children of captured processes.
            Err(_) if discovery == Discovery::Scan => return Ok(()),
            Err(error) => return Err(Failed::new("", error)),
        };
        let Some(follow) = &self.follow else { return Ok(()) };
        let Some(origin) = target.origin_among(follow.known.keys()) else { return Ok(()) };
        if discovery == Discovery::Scan
            && follow.command.is_none()
            && !self.descends(&target, origin)
        {
            return Ok(());
        }
        self.mourn_newest(origin);
        let Some(follow) = &mut self.follow else { return Ok(()) };
        if follow.spares(origin) {
            follow.spare(pid);
            return Ok(());
        }
        // A forked child waits for the answer to its hello if a command started its program.
        let waits = discovery == Discovery::Hello && follow.command.is_some();
        let Some(known) = follow.known.get(&origin) else { return Ok(()) };
        let copies =
            target.copies_of(&known.buffers).map_err(|error| Failed::new(target.comm(), error))?;
        let new = copies.into_iter().filter(|copy| !self.holds(&target, copy)).collect();
        let (before, comm, age) = (self.members.len(), target.comm().to_owned(), target.age());
        self.take_in(target, new, Hold::Free, waits)?;
        for member in &mut self.members[before..] {
            // The process may have ended by now.
            (member.origin, member.forked) = (Some(origin), true);
        }
        if let (Discovery::Scan, Some(follow)) = (discovery, &mut self.follow)
            && self.members.len() > before
        {
            follow.missed.late(pid, comm, age, LateAs::Child);
        }
        Ok(())
    }

    /// Whether a process of that origin descends from a captured process. It does not if its parent
    /// has the same origin and is not captured. If its parent has ended, it does.
    fn descends(&self, target: &Target, origin: Origin) -> bool {
        let Some(parent) = target.parent() else { return false };
        let is_same = |target: Target| target.origin_among([&origin]).is_some();
        self.has(parent) || !Target::open(&System::default(), parent).is_ok_and(is_same)
    }

    /// Attaches to a program that a command started, or to what it has loaded since.
    fn take_in_program(&mut self, hello: &Hello) -> Result<(), Failed> {
        let pid = hello.pid;
        let target =
            Target::open(&System::default(), pid).map_err(|error| Failed::new("", error))?;
        let (Some(follow), of_us) = (&mut self.follow, hello.is_of_us()) else { return Ok(()) };
        let Some(command) = &follow.command else { return Ok(()) };
        if !of_us.unwrap_or_else(|| was_started_with(&System::default(), pid, &command.variable)) {
            return Ok(());
        }
        follow.missed.said_hello(pid);
        // An exec ended the program that ran in this process before.
        self.look_at(pid);
        self.take_in_all(target, &mut Searcher::of_one(), Discovery::Hello).map(|_| ())
    }

    /// Attaches to the buffers that a search finds in a process; returns whether any of them is
    /// new.
    fn take_in_all(
        &mut self,
        target: Target,
        searcher: &mut Searcher,
        discovery: Discovery,
    ) -> Result<bool, Failed> {
        let (pid, wanted) = (target.pid(), &self.options.buffers);
        let failed = |error| Failed::new(target.comm(), error);
        let found = searcher.buffers(&target).map_err(failed)?;
        if wanted.is_empty() {
            found.refused.iter().for_each(|text| report::warning(Code::BufferRefused, text));
        }
        let mut there = match target.choose(found, &[]) {
            Ok(there) => there,
            // ppt has reported these already.
            Err(AgentError::BufferRefused { .. } | AgentError::NoBuffers { .. }) => {
                return Ok(false);
            }
            Err(error) => return Err(failed(error)),
        };
        let names: Vec<_> = there.iter().map(|buffer| buffer.name.clone()).collect();
        let command = self.follow.as_ref().and_then(|follow| follow.command.as_ref());
        let leaves_out =
            |buffer: &Buffer| command.is_some_and(|command| command.leaves_out(buffer));
        if wanted.is_empty() {
            there.retain(|buffer| !leaves_out(buffer));
        } else {
            there.retain(|buffer| wanted.iter().any(|name| buffer.answers_to(name)));
        }
        if there.is_empty() {
            if let Some(command) = self.command() {
                command.without = Some(format!("process {pid} has only {}", names.join(", ")));
            }
            return Ok(false);
        }
        there.retain(|buffer| !self.holds(&target, buffer));
        let is_new = !there.is_empty();
        self.take_in(target, there, Hold::Held, discovery == Discovery::Hello).map(|()| is_new)
    }

    /// Attaches to the new buffers of a process. `waits`: it waits for that, and has written no frame
    /// yet.
    fn take_in(
        &mut self,
        target: Target,
        new: Vec<Buffer>,
        hold: Hold,
        waits: bool,
    ) -> Result<(), Failed> {
        let Some(follow) = self.follow.as_ref().filter(|_| !new.is_empty()) else { return Ok(()) };
        // Another process had that number, and may not have left yet.
        let before = self.members.iter().map(|member| member.session.target());
        if before.filter(|before| before.pid() == target.pid()).any(|target| target.ended()) {
            self.choice.forget(target.pid());
        }
        let choose: Arc<dyn ppt_agent::Choose> = self.choice.clone();
        let options = options::attach_options(self.options, Some(follow.socket));
        let mut options = AttachOptions { choose: Some(choose), ..options };
        let family = target.origin_among(follow.known.keys());
        let origin = family.filter(|_| options.segment == SegmentChoice::Auto);
        let known = origin.and_then(|origin| follow.known.get(&origin));
        if known.is_some_and(ProgramFacts::makes_its_own) {
            options.segment = SegmentChoice::Memfd;
        }
        let (pid, comm) = (target.pid(), target.comm().to_owned());
        if !descriptors::has_room() {
            return Err(Failed::new(&comm, descriptors::no_room(pid)));
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
                return Err(Failed::new(&comm, error));
            }
        };
        self.add(session, waits).map_err(|why| Failed::Refused { comm, why })
    }
}
