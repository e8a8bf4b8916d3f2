//! Converts the documentation in a frame file into comments of JavaScript and TypeScript.

use crate::c::comment::comment;
use crate::model::{BufferModel, FieldModel};
use crate::text::GeneratedText;

/// The first lines of a generated file.
pub(super) fn banner(model: &BufferModel<'_>, subject: &str, mark: &str, out: &mut GeneratedText) {
    for line in model.banner(subject) {
        out.line(&format!("{mark} {}", comment(&line)));
    }
}

/// A doc comment: a generated sentence, the frame file's text, and tags.
pub(super) fn doc(about: &str, description: &str, tags: &[String], out: &mut GeneratedText) {
    // Words of the frame file must not become tags.
    let description = comment(description.trim()).replace('@', "(at)");
    if description.is_empty() && tags.is_empty() {
        out.line(&format!("/** {about} */"));
        return;
    }
    out.line("/**");
    out.line(&format!(" * {about}"));
    if !description.is_empty() {
        out.line(" *");
        description.lines().for_each(|line| out.line(format!(" * {}", line.trim()).trim_end()));
    }
    tags.iter().for_each(|tag| out.line(&format!(" * {tag}")));
    out.line(" */");
}

/// The content of a field, in a line.
pub(super) fn about_field(field: &FieldModel<'_>) -> String {
    comment(&field.about(false)).replace('@', "(at)")
}
