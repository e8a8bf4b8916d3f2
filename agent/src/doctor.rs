//! What stands in the way of attaching, looked for one by one instead of all at once by a failed
//! attach. The answers come from the same places: `denied`, the refusals of a session, and
//! a hold of the process.

mod machine;
mod process;
mod trials;

use std::fmt;

use crate::denied::Rule;
use crate::error::AgentError;

pub use machine::machine;
pub use process::process;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing stands in the way.
    Good,
    /// Something is worth knowing; attaching works.
    Note,
    /// It stands in the way.
    Problem,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Good => "ok",
            Verdict::Note => "note",
            Verdict::Problem => "problem",
        })
    }
}

/// One looked-at thing.
#[derive(Debug)]
pub struct Check {
    /// What was looked at: a word or two.
    pub name: String,
    /// What that means for attaching.
    pub verdict: Verdict,
    /// What was found, in one line.
    pub found: String,
    /// What helps.
    pub remedy: Option<Remedy>,
    /// The short name of the failure that it leads, or would lead, to: see [`AgentError::code`].
    pub code: Option<&'static str>,
}

/// What helps. What the command line can do is named, for the command line to word it.
#[derive(Debug)]
pub enum Remedy {
    /// This, in one line.
    Words(String),
    /// What helps against this error of an attach.
    Failure(Box<AgentError>),
    /// What helps against this rule.
    Rule(Rule),
    /// A container that may do more.
    Container,
    /// To end the session of the process that has the buffer, or to take that over.
    TakeOver {
        /// The target.
        pid: i32,
    },
    /// Less memory for rings.
    SmallerRings,
    /// Larger segments, or less memory for rings.
    LargerSegments,
    /// A lower bound of memory.
    LowerBound,
}

impl From<&str> for Remedy {
    fn from(words: &str) -> Self {
        Self::Words(words.into())
    }
}

impl Check {
    fn new(verdict: Verdict, name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, found: found.into(), remedy: None, code: None }
    }

    fn good(name: &str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Good, name, found)
    }

    fn note(name: &str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Note, name, found)
    }

    fn problem(name: &str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Problem, name, found)
    }

    fn remedy(self, remedy: impl Into<Remedy>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn code(self, code: impl Into<&'static str>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// What an attach says.
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
            assert!(check.code.is_none() || check.verdict != Verdict::Good, "{check:?}");
        }
    }
}
