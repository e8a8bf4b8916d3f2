//! The ways to write a frame: a plain one and a point are written, a span is begun and ended, a chain takes
//! steps.

use ppt_frame_dsl::names::enumerator;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::{self, Enum, FieldType, Schema};

/// One way.
pub(crate) struct WriteForm<'a> {
    /// `write`, `begin`, `end` or `step`: part of the names of functions and macros.
    pub verb: &'static str,
    /// What ppt sets in the frame, with its stamp, after the program has set the rest: the program
    /// may overwrite a whole frame. The stamp is taken before.
    pub mark: Option<FormMark<'a>>,
    /// The half of a span that it writes, if halves have different fields.
    pub half: Option<SpanHalf>,
}

/// The value by which readers distinguish how a frame was written.
pub(crate) struct FormMark<'a> {
    /// Name of the field.
    pub field: &'a str,
    /// The same in a frame's struct.
    pub member: &'a str,
    pub of: &'a Enum,
    pub value: MarkValue<'a>,
}

/// Who says which value it is.
pub(crate) enum MarkValue<'a> {
    /// The form: the value has this name, and this one in C.
    Named(&'a str, String),
    /// The program, each time it writes a frame. In C the values' names begin so.
    Argument(String),
}

/// What a field is called in a frame's struct: in C++, no member has the name of a function.
pub(super) fn member_name<'a>(frame: &schema::Frame, field: &'a schema::Field) -> &'a str {
    if field.is_mark() && frame.verbs().contains(&&*field.name) { "ppt_step" } else { &field.name }
}

/// The forms of a frame.
pub(super) fn forms<'a>(schema: &'a Schema, frame: &'a schema::Frame) -> Vec<WriteForm<'a>> {
    let field = frame.fields.iter().find(|field| field.is_mark());
    let of = field.and_then(|field| match &field.ty {
        FieldType::Enum { name } => Some((field, schema.enum_named(name)?)),
        _ => None,
    });
    let mark = |verb: &str| {
        let (field, of) = of?;
        let named = of.values.iter().map(|value| value.0.as_str()).find(|value| *value == verb);
        let in_c = |value| enumerator(&schema.buffer, &frame.name, value);
        let value = match named {
            Some(value) if frame.verbs().len() > 1 => MarkValue::Named(value, in_c(value)),
            _ => MarkValue::Argument(in_c("")),
        };
        Some(FormMark { field: &field.name, member: member_name(frame, field), of, value })
    };
    let has_halves = frame.fields.iter().any(|field| frame.only_half(field).is_some());
    let half = |verb: &str| SpanHalf::from_word(verb).filter(|_| has_halves);
    let form = |verb: &&'static str| WriteForm { verb, mark: mark(verb), half: half(verb) };
    frame.verbs().iter().map(form).collect()
}
