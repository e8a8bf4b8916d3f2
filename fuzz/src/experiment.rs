//! Files of experiments, which people write, and manifests, which any folder may have.

use std::path::Path;

use ppt_hosts::lab::{LabPlan, Manifest};

/// A file is refused, and the message shows the place; or it is an experiment, each cell of which says
/// what it does.
pub(crate) fn experiment(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match LabPlan::parse(&text, Path::new("/nowhere")) {
        Err(error) => assert!(!error.drawn("exp.toml", &text).is_empty()),
        Ok(plan) => {
            for cell in plan.cells.iter().take(100) {
                plan.resolve(cell);
            }
        }
    }
    let _ = serde_json::from_slice::<Manifest>(input);
}
