//! The interface of the emitters, one for each language.

use ppt_frame_dsl::Declared;

use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Generates the writers of a buffer in one language.
pub(crate) trait Emitter {
    /// Returns the generated files. They depend on the model only.
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile>;

    /// Whether the generated code itself uses the name of a declaration. The checker has already
    /// refused keywords of the language.
    fn takes(&self, _model: &BufferModel<'_>, _declared: Declared, _name: &str) -> bool {
        false
    }

    /// Why the language cannot hold the buffer, and what to do; None if it can.
    fn refuses(&self, _model: &BufferModel<'_>) -> Option<String> {
        None
    }
}
