//! Intervals that take longer, for `ppt whatif --live`.

use std::sync::Arc;

use ppt_frame_dsl::schema::{Clock, Field, FieldType, Frame, IntervalEnd};
use ppt_segment::abi::{Descriptor, descriptor_flags};
use ppt_segment::{Segment, SlowedInterval};
use thiserror::Error;

use super::attached::{Access, AttachedBuffer};

/// Words of a slot that a mask of stamps can name.
const MASKED_WORDS: u32 = 64;

/// Why intervals of a buffer cannot be slowed down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotSlowable {
    /// The code that writes its frames does not know how.
    #[error(
        "its code does not know how: only C and C++ do, from a pptc of this version; translate \
         the frame file again, and build the program again"
    )]
    Code,
    /// The program makes the segment, and has not done so yet.
    #[error("it has not written a frame yet, and makes its shared memory itself: try again later")]
    Awaited,
    /// A filter of system calls may end a thread that reads a clock or sleeps.
    #[error("its program has a filter of system calls, which may end a thread that waits")]
    Filtered,
}

/// An attached buffer whose intervals can be slowed down.
#[derive(Debug, Clone)]
pub struct SlowableBuffer {
    segment: Arc<Segment>,
    session: u64,
    /// From the monotonic clock of ppt to that of the target.
    offset_ns: i64,
}

pub(super) fn slowable(
    by: &Access<'_>,
    buffer: &AttachedBuffer,
    filtered: bool,
) -> Result<SlowableBuffer, NotSlowable> {
    let at = std::mem::offset_of!(Descriptor, flags);
    let flags = buffer.buffer.descriptor[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    if flags & descriptor_flags::SLOWS_DOWN == 0 {
        return Err(NotSlowable::Code);
    }
    if filtered {
        return Err(NotSlowable::Filtered);
    }
    if buffer.is_awaiting() {
        return Err(NotSlowable::Awaited);
    }
    Ok(SlowableBuffer {
        segment: buffer.segment.clone(),
        session: by.claim.nonce,
        offset_ns: by.target.monotonic_offset(),
    })
}

impl SlowableBuffer {
    /// From here on, intervals may be slowed down.
    pub fn begin(&self) {
        self.segment.slowdown().begin(self.session);
    }

    /// ppt lives, at this time of its monotonic clock. If it does not say so for 100 ms, nothing
    /// takes longer.
    pub fn beat(&self, mono_ns: u64) {
        self.segment.slowdown().beat(mono_ns.saturating_add_signed(self.offset_ns));
    }

    /// Makes an interval `times` as long, until [`Self::end`]. `round` must not be 0.
    pub fn slow(&self, round: u64, interval: IntervalStamps, times: f64, sleeps: bool) {
        let share = ((times - 1.0) * (1u64 << 32) as f64) as u64;
        let IntervalStamps { frame, words, stamps, clock } = interval;
        let slowed = SlowedInterval { frame, words, stamps, clock, share, sleeps };
        self.segment.slowdown().slow(round, &slowed);
    }

    /// Stops the slowdown of the interval.
    pub fn end(&self, interval: IntervalStamps) {
        self.segment.slowdown().end(interval.frame);
    }

    /// Whether both are the same buffer.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.segment, &other.segment)
    }
}

/// The offsets of an interval's stamps in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalStamps {
    /// The frame's id.
    pub frame: u16,
    words: (u64, u64),
    stamps: u64,
    clock: u64,
}

impl IntervalStamps {
    /// The stamps of interval `name` of a frame. None if the frame has no such interval, or its stamps
    /// are no whole numbers of a clock that advances while a thread waits.
    pub fn find(id: u16, frame: &Frame, name: &str) -> Option<Self> {
        let half = |edge| {
            let is_it = |field: &&Field| {
                let half = field.interval.as_ref();
                half.is_some_and(|half| half.name == name && half.edge == edge)
            };
            frame.fields.iter().find(is_it)
        };
        let (start, end) = (half(IntervalEnd::Start)?, half(IntervalEnd::End)?);
        let clock = match end.ty {
            FieldType::Tsc => 0,
            FieldType::Ns { clock } => number(clock)? + 1,
            _ => return None,
        };
        let alike = |field: &&Field| field.ty == end.ty && field.array.is_none();
        let stamps = frame.fields.iter().filter(alike).map(|field| field.offset / 8);
        let stamps =
            stamps.filter(|&word| word < MASKED_WORDS).fold(0, |bits, word| bits | 1 << word);
        let words = (u64::from(start.offset / 8), u64::from(end.offset / 8));
        (words.1 < u64::from(MASKED_WORDS)).then_some(Self { frame: id, words, stamps, clock })
    }
}

/// The number of a clock in clock_gettime(2).
fn number(clock: Clock) -> Option<u64> {
    match clock {
        Clock::Realtime => Some(0),
        Clock::Monotonic => Some(1),
        Clock::Boottime => Some(7),
        Clock::ThreadCpu | Clock::ProcessCpu => None,
    }
}
