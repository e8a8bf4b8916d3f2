//! The ways to write a frame: a plain one is written, a span is begun and ended.

use ppt_frame_dsl::names::enumerator;
use ppt_frame_dsl::schema::{self, Enum, FieldType, Schema};

/// One way.
pub(crate) struct Form<'a> {
    /// `write`, `begin` or `end`: part of the names of functions and macros.
    pub verb: &'static str,
    /// What ppt sets in the frame before the program sets the rest.
    pub mark: Option<Mark<'a>>,
}

/// The value by which readers tell the forms of a frame apart.
pub(crate) struct Mark<'a> {
    /// Name of the field.
    pub field: &'a str,
    pub of: &'a Enum,
    /// Name of the value.
    pub value: &'a str,
    /// The same in C.
    pub enumerator: String,
}

/// The forms of a frame.
pub(super) fn forms<'a>(schema: &'a Schema, frame: &'a schema::Frame) -> Vec<Form<'a>> {
    let field = frame.fields.iter().find(|field| field.is_mark());
    let of = field.and_then(|field| match &field.ty {
        FieldType::Enum { name } => Some((field, schema.enum_named(name)?)),
        _ => None,
    });
    let mark = |verb: &str| {
        let (field, of) = of?;
        let value = of.values.iter().map(|it| it.0.as_str()).find(|value| *value == verb)?;
        let enumerator = enumerator(&schema.buffer, &frame.name, value);
        Some(Mark { field: &field.name, of, value, enumerator })
    };
    frame.verbs().iter().map(|verb| Form { verb, mark: mark(verb) }).collect()
}
