//! SQL over captures: held against `ppt info` and `ppt dump`, against models that know the truth, and against
//! other databases.

#[path = "../../../oracles/ask.rs"]
mod ask;

mod cells;
mod counters;
mod exactness;
mod kernel;
mod oracles;
mod predicates;
mod random;
mod sets;
mod support;
mod whatif;
