//! What hosts do in the phases of a cell.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A phase of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// Its name.
    pub name: String,
    /// How long it may take.
    pub timeout: Duration,
    /// What hosts do, by their number in the plan.
    pub actions: Vec<(usize, Action)>,
}

/// What one host does in a phase, in this order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Action {
    /// Programs of earlier phases are stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The clock is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// A program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// Files are fetched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub collect: Vec<String>,
}

/// What is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Everything.
    All,
    /// What these phases started.
    Phases(Vec<String>),
}

/// How well a clock must be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// The widest bound.
    pub until: Duration,
    /// How long to try.
    pub give_up: Duration,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// At least one.
    pub words: Vec<String>,
    /// Variables beside those that every program gets.
    pub env: Vec<(String, String)>,
    /// Whether the phase waits for its end, and not for `ready`.
    pub ends: bool,
    /// When it is ready: all of these.
    pub ready: Ready,
    /// Whether its frames are captured.
    pub capture: bool,
}

/// When a program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ready {
    /// It has written this.
    pub output: Option<String>,
    /// Somebody listens on this port.
    pub tcp: Option<u16>,
    /// Somebody has bound this port.
    pub udp: Option<u16>,
    /// This file exists.
    pub file: Option<PathBuf>,
}
