//! Java statements and expressions that the classes of frames share.

use ppt_frame_dsl::Stored;

use super::passing::wire_size;
use super::spelling::{place, range};
use crate::model::{FieldModel, FrameModel, WriteForm};
use crate::text::GeneratedText;

/// The method of a holder that writes its fields.
pub(super) fn writer(form: &WriteForm<'_>) -> String {
    format!("ppt_{}", form.verb)
}

/// The method that passes a frame to C.
pub(super) fn passer(form: &WriteForm<'_>) -> String {
    format!("ppt_pass_{}", form.verb)
}

/// A value of the type [`kept_type`].
pub(super) fn as_kept(field: &FieldModel<'_>, value: &str) -> String {
    match field.stored {
        Stored::Enum(_) if field.array.is_some() => format!("PptRuntime.numbers({value})"),
        Stored::Enum(_) => format!("{value} == null ? 0 : {value}.number()"),
        _ => value.to_owned(),
    }
}

/// The size of elements, if a word of an array depends on it.
pub(super) fn size_argument(field: &FieldModel<'_>) -> String {
    match field.stored {
        Stored::Int(_) | Stored::Enum(_) | Stored::Timeval | Stored::Timespec => {
            format!("{}, ", wire_size(field.stored))
        }
        _ => String::new(),
    }
}

/// Statements that refuse a value that is out of range.
pub(super) fn checks(
    frame: &FrameModel<'_>,
    field: &FieldModel<'_>,
    value: &str,
    out: &mut GeneratedText,
) {
    let place = place(frame, field);
    checks_length(frame, field, value, out);
    if let Some((min, max)) = range(field.stored) {
        let check = if field.array.is_some() { "fit" } else { "fits" };
        out.line(&format!("PptRuntime.{check}({value}, {min}, {max}, {place});"));
    }
}

/// The statement that refuses an array of another length.
pub(super) fn checks_length(
    frame: &FrameModel<'_>,
    field: &FieldModel<'_>,
    value: &str,
    out: &mut GeneratedText,
) {
    if let Some(count) = field.array {
        let place = place(frame, field);
        out.line(&format!("if ({value} != null)"));
        out.line(&format!("    PptRuntime.has({value}.length, {count}, {place});"));
    }
}

/// The head of a method, with one argument a line if there are many.
pub(super) fn signature(head: &str, arguments: &[String], out: &mut GeneratedText) {
    let mut lines = listed(&format!("{head}("), arguments, ") {");
    let last = lines.pop().unwrap_or_default();
    out.lines(lines.iter().map(String::as_str));
    out.open(&last);
}

/// A call of a method.
pub(super) fn call(function: &str, values: &[String], out: &mut GeneratedText) {
    let lines = listed(&format!("{function}("), values, ");");
    out.lines(lines.iter().map(String::as_str));
}

const WIDTH: usize = 90;

/// Items on one line, or on a line each if there are many.
fn listed(head: &str, items: &[String], tail: &str) -> Vec<String> {
    let line = format!("{head}{}{tail}", items.join(", "));
    let Some((last, most)) = items.split_last().filter(|_| line.len() > WIDTH) else {
        return vec![line];
    };
    let most = most.iter().map(|item| format!("        {item},"));
    let last = format!("        {last}{tail}");
    std::iter::once(head.to_owned()).chain(most).chain([last]).collect()
}
