//! Number of frames of each thread, from the heads of chunks.

use std::collections::HashMap;

use ppt_capture::columns::FrameThreads;

use crate::set::CaptureSet;

/// The number of frames of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFrames {
    /// The name of its host.
    pub host: String,
    /// The process; None if unknown.
    pub pid: Option<i32>,
    /// The thread; None if unknown.
    pub tid: Option<i32>,
    /// Number of frames.
    pub frames: u64,
}

impl CaptureSet {
    /// The number of frames that each thread wrote into the buffers that `is_wanted` accepts, largest first.
    /// Damaged chunks and frames count, too: no payload is read. See [`Self::names_threads`].
    pub fn thread_frames(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<ThreadFrames> {
        let mut counts: HashMap<(&str, Option<i32>, Option<i32>), u64> = HashMap::new();
        for (number, capture) in self.captures().iter().enumerate() {
            let catalog = capture.catalog();
            let owners = self.owners(number, catalog);
            for chunk in &catalog.chunks {
                let Some(owner) = owners.get(chunk.owner as usize) else { continue };
                if is_wanted(&catalog.sources[owner.info].source.buffer) {
                    let count = counts.entry((catalog.host(), owner.pid, owner.tid)).or_default();
                    *count += u64::from(chunk.count - chunk.bad);
                }
            }
        }
        let thread = |((host, pid, tid), frames): ((&str, _, _), u64)| {
            let host = host.to_owned();
            ThreadFrames { host, pid, tid, frames }
        };
        let mut all: Vec<ThreadFrames> = counts.into_iter().map(thread).collect();
        // Unknown numbers come last.
        let number = |number: Option<i32>| (number.is_none(), number);
        all.sort_by(|a, b| {
            let by_frames = b.frames.cmp(&a.frames);
            let by_host = by_frames.then_with(|| a.host.cmp(&b.host));
            by_host.then((number(a.pid), number(a.tid)).cmp(&(number(b.pid), number(b.tid))))
        });
        all
    }

    /// Whether frames of the buffers that `is_wanted` accepts may be about a thread other than their writer.
    pub fn names_threads(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let catalogs = self.captures().iter().map(|capture| capture.catalog());
        let mut sources = catalogs.flat_map(|catalog| &catalog.sources);
        sources.any(|info| {
            is_wanted(&info.source.buffer) && FrameThreads::from_schema(&info.schema).is_some()
        })
    }
}
