//! What the command line asks of agent and listener, in their words.

use ppt_agent::{Allow, ClockChoice, Limits, Options, SegmentChoice, Session, StampClock};
use ppt_listener::Rate;

use crate::args;
use crate::measure::Slots;

/// What was allowed on the command line.
pub(crate) fn allowed(allow: &[args::Allow]) -> Allow {
    Allow {
        traced: allow.contains(&args::Allow::Traced),
        seccomp: allow.contains(&args::Allow::Seccomp),
        foreign_claim: allow.contains(&args::Allow::ForeignClaim),
    }
}

/// How to attach, as the command line says.
pub(crate) fn attach_options(args: &args::Capture) -> Options {
    Options {
        limits: Limits {
            slots: match args.slots {
                Some(Slots::Exactly(slots)) => Some(slots),
                Some(Slots::Auto) | None => None,
            },
            grow: args.slots == Some(Slots::Auto),
            memory: args.memory,
        },
        allow: allowed(&args.allow),
        clock: match args.clock {
            args::Clock::Auto => ClockChoice::Auto,
            args::Clock::Tsc => ClockChoice::Ticks,
            args::Clock::Monotonic => ClockChoice::Monotonic,
        },
        segment: match args.segment {
            args::Segment::Auto => SegmentChoice::Auto,
            args::Segment::Sysv => SegmentChoice::SysV,
            args::Segment::Memfd => SegmentChoice::Memfd,
        },
    }
}

/// How to listen to `sessions`, as the command line says.
pub(super) fn listen_options(args: &args::Capture, sessions: &[Session]) -> ppt_listener::Options {
    ppt_listener::Options {
        max_size: args.max_size,
        rate: match args.rate {
            args::Rate::Peak => Rate::Peak,
            args::Rate::Paper => Rate::Paper,
        },
        distrust_ticks: sessions.iter().any(distrusts_ticks),
        ..Default::default()
    }
}

/// Whether the system does not trust the CPU's counter.
fn distrusts_ticks(session: &Session) -> bool {
    let distrusted = |it: &Option<StampClock>| matches!(it, Some(StampClock::Distrusted(_)));
    session.attached().iter().any(|it| distrusted(&it.clock))
}
