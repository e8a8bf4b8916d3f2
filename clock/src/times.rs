//! Compares the clocks of several hosts: converts the ticks of each to ticks of one of them, with a
//! lower and an upper bound.
//!
//! A message arrives after it was sent. That alone bounds the difference θ of two clocks, for any
//! delay, asymmetry or load. Between messages, θ follows a line, within the limits of the
//! [`ClockModel`]. The bounds are those of all lines that contradict no message: the truth lies between
//! them if the model holds. Their middle is the estimate.
//!
//! True time is one more clock: a pulse is a message from it and one to it at the same time.
//!
//! 1. `brackets`: packet stamps, which are CLOCK_REALTIME, become intervals of ticks.
//! 2. `blocks`: the convex hulls of each second keep the information of its messages about a pair
//!    of hosts.
//! 3. `track`: forwards and backwards through all seconds, `region` keeps the possible values and
//!    slopes. Where none is possible, or where `levels` detects one, a clock stepped: bounds end
//!    there, and start again.
//! 4. `network`: the tightest of all paths from one host to another counts, as with the intervals
//!    of Marzullo ("Maintaining the time in a distributed system", 1984).
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

pub use line::{TickBounds, TickKnot};
pub use messages::Unused;
pub use model::ClockModel;
pub use solve::{ClockStep, Loop, Times, TimesError};
