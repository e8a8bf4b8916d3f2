//! Messages about an attached process.

use ppt_agent::{AttachedBuffer, RingBound, SegmentKind, Session, StampClock, Target};
use ppt_text::grouped;

use super::changes::bounding;
use crate::args;
use crate::code::Code;
use crate::live::CaptureForm;
use crate::measure::bytes;
use crate::report;

/// Reports the buffers, and how ppt reached them. Scripts wait for the last line, so it always
/// comes, except for the processes of a quiet `ppt run`.
pub(in crate::live) fn attached(args: &args::CaptureArgs, kind: CaptureForm, session: &Session) {
    owner(args, session.target());
    if session.filtered {
        report::warning(
            Code::FilteredProgram,
            "the program filters its system calls (seccomp), and its first frame makes some; a \
             filter that does not allow them may end the program",
        );
    }
    session.attached().iter().for_each(|attached| buffer(args, attached));
    if args.verbose {
        report::note(format_args!(
            "wrote by {}, held the target for {} µs",
            session.transport,
            session.held.as_micros()
        ));
    }
    if args.quiet && kind == CaptureForm::Command {
        return;
    }
    let buffers: Vec<_> =
        session.attached().iter().map(|buffer| buffer.buffer.name.as_str()).collect();
    let buffers = match buffers[..] {
        [] => "no buffers".to_owned(),
        _ => format!("buffers {}", buffers.join(", ")),
    };
    report::line(format_args!("attached: pid {}, {buffers}", session.target().pid()));
}

/// Reports the owner of a process that belongs to another user.
fn owner(args: &args::CaptureArgs, target: &Target) {
    let (uid, us) = (target.owner().0, nix::unistd::geteuid().as_raw());
    if uid != us && !args.quiet {
        report::note(format_args!(
            "process {} belongs to user {uid}, and ppt runs as user {us}",
            target.pid()
        ));
    }
}

/// Bytes of fresh memory that the kernel maps into a process in a millisecond, if it locks them.
const LOCKED_A_MS: f64 = (2 << 20) as f64;

fn buffer(args: &args::CaptureArgs, attached_buffer: &AttachedBuffer) {
    let name = &attached_buffer.buffer.name;
    if let Some(holder) = &attached_buffer.took_over {
        report::note(format_args!(
            "{name}: took over from {holder}, which {}",
            if holder.alive == Some(false) { "died" } else { "was attached" }
        ));
    }
    let plan = attached_buffer.plan;
    let geometry = plan.geometry;
    let why = match &attached_buffer.bound {
        RingBound::Locked => Some(format!(
            ": the process locks its memory (mlockall(2)), and a thread waits until all of it is mapped, \
             some {:.1} ms",
            geometry.size() as f64 / LOCKED_A_MS
        )),
        // Nobody asked for the default.
        RingBound::Stated if args.memory.is_none() => None,
        bound => plan.reduced.then(|| format!(", to stay within {}", bounding(bound, args))),
    };
    if args.verbose || (why.is_some() && !args.quiet) {
        let why = why.unwrap_or_default();
        report::note(format_args!(
            "{name}: {} rings of {} slots of {} bytes ({}){why}",
            geometry.rings(),
            grouped(geometry.slots()),
            geometry.stride(),
            bytes(geometry.size()),
        ));
    }
    if args.verbose {
        report::note(format_args!(
            "{name}: found by {} in {}; {} segment {:016x}",
            attached_buffer.buffer.found_by,
            attached_buffer.buffer.object,
            match (attached_buffer.adopted, attached_buffer.kind) {
                (true, SegmentKind::SysV) => "adopted",
                (false, SegmentKind::SysV) => "made",
                (true, SegmentKind::Memfd) => "adopted memfd",
                (false, SegmentKind::Memfd) => "awaiting memfd",
            },
            attached_buffer.segment.nonce()
        ));
        match &attached_buffer.clock {
            None => {}
            Some(StampClock::Ticks) => report::note(format_args!("{name}: stamps are ticks")),
            Some(StampClock::Monotonic) => {
                report::note(format_args!(
                    "{name}: stamps come from the monotonic clock, as requested"
                ));
            }
            Some(StampClock::Distrusted(why)) => report::note(format_args!(
                "{name}: stamps come from the monotonic clock, which costs more: {why}"
            )),
        }
    }
}
