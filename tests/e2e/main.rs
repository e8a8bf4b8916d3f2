//! End to end: real programs, compiled, attached to while they run, and compared with what they
//! say they wrote. `tests/README.md` says what kind of test goes where.

mod capture_files;
mod contract;
mod endings;
mod refusals;
mod sessions;
mod support;
mod values;
