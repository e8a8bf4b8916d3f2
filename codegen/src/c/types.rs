//! The names of types in C.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Int;

use crate::model::FrameModel;

/// The name of a frame's struct.
pub(crate) fn frame_type(frame: &FrameModel<'_>) -> String {
    format!("pptframe_{}_t", frame.name)
}

/// The name of the struct of a form: that of its half, if the halves of a span differ.
pub(crate) fn half_type(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    half.map_or_else(|| frame_type(frame), |half| format!("ppt{}_{}_t", half.word(), frame.name))
}

/// The C type of one element.
pub(crate) fn element_type(stored: Stored<'_>) -> &'static str {
    match stored {
        Stored::Int(int) => int_type(int),
        Stored::Enum(declared) => int_type(declared.repr),
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
