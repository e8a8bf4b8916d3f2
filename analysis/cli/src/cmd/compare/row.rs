//! A compared field.

use std::collections::BTreeMap;

use ppt_models::Comparison;

/// A field that both sides have.
pub(super) struct ComparedField {
    pub(super) field: String,
    pub(super) by: BTreeMap<String, String>,
    pub(super) comparison: Comparison,
}
