//! The tables `thread_states`, `syscalls` and `faults`: compared with programs whose state is known at
//! each ns, whose records are lost in every way, and against DuckDB over the frames themselves.

#[path = "../../../oracles/ask.rs"]
mod oracles;
#[allow(dead_code, reason = "what is shared with the other tests is more than is used here")]
#[path = "../random/mod.rs"]
mod random;
#[allow(dead_code, reason = "what is shared with the other tests is more than is used here")]
#[path = "../support/mod.rs"]
mod support;

mod intervals;
mod states;
mod world;
