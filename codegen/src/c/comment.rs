//! Turns the documentation in a frame file into C comments, and its integers into C literals.

use ppt_frame_dsl::Stored;

use crate::model::{Field, Model};
use crate::text::Text;

/// First lines of a generated file.
pub(crate) fn banner(model: &Model<'_>, what: &str) -> String {
    let [first, second] = model.banner(what);
    format!("/* {first}\n * {second}\n */")
}

/// Text for a C comment: it cannot end it, seem to begin another, be a trigraph, or show the lines
/// around it as something else, which compilers warn of.
pub(crate) fn comment(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(hidden, "?");
    text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
}

/// Characters that a terminal or an editor obeys: controls but for tabs and line ends, marks and
/// overrides of direction.
fn hidden(c: char) -> bool {
    let direction = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    direction || c.is_control() && !matches!(c, '\t' | '\n')
}

/// A doc comment of the frame file.
pub(crate) fn doc(text: &str, out: &mut Text) {
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
pub(crate) fn remark(field: &Field<'_>) -> String {
    let mut parts = Vec::new();
    if field.own {
        parts.push("set by ppt".into());
    }
    if let Stored::Enum(it) = field.stored {
        parts.push(format!("enum {}", it.name));
    }
    // The name of struct timeval says which clock it counts.
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
