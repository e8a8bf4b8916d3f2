//! What the kernel does with captured processes (`--kernel`).

use ppt_agent::Target;
use ppt_kernel::{Kernel as Events, Running, Wanted, Watch};

use crate::{args, descriptors, report, wording};

/// What the kernel does with captured processes.
pub(crate) struct Kernel {
    events: Events,
    /// Processes whose events are open, until they are captured.
    pub(super) open: Vec<(i32, Watch)>,
    /// Processes that are captured, and the number of the feed of each.
    pub(super) running: Vec<(i32, usize, Running)>,
    /// The feeds of all that ever were.
    pub(super) feeds: Vec<usize>,
    /// The messages that have been printed. They are the same for most processes.
    told: Vec<String>,
}

impl Kernel {
    /// What the command line asks for. This takes privileges, and so does [`Self::open`].
    pub(crate) fn wanted(args: &args::Capture) -> Option<Self> {
        let has = |word| args.kernel.contains(&word);
        let wanted = Wanted {
            sched: has(args::Kernel::Sched),
            syscalls: has(args::Kernel::Syscalls),
            faults: has(args::Kernel::Faults),
        };
        if wanted == Wanted::default() {
            return None;
        }
        let (events, missing) = Events::new(wanted, args.memory);
        let (open, running, feeds, told) = Default::default();
        let mut kernel = Self { events, open, running, feeds, told };
        kernel.tell(missing);
        Some(kernel)
    }

    /// Opens the events of a process. What the kernel does with it waits until it is captured.
    pub(crate) fn open(&mut self, target: &Target) {
        let pid = target.pid();
        if self.has(pid) {
            return;
        }
        descriptors::raise_limit();
        let (watch, missing) = self.events.watch(pid, target.owner().0);
        // A process that has ended has no threads to capture.
        if target.ended() {
            return;
        }
        self.tell(missing);
        self.open.extend(watch.map(|watch| (pid, watch)));
    }

    fn has(&self, pid: i32) -> bool {
        let running = self.running.iter().map(|it| it.0);
        self.open.iter().map(|it| it.0).chain(running).any(|it| it == pid)
    }

    /// Reports what is missing, in the same words once.
    fn tell(&mut self, missing: Vec<ppt_kernel::KernelError>) {
        for error in missing {
            let message = wording::of_kernel(&error);
            if !self.told.contains(&message) {
                report::warning(error.code(), &message);
                self.told.push(message);
            }
        }
    }

    /// Takes what is left of process `pid`; returns its feed.
    pub(super) fn stop(&mut self, pid: i32) -> Option<usize> {
        self.open.retain(|it| it.0 != pid);
        let at = self.running.iter().position(|it| it.0 == pid)?;
        let (_, feed, running) = self.running.remove(at);
        running.stop();
        Some(feed)
    }
}
