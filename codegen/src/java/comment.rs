//! Converts the documentation in a frame file into javadoc.

use ppt_text::masked;

use crate::model::{BufferModel, FieldModel};
use crate::text::GeneratedText;

/// The first lines of a generated file.
pub(super) fn banner(model: &BufferModel<'_>, subject: &str, out: &mut GeneratedText) {
    for line in model.banner(subject) {
        // The compiler may assume another encoding, and reads `\u` in comments, too.
        let is_plain = |char: char| char.is_ascii() && char != '\\';
        let line = line.chars().map(|char| if is_plain(char) { char } else { '?' });
        out.line(&format!("// {}", line.collect::<String>()));
    }
    out.line(&format!("package {};", model.package()));
    out.blank();
}

/// Text for javadoc: it cannot end the comment, nor contain a tag, markup, or escapes that the compiler
/// replaces before it recognises comments.
pub(super) fn text(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for char in masked(source, |char| matches!(char, '\t' | '\n')).chars() {
        match char {
            '&' | '<' | '>' | '@' | '\\' | '*' | '/' | '{' | '}' => {
                text.push_str(&format!("&#{};", u32::from(char)));
            }
            // Escaped, so that the encoding of the file does not matter.
            _ if !char.is_ascii() => text.push_str(&format!("&#{};", u32::from(char))),
            _ => text.push(char),
        }
    }
    text
}

/// A paragraph for javadoc.
fn paragraph(lines: &str) -> Vec<String> {
    text(lines.trim()).lines().map(|line| line.trim().to_owned()).collect()
}

/// A doc comment: a generated sentence, the frame file's text, and tags.
pub(super) fn javadoc(about: &str, description: &str, tags: &[String], out: &mut GeneratedText) {
    let description = paragraph(description);
    if description.is_empty() && tags.is_empty() {
        out.line(&format!("/** {about} */"));
        return;
    }
    out.line("/**");
    out.line(&format!(" * {about}"));
    if !description.is_empty() {
        out.line(" *");
        for (index, line) in description.iter().enumerate() {
            out.line(format!(" * {}{line}", if index == 0 { "<p>" } else { "" }).trim_end());
        }
    }
    if !tags.is_empty() {
        out.line(" *");
        for tag in tags {
            out.line(&format!(" * {tag}"));
        }
    }
    out.line(" */");
}

/// The content of a field, in a line.
pub(super) fn about_field(field: &FieldModel<'_>) -> String {
    text(&field.about(false))
}
