//! `ppt-analysis` as its users call it.

#[path = "../../../oracles/ask.rs"]
mod ask;
#[path = "../../../report/tests/made/kinds.rs"]
mod every;

mod cli;
mod follow;
mod numbers;
mod support;
