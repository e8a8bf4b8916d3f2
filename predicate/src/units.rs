//! Units of numbers.

use crate::ast::ComparedValue;

const DURATIONS: [(&str, i64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const SIZES: [(&str, i64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// The factor of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitFactor {
    /// ns, or bytes.
    pub each: i64,
    make: fn(i64) -> ComparedValue,
}

impl UnitFactor {
    /// The unit called `name`.
    pub fn by_name(name: &str) -> Option<UnitFactor> {
        let within = |all: &[(&str, i64)], make: fn(i64) -> ComparedValue| {
            let found = all.iter().find(|(word, _)| *word == name)?;
            Some(UnitFactor { each: found.1, make })
        };
        within(&DURATIONS, ComparedValue::Duration).or_else(|| within(&SIZES, ComparedValue::Size))
    }

    /// The value in ns or bytes.
    pub fn value(self, number: i64) -> ComparedValue {
        (self.make)(number)
    }
}

/// The names of all units.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    DURATIONS.iter().chain(&SIZES).map(|(word, _)| *word)
}
