//! The server over TCP, as browsers, scripts and attackers use it.

mod answers;
mod client;
mod faults;
mod filtered;
mod following;
mod guarded;
