//! Its commands, one by one: answers, messages, limits, and what other tools read.

mod absent;
mod addresses;
mod analyses;
mod commands;
mod fleet;
mod frame_names;
mod halves;
mod hostile;
mod import;
mod interrupted;
mod judged;
mod kinds;
mod large;
mod limits;
mod messages;
mod models;
mod names;
mod oracles;
mod python;
mod stable;
mod threads;
mod timeless;
mod traces;
mod tracing;
mod view;
mod whatif;
