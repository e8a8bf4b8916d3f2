//! Generates the files of each language from a checked frame file.

use std::collections::HashSet;
use std::path::Path;

use ppt_frame_dsl::{CompileFailure, Compiled, Declared, Language};

use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;
use crate::{c, cpp, go, java, node, python, rust};

/// Why a checked frame file cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The file declares names that the generated code uses itself. The diagnostics show them.
    #[error("{0}")]
    Names(CompileFailure),
    /// The language cannot hold a part of the buffer.
    #[error("{} cannot be generated: {why}", language.word())]
    TooLarge {
        /// The language.
        language: Language,
        /// The part, and what to do.
        why: String,
    },
    /// The frame file's name has no stem, which names the output.
    #[error("`{0}` has no name to call the generated files by")]
    Stem(String),
}

/// Generates the files of one buffer in the given languages. Without languages, it uses those of
/// the file's `emit` lines, or else C. The stem of `file_name` names the files.
///
/// # Errors
/// [`GenerateError`]: one of the languages takes a name of the frame file or has no room for the buffer, or the
/// file name has no stem.
pub fn generate(
    frames: &Compiled,
    file_name: &str,
    languages: &[Language],
) -> Result<Vec<GeneratedFile>, GenerateError> {
    let path = Path::new(file_name);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let stem = stem.ok_or_else(|| GenerateError::Stem(file_name.into()))?;
    let origin = path.file_name().and_then(|name| name.to_str()).unwrap_or(stem);
    let languages = match (languages, frames.emit.as_slice()) {
        ([], []) => &[Language::C],
        ([], of_file) => of_file,
        (asked, _) => asked,
    };
    let model =
        BufferModel::new(&frames.schema, stem, origin).in_package(frames.package.as_deref());
    let mut outputs = Vec::new();
    for &language in languages {
        frames.names_are_free_in(language).map_err(GenerateError::Names)?;
        let emitter = emitter(language);
        let taken =
            model.declared().filter(|&(declared, name)| emitter.takes(&model, declared, name));
        let taken: Vec<Declared> = taken.map(|entry| entry.0).collect();
        if !taken.is_empty() {
            return Err(GenerateError::Names(frames.taken(&taken, language)));
        }
        if let Some(why) = emitter.refuses(&model) {
            return Err(GenerateError::TooLarge { language, why });
        }
        outputs.extend(emitter.emit(&model));
    }
    // Python's module, Java's library, Node's addon and Go's package are made of C's files, and more.
    let mut names = HashSet::new();
    outputs.retain(|output| names.insert(output.name.clone()));
    Ok(outputs)
}

/// The emitter of each language.
fn emitter(language: Language) -> &'static dyn Emitter {
    match language {
        Language::C => &c::C,
        Language::Cpp => &cpp::Cpp,
        Language::Rust => &rust::Rust,
        Language::Python => &python::Python,
        Language::Java => &java::Java,
        Language::Node => &node::Node,
        Language::Go => &go::Go,
    }
}
