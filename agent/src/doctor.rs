//! Checks for everything that prevents attaching. A failed attach reports only the first obstacle;
//! these checks report all. Both use the same code: `denied`, the refusals of a session, and a hold
//! of the process.

mod machine;
mod process;
mod trials;

use std::fmt;

use crate::denied::Rule;
use crate::error::AgentError;

pub use machine::machine;
pub use process::process;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckVerdict {
    /// Nothing prevents attaching.
    Good,
    /// Attaching works; something is worth knowing.
    Note,
    /// The fact prevents attaching.
    Problem,
}

impl fmt::Display for CheckVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CheckVerdict::Good => "ok",
            CheckVerdict::Note => "note",
            CheckVerdict::Problem => "problem",
        })
    }
}

/// One check.
#[derive(Debug)]
pub struct Check {
    /// The subject of the check, in a word or two.
    pub name: String,
    /// The meaning of the result for attaching.
    pub verdict: CheckVerdict,
    /// The finding, in one line.
    pub found: String,
    /// The remedy.
    pub remedy: Option<Remedy>,
    /// The code of the failure that it causes, or would cause: see [`AgentError::code`].
    pub code: Option<&'static str>,
}

/// A remedy. Remedies by options of the command line are named only; the command line words them.
#[derive(Debug)]
pub enum Remedy {
    /// This text, in one line.
    Words(String),
    /// The remedy of this error of an attach.
    Failure(Box<AgentError>),
    /// The remedy of this rule.
    Rule(Rule),
    /// A container with more capabilities.
    Container,
    /// To end the session of the process that holds the buffer, or to take over the buffer.
    TakeOver {
        /// The target.
        pid: i32,
    },
    /// Less memory for rings.
    SmallerRings,
    /// Larger segments, or less memory for rings.
    LargerSegments,
    /// A lower memory limit.
    LowerBound,
}

impl From<&str> for Remedy {
    fn from(words: &str) -> Self {
        Self::Words(words.into())
    }
}

impl Check {
    fn new(verdict: CheckVerdict, name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, found: found.into(), remedy: None, code: None }
    }

    fn good(name: &str, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Good, name, found)
    }

    fn note(name: &str, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Note, name, found)
    }

    fn problem(name: &str, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Problem, name, found)
    }

    fn remedy(self, remedy: impl Into<Remedy>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn code(self, code: impl Into<&'static str>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// A check that fails with the error of an attach.
    fn failure(name: &str, error: AgentError) -> Self {
        let found = error.to_string();
        let found = found.lines().next().unwrap_or_default();
        Self::problem(name, found).code(error.code()).remedy(Remedy::Failure(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    #[test]
    fn codes_are_those_of_failures() {
        let codes: Vec<_> = AgentError::codes().collect();
        let found =
            machine(&System::default()).into_iter().chain(process(&System::default(), 1 << 30));
        for check in found {
            assert!(check.code.is_none_or(|code| codes.contains(&code)), "{check:?}");
            assert!(check.code.is_none() || check.verdict != CheckVerdict::Good, "{check:?}");
        }
    }
}
