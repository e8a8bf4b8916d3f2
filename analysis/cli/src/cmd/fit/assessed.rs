//! A fit with all its assessments.

use ppt_models::{Fit, Judgement, Residuals, Robust};

/// A fit, its robust alternative, its residuals and the judgement on it.
pub(in crate::cmd) struct AssessedFit {
    pub(in crate::cmd) name: Option<String>,
    pub(in crate::cmd) unit: String,
    pub(in crate::cmd) fit: Fit,
    pub(in crate::cmd) robust: Option<Robust>,
    pub(in crate::cmd) residuals: Residuals,
    pub(in crate::cmd) judgement: Judgement,
}

impl AssessedFit {
    pub(in crate::cmd) fn new(name: Option<String>, unit: String, fit: Fit) -> AssessedFit {
        let (robust, residuals) = (Robust::from_fit(&fit), Residuals::from_fit(&fit));
        let judgement = Judgement::from_fit(&fit);
        AssessedFit { name, unit, fit, robust, residuals, judgement }
    }
}
