//! Random numbers: names that are used once.

pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        // Only where /dev/urandom is missing, too: unique is all that is needed.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        (now.tv_nsec as u64) << 32 ^ now.tv_sec as u64 ^ u64::from(std::process::id()) << 16
    })
}

pub(crate) fn random_nonzero() -> u64 {
    random().max(1)
}
