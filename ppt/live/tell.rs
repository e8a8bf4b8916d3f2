//! What a capture says on stderr, from `attached:` to the summary.

use std::io::ErrorKind;
use std::time::Duration;

use ppt_agent::{Attached, Distrust, Ending, SegmentKind, Session, StampClock, Stuck, Target};
use ppt_listener::{EndReason, Summary};

use crate::args;
use crate::code::Code;
use crate::measure::{bytes, grouped};
use crate::report;

/// What was attached, and how; the last line, which scripts wait for, always.
pub(super) fn attached(args: &args::Capture, session: &Session) {
    owner(args, session.target());
    if session.filtered {
        report::warning(
            Code::FilteredProgram,
            "the program filters its system calls (seccomp), and its first frame will make some: \
             if the filter ends programs for it, this one ends",
        );
    }
    session.attached().iter().for_each(|it| buffer(args, it));
    if args.verbose {
        report::note(format_args!(
            "wrote by {}, held the target for {} µs",
            session.transport,
            session.held.as_micros()
        ));
    }
    let buffers: Vec<_> = session.attached().iter().map(|it| it.buffer.name.as_str()).collect();
    report::line(format_args!(
        "attached: pid {}, buffers {}",
        session.target().pid(),
        buffers.join(", ")
    ));
}

/// Whose process it is, where it is somebody else's.
fn owner(args: &args::Capture, target: &Target) {
    let (uid, us) = (target.owner().0, nix::unistd::geteuid().as_raw());
    if uid != us && !args.quiet {
        report::note(format_args!(
            "process {} belongs to user {uid}, and ppt runs as user {us}",
            target.pid()
        ));
    }
}

fn buffer(args: &args::Capture, it: &Attached) {
    let name = &it.buffer.name;
    if let Some(holder) = &it.took_over {
        report::note(format_args!(
            "{name}: took over from {holder}, which {}",
            if holder.alive == Some(false) { "died" } else { "was attached" }
        ));
    }
    let geometry = it.plan.geometry;
    if args.verbose || (it.plan.reduced && !args.quiet) {
        report::note(format_args!(
            "{name}: {} rings of {} slots of {} bytes ({}){}",
            geometry.rings(),
            grouped(geometry.slots()),
            geometry.stride(),
            bytes(geometry.size()),
            if it.plan.reduced { ", to stay within --memory" } else { "" }
        ));
    }
    if args.verbose {
        report::note(format_args!(
            "{name}: found by {} in {}; {} segment {:016x}",
            it.buffer.path,
            it.buffer.object,
            match (it.adopted, it.kind) {
                (true, SegmentKind::SysV) => "adopted",
                (false, SegmentKind::SysV) => "made",
                (true, SegmentKind::Memfd) => "adopted memfd",
                (false, SegmentKind::Memfd) => "awaiting memfd",
            },
            it.segment.nonce()
        ));
        match &it.clock {
            None => {}
            Some(StampClock::Ticks) => report::note(format_args!("{name}: stamps are ticks")),
            Some(StampClock::Monotonic) => {
                report::note(format_args!(
                    "{name}: stamps are of the monotonic clock, as asked for"
                ));
            }
            Some(StampClock::Distrusted(why)) => report::note(format_args!(
                "{name}: stamps are of the monotonic clock, which costs more: {why}"
            )),
        }
    }
}

/// A target that cannot attach what we made is asked to make its segment itself.
pub(super) fn fell_over(it: &Attached, errno: i32) -> String {
    let errno = nix::errno::Errno::from_raw(errno);
    format!("{}: shmat(2) said {errno}: the program makes its segment itself", it.buffer.name)
}

/// A buffer has larger rings from now on.
pub(super) fn grew(it: &Attached, before: u64) -> String {
    let geometry = it.plan.geometry;
    format!(
        "rings of {} grew from {} to {} slots: they were nearly full, or ran over ({} rings, {})",
        it.buffer.name,
        grouped(before),
        grouped(geometry.slots()),
        geometry.rings(),
        bytes(geometry.size())
    )
}

/// Why it has not.
pub(super) fn stuck(it: &Attached, stuck: &Stuck, args: &args::Capture) -> String {
    let (name, slots) = (&it.buffer.name, grouped(it.plan.geometry.slots()));
    let why = match stuck {
        Stuck::Refused(error) => error.to_string(),
        Stuck::Memory | Stuck::NotNow => format!("--memory {} allows no more", bytes(args.memory)),
    };
    format!("rings of {name} are too small, and stay at {slots} slots: {why}")
}

/// A larger segment is of no use.
pub(super) fn went_back(it: &Attached, errno: i32) -> String {
    format!(
        "rings of {} are back at {} slots: the target could not map larger ones: {}",
        it.buffer.name,
        grouped(it.plan.geometry.slots()),
        nix::errno::Errno::from_raw(errno)
    )
}

/// What a target made, nobody has once it ended.
pub(super) fn never_fetched(it: &Attached) -> String {
    format!(
        "{}: the program ended before its segment was fetched: what it wrote in its last moments, \
         if anything, is not in the capture",
        it.buffer.name
    )
}

pub(super) fn ended(target: &Target, it: &Attached, ending: Ending) -> (EndReason, String) {
    let (pid, name) = (target.pid(), &it.buffer.name);
    match ending {
        Ending::Exited => (EndReason::Exited, format!("process {pid} ended")),
        Ending::Exec => (EndReason::Exec, format!("process {pid} started another program (exec)")),
        Ending::Unloaded => {
            (EndReason::Unloaded, format!("{name}: its library was unloaded by process {pid}"))
        }
        Ending::SwitchedOff => (EndReason::Other, format!("{name}: switched off from outside")),
        Ending::TakenOver => (EndReason::Other, format!("{name}: taken over by another ppt")),
    }
}

/// What happened when the kernel stopped to tell time by the CPU's counter.
pub(super) fn ticks_given_up(name: &str, why: &Distrust) -> String {
    format!(
        "{name}: ticks can no longer be trusted: {why}\n  stamps are of the monotonic clock from \
         now on; those of the last second may be wrong"
    )
}

/// Why a target cannot map its segment, and what helps.
pub(super) fn unmappable(it: &Attached, errno: i32) -> String {
    use nix::errno::Errno;
    let errno = Errno::from_raw(errno);
    let made = it.kind == SegmentKind::Memfd;
    let why = match errno {
        Errno::EPERM if made => "its system call filter (seccomp) refuses memfd_create(2)",
        Errno::EPERM => "its system call filter (seccomp) refuses shmat(2)",
        Errno::EACCES if made => "vm.memfd_noexec or a security module refuses memfd_create(2)",
        Errno::EACCES => {
            "it may not attach the segment: its user changed, or a security module \
                          refuses shmat(2)"
        }
        Errno::ENOMEM if made => {
            "it has no room for the segment, or no memory: see ulimit -v; ask for less by --memory"
        }
        Errno::ENOMEM => "it has no room for the mapping: see ulimit -v; ask for less by --memory",
        Errno::EFBIG => {
            "the segment is larger than its files may be: see ulimit -f; ask for less by --memory"
        }
        Errno::EINVAL | Errno::EIDRM | Errno::ESTALE if !made => {
            "it does not see the segment: it may be in another IPC namespace"
        }
        Errno::ENOSYS if made => "it cannot call memfd_create(2)",
        Errno::ENOSYS => "it cannot call shmat(2)",
        Errno::EMFILE if made => "it has too many open files: see ulimit -n",
        Errno::ENFILE => "the system has too many open files: see fs.file-max",
        Errno::EMFILE => "it has too many segments mapped",
        Errno::ENOSPC => "its table of segments is full",
        _ if made => "see memfd_create(2)",
        _ => "see shmat(2)",
    };
    format!("{}: the target could not map the segment: {errno}\n  {why}", it.buffer.name)
}

/// Whether there were none; `buffers` are the names of the feeds.
pub(super) fn problems(name: &str, buffers: &[String], summary: &Summary) -> bool {
    let mut ok = true;
    // Whoever reads a pipe may stop reading.
    let error = summary.error.as_ref().filter(|it| it.kind() != ErrorKind::BrokenPipe);
    if let Some(error) = error {
        report::error(
            Code::CaptureFailed,
            format_args!("{name}: {error}\n  what was captured before that is in the file"),
        );
        ok = false;
    }
    for (buffer, _) in buffers.iter().zip(&summary.feeds).filter(|(_, feed)| feed.truncated) {
        report::error(
            Code::SegmentTruncated,
            format_args!(
                "{buffer}: segment truncated: somebody took its memory away, and it was given up\n  what \
             was captured before that is in the file"
            ),
        );
        ok = false;
    }
    for ring in summary.feeds.iter().flat_map(|feed| &feed.broken) {
        report::error(
            Code::RingGivenUp,
            format_args!(
                "ring {} was given up: its cursor went from {} to {}, which no writer does",
                ring.ring, ring.cursor.next, ring.cursor.tail
            ),
        );
        ok = false;
    }
    ok
}

pub(super) fn summary(name: &str, summary: &Summary, time: Duration) {
    let seconds = time.as_secs_f64();
    let rate = summary.captured() as f64 / seconds.max(0.001);
    let causes = |pairs: &[(&str, u64)]| {
        let named: Vec<_> = pairs
            .iter()
            .filter(|it| it.1 > 0)
            .map(|(cause, count)| format!("{cause} {}", grouped(*count)))
            .collect();
        if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
    };
    let (lost, dropped) = (summary.lost(), summary.dropped());
    report::note(format_args!(
        "captured {} frames in {seconds:.1} s ({}/s), lost {}{}, dropped {}{}; {name}: {}",
        grouped(summary.captured()),
        grouped(rate as u64),
        grouped(lost.total()),
        causes(&[("overrun", lost.overrun), ("disk", lost.disk), ("corrupt", lost.corrupt)]),
        grouped(dropped.total()),
        causes(&[
            ("no ring", dropped.no_ring),
            ("nested", dropped.nested),
            ("not mapped", dropped.not_mapped)
        ]),
        bytes(summary.bytes)
    ));
    let enough =
        summary.feeds.iter().filter(|it| it.lost.overrun > 0).filter_map(|it| it.enough_slots);
    if let Some(slots) = enough.max() {
        report::note(format_args!("--slots {slots} would have sufficed"));
    }
    if dropped.no_ring > 0 {
        report::note(
            "more threads wrote at once than there were rings: attach again, now that they are \
             running, and there will be a ring for each",
        );
    }
}
