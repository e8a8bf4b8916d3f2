//! Times of the system's clock.

use crate::time::{Timespec, Timeval};
use crate::writer::clock;

impl Timeval {
    /// The wall clock, whether or not ppt is attached.
    pub fn now() -> Self {
        clock(0).timeval()
    }
}

impl Timespec {
    /// The wall clock, whether or not ppt is attached.
    pub fn now() -> Self {
        clock(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_run() {
        assert!(Timeval::now().tv_sec > 1_000_000_000);
        assert!(clock(1) <= clock(1));
    }
}
