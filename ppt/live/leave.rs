//! Processes that leave a capture.

use std::sync::Arc;

use ppt_agent::{AttachedBuffer, BufferEnd, SegmentKind, Session};
use ppt_listener::{EndReason, TriggerCause};

use super::member::Member;
use super::options::CaptureForm;
use super::{CaptureEnd, Live, feed, messages};
use crate::code::Code;
use crate::report;

impl Live<'_> {
    /// Removes a member whose process has ended.
    pub(super) fn leave_ended(&mut self, index: usize) {
        let pid = self.members[index].session.target().pid();
        let end = CaptureEnd::new(EndReason::Exited, format!("process {pid} ended"));
        self.leave(index, end, Some(BufferEnd::Exited));
    }

    /// Removes a member. If its address space is gone, ppt gives back its memory at once; if it was
    /// detached, once the rings are drained. `why` is the reason if its buffers cannot be captured
    /// any more.
    pub(super) fn leave(&mut self, index: usize, end: CaptureEnd, why: Option<BufferEnd>) {
        self.learn_from_end(index, why == Some(BufferEnd::Exited));
        let gone = matches!(why, Some(BufferEnd::Exited | BufferEnd::Exec));
        let detached = why.is_some_and(is_detached);
        let mut member = self.members.remove(index);
        self.close(&mut member);
        let pid = member.session.target().pid();
        self.unwatch_kernel(pid);
        if why == Some(BufferEnd::Exec) && !self.has(pid) {
            self.began_anew(pid);
        }
        if why == Some(BufferEnd::Exited) && !self.has(pid) {
            self.choice.forget(pid);
        }
        let news = match self.kind {
            CaptureForm::One => false,
            _ if detached => !self.options.quiet,
            CaptureForm::Several => !end.message.is_empty() && !self.options.quiet,
            CaptureForm::Family | CaptureForm::Command => {
                !end.message.is_empty() && self.options.verbose
            }
        };
        if news {
            self.status.clear();
            report::note(&end.message);
            self.last_message.clone_from(&end.message);
        }
        if let Some(flight) = self.flight.as_ref().filter(|_| gone && self.options.flight.on_exit) {
            let target = member.session.target();
            let what = format!("process {} ({}) ended", target.pid(), target.comm());
            flight.trigger(TriggerCause::Exit, Some(member.feed), what);
        }
        self.last = Some(end);
        self.outlived |= !gone;
        if !gone && !detached {
            self.finished.push(member.session);
            return;
        }
        member.feeds().for_each(|feed| self.listener.retire(feed));
        if detached {
            self.draining.push(member.session);
            return;
        }
        // Children may have inherited the descriptor of a segment that the process made.
        if member.session.attached().iter().any(|buffer| buffer.kind == SegmentKind::Memfd) {
            self.draining.push(member.session);
        }
    }

    /// Gives back the drained memory of processes and buffers that are no longer captured.
    pub(super) fn close_drained(&mut self) {
        let is_drained = |buffer: &AttachedBuffer| {
            buffer.former().chain([&buffer.segment]).all(|segment| Arc::strong_count(segment) == 1)
        };
        let are_drained = |session: &mut Session| session.attached().iter().all(is_drained);
        for session in self.draining.extract_if(.., are_drained) {
            session.close();
        }
        for Member { session, closing, .. } in &mut self.members {
            for buffer in
                closing.extract_if(.., |&mut index| is_drained(&session.attached()[index]))
            {
                session.close_buffer(buffer);
            }
        }
    }

    /// Whether something waits for [`Self::close_drained`].
    pub(super) fn is_draining(&self) -> bool {
        !self.draining.is_empty() || self.members.iter().any(|member| !member.closing.is_empty())
    }

    /// Closes the gates of a member, reads its last counters, and reports the losses that its end
    /// caused.
    pub(super) fn close(&mut self, member: &mut Member) {
        // If ppt's own feeds were refused, a process without buffers has none.
        if member.feed < self.dropped.len() {
            member.names.report_last(member.feed, &member.session, &self.listener);
            member.modules.report_now(member.feed, &member.session, &self.listener);
        }
        member.session.gate_off();
        for (buffer, feed) in member.feeds().enumerate() {
            // Other news no longer matters.
            let news = member.session.advance(buffer);
            let attached = &member.session.attached()[buffer];
            if news.iter().any(|news| matches!(news, ppt_agent::News::Miscounts)) {
                self.ok = false;
                self.status.clear();
                report::error(Code::CountersDamaged, messages::miscounts(&attached.buffer.name));
            }
            let refused = feed::dropped(attached.dropped);
            self.dropped[feed] = refused;
            self.listener.dropped(feed, refused);
            self.listener.adds_not_mapped(feed, attached.adds_not_mapped);
            if attached.was_never_fetched() {
                match &mut self.follow {
                    // There may be thousands of such processes.
                    Some(follow) => follow.never_fetched(),
                    None => {
                        self.status.clear();
                        report::warning(Code::NotFetched, messages::never_fetched(attached));
                    }
                }
            }
        }
        member.report_mask_changes(&self.listener);
    }
}

/// Whether another process ended the session without the process knowing.
pub(super) fn is_detached(end: BufferEnd) -> bool {
    matches!(end, BufferEnd::SwitchedOff | BufferEnd::TakenOver)
}
