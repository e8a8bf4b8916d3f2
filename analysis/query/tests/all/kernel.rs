//! The tables `thread_states`, `syscalls` and `faults`: compared with programs whose state is known at
//! each ns, whose records are lost in every way, and against DuckDB over the frames themselves.

mod intervals;
mod states;
mod world;
