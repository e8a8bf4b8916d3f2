//! The commands that answer questions about captures, as their users call them.

#[path = "../../analysis/oracles/ask.rs"]
mod ask;
#[path = "../../analysis/report/tests/made/kinds.rs"]
mod every;

mod cli;
mod follow;
mod numbers;
mod support;
