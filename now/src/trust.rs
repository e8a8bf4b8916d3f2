//! Whether the CPU's counter can be trusted.
//!
//! It can be trusted if the CPU reports a constant rate, and if the kernel uses it as its clock
//! source: only the kernel has compared the counters of all CPUs, and it switches to another clock
//! when they diverge.

use std::fmt;

use crate::counter::CpuCounter;

/// Ticks have bit 63 clear, and must keep it clear during any session.
const LARGEST: u64 = 1 << 62;

/// Why ticks cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// The counter's rate follows the CPU's frequency.
    NotInvariant,
    /// The kernel uses this clock source, not the counter. `None` if the kernel does not report it.
    Clocksource(Option<String>),
    /// The counter has a value that cannot be distinguished from other stamps.
    OutOfRange,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::NotInvariant => {
                f.write_str("the CPU does not guarantee that its counter runs at a constant rate")
            }
            Distrust::Clocksource(Some(name)) => write!(
                f,
                "the kernel uses `{}` as its clock, not the CPU's counter (current_clocksource)",
                ppt_text::escaped(name)
            ),
            Distrust::Clocksource(None) => {
                f.write_str("the kernel does not say which clock it uses")
            }
            Distrust::OutOfRange => f.write_str("the CPU's counter has an implausible value"),
        }
    }
}

/// Whether this clock source of the kernel reads the CPU's counter without a system call or exit.
/// `hyperv_clocksource_msr`, for example, asks the hypervisor.
pub fn reads_the_counter(clocksource: &str) -> bool {
    matches!(clocksource, "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter")
}

/// Whether ticks of this counter can be trusted if the kernel uses `clocksource`.
///
/// # Errors
/// The reason why they cannot.
pub fn trusted(counter: CpuCounter, clocksource: Option<&str>) -> Result<(), Distrust> {
    if !counter.invariant {
        return Err(Distrust::NotInvariant);
    }
    if !clocksource.is_some_and(reads_the_counter) {
        return Err(Distrust::Clocksource(clocksource.map(str::to_owned)));
    }
    match counter.now {
        1..LARGEST => Ok(()),
        _ => Err(Distrust::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: CpuCounter = CpuCounter { invariant: true, now: 1 << 40 };

    #[test]
    fn ticks_are_trusted_where_cpu_and_kernel_do() {
        for name in ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"] {
            assert_eq!(trusted(GOOD, Some(name)), Ok(()), "{name}");
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
            let why = trusted(GOOD, Some(name)).unwrap_err();
            assert_eq!(why, Distrust::Clocksource(Some(name.into())));
        }
        assert_eq!(trusted(GOOD, None), Err(Distrust::Clocksource(None)));
    }

    #[test]
    fn a_counter_of_changing_rate_is_not_trusted() {
        let now = |now| trusted(CpuCounter { now, ..GOOD }, Some("tsc"));
        let changing = CpuCounter { invariant: false, ..GOOD };
        assert_eq!(trusted(changing, Some("tsc")), Err(Distrust::NotInvariant));
        assert_eq!(now(1 << 63), Err(Distrust::OutOfRange));
        assert_eq!(now(0), Err(Distrust::OutOfRange));
    }

    #[test]
    fn reasons_read_well() {
        let hpet = Distrust::Clocksource(Some("h\u{1b}pet".into())).to_string();
        assert!(hpet.starts_with(r"the kernel uses `h\x1bpet` as its clock"), "{hpet}");
    }
}
