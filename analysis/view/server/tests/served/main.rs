//! The server over TCP, as browsers, scripts and attackers use it.

#[path = "../../../../report/tests/made/mod.rs"]
mod made;

#[path = "../../../../report/tests/made/kinds.rs"]
mod every;

mod answers;
mod client;
mod faults;
mod filtered;
mod following;
mod guarded;
