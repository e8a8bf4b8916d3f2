//! Python: an extension module in C, on top of the C output, and a stub for type checkers.

mod module;
mod stub;

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::{FieldType, Frame};

use crate::c::{self, Buffer};
use crate::stamps::stamps;
use crate::{Declared, Output};

/// Words that cannot be names in Python, but for those that the frame language bars itself.
const KEYWORDS: [&str; 25] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "class", "def", "del",
    "elif", "except", "finally", "from", "global", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise",
];
const MORE_KEYWORDS: [&str; 3] = ["try", "with", "yield"];
/// Names that the module uses itself, beside the clocks.
const OF_MODULE: [&str; 3] = ["on", "prepare", "Scope"];
/// Types that the stub names.
const OF_STUB: [&str; 8] =
    ["Buffer", "IntEnum", "Sequence", "SupportsFloat", "SupportsIndex", "final", "object", "str"];

/// Writes `STEM.h`, `STEM.c`, `STEM_python.c` and `BUFFER.pyi`.
pub(crate) fn emit(schema: &Schema, stem: &str, origin: &str) -> Vec<Output> {
    let buffer = Buffer::new(schema, stem, origin);
    let mut outputs = c::emit(schema, stem, origin);
    outputs.push(Output { name: format!("{stem}_python.c"), text: module::emit(&buffer) });
    outputs.push(Output { name: format!("{}.pyi", schema.buffer), text: stub::emit(&buffer) });
    outputs
}

/// Names that the output needs for itself.
pub(crate) fn taken(schema: &Schema) -> Vec<Declared> {
    let keyword = |name: &str| KEYWORDS.contains(&name) || MORE_KEYWORDS.contains(&name);
    let clocks: Vec<String> = stamps(schema).into_iter().map(|stamp| stamp.name).collect();
    let scopes: Vec<String> = schema.frames.iter().map(scope_name).collect();
    let of_module = |name: &str| {
        let made = clocks.iter().chain(&scopes).any(|it| it == name);
        keyword(name) || OF_MODULE.contains(&name) || OF_STUB.contains(&name) || made
    };
    // An IntEnum keeps names between underscores, and `mro`, for itself.
    let of_enum =
        |name: &str| keyword(name) || name == "mro" || name.starts_with('_') && name.ends_with('_');
    let mut taken = Vec::new();
    if keyword(&schema.buffer) {
        taken.push(Declared::Buffer);
    }
    for (index, it) in schema.enums.iter().enumerate() {
        if of_module(&it.name) {
            taken.push(Declared::Enum(index));
        }
        let values = it.values.iter().enumerate().filter(|(_, value)| of_enum(&value.0));
        taken.extend(values.map(|(number, _)| Declared::Value(index, number)));
    }
    for (index, frame) in schema.frames.iter().enumerate() {
        if of_module(&frame.name) {
            taken.push(Declared::Frame(index));
        }
        let fields = frame.fields.iter().enumerate().filter(|(_, field)| keyword(&field.name));
        taken.extend(fields.map(|(number, _)| Declared::Field(index, number)));
    }
    taken
}

/// What makes the context manager of a frame with an interval.
fn scope_name(frame: &Frame) -> String {
    format!("{}_scope", frame.name)
}

/// What a field that is not given has, in Python.
fn zero(ty: &FieldType, array: bool) -> &'static str {
    match ty {
        _ if array => "()",
        FieldType::Char { .. } => "\"\"",
        FieldType::Bytes { .. } => "b\"\"",
        FieldType::F32 | FieldType::F64 => "0.0",
        FieldType::Bool => "False",
        _ => "0",
    }
}
