//! Translates the command line into the options of agent and listener.

use std::sync::Arc;
use std::time::Duration;

use ppt_agent::{
    Allow, AttachOptions, Buffer, ClockChoice, Hold, SegmentChoice, Session, StampClock, Target,
    UserLimits,
};
use ppt_listener::{Codec, Rate, Silence};

use super::feed;
use crate::args;
use crate::choice::Choice;
use crate::code::Code;
use crate::failure::Failure;
use crate::measure::{Slots, bytes};

/// The type of a capture, which determines the reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureForm {
    /// One process: the capture ends with it and reports why.
    One,
    /// Several processes: ppt reports each end.
    Several,
    /// Processes and the children that they fork, which come and go.
    Family,
    /// A command, which has the terminal; its processes come and go.
    Command,
}

/// The longest sleep of `--rate low-power`.
const LOW_POWER: Duration = Duration::from_millis(100);
/// The shortest interval between counter readings.
pub(super) const FEWEST_COUNTERS: Duration = Duration::from_millis(10);
/// The time for which frames may wait for more frames, so that ppt rarely writes to a file. A reader of a
/// pipe gets frames sooner.
const FILE_AGE: Duration = Duration::from_millis(250);
/// Frames that wait for the disk take at most this fraction (1/`QUEUE_PART`) of the memory that ppt's
/// control groups leave, but two of the largest chunks.
const QUEUE_PART: u64 = 8;
const LEAST_QUEUE: usize = 4 << 20;

/// The safety checks that the command line overrides.
pub(crate) fn allowed(allow: &[args::Allow]) -> Allow {
    Allow {
        traced: allow.contains(&args::Allow::Traced),
        seccomp: allow.contains(&args::Allow::Seccomp),
        foreign_claim: allow.contains(&args::Allow::ForeignClaim),
    }
}

/// Options of the agent. `follow` is the socket on which children say hello.
pub(crate) fn attach_options(args: &args::CaptureArgs, follow: Option<u64>) -> AttachOptions {
    AttachOptions {
        limits: UserLimits {
            slots: match args.slots {
                Some(Slots::Exactly(slots)) => Some(slots),
                Some(Slots::Auto) | None => None,
            },
            grow: args.slots == Some(Slots::Auto),
            memory: args.memory,
        },
        allow: allowed(&args.allow),
        clock: match args.clock {
            args::StampSource::Auto => ClockChoice::Auto,
            args::StampSource::Tsc => ClockChoice::Ticks,
            args::StampSource::Monotonic => ClockChoice::Monotonic,
        },
        segment: match args.segment {
            args::Segment::Auto => SegmentChoice::Auto,
            args::Segment::Sysv => SegmentChoice::SysV,
            args::Segment::Memfd => SegmentChoice::Memfd,
        },
        follow,
        choose: Some(Arc::new(Choice::new(&args.only, &args.except))),
        hold: Hold::Held,
    }
}

/// Rejects a size that cannot hold a single frame of `buffers`.
pub(crate) fn check_size<'a>(
    args: &args::CaptureArgs,
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

/// Options of the listener for `sessions`.
pub(super) fn listen_options(
    args: &args::CaptureArgs,
    sessions: &[Session],
) -> ppt_listener::ListenerOptions {
    let default = ppt_listener::ListenerOptions::default();
    ppt_listener::ListenerOptions {
        silence: match args.rate {
            args::Rate::LowPower => Silence::Fixed(LOW_POWER),
            args::Rate::Peak | args::Rate::Paper => default.silence,
        },
        // Triggers must be detected soon.
        chunk_age: if args.to_stdout() || args.flight.time.is_some() {
            default.chunk_age
        } else {
            FILE_AGE
        },
        max_size: args.max_size,
        counters: args.counters.max(FEWEST_COUNTERS),
        rate: match args.rate {
            args::Rate::Peak | args::Rate::LowPower => Rate::Peak,
            args::Rate::Paper => Rate::Paper,
        },
        compress: args.compress.map(|compress| match compress {
            args::Compress::Zstd => Codec::Zstd,
            args::Compress::Lz4 => Codec::Lz4,
        }),
        queue_bytes: default.queue_bytes.min(queue_of_group()),
        tally: args.metrics.is_some(),
        distrust_ticks: sessions.iter().any(distrusts_ticks),
        ..default
    }
}

/// The bytes of frames that may wait for the disk, so that ppt stays within its own control groups, which
/// may be those of the program.
fn queue_of_group() -> usize {
    let groups = ppt_now::memory_groups("/proc".as_ref(), "self");
    let left = groups.iter().map(|group| group.left).min().unwrap_or(u64::MAX);
    usize::try_from(left / QUEUE_PART).unwrap_or(usize::MAX).max(LEAST_QUEUE)
}

/// Whether ppt does not trust the CPU's counter.
fn distrusts_ticks(session: &Session) -> bool {
    let distrusted = |clock: &Option<StampClock>| matches!(clock, Some(StampClock::Distrusted(_)));
    session.attached().iter().any(|buffer| distrusted(&buffer.clock))
}
