//! A feed of ppt's own for each captured process: what the kernel does with it.

use ppt_kernel::{BUFFER, Builtin};
use ppt_listener::Feed;

use super::{Live, feed};
use crate::code::Code;
use crate::report;

impl Live<'_> {
    /// Captures what the kernel does with the process of a member, if that is wanted.
    pub(super) fn watch_kernel(&mut self, member: usize) {
        let Some(kernel) = &mut self.kernel else { return };
        let target = self.members[member].session.target();
        let pid = target.pid();
        kernel.open(target);
        let Some(at) = kernel.open.iter().position(|it| it.0 == pid) else { return };
        let (_, watch) = kernel.open.remove(at);
        let segment = watch.segment();
        let source = ppt_listener::Source {
            schema_json: Builtin::get().json.clone(),
            schema_hash: Builtin::get().hash,
            kind: BUFFER.into(),
            buffer: BUFFER.into(),
            process: ppt_listener::Process {
                // Its stamps are ppt's own.
                time_offsets: Vec::new(),
                ..feed::process(target)
            },
            ..Default::default()
        };
        let feed = Feed { populated: 1, ..Feed::starting_now(source, segment) };
        let added = self.listener.add(vec![feed]).map_err(|it| it.to_string());
        let number = self.dropped.len();
        let started = added.and_then(|()| {
            self.dropped.push(Default::default());
            self.names.push(BUFFER.into());
            kernel.feeds.push(number);
            watch.start().map_err(|it| it.to_string())
        });
        match started {
            Ok(running) => kernel.running.push((pid, number, running)),
            Err(error) => {
                self.ok = false;
                self.status.clear();
                let what = format!("{BUFFER}: process {pid} is captured without it: {error}");
                report::error(Code::NotCaptured, what);
            }
        }
    }

    /// Ends that of process `pid`, if none of its members is left.
    pub(super) fn unwatch_kernel(&mut self, pid: i32) {
        if self.has(pid) {
            return;
        }
        if let Some(feed) = self.kernel.as_mut().and_then(|it| it.stop(pid)) {
            self.listener.retire(feed);
        }
    }

    /// Ends all of them. Returns their feeds, and those of processes that have ended.
    pub(super) fn end_kernel(&mut self) -> Vec<usize> {
        let Some(kernel) = self.kernel.take() else { return Vec::new() };
        kernel.running.into_iter().for_each(|(_, _, running)| running.stop());
        kernel.feeds
    }
}
