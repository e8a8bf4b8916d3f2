//! What a language answers.

use ppt_frame_dsl::Declared;

use crate::model::Model;
use crate::output::Output;

/// A language that a buffer's writers are generated in.
pub(crate) trait Emitter {
    /// The generated files; what the model says, and nothing else, is in them.
    fn emit(&self, model: &Model<'_>) -> Vec<Output>;

    /// Whether the output needs for itself the name of what is declared. Names that no language can
    /// have are refused before.
    fn takes(&self, _model: &Model<'_>, _declared: Declared, _name: &str) -> bool {
        false
    }
}
