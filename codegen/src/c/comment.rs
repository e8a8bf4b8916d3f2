//! Converts the documentation in a frame file into C comments, and its integers into C literals.

use ppt_frame_dsl::Stored;
use ppt_text::masked;

use crate::model::{BufferModel, FieldModel};
use crate::text::GeneratedText;

/// The first lines of a generated file.
pub(crate) fn banner(model: &BufferModel<'_>, subject: &str) -> String {
    let [first, second] = model.banner(subject).map(|line| comment(&line));
    format!("/* {first}\n * {second}\n */")
}

/// Text for a C comment: it cannot end the comment, seem to begin another, contain a trigraph, or reorder the
/// display of lines, of which compilers warn.
pub(crate) fn comment(text: &str) -> String {
    let text = masked(&text.replace("\r\n", "\n"), |char| matches!(char, '\t' | '\n'));
    text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
}

/// A doc comment of the frame file.
pub(crate) fn doc(text: &str, out: &mut GeneratedText) {
    let text = comment(text);
    let mut lines = text.lines().map(str::trim_end).peekable();
    while let Some(line) = lines.next() {
        let end = if lines.peek().is_none() { " */" } else { "" };
        out.line(&format!("/* {}{end}", line.trim_start()));
        while let Some(line) = lines.next() {
            let end = if lines.peek().is_none() { " */" } else { "" };
            out.line(&format!(" * {}{end}", line.trim_start()));
        }
    }
}

/// The comment of a struct member.
pub(crate) fn remark(field: &FieldModel<'_>) -> String {
    let mut parts = Vec::new();
    if field.own {
        parts.push("set by ppt".into());
    }
    if let Stored::Enum(declared) = field.stored {
        parts.push(format!("enum {}", declared.name));
    }
    // The clock of a struct timeval is in its name.
    if let Some(clock) = field.clock().filter(|_| field.stored != Stored::Timeval) {
        parts.push(format!("{} clock", clock.word()));
    }
    if field.is_ticks() {
        parts.push("ticks".into());
    }
    if !field.unit.is_empty() {
        parts.push(format!("in {}", field.unit));
    }
    if let Some(line) = field.doc.lines().next() {
        parts.push(line.trim().into());
    }
    comment(&parts.join("; "))
}

/// An integer that a C compiler reads without a warning.
pub(crate) fn literal(value: i128) -> String {
    if value == i128::from(i64::MIN) {
        "(-INT64_C(9223372036854775807) - 1)".into()
    } else if value == i128::from(i32::MIN) {
        "(-2147483647 - 1)".into()
    } else if i32::try_from(value).is_ok() {
        format!("{value}")
    } else if value > i128::from(i64::MAX) {
        format!("UINT64_C({value})")
    } else {
        format!("INT64_C({value})")
    }
}
