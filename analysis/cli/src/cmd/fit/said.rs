//! What is said of a fit.

use ppt_models::{Fit, Judgement, Residuals, Robust};

/// A fit, and everything that is said of it.
pub(in crate::cmd) struct Said {
    pub(in crate::cmd) name: Option<String>,
    pub(in crate::cmd) unit: String,
    pub(in crate::cmd) fit: Fit,
    pub(in crate::cmd) robust: Option<Robust>,
    pub(in crate::cmd) residuals: Residuals,
    pub(in crate::cmd) judgement: Judgement,
}

impl Said {
    pub(in crate::cmd) fn new(name: Option<String>, unit: String, fit: Fit) -> Said {
        let (robust, residuals) = (Robust::from_fit(&fit), Residuals::from_fit(&fit));
        let judgement = Judgement::from_fit(&fit);
        Said { name, unit, fit, robust, residuals, judgement }
    }
}
