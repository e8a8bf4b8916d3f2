//! What the kernel does with captured processes (`--kernel`), and their stacks (`--stacks`).

use ppt_agent::Target;
use ppt_kernel::{Kernel as Events, Running, Wanted, Watch};

use crate::code::Code;
use crate::{args, descriptors, report, wording};

/// So many stacks are enough to say what they are worth.
const FEWEST_STACKS: u64 = 20;

/// What the kernel does with captured processes.
pub(crate) struct Kernel {
    events: Events,
    /// Processes whose events are open, until they are captured.
    pub(super) open: Vec<(i32, Watch)>,
    /// Processes that are captured, and the numbers of the feeds of each.
    pub(super) running: Vec<(i32, Vec<usize>, Running)>,
    /// The feeds of all that ever were.
    pub(super) feeds: Vec<usize>,
    /// The messages that have been printed. They are the same for most processes.
    told: Vec<String>,
}

impl Kernel {
    /// Whether the command line asks for anything.
    pub(crate) fn is_wanted(args: &args::Capture) -> bool {
        !args.kernel.is_empty() || args.stacks.is_some()
    }

    /// What the command line asks for. This takes privileges, and so does [`Self::open`].
    pub(crate) fn wanted(args: &args::Capture) -> Option<Self> {
        let has = |word| args.kernel.contains(&word);
        let wanted = Wanted {
            sched: has(args::Kernel::Sched),
            syscalls: has(args::Kernel::Syscalls),
            faults: has(args::Kernel::Faults),
            stacks: args.stacks,
        };
        if !Self::is_wanted(args) {
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

    /// Whether the kernel tells anything of process `pid`.
    pub(crate) fn has(&self, pid: i32) -> bool {
        let running = self.running.iter().map(|it| it.0);
        self.open.iter().map(|it| it.0).chain(running).any(|it| it == pid)
    }

    /// Takes what is left of process `pid`; returns its feeds.
    pub(super) fn stop(&mut self, pid: i32) -> Vec<usize> {
        self.open.retain(|it| it.0 != pid);
        let Some(at) = self.running.iter().position(|it| it.0 == pid) else { return Vec::new() };
        let (_, feeds, running) = self.running.remove(at);
        Self::end(pid, running);
        feeds
    }

    /// Takes what is left of all processes.
    pub(super) fn stop_all(&mut self) {
        for (pid, _, running) in self.running.drain(..) {
            Self::end(pid, running);
        }
    }

    /// Ends one, and says what its stacks are worth.
    fn end(pid: i32, running: Running) {
        let Some(counts) = running.stop() else { return };
        let (taken, shallow) = (counts.taken(), counts.shallow());
        // A few may be of functions that prepare or end a frame.
        if taken >= FEWEST_STACKS && shallow * 4 > taken * 3 {
            let share = 100 * shallow / taken;
            report::warning(
                Code::NoFramePointers,
                format!(
                    "{share} % of the stacks of process {pid} end after two functions: it was built \
                     without frame pointers\n  build it with -fno-omit-frame-pointer; what the stacks \
                     begin with is right nevertheless"
                ),
            );
        }
    }
}
