//! End to end: real programs, compiled, attached to while they run, and compared with what they
//! say they wrote. `tests/README.md` says what kind of test goes where.

mod account;
mod analyses;
mod binaries;
mod blocking;
mod capture_files;
mod capture_limits;
mod contract;
mod cpp;
mod doctor;
mod endings;
mod examples;
mod failing;
mod flood;
mod fmt;
mod hostile;
mod hostile_text;
mod hostile_user;
mod killed;
mod memory;
mod names;
mod objects;
mod pptc;
mod processes;
mod python;
mod readme;
mod refusals;
mod rotation;
mod run;
mod rust;
mod sessions;
mod steady;
mod stepped;
mod support;
mod torn;
mod values;
