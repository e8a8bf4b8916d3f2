//! C11, which is also C++17: a header with the hot path inline, a source file with the rest.

pub(crate) mod comment;
pub(crate) mod header;
pub(crate) mod source;
pub(crate) mod structure;
pub(crate) mod words;

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::schema::Int;

use crate::Output;
use crate::emitter::Emitter;
use crate::model::{Frame, Model};

/// Writes `STEM.h` and `STEM.c`.
pub(crate) struct C;

impl Emitter for C {
    fn emit(&self, model: &Model<'_>) -> Vec<Output> {
        let header = Output { name: format!("{}.h", model.stem), text: header::emit(model) };
        let source = source::emit(model, &header.name, true);
        vec![header, Output { name: format!("{}.c", model.stem), text: source }]
    }
}

/// First lines of a generated file.
pub(crate) fn banner(model: &Model<'_>, what: &str) -> String {
    let [first, second] = model.banner(what);
    format!("/* {first}\n * {second}\n */")
}

/// Name of a frame's struct.
pub(crate) fn frame_type(frame: &Frame<'_>) -> String {
    format!("pptframe_{}_t", frame.name)
}

/// The C type of one element.
pub(crate) fn element_type(stored: Stored<'_>) -> &'static str {
    match stored {
        Stored::Int(int) => int_type(int),
        Stored::Enum(it) => int_type(it.repr),
        Stored::F32 => "float",
        Stored::F64 => "double",
        Stored::Bool => "bool",
        Stored::Timeval => "struct timeval",
        Stored::Timespec => "struct timespec",
        Stored::Text { .. } => "char",
        Stored::Bytes { .. } => "uint8_t",
    }
}

/// The C type of an integer.
pub(crate) fn int_type(int: Int) -> &'static str {
    match int {
        Int::I8 => "int8_t",
        Int::I16 => "int16_t",
        Int::I32 => "int32_t",
        Int::I64 => "int64_t",
        Int::U8 => "uint8_t",
        Int::U16 => "uint16_t",
        Int::U32 => "uint32_t",
        Int::U64 => "uint64_t",
    }
}
