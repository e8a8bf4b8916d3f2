//! Children whose first frame may end them.
//!
//! With `--follow`, a forked child runs on while ppt attaches. If it filters its system calls by
//! then, as sandboxed workers do, its first frame may end it. ppt cannot rule that out for the first
//! such child, but leaves its siblings alone: a parent that replaces each worker that ends must not
//! lose all of them.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use ppt_agent::{AgentError, BufferEnd, Origin};
use ppt_listener::EndReason;

use super::Follow;
use crate::code::Code;
use crate::live::{CaptureEnd, Live};
use crate::report;

/// Members of a program that ppt checks when a further child comes. Older ones have been checked
/// before.
const NEWEST: usize = 32;
/// Number of children that end unexplained, without a frame in between, at which ppt stops
/// attaching to further ones.
const MAX_UNEXPLAINED: u32 = 4;

impl Follow {
    /// Whether ppt leaves the children of that origin alone.
    pub(super) fn spares(&self, origin: Origin) -> bool {
        self.programs.get(&origin).is_some_and(|facts| facts.spared)
    }

    /// Records that a child is left alone; counts each process once.
    pub(super) fn spare(&mut self, pid: i32) {
        if self.refused.insert(pid) {
            self.missed.spared();
        }
    }

    /// Records that a child of that origin could not be captured, for this reason.
    pub(in crate::live) fn refused_by_filter(&mut self, origin: Origin, why: &AgentError) {
        let of_filter =
            matches!(why, AgentError::Seccomp { .. } | AgentError::StrictSeccomp { .. });
        let program =
            self.programs.get_mut(&origin).filter(|_| of_filter && self.command.is_none());
        if program.is_some_and(|facts| !std::mem::replace(&mut facts.spared, true)) {
            self.newly_spared.push(origin);
            report::warning(
                Code::ChildrenSpared,
                "forked processes of this program filter their system calls, and the first frame \
                 might end them: no more of them are captured\n  ppt run captures them from their \
                 first frame, before they do that",
            );
        }
    }
}

fn signal_of(status: ExitStatus) -> Option<Signal> {
    Signal::try_from(status.signal()?).ok()
}

impl Live<'_> {
    /// Learns from the ends of the newest children of that origin.
    pub(super) fn learn_from_newest(&mut self, origin: Origin) {
        let newest = self.members.iter().enumerate().rev();
        let of_origin = newest.filter(|(_, member)| member.origin == Some(origin) && member.forked);
        let newest: Vec<_> = of_origin.take(NEWEST).map(|(index, _)| index).collect();
        // In the order of their arrival, because the end of one counts for those after it.
        newest.into_iter().rev().for_each(|index| self.learn_from_end(index, false));
    }

    /// Learns from the end of a child. Does nothing if the child still runs; `gone`: it does not.
    pub(in crate::live) fn learn_from_end(&mut self, index: usize, gone: bool) {
        let member = &mut self.members[index];
        let (Some(follow), Some(origin)) = (&mut self.follow, member.origin) else { return };
        // A child that waits for ppt maps its segment before it continues.
        if !member.forked || member.end_is_judged || follow.command.is_some() {
            return;
        }
        let Some(program) = follow.programs.get_mut(&origin) else { return };
        let target = member.session.target();
        // In this order, because the child may write its first frame and end in between.
        let has_ended = gone || target.ended();
        let begun = member.session.begun();
        if begun > 0 {
            program.unexplained_ends = 0;
        }
        let is_beginning = begun < member.session.attached().len();
        let has_unseen_frames = member.session.unseen() > 0;
        member.end_is_judged = has_ended || !is_beginning;
        if !has_ended || !is_beginning {
            return;
        }
        let how = match target.ended_with().map(signal_of) {
            Some(Some(Signal::SIGSYS)) => "was ended by a system call filter (SIGSYS)",
            // Seccomp's strict mode kills, and so do users. In strict mode, no buffer gets a frame;
            // a child that made its own segment may have written some before.
            None | Some(Some(Signal::SIGKILL)) if begun == 0 && !has_unseen_frames => {
                program.unexplained_ends += 1;
                if program.unexplained_ends < MAX_UNEXPLAINED {
                    return;
                }
                "was killed, or ended for a reason that ppt cannot see, as others were"
            }
            _ => return,
        };
        if std::mem::replace(&mut program.spared, true) {
            return;
        }
        follow.newly_spared.push(origin);
        let (pid, comm) = (target.pid(), target.comm());
        self.status.clear();
        report::warning(
            Code::ChildrenSpared,
            format_args!(
                "process {pid} ({comm}) {how} before its first frame was captured, perhaps by that \
                 frame: no more forked processes of its program are captured\n  ppt run captures \
                 them from their first frame, before they filter their system calls"
            ),
        );
    }

    /// Detaches from the children that are to be left alone, unless they have written a frame.
    pub(in crate::live) fn release_spared(&mut self) {
        let Some(follow) = &mut self.follow else { return };
        for origin in std::mem::take(&mut follow.newly_spared) {
            for index in (0..self.members.len()).rev() {
                let member = &self.members[index];
                if member.forked && member.origin == Some(origin) && member.session.begun() == 0 {
                    let end = CaptureEnd::new(EndReason::Other, "");
                    let why = member.session.target().ended().then_some(BufferEnd::Exited);
                    self.leave(index, end, why);
                }
            }
        }
    }
}
