//! A saved side of a comparison, which `--save` writes and `--baseline` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measured::{CompareError, MeasuredField};

/// The version of the format.
const VERSION: u32 = 1;

/// The fields of one side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    /// The entries by field and group.
    pub entries: Vec<Entry>,
}

/// A field in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The full name of the field: `dve.job.handle`.
    pub field: String,
    /// The columns of the group, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, String>,
    /// The measured statistics.
    pub measured: MeasuredField,
}

impl Baseline {
    /// A baseline of these entries.
    pub fn new(entries: Vec<Entry>) -> Baseline {
        Baseline { version: VERSION, entries }
    }

    /// The entry of this field and group.
    pub fn find(&self, field: &str, by: &BTreeMap<String, String>) -> Option<&MeasuredField> {
        let entry = self.entries.iter().find(|entry| entry.field == field && entry.by == *by);
        entry.map(|entry| &entry.measured)
    }

    /// The baseline as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Parses JSON of any origin.
    ///
    /// # Errors
    /// The text is not a baseline, or has impossible values.
    pub fn from_json(text: &str) -> Result<Baseline, CompareError> {
        let damaged = |reason: String| CompareError::Damaged { reason };
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
