//! A position in a capture, in its text form.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

/// The first or the last position of a selected part of a capture, inclusive.
///
/// As text: `500`, a sequence number; `1.5s`, since its start; `2026-11-21T15:04:05Z`, UTC;
/// `@1795273445.5`, seconds since the epoch, and `@1795273445500000000ns`, as in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The frame of this sequence number, in each ring.
    Seq(u64),
    /// This long after the capture began.
    Since(Duration),
    /// This time, ns since the epoch.
    Epoch(u64),
}

/// Text that is not a position in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a sequence number (500), a time since the start (1.5s, 200ms), or a time in UTC \
     (2026-11-21T15:04:05.5Z, or @ and seconds since the epoch)"
)]
pub struct NoBound;

impl FromStr for Bound {
    type Err = NoBound;

    fn from_str(text: &str) -> Result<Bound, NoBound> {
        let since = |text: &str| humantime::parse_duration(text).ok();
        let epoch = |since: Duration| u64::try_from(since.as_nanos()).ok().map(Bound::Epoch);
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let utc = |text: &str| {
            let time = humantime::parse_rfc3339_weak(text).ok()?;
            time.duration_since(UNIX_EPOCH).ok()
        };
        let found = match text.strip_prefix('@') {
            Some(seconds) if is_plain(seconds) => since(&format!("{seconds}s")).and_then(epoch),
            Some(number) => since(number).and_then(epoch),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok().map(Bound::Seq)
            }
            None => utc(text).and_then(epoch).or_else(|| since(text).map(Bound::Since)),
        };
        found.ok_or(NoBound)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Seq(seq) => write!(f, "frame {seq}"),
            Bound::Since(time) => write!(f, "{time:?} after the start"),
            Bound::Epoch(ns) => {
                write!(f, "{}.{:09} s since the epoch", ns / 1_000_000_000, ns % 1_000_000_000)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> Result<Bound, NoBound> {
        text.parse()
    }

    #[test]
    fn bounds_are_numbers_or_times() {
        assert_eq!(bound("500"), Ok(Bound::Seq(500)));
        assert_eq!(bound("1.5s"), Ok(Bound::Since(Duration::from_millis(1500))));
        assert_eq!(bound("0s"), Ok(Bound::Since(Duration::ZERO)));
        let expected = Ok(Bound::Epoch(1_795_273_445_500_000_000));
        assert_eq!(bound("2026-11-21T15:04:05.5Z"), expected);
        assert_eq!(bound("2026-11-21 15:04:05.5"), expected);
        assert_eq!(bound("@1795273445.5"), expected);
        assert_eq!(bound("@1795273445500000000ns"), expected);
        assert_eq!(bound("@0"), Ok(Bound::Epoch(0)));
        for bad in [
            "",
            "@",
            "-1",
            "1.5",
            "5 apples",
            "@now",
            "15:04",
            "2026-11-21",
            "@1e9",
            "ü",
            "2026-11-21T15:04:05+01:00",
            "99999999999999999999",
            "@99999999999",
        ] {
            assert!(bound(bad).is_err(), "{bad}");
        }
    }
}
