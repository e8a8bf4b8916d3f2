//! What hosts do in the phases of a cell.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A phase of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// The name of the phase.
    pub name: String,
    /// The time limit of the phase.
    pub timeout: Duration,
    /// The actions of hosts, by their number in the plan.
    pub actions: Vec<(usize, Action)>,
}

/// The actions of one host in a phase, in this order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Action {
    /// Programs of earlier phases are stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The clock is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockCondition>,
    /// A program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<ShellCommand>,
    /// Files are fetched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub collect: Vec<String>,
}

/// The programs that are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Everything.
    All,
    /// The programs that these phases started.
    Phases(Vec<String>),
}

/// The required precision of a clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCondition {
    /// The largest allowed uncertainty.
    pub until: Duration,
    /// The time after which to give up.
    pub give_up: Duration,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommand {
    /// At least one.
    pub words: Vec<String>,
    /// Variables in addition to those that every program gets.
    pub env: Vec<(String, String)>,
    /// Whether the phase waits for the program to end instead of for `ready`.
    pub ends: bool,
    /// The program is ready when all of these hold.
    pub ready: Readiness,
    /// Whether its frames are captured.
    pub capture: bool,
}

/// A condition for a program to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Readiness {
    /// The program has written this text.
    pub output: Option<String>,
    /// A socket listens on this port.
    pub tcp: Option<u16>,
    /// A socket is bound to this port.
    pub udp: Option<u16>,
    /// A file exists at this path.
    pub file: Option<PathBuf>,
}
