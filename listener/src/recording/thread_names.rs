//! The statements of a file about the names of threads.

use std::io::Write;
use std::sync::Arc;

use ppt_capture::ThreadNames;

use super::Recording;
use crate::thread_names::NameChanges;

/// The initial names may take one part in this many of a bounded file; so may the initial modules.
const PART: u64 = 4;

impl<W: Write> Recording<W> {
    /// Maximum size of the file in bytes, if it is bounded.
    pub(super) fn bound(&self) -> Option<u64> {
        self.rotation.as_ref().and_then(|rotation| rotation.size).or(self.max_size)
    }

    /// Most bytes that the names of a process may take at the start of a file; the same for its
    /// modules.
    pub(super) fn base_bound(&self) -> usize {
        let part = self.bound().map(|size| usize::try_from(size / PART).unwrap_or(usize::MAX));
        part.unwrap_or(usize::MAX)
    }

    /// States names if the file has room: it is complete without them.
    pub(super) fn renamed(&mut self, feed: usize, changes: &Arc<NameChanges>) {
        let bound = self.bound();
        let payload = ThreadNames::payload_len(changes.named.len());
        let has_room = self.file.has_room(bound, std::iter::once(payload));
        if !changes.named.is_empty() && has_room && self.file.is_open() {
            self.written(|file| match file.source_of(feed) {
                Some(source) => {
                    let names = changes.named.clone();
                    let names = ThreadNames { source, is_base: false, names };
                    file.write(|writer| writer.thread_names(&names))
                }
                None => true,
            });
        }
        if let Some(origin) = self.origins.get_mut(feed) {
            origin.names.take(changes);
        }
    }

    /// States the current names at the start of a file.
    pub(super) fn begin_names(&mut self) {
        let (bound, most) = (self.bound(), self.base_bound());
        let file = &mut self.file;
        for (feed, origin) in self.origins.iter() {
            let Some(source) = file.source_of(feed) else { continue };
            let Some(names) = origin.names.base(source, most) else { continue };
            let payload = ThreadNames::payload_len(names.names.len());
            if file.has_room(bound, std::iter::once(payload)) {
                file.write(|writer| writer.thread_names(&names));
            }
        }
    }
}
