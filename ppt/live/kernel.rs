//! Kernel activity of captured processes (`--kernel`), their stacks (`--stacks`), and their probes
//! (`--probe`).

use std::collections::BTreeSet;

use ppt_agent::Target;
use ppt_kernel::{Counts, KernelRequest as Events, Probe, ProcessEvents, ReaderThread, Wanted};
use ppt_text::escaped;

use super::unwind::UnwindFiles;
use crate::code::Code;
use crate::measure::grouped;
use crate::probes::ProbedProcess;
use crate::{args, descriptors, report, wording};

/// The least number of stacks by which their quality is judged.
const FEWEST_STACKS: u64 = 20;

/// Kernel activity of captured processes.
pub(crate) struct KernelWatch {
    events: Events,
    /// Processes with open events that are not captured yet.
    pub(super) open: Vec<(i32, ProcessEvents)>,
    /// Captured processes with the numbers of their feeds.
    pub(super) running: Vec<(i32, Vec<usize>, ReaderThread)>,
    /// All feeds so far.
    pub(super) feeds: Vec<usize>,
    /// The messages that have been printed. They are the same for most processes.
    told: Vec<String>,
    pub(super) unwind: UnwindFiles,
    /// The requested probes.
    names: Vec<String>,
    may_return: bool,
    /// The requested names that matched something.
    answered: BTreeSet<String>,
    /// Messages about the names that did not.
    unknown: Vec<String>,
    quiet: bool,
}

impl KernelWatch {
    /// Whether the command line requests any of this.
    pub(crate) fn is_wanted(args: &args::CaptureArgs) -> bool {
        !args.kernel.is_empty() || args.stacks.is_some() || !args.probes.is_empty()
    }

    /// The requests of the command line. This needs privileges, as does [`Self::open`].
    pub(crate) fn wanted(args: &args::CaptureArgs) -> Option<Self> {
        let has = |word| args.kernel.contains(&word);
        let wanted = Wanted {
            sched: has(args::KernelPart::Sched),
            syscalls: has(args::KernelPart::Syscalls),
            faults: has(args::KernelPart::Faults),
            stacks: args.stacks,
            probe_limit: args.probe_limit,
        };
        if !Self::is_wanted(args) {
            return None;
        }
        let (events, missing) = Events::new(wanted, args.memory);
        let (open, running, feeds, told, unwind) = Default::default();
        let may_return = args.allow.contains(&args::Allow::ProbeReturns);
        let (names, quiet) = (args.probes.clone(), args.quiet);
        let (answered, unknown) = Default::default();
        let mut kernel = Self {
            events,
            open,
            running,
            feeds,
            told,
            unwind,
            names,
            may_return,
            answered,
            unknown,
            quiet,
        };
        kernel.report(missing);
        Some(kernel)
    }

    /// Opens the events of a process. They wait until it is captured.
    pub(crate) fn open(&mut self, target: &Target) {
        let pid = target.pid();
        if self.has(pid) {
            return;
        }
        descriptors::raise_limit();
        let probes = self.probes(target);
        let (watch, missing) = self.events.watch(pid, target.owner().0, probes);
        // A process that has ended has no threads to capture.
        if target.ended() {
            return;
        }
        self.report(missing);
        self.open.extend(watch.map(|watch| (pid, watch)));
    }

    /// Gives the code that a process has mapped now to the thread that unwinds its stacks.
    pub(super) fn map_code(&mut self, target: &Target) {
        let of_process = self.running.iter().find(|(pid, ..)| *pid == target.pid());
        let unwinder = of_process.and_then(|(_, _, running)| running.counts().unwinder.clone());
        if let Some(unwinder) = unwinder {
            unwinder.set_code(self.unwind.code(target));
        }
    }

    /// The requested probes in a process.
    fn probes(&mut self, target: &Target) -> Vec<Probe> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let process = ProbedProcess::new(target);
        let found = process.find(&self.names, self.may_return);
        let is_unknown = |name: &&String| !found.answered.contains(*name);
        self.unknown.extend(self.names.iter().find(is_unknown).map(|name| process.unknown(name)));
        let shared = found.shared(target.pid());
        for (code, message) in found.remarks.into_iter().chain(shared) {
            self.warn(code.into(), message);
        }
        self.answered.extend(found.answered);
        found.probes
    }

    /// The message about a name of `--probe` that matched nothing in any process.
    pub(crate) fn unanswered(&self) -> Option<&str> {
        let is_missing = self.names.iter().any(|name| !self.answered.contains(name));
        self.unknown.first().map(String::as_str).filter(|_| is_missing)
    }

    /// Reports what is missing.
    fn report(&mut self, missing: Vec<ppt_kernel::KernelError>) {
        for error in missing {
            self.warn(error.code(), wording::of_kernel(&error));
        }
    }

    /// Prints a message, but the same text only once.
    fn warn(&mut self, code: &'static str, message: String) {
        if !self.told.contains(&message) {
            report::warning(code, &message);
            self.told.push(message);
        }
    }

    /// Whether there is something new to report.
    pub(super) fn has_news(&self) -> bool {
        self.stopped().any(|message| !self.told.contains(&message))
    }

    /// Reports it.
    pub(super) fn tell_news(&mut self) {
        for message in self.stopped().collect::<Vec<_>>() {
            self.warn(Code::ProbeStopped.into(), message);
        }
    }

    /// The messages about stopped probes.
    fn stopped(&self) -> impl Iterator<Item = String> {
        self.running.iter().flat_map(|(pid, _, running)| stopped(*pid, running.counts()))
    }

    /// Whether the kernel reports events of process `pid`.
    pub(crate) fn has(&self, pid: i32) -> bool {
        let running = self.running.iter().map(|entry| entry.0);
        self.open.iter().map(|entry| entry.0).chain(running).any(|number| number == pid)
    }

    /// Reads the remaining events of process `pid`; returns its feeds.
    pub(super) fn stop(&mut self, pid: i32) -> Vec<usize> {
        self.open.retain(|entry| entry.0 != pid);
        let Some(at) = self.running.iter().position(|entry| entry.0 == pid) else {
            return Vec::new();
        };
        let (_, feeds, running) = self.running.remove(at);
        self.end(pid, running);
        feeds
    }

    /// Reads the remaining events of all processes.
    pub(super) fn stop_all(&mut self) {
        for (pid, _, running) in std::mem::take(&mut self.running) {
            self.end(pid, running);
        }
    }

    /// Ends one, and reports the quality of its stacks and the calls without a frame.
    fn end(&mut self, pid: i32, running: ReaderThread) {
        let counts = running.stop();
        for message in stopped(pid, &counts) {
            self.warn(Code::ProbeStopped.into(), message);
        }
        if let Some(probes) = counts.probes.filter(|_| !self.quiet) {
            let all = [
                (probes.open(), "had not returned at the end"),
                (probes.unreturned(), "never returned, or were more than 64 deep"),
            ];
            for (count, why) in all.into_iter().filter(|(count, _)| *count > 0) {
                let count = grouped(count);
                report::note(format_args!(
                    "process {pid}: {count} calls of probed functions {why}, and have no frame"
                ));
            }
        }
        let Some(stacks) = counts.stacks else { return };
        let (taken, shallow) = (stacks.taken(), stacks.shallow());
        // A few may be in functions that set up or remove a frame.
        if taken >= FEWEST_STACKS && shallow * 4 > taken * 3 {
            let share = 100 * shallow / taken;
            let (why, remedy) = match counts.unwinder {
                Some(_) => ("its code has no unwind tables", "build it without -fno-unwind-tables"),
                None => ("it was built without frame pointers", "add unwind to --stacks"),
            };
            let message = format!(
                "{share} % of the stacks of process {pid} end after two functions: {why}\n  {remedy}; what \
                 the stacks begin with is right nevertheless"
            );
            report::warning(Code::NoFramePointers, message);
        }
    }
}

/// The message about stopped probes of a process.
fn stopped(pid: i32, counts: &Counts) -> Vec<String> {
    let Some(counts) = &counts.probes else { return Vec::new() };
    let limit = grouped(counts.limit());
    let message = |name: &str| {
        format!(
            "{}: hit more than {limit} times in a second, so ppt has stopped this probe of process \
             {pid}\n  --probe-limit sets another limit",
            escaped(name)
        )
    };
    counts.stopped().map(message).collect()
}
