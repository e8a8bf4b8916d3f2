//! Combines the frames of one key, in the order of time: begins and ends to spans, steps to chains. Decides
//! their states, also where frames are missing. Pure logic; `tables/spans.rs` and `tables/chains.rs` make
//! tables of it.

mod chain;
mod missing;
mod span;

pub(crate) use chain::{ChainSteps, ChainVerdict};
pub(crate) use missing::{Missing, NOTHING};
pub(crate) use span::{Halves, SpanFrame, SpanRow, SpanState};
