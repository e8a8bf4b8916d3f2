//! What the command line asks of agent and listener, in their words.

use std::time::Duration;

use ppt_agent::{
    Allow, Buffer, ClockChoice, Hold, Limits, Options, SegmentChoice, Session, StampClock, Target,
};
use ppt_listener::{Codec, Rate, Silence};

use super::feed;
use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::measure::{Slots, bytes};

/// Whose capture it is: decides what is worth a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of one process: when that ends, so does the capture, which says why.
    One,
    /// Of several processes: each end is news.
    Several,
    /// Of processes and the children that they fork, which come and go.
    Family,
    /// Of a command, which has the terminal; its processes come and go.
    Command,
}

/// Longest sleep between two looks, where that is what matters.
const LOW_POWER: Duration = Duration::from_millis(100);
/// Frames of a file may wait so long for others: few writes are cheap. Who reads a pipe waits for them.
const FILE_AGE: Duration = Duration::from_millis(250);

/// What was allowed on the command line.
pub(crate) fn allowed(allow: &[args::Allow]) -> Allow {
    Allow {
        traced: allow.contains(&args::Allow::Traced),
        seccomp: allow.contains(&args::Allow::Seccomp),
        foreign_claim: allow.contains(&args::Allow::ForeignClaim),
    }
}

/// How to attach, as the command line says; `follow` is the socket on which children are to say
/// hello.
pub(crate) fn attach_options(args: &args::Capture, follow: Option<u64>) -> Options {
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
        follow,
        hold: Hold::Held,
    }
}

/// Refuses a size in which not one frame of `buffers` has room.
pub(crate) fn check_size<'a>(
    args: &args::Capture,
    buffers: impl IntoIterator<Item = (&'a Target, &'a Buffer)>,
) -> Result<(), Failure> {
    let Some(max) = args.max_size else { return Ok(()) };
    let sources = buffers.into_iter().map(|(target, buffer)| feed::source(target, buffer));
    let least = ppt_listener::empty_size(sources);
    if max >= least {
        return Ok(());
    }
    let message = format!(
        "--max-size {} is too small: a capture without any frame takes {}",
        bytes(max),
        bytes(least)
    );
    Err(Failure::usage(Code::TooSmall, message))
}

/// How to listen to `sessions`, as the command line says.
pub(super) fn listen_options(args: &args::Capture, sessions: &[Session]) -> ppt_listener::Options {
    let default = ppt_listener::Options::default();
    ppt_listener::Options {
        silence: match args.rate {
            args::Rate::LowPower => Silence::Fixed(LOW_POWER),
            args::Rate::Peak | args::Rate::Paper => default.silence,
        },
        chunk_age: if args.to_stdout() { default.chunk_age } else { FILE_AGE },
        max_size: args.max_size,
        rate: match args.rate {
            args::Rate::Peak | args::Rate::LowPower => Rate::Peak,
            args::Rate::Paper => Rate::Paper,
        },
        compress: args.compress.map(|it| match it {
            args::Compress::Zstd => Codec::Zstd,
            args::Compress::Lz4 => Codec::Lz4,
        }),
        distrust_ticks: sessions.iter().any(distrusts_ticks),
        ..default
    }
}

/// Whether the system does not trust the CPU's counter.
fn distrusts_ticks(session: &Session) -> bool {
    let distrusted = |it: &Option<StampClock>| matches!(it, Some(StampClock::Distrusted(_)));
    session.attached().iter().any(|it| distrusted(&it.clock))
}
