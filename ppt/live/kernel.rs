//! Kernel activity of captured processes (`--kernel`), their stacks (`--stacks`), and their probes
//! (`--probe`).

use std::collections::BTreeSet;

use ppt_agent::{OwnRights, RING_MEMORY, System, Target};
use ppt_kernel::{Counts, KernelRequest as Events, Probe, ProcessEvents, ReaderThread, Wanted};
use ppt_text::{escaped, grouped};

use super::unwind::UnwindFiles;
use crate::code::Code;
use crate::probes::ProbedProcess;
use crate::{args, descriptors, report, wording};

/// The least number of stacks by which their quality is judged.
const FEWEST_STACKS: u64 = 20;

/// Kernel activity of captured processes.
pub(crate) struct KernelWatch {
    events: Events,
    pub(super) open: Vec<OpenedProcess>,
    pub(super) running: Vec<WatchedProcess>,
    /// The feeds of all processes so far.
    pub(super) feeds: Vec<usize>,
    /// The messages that have been printed. Most processes cause the same ones.
    reported: Vec<String>,
    pub(super) unwind: UnwindFiles,
    /// The requested probes.
    names: Vec<String>,
    may_return: bool,
    /// The requested names that matched something.
    matched: BTreeSet<String>,
    /// Messages about the names that did not.
    unknown: Vec<String>,
    quiet: bool,
}

/// A process whose events are open, and which is not captured yet.
pub(super) struct OpenedProcess {
    pub(super) pid: i32,
    pub(super) events: ProcessEvents,
}

/// A captured process.
pub(super) struct WatchedProcess {
    pub(super) pid: i32,
    pub(super) feeds: Vec<usize>,
    pub(super) reader: ReaderThread,
}

impl KernelWatch {
    /// Whether the command line requests kernel activity, stacks or probes.
    pub(crate) fn is_wanted(args: &args::CaptureArgs) -> bool {
        !args.kernel.is_empty() || args.stacks.is_some() || !args.probes.is_empty()
    }

    /// The requests of the command line, if there are any. This needs privileges, as does
    /// [`Self::open`].
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
        let (events, missing) = Events::new(wanted, args.memory.unwrap_or(RING_MEMORY));
        let (open, running, feeds, reported, unwind) = Default::default();
        let may_return = args.allow.contains(&args::Allow::ProbeReturns);
        let (names, quiet) = (args.probes.clone(), args.quiet);
        let (matched, unknown) = Default::default();
        let mut kernel = Self {
            events,
            open,
            running,
            feeds,
            reported,
            unwind,
            names,
            may_return,
            matched,
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
        self.open.extend(watch.map(|events| OpenedProcess { pid, events }));
    }

    /// Gives the code that a process has mapped now to the thread that unwinds its stacks.
    pub(super) fn map_code(&mut self, target: &Target) {
        let process = self.running.iter().find(|process| process.pid == target.pid());
        let unwinder = process.and_then(|process| process.reader.counts().unwinder.clone());
        if let Some(unwinder) = unwinder {
            unwinder.set_code(self.unwind.code(target));
        }
    }

    /// The requested probes in a process.
    fn probes(&mut self, target: &Target) -> Vec<Probe> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let process = ProbedProcess::new(target, &self.names);
        let found = process.find(&self.names, self.may_return);
        let is_unknown = |name: &&String| !found.matched.contains(*name);
        self.unknown.extend(self.names.iter().find(is_unknown).map(|name| process.unknown(name)));
        let shared = found.shared(target.pid());
        for (code, message) in found.remarks.into_iter().chain(shared) {
            self.warn(code.into(), message);
        }
        for note in found.notes.into_iter().filter(|_| !self.quiet) {
            if !self.reported.contains(&note) {
                report::note(&note);
                self.reported.push(note);
            }
        }
        self.matched.extend(found.matched);
        found.probes
    }

    /// The message about a name of `--probe` that matched nothing in any process.
    pub(crate) fn unmatched(&self) -> Option<&str> {
        let is_missing = self.names.iter().any(|name| !self.matched.contains(name));
        self.unknown.first().map(String::as_str).filter(|_| is_missing)
    }

    /// Reports what is missing.
    fn report(&mut self, missing: Vec<ppt_kernel::KernelError>) {
        for error in missing {
            self.warn(error.code(), wording::of_kernel(&error, OwnRights::of(&System::default())));
        }
    }

    /// Prints a message, but the same text only once.
    fn warn(&mut self, code: &'static str, message: String) {
        if !self.reported.contains(&message) {
            report::warning(code, &message);
            self.reported.push(message);
        }
    }

    /// Whether a probe has stopped that has not been reported.
    pub(super) fn has_news(&self) -> bool {
        self.stopped().any(|message| !self.reported.contains(&message))
    }

    /// Whether a probe has stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped().next().is_some()
    }

    /// Reports the probes that have stopped.
    pub(super) fn report_changes(&mut self) {
        for message in self.stopped().collect::<Vec<_>>() {
            self.warn(Code::ProbeStopped.into(), message);
        }
    }

    /// The messages about stopped probes.
    fn stopped(&self) -> impl Iterator<Item = String> {
        self.running.iter().flat_map(|process| stopped(process.pid, process.reader.counts()))
    }

    /// Whether the kernel reports events of process `pid`.
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.open.iter().any(|process| process.pid == pid)
            || self.running.iter().any(|process| process.pid == pid)
    }

    /// Reads the remaining events of process `pid`; returns its feeds.
    pub(super) fn stop(&mut self, pid: i32) -> Vec<usize> {
        self.open.retain(|process| process.pid != pid);
        let Some(index) = self.running.iter().position(|process| process.pid == pid) else {
            return Vec::new();
        };
        let process = self.running.remove(index);
        self.end(pid, process.reader);
        process.feeds
    }

    /// Reads the remaining events of all processes.
    pub(super) fn stop_all(&mut self) {
        for process in std::mem::take(&mut self.running) {
            self.end(process.pid, process.reader);
        }
    }

    /// Ends the reader of a process. Reports the quality of its stacks and the calls without a frame.
    fn end(&mut self, pid: i32, reader: ReaderThread) {
        let counts = reader.stop();
        for message in stopped(pid, &counts) {
            self.warn(Code::ProbeStopped.into(), message);
        }
        if let Some(probes) = counts.probes.filter(|_| !self.quiet) {
            let without_frame = [
                (probes.open(), "had not returned at the end"),
                (probes.unreturned(), "never returned, or were more than 64 deep"),
            ];
            for (count, why) in without_frame.into_iter().filter(|(count, _)| *count > 0) {
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
            let UnwindFiles { unread, is_cut, .. } = self.unwind;
            let (why, remedy) = match counts.unwinder {
                Some(_) if is_cut => (
                    "it has more mappings than ppt reads".to_owned(),
                    "use frame pointers: leave out unwind",
                ),
                Some(_) if unread > 0 => (
                    format!("ppt could not read the unwind tables of {unread} files"),
                    "run ppt as root (sudo ppt …), or use frame pointers: leave out unwind",
                ),
                Some(_) => (
                    "the code where they end has no unwind tables".to_owned(),
                    "build it without -fno-unwind-tables",
                ),
                None => {
                    ("it was built without frame pointers".to_owned(), "add unwind to --stacks")
                }
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
    let message = |(name, by_process): (&str, bool)| {
        let others = if by_process { "" } else { " by other processes" };
        format!(
            "{}: hit more than {limit} times in a second{others}, so ppt has stopped this probe of process \
             {pid}\n  --probe-limit sets another limit",
            escaped(name)
        )
    };
    counts.stopped().map(message).collect()
}
