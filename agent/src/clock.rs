//! Chooses the clock of stamps of `option time tsc`: the CPU's counter if it can be trusted,
//! otherwise CLOCK_MONOTONIC.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::FieldType;
use ppt_now::Distrust;
use ppt_segment::abi::clock_kind;

use crate::system::System;

/// The user's choice of a clock for stamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// Ticks if they can be trusted, else the monotonic clock.
    #[default]
    Auto,
    /// Ticks. Attaching fails if they cannot be trusted.
    Ticks,
    /// The monotonic clock.
    Monotonic,
}

/// The clock that the stamps of a session count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StampClock {
    /// Ticks of the CPU's counter.
    Ticks,
    /// CLOCK_MONOTONIC, on request.
    Monotonic,
    /// CLOCK_MONOTONIC, because ticks cannot be trusted.
    Distrusted(Distrust),
}

impl StampClock {
    /// The word in the control page.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            StampClock::Ticks => clock_kind::TICKS,
            StampClock::Monotonic | StampClock::Distrusted(_) => clock_kind::MONOTONIC,
        }
    }

    /// The name in a capture.
    pub fn name(&self) -> &'static str {
        match self {
            StampClock::Ticks => "tick",
            StampClock::Monotonic | StampClock::Distrusted(_) => "monotonic",
        }
    }
}

/// Whether stamps may be ticks, according to a recent check.
pub(crate) fn trusted_lately(system: &System) -> Result<(), Distrust> {
    system.trust.found(|| trusted(system))
}

/// Whether stamps may be ticks, checked now.
pub(crate) fn trusted(system: &System) -> Result<(), Distrust> {
    ppt_now::trusted((system.counter)(), system.clocksource().as_deref())
}

/// Decides which clock the stamps of frames of `schema` are to count. Returns `None` if the frames
/// have no such stamps.
pub(crate) fn decide(
    system: &System,
    schema: &Schema,
    choice: ClockChoice,
) -> Result<Option<StampClock>, Distrust> {
    let mut fields = schema.frames.iter().flat_map(|frame| &frame.fields);
    if !fields.any(|field| field.ty == FieldType::Tsc) {
        return Ok(None);
    }
    Ok(Some(match (choice, trusted(system)) {
        (ClockChoice::Monotonic, _) => StampClock::Monotonic,
        (_, Ok(())) => {
            ppt_now::begin_tick_scale();
            StampClock::Ticks
        }
        (ClockChoice::Auto, Err(why)) => StampClock::Distrusted(why),
        (ClockChoice::Ticks, Err(why)) => return Err(why),
    }))
}

#[cfg(test)]
mod tests {
    use ppt_now::CpuCounter;

    use super::*;

    #[test]
    fn the_kernel_is_asked_for_its_clock() {
        let folder = tempfile::tempdir().unwrap();
        let counter = || CpuCounter { invariant: true, now: 1 << 40 };
        let system = System { sys: folder.path().into(), counter, ..System::default() };
        assert_eq!(trusted(&system), Err(Distrust::Clocksource(None)));
        let place = folder.path().join("devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("current_clocksource"), "tsc\n").unwrap();
        assert_eq!(trusted(&system), Ok(()));
        let counter = || CpuCounter { invariant: false, now: 1 << 40 };
        let system = System { sys: folder.path().into(), counter, ..System::default() };
        assert_eq!(trusted(&system), Err(Distrust::NotInvariant));
    }
}
