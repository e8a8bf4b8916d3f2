//! What a key may cost.

use thiserror::Error;

/// What a key may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// The most edges that [`Policy::All`](crate::Policy::All) may make of one key.
    pub pairs: u64,
    /// The most outs of one key that are kept at a time.
    pub kept: usize,
    /// How wide the bounds of an entry are at most. Outs are kept so much longer.
    pub width: i64,
}

/// A key that cannot be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyRefusal {
    /// Too many entries have the same value.
    #[error("{outs} outs and {ins} ins have the same value")]
    Hot {
        /// Outs so far.
        outs: u64,
        /// Ins so far.
        ins: u64,
    },
    /// The bounds of an entry are wider than the limit.
    #[error("the time of an entry is uncertain by {width}, more than {limit}")]
    Wide {
        /// How wide they are.
        width: i64,
        /// How wide they may be.
        limit: i64,
    },
}
