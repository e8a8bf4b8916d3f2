//! The server as a browser, a script and an attacker meet it: by TCP.

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
