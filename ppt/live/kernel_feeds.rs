//! ppt's own feeds for each captured process: kernel activity, stacks and probes.

use ppt_kernel::BUFFER;
use ppt_listener::Feed;

use super::kernel::{OpenedProcess, WatchedProcess};
use super::{Live, feed};
use crate::code::Code;
use crate::report;

impl Live<'_> {
    /// Captures kernel activity of a member's process, if requested.
    pub(super) fn watch_kernel(&mut self, member: usize) {
        let Some(kernel) = &mut self.kernel else { return };
        let target = self.members[member].session.target();
        let pid = target.pid();
        kernel.open(target);
        let Some(index) = kernel.open.iter().position(|process| process.pid == pid) else { return };
        let OpenedProcess { events, .. } = kernel.open.remove(index);
        // Stacks wait in the kernel until the reader starts, so it knows the code of the first one.
        if let Some(unwinder) = events.unwinder() {
            unwinder.set_code(kernel.unwind.code(target));
        }
        let buffers = events.buffers();
        let names: Vec<String> =
            buffers.iter().map(|(builtin, _)| builtin.buffer.to_owned()).collect();
        let feeds = buffers.into_iter().map(|(builtin, segment)| {
            let source = ppt_listener::Source {
                schema_json: builtin.json.clone(),
                schema_hash: builtin.hash,
                kind: builtin.buffer.into(),
                buffer: builtin.buffer.into(),
                process: ppt_listener::Process {
                    // Its stamps are ppt's own.
                    time_offsets: Vec::new(),
                    ..feed::process(target)
                },
                ..Default::default()
            };
            Feed { populated: 1, ..Feed::starting_now(source, segment) }
        });
        let added = self.listener.add(feeds.collect()).map_err(|error| error.to_string());
        let first = self.dropped.len();
        let numbers: Vec<usize> = (first..first + names.len()).collect();
        let started = added.and_then(|()| {
            self.dropped.resize(first + names.len(), Default::default());
            self.names.extend(names);
            kernel.feeds.extend(&numbers);
            events.start().map_err(|error| error.to_string())
        });
        match started {
            Ok(reader) => {
                kernel.running.push(WatchedProcess { pid, feeds: numbers, reader });
                if self.members[member].session.attached().is_empty() {
                    self.state_facts(member);
                }
            }
            Err(error) => {
                self.ok = false;
                self.status.clear();
                let message = format!("{BUFFER}: process {pid} is captured without it: {error}");
                report::error(Code::NotCaptured, message);
            }
        }
    }

    /// Ends the feeds of process `pid`, if none of its members is left.
    pub(super) fn unwatch_kernel(&mut self, pid: i32) {
        if self.has(pid) {
            return;
        }
        let feeds = self.kernel.as_mut().map(|kernel| kernel.stop(pid)).unwrap_or_default();
        feeds.into_iter().for_each(|feed| self.listener.retire(feed));
    }

    /// Ends the feeds of all processes. Returns them, and those that have ended before.
    pub(super) fn end_kernel(&mut self) -> Vec<usize> {
        let Some(mut kernel) = self.kernel.take() else { return Vec::new() };
        kernel.stop_all();
        kernel.feeds
    }
}
