//! What caused what, the ways that led there, and what a faster part would be worth: arithmetic only,
//! no I/O.
//!
//! - [`Matcher`] makes edges: an out of one frame equals an in of another one, which came later. It
//!   takes the [`Entry`]s of one key after the other, in their [order](Entry::order).
//! - A [`Graph`] has frames and what leads from one to the next. It finds [`Paths`].
#![forbid(unsafe_code)]

mod all;
mod entry;
mod found;
mod graph;
mod matcher;
mod nearest;
mod outs;
mod paths;
mod queue;
mod rules;
mod steps;

pub use all::TooMany;
pub use entry::{Certainty, Entry, Side};
pub use found::{Counts, Edge, Found, Reason, Unmatched};
pub use graph::{Graph, Kind, Link, Malformed, Vertex};
pub use matcher::{Limits, Matcher, Refused};
pub use paths::{Mode, Path, Paths};
pub use rules::{Conflict, Policy, Rule, Rules};
pub use steps::{By, Place, Step};
