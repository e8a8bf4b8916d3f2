//! What caused what, the ways that led there, and what a faster part would be worth: arithmetic only,
//! no I/O.
//!
//! - [`Matcher`] makes edges: an out of one frame equals an in of another one, which came later. It
//!   takes the [`Entry`]s of one key after the other, in their [order](Entry::order).
#![forbid(unsafe_code)]

mod entry;
mod found;
mod matcher;
mod outs;
mod queue;
mod rules;

pub use entry::{Certainty, Entry, Side};
pub use found::{Counts, Edge, Found, Reason, Unmatched};
pub use matcher::{Limits, Matcher, Refused};
pub use rules::{Conflict, Policy, Rule, Rules};
