//! Sizes and durations in human notation.

use std::time::Duration;

use ppt_text::argument::{duration, size};

/// The time or the size in bytes after which a capture continues in another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Every {
    Time(Duration),
    Size(u64),
}

/// Parses `60s` or `1G`: units of time are lower case, units of size upper case.
pub(crate) fn every(text: &str) -> Result<Every, String> {
    let most = Duration::from_secs(366 * 86_400);
    let every = if text.ends_with(|c: char| c.is_ascii_uppercase()) {
        Every::Size(size(text)?)
    } else {
        Every::Time(duration(text)?)
    };
    match every {
        Every::Size(size) if size < 1 << 20 => Err("no smaller than 1M".into()),
        Every::Time(time) if time < Duration::from_secs(1) => Err("no shorter than 1s".into()),
        Every::Time(time) if time > most => Err("no longer than a year".into()),
        every => Ok(every),
    }
}

/// Parses a number of slots of a ring, which is a power of two, or `auto`.
pub(crate) fn slots(text: &str) -> Result<Slots, String> {
    if text == "auto" {
        return Ok(Slots::Auto);
    }
    match size(text).ok().and_then(|number| u32::try_from(number).ok()) {
        Some(slots) if slots.is_power_of_two() && (2..=1 << 26).contains(&slots) => {
            Ok(Slots::Exactly(slots))
        }
        _ => {
            Err("the number of slots is a power of two from 2 to 2^26, such as 65536, or auto"
                .into())
        }
    }
}

/// Number of slots of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slots {
    Exactly(u32),
    /// The number in the frame file, and more if that proves too small.
    Auto,
}

/// Bytes with a unit, in three digits.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_is_by_time_or_by_size() {
        assert_eq!(every("60s"), Ok(Every::Time(Duration::from_secs(60))));
        assert_eq!(every("5m"), Ok(Every::Time(Duration::from_secs(300))));
        assert_eq!(every("5M"), Ok(Every::Size(5 << 20)));
        assert_eq!(every("1G"), Ok(Every::Size(1 << 30)));
        for bad in ["", "5", "1K", "10ms", "400days", "G"] {
            assert!(every(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn slots_are_powers_of_two() {
        assert_eq!(slots("64K"), Ok(Slots::Exactly(65536)));
        assert_eq!(slots("auto"), Ok(Slots::Auto));
        assert!(slots("car").is_err());
        assert!(slots("3").is_err());
        assert!(slots("1").is_err());
        assert!(slots("128M").is_err());
    }

    #[test]
    fn bytes_have_a_unit() {
        assert_eq!(bytes(1536), "1.5 KiB");
    }
}
