//! The stores of a frame, in C and C++.

use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Int;

use super::types::int_type;
use crate::model::{BitSource, Bits, FrameModel, Store, WordPart};

/// The type of enum fields.
#[derive(Clone, Copy)]
pub(crate) enum Enums {
    /// The integer type, as in C.
    Integers,
    /// An `enum class`, as in C++.
    Classes,
}

/// Statements that store the words of `frame`, except word 0, from `f` into `s`.
pub(super) fn stores(frame: &FrameModel<'_>, half: Option<SpanHalf>, enums: Enums) -> Vec<String> {
    let mut statements = Vec::new();
    for store in &frame.stores_in(half) {
        match store {
            Store::Word { index, parts } => {
                let parts: Vec<_> = parts.iter().map(|part| shifted(frame, part, enums)).collect();
                let value = if parts.is_empty() { "0".into() } else { parts.join(" | ") };
                statements.push(format!("ppt1_put(s + {index}, {value});"));
            }
            Store::Array { first, words, field, from } => {
                let name = frame.fields[*field].name;
                statements.push(format!("for (unsigned i = 0; i < {words}; i++)"));
                statements.push(format!(
                    "    ppt1_put(s + {first} + i, ppt1_bytes(f->{name}, {from} + 8 * i, 8));"
                ));
            }
        }
    }
    statements
}

fn shifted(frame: &FrameModel<'_>, part: &WordPart, enums: Enums) -> String {
    let bits = match part.value {
        BitSource::FrameId(id) => id.to_string(),
        BitSource::Bytes { field, at, count } => {
            format!("ppt1_bytes(f->{}, {at}, {count})", frame.fields[field].name)
        }
        BitSource::Number { field, element, bits } => {
            let index = element.map_or(String::new(), |element| format!("[{element}]"));
            number(bits, &format!("f->{}{index}", frame.fields[field].name), enums)
        }
    };
    if part.shift == 0 { bits } else { format!("{bits} << {}", part.shift) }
}

fn number(bits: Bits, value: &str, enums: Enums) -> String {
    match (bits, enums) {
        (Bits::Int(int), _) | (Bits::Enum(int), Enums::Integers) => integer(int, value),
        (Bits::Enum(int), Enums::Classes) => {
            integer(int, &format!("static_cast<{}>({value})", int_type(int)))
        }
        (Bits::Bool, _) => integer(Int::U8, value),
        (Bits::F32, _) => format!("ppt1_f32({value})"),
        (Bits::F64, _) => format!("ppt1_f64({value})"),
        (Bits::Seconds, _) => format!("ppt1_i64({value}.tv_sec)"),
        (Bits::Microseconds, _) => format!("ppt1_i64({value}.tv_usec)"),
        (Bits::Nanoseconds, _) => format!("ppt1_i64({value}.tv_nsec)"),
    }
}

/// An integer as a word, without an unnecessary cast, of which C++ compilers can warn.
fn integer(ty: Int, value: &str) -> String {
    match ty {
        Int::U64 => value.into(),
        _ => format!("ppt1_{}({value})", ty.word()),
    }
}
