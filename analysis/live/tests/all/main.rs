//! Captures whose tallies are known.

mod halves;
mod tally;
