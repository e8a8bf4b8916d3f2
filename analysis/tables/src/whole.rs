//! What is whole: spans of their begins and ends, chains of their steps. Pure logic over the frames of
//! one key in the order of time; `tables/spans.rs` and `tables/chains.rs` make tables of it.

mod chain;
mod missing;
mod span;

pub(crate) use chain::{ChainSteps, ChainVerdict};
pub(crate) use missing::{Missing, NOTHING};
pub(crate) use span::{Halves, SpanFrame, SpanRow, SpanState};
