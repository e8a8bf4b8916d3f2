//! Checks attached buffers, and reacts to what has changed.

use std::ops::RangeFrom;

use ppt_agent::{BufferEnd, News};
use ppt_listener::EndReason;

use super::leave::is_detached;
use super::{CaptureEnd, CaptureForm, Live, Member, feed, messages};
use crate::code::Code;
use crate::{report, wording};

impl Live<'_> {
    /// Checks the mailboxes of process `pid`, which may already run another program.
    pub(crate) fn check_process(&mut self, pid: i32) {
        for index in (0..self.members.len()).rev() {
            if self.members[index].session.target().pid() == pid {
                self.check_member(index);
            }
        }
    }

    /// Checks the mailboxes of every process, in order of arrival.
    pub(super) fn check_all(&mut self) {
        let mut index = 0;
        while let Some(feed) = self.members.get(index).map(|member| member.feed) {
            self.check_member(index);
            // If the member was removed, another one has its index now.
            index += usize::from(self.members.get(index).is_some_and(|member| member.feed == feed));
        }
    }

    /// Reports the first process that reads and writes past the preloaded library.
    pub(super) fn check_io_uring(&mut self, members: RangeFrom<usize>) {
        let processes =
            self.members[members].iter().map(|member| (&member.session, &member.modules));
        if let Some(message) = self.io_uring.check(processes) {
            self.status.clear();
            report::warning(Code::IoUring, message);
        }
    }

    /// Checks the mailbox of every buffer of a member.
    pub(super) fn check_member(&mut self, index: usize) {
        let feeds = self.members[index].feeds();
        for (buffer, feed) in feeds.clone().enumerate() {
            let member = &mut self.members[index];
            let news = member.session.advance(buffer);
            let refused = feed::dropped(member.session.attached()[buffer].dropped);
            self.dropped[feed] = refused;
            self.listener.dropped(feed, refused);
            let adds = member.session.attached()[buffer].adds_not_mapped;
            self.listener.adds_not_mapped(feed, adds);
            self.report_mask_changes(index);
            let mut is_usable = true;
            for news in news {
                is_usable &= self.handle(index, buffer, news);
            }
            // The summary reports this.
            let truncated = self.listener.truncated(feed) && feeds.len() == 1;
            if !is_usable || truncated {
                return self.leave(index, CaptureEnd::new(EndReason::Failed, ""), None);
            }
        }
        if let Some((why, end)) = end_of(&self.members[index], self.kind) {
            self.leave(index, end, Some(why));
        }
    }

    /// Handles a change of a buffer; returns whether it can still be captured.
    fn handle(&mut self, index: usize, buffer: usize, news: News) -> bool {
        let member = &self.members[index];
        let (attached_buffer, feed) = (&member.session.attached()[buffer], member.feed + buffer);
        match news {
            News::TicksGivenUp(why) => {
                self.listener.distrust_ticks();
                self.status.clear();
                report::warning(
                    Code::TicksGivenUp,
                    messages::ticks_given_up(&attached_buffer.buffer.name, &why),
                );
            }
            News::FellOver(errno) => {
                if let (Some(follow), Some(origin)) = (&mut self.follow, member.origin) {
                    follow.fell_over(origin);
                }
                if self.options.verbose {
                    self.status.clear();
                    report::note(messages::fell_over(attached_buffer, errno));
                }
            }
            News::Vacated(nonce) => self.listener.retire_segment(feed, nonce),
            News::WentBack { errno, nonce } => {
                self.listener.retire_segment(feed, nonce);
                self.status.clear();
                report::warning(Code::RingsStay, messages::went_back(attached_buffer, errno));
            }
            News::Miscounts => {
                self.ok = false;
                self.status.clear();
                report::error(
                    Code::CountersDamaged,
                    messages::miscounts(&attached_buffer.buffer.name),
                );
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
                let target = member.session.target();
                let message = messages::unmappable(target, attached_buffer, errno);
                report::error(Code::CannotMap, message);
                return false;
            }
            News::Ended(end) => {
                // The end of a process is reported once, not for each buffer.
                let of_process = matches!(end, BufferEnd::Exec | BufferEnd::Exited);
                if member.session.attached().len() > 1 && !of_process && !self.options.quiet {
                    self.status.clear();
                    report::note(messages::ended(member.session.target(), attached_buffer, end).1);
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

/// The end of a member, once all its buffers have ended.
fn end_of(member: &Member, kind: CaptureForm) -> Option<(BufferEnd, CaptureEnd)> {
    let buffers = member.session.attached();
    if buffers.iter().any(|buffer| buffer.end().is_none()) {
        return None;
    }
    let last = buffers.last()?;
    let end = last.end()?;
    let target = member.session.target();
    let (reason, mut message) = messages::ended(target, last, end);
    if is_detached(end) && kind != CaptureForm::One {
        let (pid, comm) = (target.pid(), target.comm());
        message = format!("process {pid} ({comm}) is no longer captured: {message}");
    }
    Some((end, CaptureEnd::new(reason, message)))
}
