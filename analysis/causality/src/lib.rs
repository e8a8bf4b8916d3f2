//! What caused what, the ways that led there, and what a faster part would be worth: arithmetic only,
//! no I/O.
//!
//! - [`Matcher`] makes edges: an out of one frame equals an in of another one, which came later. It
//!   takes the [`Entry`]s of one key after the other, in their [order](Entry::order).
//! - A [`Graph`] has frames and what leads from one to the next. It finds [`Paths`], where their
//!   time goes, and what would join where [no way](PointGap) leads.
//! - [`retime`] times a run again in which some parts are faster; [`experiment`] evaluates a run in
//!   which some parts really were slower.
#![forbid(unsafe_code)]

mod beginnings;
mod bridges;
mod entry;
pub mod experiment;
mod graph;
mod key_limits;
mod key_matcher;
mod matcher;
mod matches;
mod metrics;
mod nearest;
mod outs;
mod paths;
mod queue;
pub mod retime;
mod rules;
mod stages;
mod steps;

pub use beginnings::TooMany;
pub use bridges::{Bridge, PointGap, Shore, Types};
pub use entry::{Certainty, Entry, Side};
pub use graph::{EdgeKind, Graph, GraphLink, Malformed, Vertex};
pub use key_limits::{KeyLimits, KeyRefusal};
pub use matcher::Matcher;
pub use matches::{Edge, MatchCounts, Matches, Unmatched, UnmatchedReason};
pub use metrics::{InFlight, Latency, Overhead, in_flight};
pub use paths::{Mode, Path, Paths};
pub use rules::{Conflict, Policy, Rule, Rules};
pub use stages::{Stage, Times};
pub use steps::{RouteStep, StepCause, StepPlace};
