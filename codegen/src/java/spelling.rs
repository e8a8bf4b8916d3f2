//! Names and types that the classes and the library share.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Int;

use crate::model::{FieldModel, FrameModel};

/// Classes inside those of frames: a class cannot have the name of one around it.
pub(super) const NESTED: [&str; 4] = ["Frame", "Scope", "BeginFrame", "EndFrame"];

/// The class that holds the fields of a frame, or of the half of a span with fields of its own.
pub(super) fn holder_name(half: Option<SpanHalf>) -> &'static str {
    match half {
        None => "Frame",
        Some(SpanHalf::Begin) => "BeginFrame",
        Some(SpanHalf::End) => "EndFrame",
    }
}

/// `now_boottime` → `nowBoottime`.
pub(super) fn lower_camel(name: &str) -> String {
    let camel = upper_camel(name);
    camel[..1].to_ascii_lowercase() + &camel[1..]
}

/// The Java type of one element of a field.
pub(super) fn element_type(field: &FieldModel<'_>) -> String {
    match field.stored {
        Stored::Enum(declared) => upper_camel(&declared.name),
        Stored::Text { .. } => "java.lang.String".into(),
        Stored::Bytes { .. } => "byte[]".into(),
        _ => number_type(field.stored).into(),
    }
}

/// The Java type of a number.
pub(super) fn number_type(stored: Stored<'_>) -> &'static str {
    match stored {
        Stored::Int(Int::I8 | Int::U8 | Int::I16 | Int::U16 | Int::I32) => "int",
        Stored::Int(Int::U32 | Int::I64 | Int::U64) | Stored::Enum(_) => "long",
        Stored::Timeval | Stored::Timespec => "long",
        Stored::F32 => "float",
        Stored::F64 => "double",
        Stored::Bool => "boolean",
        Stored::Text { .. } | Stored::Bytes { .. } => unreachable!("no numbers"),
    }
}

/// The type of an argument of a method or a setter.
pub(super) fn argument_type(field: &FieldModel<'_>) -> String {
    element_type(field) + if field.array.is_some() { "[]" } else { "" }
}

/// The type of an argument if enums are numbers.
pub(super) fn kept_type(field: &FieldModel<'_>) -> String {
    match field.stored {
        Stored::Enum(_) if field.array.is_some() => "long[]".into(),
        Stored::Enum(_) => "long".into(),
        _ => argument_type(field),
    }
}

/// The range of an element, if Java's type is wider.
pub(super) fn range(stored: Stored<'_>) -> Option<(&'static str, &'static str)> {
    match stored {
        Stored::Int(Int::I8) => Some(("-128", "127")),
        Stored::Int(Int::U8) => Some(("0", "255")),
        Stored::Int(Int::I16) => Some(("-32768", "32767")),
        Stored::Int(Int::U16) => Some(("0", "65535")),
        Stored::Int(Int::U32) => Some(("0", "4294967295L")),
        _ => None,
    }
}

/// The range of a number that stands for a value of an enum.
pub(super) fn enum_range(repr: Int) -> Option<(&'static str, &'static str)> {
    match repr {
        Int::I32 => Some(("-2147483648", "2147483647")),
        other => range(Stored::Int(other)),
    }
}

/// The name of a field in messages: `request.who (i32)`.
pub(super) fn place(frame: &FrameModel<'_>, field: &FieldModel<'_>) -> String {
    let array = field.array.map_or(String::new(), |count| format!("[{count}]"));
    format!("\"{}.{} ({}{array})\"", frame.name, field.name, field.type_word())
}
