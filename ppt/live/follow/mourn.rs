//! Children whose first frame may end them.
//!
//! Where forks are followed, a child runs on while it is attached to. If it has its system calls
//! filtered then, its first frame may end it: those of sandboxed workers. Nobody can rule that out
//! for the first one. Its siblings are left alone: a parent that starts another worker for each one
//! that ends must not lose them all.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use ppt_agent::{AgentError, BufferEnd, Origin};
use ppt_listener::EndReason;

use super::Follow;
use crate::code::Code;
use crate::live::{CaptureEnd, Live};
use crate::report;

/// Members that are looked at for each child that comes: the others have been there for a while.
const NEWEST: usize = 32;
/// Children that may be killed, or end for reasons that nobody knows, before one writes a frame.
const UNKNOWN: u32 = 4;

impl Follow {
    /// Whether the children of that origin are to be left alone.
    pub(super) fn spares(&self, origin: Origin) -> bool {
        self.known.get(&origin).is_some_and(|facts| facts.spared)
    }

    /// A child is left alone; once is enough.
    pub(super) fn spare(&mut self, pid: i32) {
        if self.refused.insert(pid) {
            self.missed.spared();
        }
    }

    /// A child of that origin is no member any more, for this reason.
    pub(in crate::live) fn refused_by_filter(&mut self, origin: Origin, why: &AgentError) {
        let of_filter =
            matches!(why, AgentError::Seccomp { .. } | AgentError::StrictSeccomp { .. });
        let known = self.known.get_mut(&origin).filter(|_| of_filter && self.command.is_none());
        if known.is_some_and(|known| !std::mem::replace(&mut known.spared, true)) {
            self.alarms.push(origin);
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
    pub(super) fn mourn_newest(&mut self, origin: Origin) {
        let newest = self.members.iter().enumerate().rev();
        let of_origin = newest.filter(|(_, member)| member.origin == Some(origin) && member.forked);
        let newest: Vec<_> = of_origin.take(NEWEST).map(|(index, _)| index).collect();
        // In the order in which they came: what one did counts for those after it.
        newest.into_iter().rev().for_each(|index| self.mourn(index, false));
    }

    /// Learns from the end of a child, if it has ended; of one that is `gone`, that is known.
    pub(in crate::live) fn mourn(&mut self, index: usize, gone: bool) {
        let member = &mut self.members[index];
        let (Some(follow), Some(origin)) = (&mut self.follow, member.origin) else { return };
        // Whoever waits maps its segment before it goes on.
        if !member.forked || member.mourned || follow.command.is_some() {
            return;
        }
        let Some(known) = follow.known.get_mut(&origin) else { return };
        let target = member.session.target();
        // In this order: it may begin and end in between.
        let over = gone || target.ended();
        let begun = member.session.begun();
        if begun > 0 {
            known.vanished = 0;
        }
        let (begins, unseen) =
            (begun < member.session.attached().len(), member.session.unseen() > 0);
        member.mourned = over || !begins;
        if !over || !begins {
            return;
        }
        let how = match target.ended_with().map(signal_of) {
            Some(Some(Signal::SIGSYS)) => "was ended by a system call filter (SIGSYS)",
            // Strict mode kills, and so do people. It lets no frame of another buffer through; who
            // made the segment may have written some.
            None | Some(Some(Signal::SIGKILL)) if begun == 0 && !unseen => {
                known.vanished += 1;
                if known.vanished < UNKNOWN {
                    return;
                }
                "was killed, or ended for a reason that ppt cannot see, as others were"
            }
            _ => return,
        };
        if std::mem::replace(&mut known.spared, true) {
            return;
        }
        follow.alarms.push(origin);
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

    /// Lets go of the children that are to be left alone, as long as they have not written a frame.
    pub(in crate::live) fn stand_back(&mut self) {
        let Some(follow) = &mut self.follow else { return };
        for origin in std::mem::take(&mut follow.alarms) {
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
