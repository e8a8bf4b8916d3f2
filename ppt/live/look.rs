//! Checks attached buffers, and reacts to what has changed.

use std::ops::RangeFrom;

use ppt_agent::{BufferEnd, News};
use ppt_listener::EndReason;

use super::{CaptureEnd, CaptureForm, Live, Member, feed, is_detached, tell};
use crate::code::Code;
use crate::{report, wording};

impl Live<'_> {
    /// Checks the mailboxes of process `pid`, which may already run another program.
    pub(crate) fn look_at(&mut self, pid: i32) {
        for index in (0..self.members.len()).rev() {
            if self.members[index].session.target().pid() == pid {
                self.look(index);
            }
        }
    }

    /// Checks the mailboxes of every process, in order of arrival.
    pub(super) fn look_at_all(&mut self) {
        let mut index = 0;
        while let Some(feed) = self.members.get(index).map(|member| member.feed) {
            self.look(index);
            // Skips it if it was removed and another one took its position.
            index += usize::from(self.members.get(index).is_some_and(|member| member.feed == feed));
        }
    }

    /// Reports the first process that reads and writes past the preloaded library.
    pub(super) fn look_for_io_uring(&mut self, members: RangeFrom<usize>) {
        let processes = self.members[members].iter().map(|it| (&it.session, &it.modules));
        if let Some(message) = self.io_uring.look(processes) {
            self.status.clear();
            report::warning(Code::IoUring, message);
        }
    }

    /// Checks the mailbox of every buffer of a member.
    pub(super) fn look(&mut self, index: usize) {
        let feeds = self.members[index].feeds();
        for (buffer, feed) in feeds.clone().enumerate() {
            let member = &mut self.members[index];
            let news = member.session.advance(buffer);
            let refused = feed::dropped(member.session.attached()[buffer].dropped);
            self.dropped[feed] = refused;
            self.listener.dropped(feed, refused);
            let adds = member.session.attached()[buffer].adds_not_mapped;
            self.listener.adds_not_mapped(feed, adds);
            self.tell_flips(index);
            let mut of_use = true;
            for news in news {
                of_use &= self.take(index, buffer, news);
            }
            // The summary reports this.
            let truncated = self.listener.truncated(feed) && feeds.len() == 1;
            if !of_use || truncated {
                return self.leave(index, CaptureEnd::new(EndReason::Failed, ""), None);
            }
        }
        if let Some((why, end)) = over(&self.members[index], self.kind) {
            self.leave(index, end, Some(why));
        }
    }

    /// Handles the changes of a buffer; returns whether it can still be captured.
    fn take(&mut self, index: usize, buffer: usize, news: News) -> bool {
        let member = &self.members[index];
        let (attached_buffer, feed) = (&member.session.attached()[buffer], member.feed + buffer);
        match news {
            News::TicksGivenUp(why) => {
                self.listener.distrust_ticks();
                self.status.clear();
                report::warning(
                    Code::TicksGivenUp,
                    tell::ticks_given_up(&attached_buffer.buffer.name, &why),
                );
            }
            News::FellOver(errno) => {
                if let (Some(follow), Some(origin)) = (&mut self.follow, member.origin) {
                    follow.fell_over(origin);
                }
                if self.options.verbose {
                    self.status.clear();
                    report::note(tell::fell_over(attached_buffer, errno));
                }
            }
            News::Vacated(nonce) => self.listener.retire_segment(feed, nonce),
            News::WentBack { errno, nonce } => {
                self.listener.retire_segment(feed, nonce);
                self.status.clear();
                report::warning(Code::RingsStay, tell::went_back(attached_buffer, errno));
            }
            News::Miscounts => {
                self.ok = false;
                self.status.clear();
                report::error(Code::CountersDamaged, tell::miscounts(&attached_buffer.buffer.name));
            }
            News::Failed(error) => {
                self.ok = false;
                if member.forked
                    && let (Some(follow), Some(origin)) = (&mut self.follow, member.origin)
                {
                    follow.refused_by_filter(origin, &error);
                }
                self.status.clear();
                report::error(error.code(), wording::message(&error));
                return false;
            }
            News::Unmappable(errno) => {
                self.ok = false;
                self.status.clear();
                report::error(Code::CannotMap, tell::unmappable(attached_buffer, errno));
                return false;
            }
            News::Ended(end) => {
                // The end of a process is reported once, not for each buffer.
                let of_process = matches!(end, BufferEnd::Exec | BufferEnd::Exited);
                if member.session.attached().len() > 1 && !of_process && !self.options.quiet {
                    self.status.clear();
                    report::note(tell::ended(member.session.target(), attached_buffer, end).1);
                }
                if is_detached(end) {
                    self.detached.add(member.session.target(), &attached_buffer.buffer);
                    self.listener.retire(feed);
                    self.members[index].closing.push(buffer);
                }
            }
        }
        true
    }
}

/// How a member ended, if all its buffers have ended.
fn over(member: &Member, kind: CaptureForm) -> Option<(BufferEnd, CaptureEnd)> {
    let buffers = member.session.attached();
    if buffers.iter().any(|buffer| buffer.end().is_none()) {
        return None;
    }
    let last = buffers.last()?;
    let end = last.end()?;
    let target = member.session.target();
    let (reason, mut message) = tell::ended(target, last, end);
    if is_detached(end) && kind != CaptureForm::One {
        let (pid, comm) = (target.pid(), target.comm());
        message = format!("process {pid} ({comm}) is no longer captured: {message}");
    }
    Some((end, CaptureEnd::new(reason, message)))
}
