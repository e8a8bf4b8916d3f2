//! `--only` and `--except`, and changes by `ppt enable` and `ppt disable` during the capture.

use ppt_agent::{Flip, FlipRing};
use ppt_listener::{Chosen, Flip as Stated, FlipRing as StatedRing, Listener};
use ppt_text::escaped;

use super::{Live, Member};
use crate::choice::{self, NamedChoice};
use crate::code::Code;
use crate::report;
use crate::session::Choosable;

/// The capture's record of a change.
fn stated(flip: Flip) -> Stated {
    let Flip { nonce, mono_ns, changes, rings } = flip;
    let ring = |ring: FlipRing| StatedRing {
        ring: ring.ring,
        first_enabled: ring.first_enabled,
        first_disabled: ring.first_disabled,
    };
    Stated {
        nonce,
        mono_ns,
        changes: changes.into_iter().map(|(bit, enabled)| (Chosen(bit), enabled)).collect(),
        rings: rings.into_iter().map(ring).collect(),
        ..Stated::default()
    }
}

impl Member {
    /// Reports changes of its buffers to the listener.
    pub(super) fn report_mask_changes(&mut self, listener: &Listener) {
        for (buffer, feed) in self.feeds().enumerate() {
            for flip in self.session.flips(buffer) {
                listener.masks(feed, stated(flip));
            }
        }
    }
}

impl Live<'_> {
    /// Reports changes of a member's buffers to the listener.
    pub(super) fn report_mask_changes(&mut self, member: usize) {
        self.members[member].report_mask_changes(&self.listener);
    }

    /// The selectable items in process `pid`, and whether each is enabled.
    pub(super) fn choosable(&self, pid: i32) -> Vec<Choosable> {
        let members = self.members.iter().filter(|member| member.session.target().pid() == pid);
        let buffers = members.flat_map(|member| member.session.attached());
        let buffers = buffers.filter(|buffer| buffer.end().is_none());
        let choosable = buffers.flat_map(|attached_buffer| {
            choice::names(&attached_buffer.buffer.schema).into_iter().map(
                |NamedChoice { bit, buffer, name, .. }| Choosable {
                    buffer,
                    name,
                    enabled: attached_buffer.masks().is_enabled(bit),
                },
            )
        });
        choosable.collect()
    }

    /// Enables or disables the items in process `pid` that match `patterns`. Returns the changes,
    /// or why it is impossible.
    pub(super) fn choose(
        &mut self,
        pid: i32,
        patterns: &[String],
        enabled: bool,
    ) -> Result<Vec<String>, String> {
        let of_process = |member: &Member| member.session.target().pid() == pid;
        let members = self.members.iter().filter(|member| of_process(member));
        let buffers = members.flat_map(|member| member.session.attached());
        let items = buffers.flat_map(|buffer| choice::names(&buffer.buffer.schema));
        if let Some(message) = choice::unknown(patterns, &items.collect::<Vec<_>>()) {
            return Err(message);
        }
        self.choice.ask(pid, patterns, enabled);
        let before = self.choosable(pid);
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if !of_process(member) {
                continue;
            }
            for buffer in 0..member.session.attached().len() {
                let schema = &member.session.attached()[buffer].buffer.schema;
                let masks = ppt_agent::Choose::masks(&*self.choice, pid, schema);
                // If it has ended, the next check reports that.
                let _ = member.session.choose(buffer, masks);
            }
            self.report_mask_changes(index);
        }
        let after = self.choosable(pid);
        let changed = after.into_iter().filter(|choosable| !before.contains(choosable));
        Ok(changed.map(|choosable| format!("{}.{}", choosable.buffer, choosable.name)).collect())
    }

    /// Reports names of the command line that matched nothing.
    pub(super) fn report_unmatched(&mut self) {
        for pattern in self.choice.unmatched() {
            self.status.clear();
            let message = format!("nothing was called `{}`", escaped(&pattern));
            report::warning(Code::NothingCalled, message);
        }
    }
}
