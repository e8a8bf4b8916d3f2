//! Pauses the CPUs of this host, so that a span looks faster than it is.
//!
//! While a thread in the span runs on one CPU, a real-time thread of ppt occupies every other CPU for the share
//! 1 − 1/k of that time. So everything else is slower by k. Time without these pauses is virtual: V(t) = t − G(t),
//! where G grows by 1 − 1/k while the span runs on any CPU (SCOZ, 2021).
//!
//! - `host` starts and ends rounds; `state` has everything that payers share.
//! - `ledger` is the arithmetic: the debt of each CPU, and G.
//! - `switches` reads which thread runs on each CPU, from the kernel's context switches.
//! - `edges` is the trait of what reports begins and ends; `errors` has the reasons why CPUs are not paused.
//! - `span_threads` has the threads in the span, and `span_waits` how long they wait there.
//! - `payer` is the real-time thread of a CPU.
//! - `scheduling` sets policies and weights of threads.

mod edges;
mod errors;
mod host;
mod ledger;
mod payer;
mod scheduling;
mod span_threads;
mod span_waits;
mod state;
mod switches;

pub use edges::{EdgesLost, SpanEdge, SpanEdges};
pub use errors::{HostPauseError, RoundFault};
pub use host::{HostPause, MAX_FACTOR, PausedRound};
pub use ledger::ClockPoint;
pub use scheduling::{heavier_threads, keep_only_nice, restore_weight};
pub use state::LOOK_INTERVAL;
