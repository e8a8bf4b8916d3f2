//! The types of points in time in frames.

/// A point of wall clock time, the type of `time` without an `option time`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timeval {
    /// Seconds since the epoch.
    pub tv_sec: i64,
    /// Microseconds.
    pub tv_usec: i64,
}

/// A point in time with nanoseconds, the type of `option time timespec`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timespec {
    /// Seconds of the clock.
    pub tv_sec: i64,
    /// Nanoseconds.
    pub tv_nsec: i64,
}

impl Timeval {
    /// Never: an empty cell in tables.
    pub const ZERO: Self = Self { tv_sec: 0, tv_usec: 0 };
}

impl Timespec {
    /// Never: an empty cell in tables.
    pub const ZERO: Self = Self { tv_sec: 0, tv_nsec: 0 };

    /// The same time in microseconds.
    #[inline(always)]
    pub fn timeval(self) -> Timeval {
        Timeval { tv_sec: self.tv_sec, tv_usec: self.tv_nsec / 1000 }
    }

    /// The same time in nanoseconds.
    #[inline(always)]
    pub fn nanoseconds(self) -> i64 {
        self.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(self.tv_nsec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_cut_to_microseconds() {
        let time = Timespec { tv_sec: 7, tv_nsec: 999_999_999 };
        assert_eq!(time.timeval(), Timeval { tv_sec: 7, tv_usec: 999_999 });
        assert_eq!(time.nanoseconds(), 7_999_999_999);
    }
}
