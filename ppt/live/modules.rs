//! The executable mappings of captured processes, so that readers can name addresses.
//!
//! They are read when a process is added, regularly, because libraries are loaded and unloaded, and
//! once more before the process is removed. That takes at most one percent of the time.

use std::time::{Duration, Instant};

use ppt_agent::{FoundModules, MappedModule, ModuleWatch, Session};
use ppt_listener::{Listener, Module, Modules};

/// The reciprocal of the share of time that reads take.
const PART: u32 = 100;
/// The shortest pause between two reads. Each briefly takes a lock of the process.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The modules of a member's process, and their feed.
#[derive(Debug, Default)]
pub(super) struct MemberModules {
    watch: ModuleWatch,
    /// The feed through which the capture states them.
    feed: Option<usize>,
    due: Option<Instant>,
}

impl MemberModules {
    /// Writes changes to the capture, if a read is due. Returns whether there were any. `first_feed` is
    /// the session's first feed.
    pub(super) fn report(
        &mut self,
        first_feed: usize,
        session: &Session,
        listener: &Listener,
    ) -> bool {
        self.due.is_none_or(|due| Instant::now() >= due)
            && self.report_now(first_feed, session, listener)
    }

    /// Whether a read has found the ring of an io_uring.
    pub(super) fn has_io_uring(&self) -> bool {
        self.watch.has_io_uring()
    }

    /// Writes changes to the capture, whether a read is due or not. Returns whether there were any.
    pub(super) fn report_now(
        &mut self,
        first_feed: usize,
        session: &Session,
        listener: &Listener,
    ) -> bool {
        let start = Instant::now();
        // A file accepts nothing for a feed that has ended.
        let Some(feed) = super::feed::living(first_feed, session) else { return false };
        if self.feed.replace(feed) != Some(feed) {
            self.watch.forget();
        }
        let found = self.watch.look(session.target());
        let has_changed = found.is_some();
        found.into_iter().for_each(|found| listener.modules(feed, &stated(found)));
        let pause = start.elapsed().saturating_mul(PART).clamp(MIN_PAUSE, MAX_PAUSE);
        self.due = Some(start + pause);
        has_changed
    }
}

/// The modules as the capture states them.
fn stated(found: FoundModules) -> Modules {
    let module = |module: MappedModule| Module {
        start: module.start,
        end: module.end,
        offset: module.offset,
        address: module.address,
        path: module.path,
        build_id: module.build_id,
        is_deleted: module.is_deleted,
    };
    Modules {
        mono_ns: found.mono_ns,
        left_out: found.left_out,
        mapped: found.mapped.into_iter().map(module).collect(),
        ..Modules::default()
    }
}
