//! Why stamps cannot be ticks.

use std::fmt;

/// Why ticks cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// The counter's rate follows the CPU's.
    NotInvariant,
    /// The kernel uses this clock, not the counter. `None` if the kernel does not say.
    Clocksource(Option<String>),
    /// The counter shows what ticks cannot be told from other stamps by.
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
                crate::escape::escaped(name)
            ),
            Distrust::Clocksource(None) => {
                f.write_str("the kernel does not say which clock it uses")
            }
            Distrust::OutOfRange => f.write_str("the CPU's counter has an implausible value"),
        }
    }
}
