//! `ppt-analysis` as its users call it.

mod absent;
mod addresses;
mod analyses;
mod commands;
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
mod support;
mod threads;
mod timeless;
mod traces;
mod tracing;
mod view;
mod whatif;
