//! C11, which is also C++17: a header that checks the gate and stores the fields, a source file with the rest.

pub(crate) mod comment;
pub(crate) mod commit;
pub(crate) mod gate;
pub(crate) mod header;
mod macro_form;
pub(crate) mod metrics;
pub(crate) mod source;
pub(crate) mod stores;
pub(crate) mod structure;
pub(crate) mod types;
pub(crate) mod unwritten;

use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Writes `STEM.h` and `STEM.c`.
pub(crate) struct C;

impl Emitter for C {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let header = GeneratedFile { name: format!("{}.h", model.stem), text: header::emit(model) };
        let source = source::emit(model, &header.name, true);
        vec![header, GeneratedFile { name: format!("{}.c", model.stem), text: source }]
    }
}
