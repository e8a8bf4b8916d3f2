//! What stands in the way of attaching, looked for one by one instead of all at once by a failed
//! attach. The answers come from the same places: `denied`, the refusals of a session, and
//! a hold of the process.

mod machine;
mod process;
mod trials;

use std::fmt;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at: a word or two.
    pub name: String,
    /// What that means for attaching.
    pub verdict: Verdict,
    /// What was found, in one line.
    pub found: String,
    /// What helps, in one line.
    pub remedy: Option<String>,
    /// The short name of the failure that it leads, or would lead, to: see [`AgentError::code`].
    pub code: Option<&'static str>,
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

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn code(self, code: impl Into<&'static str>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// What an attach says: what is wrong in its first line, what helps in the others.
    fn failure(name: &str, error: &AgentError) -> Self {
        Self::message(name, &error.to_string()).code(error.code())
    }

    /// The same of any message of ours.
    fn message(name: &str, message: &str) -> Self {
        let mut lines = message.lines().map(str::trim);
        let check = Self::problem(name, lines.next().unwrap_or_default());
        let rest = lines.collect::<Vec<_>>().join("; ");
        if rest.is_empty() { check } else { check.remedy(rest) }
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
