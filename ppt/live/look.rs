//! What is seen in the mailboxes of attached buffers, and what follows from it.

use ppt_agent::Ending;
use ppt_listener::EndReason;

use super::{End, Live, feed, tell};
use crate::code::Code;
use crate::report;

impl Live<'_> {
    /// Looks at the mailboxes of process `pid`, which may be another program by now.
    pub(crate) fn look_at(&mut self, pid: i32) {
        for index in (0..self.members.len()).rev() {
            if self.members[index].session.target().pid() == pid {
                self.look(index);
            }
        }
    }

    /// Looks at the mailbox of every buffer of a member.
    pub(super) fn look(&mut self, index: usize) {
        let member = &mut self.members[index];
        let mut over = None;
        for buffer in 0..member.told.len() {
            let checked = member.session.check(buffer);
            let refused = feed::dropped(checked.dropped);
            self.dropped[member.feed + buffer] = refused;
            self.listener.dropped(member.feed + buffer, refused);
            let it = &member.session.attached()[buffer];
            if let Some(why) = checked.ticks_given_up {
                self.listener.distrust_ticks();
                self.status.clear();
                report::warning(Code::TicksGivenUp, tell::ticks_given_up(&it.buffer.name, &why));
            }
            if let (Some(_), Some(follow), Some(origin)) =
                (checked.fell_over, &mut self.follow, member.origin)
            {
                follow.fell_over(origin);
            }
            if let Some(errno) = checked.fell_over.filter(|_| self.options.verbose) {
                self.status.clear();
                report::note(tell::fell_over(it, errno));
            }
            checked.left.iter().for_each(|&nonce| self.listener.leave(member.feed + buffer, nonce));
            if let Some((errno, nonce)) = checked.went_back {
                self.listener.leave(member.feed + buffer, nonce);
                self.status.clear();
                report::warning(Code::RingsStay, tell::went_back(it, errno));
            }
            if let Some(error) = checked.failed {
                self.ok = false;
                self.status.clear();
                report::error(error.code(), &error);
                return self.leave(index, End::new(EndReason::Failed, ""), false);
            }
            if self.listener.truncated(member.feed + buffer) {
                // The summary says so.
                if member.told.len() == 1 {
                    return self.leave(index, End::new(EndReason::Failed, ""), false);
                }
            }
            if let Some(errno) = checked.unmappable {
                self.ok = false;
                self.status.clear();
                report::error(Code::CannotMap, tell::unmappable(it, errno));
                return self.leave(index, End::new(EndReason::Failed, ""), false);
            }
            if let Some(ending) = checked.ending {
                let (reason, message) = tell::ended(member.session.target(), it, ending);
                if !std::mem::replace(&mut member.told[buffer], true) && member.told.len() > 1 {
                    self.status.clear();
                    report::note(&message);
                }
                over = Some((ending, End::new(reason, message)));
            }
        }
        if let Some((ending, end)) = over.filter(|_| member.told.iter().all(|&told| told)) {
            self.leave(index, end, matches!(ending, Ending::Exited | Ending::Exec));
        }
    }
}
