//! What stands in the way of attaching, looked for one by one instead of all at once by a failed
//! attach. The answers come from the same places: `denied`, the refusals of a session, and
//! a hold of the process.

mod machine;
mod process;
mod trials;

use std::fmt;

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
}

impl Check {
    fn new(verdict: Verdict, name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, found: found.into(), remedy: None }
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

    /// A message of ours: what is wrong in its first line, what helps in the others.
    fn message(name: &str, message: &str) -> Self {
        let mut lines = message.lines().map(str::trim);
        let check = Self::problem(name, lines.next().unwrap_or_default());
        let rest = lines.collect::<Vec<_>>().join("; ");
        if rest.is_empty() { check } else { check.remedy(rest) }
    }
}
