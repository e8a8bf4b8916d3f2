//! The passing of a frame's fields from Java to C, in one call.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::role::SpanHalf;

use super::spelling::number_type;
use crate::model::{FieldModel, FrameModel};

/// The largest number of words of texts, bytes and arrays that are passed as arguments.
const MAX_WORDS: u32 = 16;
/// The largest number of all arguments, with `long` and `double` counted twice, as by the JVM.
const MAX_SLOTS: u32 = 60;
/// The largest number of arguments of a method: the JVM allows 255.
const MAX_OF_METHOD: u32 = 250;

/// How a frame is passed, or the half of a span with fields of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// Each number is an argument, as is each word of a text, of bytes or of an array.
    Arguments,
    /// All fields are words of one array, because there are too many.
    Words,
}

/// How the fields of a frame or half are passed.
pub(super) fn passing(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> Passing {
    let words: u32 = frame.given_in(half).filter_map(packed).sum();
    let slots: u32 =
        frame.given_in(half).map(|field| packed(field).map_or(2, |packed| packed * 2)).sum();
    if words <= MAX_WORDS && slots <= MAX_SLOTS { Passing::Arguments } else { Passing::Words }
}

/// Whether a method can have an argument for each field.
pub(super) fn is_method(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> bool {
    let slots = |field: &FieldModel<'_>| match packed(field) {
        None if !matches!(field.stored, Stored::Enum(_)) => match number_type(field.stored) {
            "long" | "double" => 2,
            _ => 1,
        },
        _ => 1,
    };
    frame.given_in(half).map(slots).sum::<u32>() <= MAX_OF_METHOD
}

/// Words of a field that is not a single number.
pub(super) fn packed(field: &FieldModel<'_>) -> Option<u32> {
    match field.stored {
        Stored::Text { len } | Stored::Bytes { len } => Some(len.div_ceil(8)),
        stored => Some((field.array? * wire_size(stored)).div_ceil(8)),
    }
}

/// The size of a number when it is passed: times are nanoseconds.
pub(super) fn wire_size(stored: Stored<'_>) -> u32 {
    match stored {
        Stored::Timeval | Stored::Timespec => 8,
        other => other.size(),
    }
}

/// The number of words of all fields, if they are passed as words.
pub(super) fn words_of_all(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> u32 {
    frame.given_in(half).map(|field| packed(field).unwrap_or(1)).sum()
}
