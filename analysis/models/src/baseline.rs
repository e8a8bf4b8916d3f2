//! A side of a comparison that is kept for later: what `--save` writes and `--baseline` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measured::{CompareError, MeasuredField};

/// The number of the form; another one is not read.
const VERSION: u32 = 1;

/// Fields of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    /// Each field and group.
    pub entries: Vec<Entry>,
}

/// A field in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its full name: `dve.job.handle`.
    pub field: String,
    /// The columns that name the group, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, String>,
    /// What was measured.
    pub measured: MeasuredField,
}

impl Baseline {
    /// Of these.
    pub fn new(entries: Vec<Entry>) -> Baseline {
        Baseline { version: VERSION, entries }
    }

    /// The one of this field and group.
    pub fn find(&self, field: &str, by: &BTreeMap<String, String>) -> Option<&MeasuredField> {
        let entry = self.entries.iter().find(|entry| entry.field == field && entry.by == *by);
        entry.map(|entry| &entry.measured)
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// From JSON, which may come from anybody.
    ///
    /// # Errors
    /// It is no baseline, or has values that nobody can have measured.
    pub fn from_json(text: &str) -> Result<Baseline, CompareError> {
        let damaged = |what: String| CompareError::Damaged { what };
        let found: Baseline =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if found.version != VERSION {
            let what = format!("version {} is unknown, {VERSION} is known", found.version);
            return Err(damaged(what));
        }
        found.entries.iter().try_for_each(|entry| entry.measured.check())?;
        Ok(found)
    }
}
