//! Chooses the clock of stamps of `option time tsc`: the CPU's counter if it can be trusted,
//! otherwise CLOCK_MONOTONIC.
//!
//! A counter is trusted if the CPU says that it runs at one rate whatever the CPU does, and if the
//! kernel tells time by it: only the kernel has compared the counters of all CPUs, and it turns to
//! another clock when they part.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::FieldType;
use ppt_segment::abi::clock_kind;

use crate::distrust::Distrust;
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

/// Ticks have bit 63 clear, and are to stay so for as long as anybody attaches.
const LARGEST: u64 = 1 << 62;

/// Whether the kernel takes the time from the CPU's counter by this clock source, so that reading it
/// enters nothing: not so `hyperv_clocksource_msr`, which asks the hypervisor.
pub(crate) fn reads_the_counter(clocksource: &str) -> bool {
    matches!(clocksource, "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter")
}

/// Whether stamps may be ticks, as far as was found a while ago.
pub(crate) fn trusted_lately(system: &System) -> Result<(), Distrust> {
    system.trust.found(|| trusted(system))
}

/// Whether stamps may be ticks.
pub(crate) fn trusted(system: &System) -> Result<(), Distrust> {
    let counter = (system.counter)();
    if !counter.invariant {
        return Err(Distrust::NotInvariant);
    }
    let clocksource = system.clocksource();
    if !clocksource.as_deref().is_some_and(reads_the_counter) {
        return Err(Distrust::Clocksource(clocksource));
    }
    match counter.now {
        1..LARGEST => Ok(()),
        _ => Err(Distrust::OutOfRange),
    }
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
        (_, Ok(())) => StampClock::Ticks,
        (ClockChoice::Auto, Err(why)) => StampClock::Distrusted(why),
        (ClockChoice::Ticks, Err(why)) => return Err(why),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Counter;

    fn system(clocksource: Option<&str>, counter: fn() -> Counter) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&place).unwrap();
        if let Some(name) = clocksource {
            std::fs::write(place.join("current_clocksource"), format!("{name}\n")).unwrap();
        }
        let system = System { sys: folder.path().into(), counter, ..System::default() };
        (folder, system)
    }

    fn good() -> Counter {
        Counter { invariant: true, now: 1 << 40 }
    }

    #[test]
    fn ticks_are_trusted_where_cpu_and_kernel_do() {
        for name in ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"] {
            assert_eq!(trusted(&system(Some(name), good).1), Ok(()), "{name}");
        }
        for name in [
            "hpet",
            "acpi_pm",
            "jiffies",
            "xen",
            "refined-jiffies",
            "",
            "tsc-early",
            "hyperv_clocksource_msr",
        ] {
            let why = trusted(&system(Some(name), good).1).unwrap_err();
            assert_eq!(why, Distrust::Clocksource(Some(name.into())));
        }
        let why = trusted(&system(None, good).1).unwrap_err();
        assert_eq!(why, Distrust::Clocksource(None));
    }

    #[test]
    fn a_counter_of_changing_rate_is_not_trusted() {
        let counter = || Counter { invariant: false, now: 1 << 40 };
        assert_eq!(trusted(&system(Some("tsc"), counter).1), Err(Distrust::NotInvariant));
        let counter = || Counter { invariant: true, now: 1 << 63 };
        assert_eq!(trusted(&system(Some("tsc"), counter).1), Err(Distrust::OutOfRange));
        let counter = || Counter { invariant: true, now: 0 };
        assert_eq!(trusted(&system(Some("tsc"), counter).1), Err(Distrust::OutOfRange));
    }

    #[test]
    fn reasons_read_well() {
        let hpet = Distrust::Clocksource(Some("h\u{1b}pet".into())).to_string();
        assert!(hpet.starts_with(r"the kernel uses `h\u{1b}pet` as its clock"), "{hpet}");
    }
}
