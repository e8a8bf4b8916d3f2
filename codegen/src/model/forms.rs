//! The forms of writing a frame: `write` for a plain frame and a point, `begin` and `end` for a span, `step` for
//! a chain.

use ppt_frame_dsl::names::enumerator;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::{self, Enum, FieldType, Schema};

/// A form of writing a frame.
pub(crate) struct WriteForm<'a> {
    /// `write`, `begin`, `end` or `step`: part of the names of functions and macros.
    pub verb: &'static str,
    /// The mark that ppt sets in the frame, with its stamp, after the program has set the other fields, as it
    /// may overwrite the whole frame. The stamp is taken before.
    pub mark: Option<FormMark<'a>>,
    /// The half of a span that it writes, if halves have different fields.
    pub half: Option<SpanHalf>,
}

/// The value by which readers distinguish how a frame was written.
pub(crate) struct FormMark<'a> {
    /// The name of the field.
    pub field: &'a str,
    /// The name of the field in a frame's struct.
    pub member: &'a str,
    pub enum_type: &'a Enum,
    pub value: MarkValue<'a>,
}

/// The source of the value.
pub(crate) enum MarkValue<'a> {
    /// The form determines the value, which has these names in general and in C.
    Named(&'a str, String),
    /// The program chooses a value for each frame. In C, the names of values have this prefix.
    Argument(String),
}

/// The name of a field in a frame's struct: in C++, no member has the name of a function.
pub(super) fn member_name<'a>(frame: &schema::Frame, field: &'a schema::Field) -> &'a str {
    if field.is_mark() && frame.verbs().contains(&&*field.name) { "ppt_step" } else { &field.name }
}

/// The forms of a frame.
pub(super) fn forms<'a>(schema: &'a Schema, frame: &'a schema::Frame) -> Vec<WriteForm<'a>> {
    let field = frame.fields.iter().find(|field| field.is_mark());
    let marked = field.and_then(|field| match &field.ty {
        FieldType::Enum { name } => Some((field, schema.enum_named(name)?)),
        _ => None,
    });
    let mark = |verb: &str| {
        let (field, enum_type) = marked?;
        let named =
            enum_type.values.iter().map(|value| value.0.as_str()).find(|value| *value == verb);
        let in_c = |value| enumerator(&schema.buffer, &frame.name, value);
        let value = match named {
            Some(value) if frame.verbs().len() > 1 => MarkValue::Named(value, in_c(value)),
            _ => MarkValue::Argument(in_c("")),
        };
        Some(FormMark { field: &field.name, member: member_name(frame, field), enum_type, value })
    };
    let has_halves = frame.fields.iter().any(|field| frame.only_half(field).is_some());
    let half = |verb: &str| SpanHalf::from_word(verb).filter(|_| has_halves);
    let form = |verb: &&'static str| WriteForm { verb, mark: mark(verb), half: half(verb) };
    frame.verbs().iter().map(form).collect()
}
