//! What the readings of several hosts say of their clocks: the ticks of each as ticks of one of
//! them, between two bounds.
//!
//! A message arrives after it was sent. That alone bounds the difference θ of two clocks, whatever
//! the delay, its asymmetry or the load. Between messages, θ follows a line, but for the limits of
//! the [`Model`]. A bound is what no line through all messages contradicts: the truth is inside if
//! the model holds. The middle of it is the estimate.
//!
//! True time is one more clock: a pulse is a message from it and one to it at once.
//!
//! 1. `brackets`: stamps of packets, which are CLOCK_REALTIME, become intervals of ticks.
//! 2. `blocks`: the convex hulls of each second keep what its messages say of a pair of hosts.
//! 3. `track`: forwards and backwards through all seconds, `region` keeps the values and slopes that
//!    are possible. Where none is, or where `levels` shows it, something stepped: bounds end there,
//!    and begin anew.
//! 4. `network`: of all ways from one host to another one the tightest counts, as with the
//!    intervals of Marzullo ("Maintaining the time in a distributed system", 1984).
//! 5. `line`: the result by the ticks of each host, rounded outwards.

mod blocks;
mod brackets;
mod clocks;
mod grid;
mod hull;
mod levels;
mod line;
mod messages;
mod model;
mod network;
mod offsets;
mod path;
mod region;
mod scale;
mod search;
mod solve;
mod track;

pub use line::{Knot, TickBounds};
pub use messages::Unused;
pub use model::Model;
pub use solve::{ClockStep, Loop, Times, TimesError};
