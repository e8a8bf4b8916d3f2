//! Values of a command line: sizes and durations in their text form.

use std::time::Duration;

/// `64K`, `256M`, `1.5G`: bytes, by powers of 1024; greater than 0.
///
/// # Errors
/// States the form of a size.
pub fn size(text: &str) -> Result<u64, String> {
    let size = parse_size::Config::new().with_binary().parse_size(text).ok();
    size.filter(|&size| size > 0)
        .ok_or("a size is a number, with K, M, G or T for larger ones, for example 256M".into())
}

/// `8ms`, `2s`, `1m30s`: greater than 0, and at most the ns that fit into an `i64`.
///
/// # Errors
/// States the form of a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    match any_duration(text)? {
        Duration::ZERO => Err("a duration must be longer than 0".into()),
        duration => Ok(duration),
    }
}

/// A duration as of [`duration`], or `0s`.
///
/// # Errors
/// States the form of a duration.
pub fn any_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).ok();
    duration
        .filter(|duration| i64::try_from(duration.as_nanos()).is_ok())
        .ok_or("a duration is a number and its unit, such as 8ms, 2s or 1m30s".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("1.5G"), Ok(1536 << 20));
        assert!(size("0").is_err() && size("-1").is_err() && size("x").is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("8ms"), Ok(Duration::from_millis(8)));
        assert_eq!(duration("0s"), Err("a duration must be longer than 0".into()));
        assert_eq!(any_duration("0s"), Ok(Duration::ZERO));
        assert!(any_duration("0").is_ok() && any_duration("-1s").is_err());
        assert!(duration("5").is_err());
        assert!(duration("300years").is_err(), "more ns than an i64 holds");
    }
}
