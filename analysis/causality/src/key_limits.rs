//! Limits of the edges and memory of one key.

use thiserror::Error;

/// How much one key may take; beyond that, it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// The largest number of edges that [`Policy::All`](crate::Policy::All) may make of one key.
    pub pairs: u64,
    /// The largest number of outs of one key in memory.
    pub kept: usize,
    /// The largest distance of the bounds of an entry, ns. Outs are kept that much longer.
    pub width: i64,
}

/// A key that cannot be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyRefusal {
    /// Too many entries have the same value.
    #[error("{outs} outs and {ins} ins have the same value")]
    Hot {
        /// The number of outs so far.
        outs: u64,
        /// The number of ins so far.
        ins: u64,
    },
    /// The bounds of an entry are wider than the limit.
    #[error("the time of an entry is uncertain by {width}, more than {limit}")]
    Wide {
        /// The distance of the bounds.
        width: i64,
        /// The largest distance.
        limit: i64,
    },
}
