//! Rings that are too small grow during the capture.

use ppt_agent::Stuck;
use ppt_listener::Undersized;

use super::{FIRST_CHECK_INTERVAL, Live, feed, messages};
use crate::code::Code;
use crate::measure::Slots;
use crate::report;

impl Live<'_> {
    /// Whether rings may grow.
    pub(super) fn grows(&self) -> bool {
        self.options.slots == Some(Slots::Auto)
    }

    /// Gives every buffer whose rings are too small a larger segment.
    pub(super) fn grow(&mut self) {
        for Undersized { feed, enough_slots: enough } in self.listener.undersized() {
            let member = self.members.iter().position(|member| member.feeds().contains(&feed));
            if let Some(member) = member {
                self.grow_buffer(member, feed - self.members[member].feed, enough);
            }
        }
    }

    fn grow_buffer(&mut self, member: usize, buffer: usize, enough: u64) {
        let grown = &mut self.members[member];
        let before = grown.session.attached()[buffer].plan.geometry.slots();
        match grown.session.grow(buffer, enough) {
            Ok(()) => {
                let attached = &grown.session.attached()[buffer];
                let target = grown.session.target();
                let larger = feed::feed(target, attached, target.threads_there(), grown.from_start);
                let extended = self.listener.extend(grown.feed + buffer, larger);
                self.status.clear();
                match extended {
                    Ok(()) if self.options.quiet => {}
                    Ok(()) => report::note(messages::grew(attached, before)),
                    // The frames written from now on are not drained.
                    Err(error) => {
                        self.ok = false;
                        report::error(error.code(), error);
                    }
                }
                self.report_mask_changes(member);
                self.check_member(member);
                // The next frame shows whether the target can map it.
                self.set_next_check(FIRST_CHECK_INTERVAL);
            }
            Err(Stuck::NotNow) => {}
            Err(stuck) if !self.options.quiet => {
                self.status.clear();
                let why = messages::stuck(&grown.session.attached()[buffer], &stuck, self.options);
                report::warning(Code::RingsStay, why);
            }
            Err(_) => {}
        }
    }
}
