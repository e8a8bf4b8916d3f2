//! Converts the documentation in a frame file into comments of JavaScript and TypeScript.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::schema::{FieldType, Int};

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
    let mut parts = vec![match (field.ty, field.array) {
        (FieldType::Enum { name }, None) => format!("a {name}"),
        (_, None) => field.type_word(),
        (_, Some(count)) => format!("{}[{count}]", field.type_word()),
    }];
    if let Some(clock) = field.clock() {
        parts.push(format!("{} clock", clock.word()));
    }
    if field.is_ticks() {
        parts.push("ticks".into());
    }
    if matches!(field.stored, Stored::Int(Int::U64)) {
        parts.push("unsigned".into());
    }
    if matches!(field.stored, Stored::Text { .. }) {
        parts.push("cut between characters".into());
    }
    if !field.unit.is_empty() {
        parts.push(format!("in {}", field.unit));
    }
    if let Some(line) = field.doc.lines().find(|line| !line.trim().is_empty()) {
        parts.push(line.trim().into());
    }
    comment(&parts.join("; ")).replace('@', "(at)")
}
