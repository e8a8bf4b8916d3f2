//! Causes and effects, the paths between them, and the worth of a faster part: arithmetic only, no I/O.
//!
//! - [`Matcher`] makes edges: an out of one frame equals an in of a later one. It takes the [`Entry`]s of
//!   one key after the other, in their [order](Entry::order).
//! - A [`Graph`] has frames and edges. It finds [`Paths`], the stages where their time goes, and the edges
//!   that would join the sides of a [`Disconnection`].
//! - [`retime`] predicts the times of a run with faster parts; [`experiment`] evaluates a run in which parts
//!   really were slower.
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
mod message_metrics;
mod nearest;
mod outs;
mod paths;
pub mod pauses;
pub mod retime;
mod rule_queue;
mod rules;
mod stages;
mod steps;
pub mod turns;
pub mod virtual_clock;

pub use beginnings::TooManyPaths;
pub use bridges::{Bridge, DisconnectedPoint, Disconnection, PointTypes};
pub use entry::{Certainty, Entry, Side};
pub use graph::{EdgeKind, Graph, GraphLink, Malformed, Vertex};
pub use key_limits::{KeyLimits, KeyRefusal};
pub use matcher::Matcher;
pub use matches::{Edge, MatchCounts, Matches, Unmatched, UnmatchedReason};
pub use message_metrics::{InFlight, Latency, Overhead, in_flight};
pub use paths::{Mode, Path, Paths};
pub use rules::{Conflict, Policy, Rule, Rules};
pub use stages::{PathTimes, Stage};
pub use steps::{RouteStep, StepCause, StepPlace};
