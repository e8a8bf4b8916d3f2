//! A frame as the 64-bit words that are stored into a slot.
//!
//! Words are composed from the fields, so that a compiler can keep the fields in registers; a
//! struct that is read back as words costs twice as much.

use ppt_frame_dsl::schema::{Field, FieldType, Frame, Int, Schema};

use super::{array_length, int_type};

/// What an enum's fields are.
#[derive(Clone, Copy)]
pub(crate) enum Enums {
    /// Of the integer type, as in C.
    Integers,
    /// Of an `enum class`, as in C++.
    Classes,
}

/// An integer as a word. Without a cast where it needs none: C++ compilers can warn of those.
fn integer(ty: Int, value: &str) -> String {
    match ty {
        Int::U64 => value.into(),
        _ => format!("ppt1_{}({value})", ty.word()),
    }
}

/// Full words inside one array that are worth a loop.
const LOOP_FROM: u32 = 8;

/// Statements that store the words of `frame`, but word 0, from `f` into `s`.
pub(super) fn stores(
    schema: &Schema,
    frame: &Frame,
    enums: Enums,
    id: Option<usize>,
) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); frame.size as usize / 8];
    if let Some(id) = id {
        parts[1].push(format!("{id}"));
    }
    let mut loops = Vec::new();
    for field in &frame.fields {
        match bulk(schema, field) {
            Some(words) => {
                compose(schema, field, enums, (0, words.before), &mut parts);
                compose(schema, field, enums, (words.after, field.bytes(schema)), &mut parts);
                let first = (field.offset + words.before) / 8;
                loops.push((first, words, field));
            }
            None => compose(schema, field, enums, (0, field.bytes(schema)), &mut parts),
        }
    }
    let mut statements = Vec::new();
    let mut word = 1;
    while word < parts.len() as u32 {
        if let Some((first, words, field)) = loops.iter().find(|it| it.0 == word) {
            let count = (words.after - words.before) / 8;
            statements.push(format!("for (unsigned i = 0; i < {count}; i++)"));
            statements.push(format!(
                "    ppt1_put(s + {first} + i, ppt1_bytes(f->{}, {} + 8 * i, 8));",
                field.name, words.before
            ));
            word += count;
            continue;
        }
        let value = match parts[word as usize].as_slice() {
            [] => "0".into(),
            parts => parts.join(" | "),
        };
        statements.push(format!("ppt1_put(s + {word}, {value});"));
        word += 1;
    }
    statements
}

/// Bytes of an array that make whole words, when they are many.
struct Bulk {
    before: u32,
    after: u32,
}

fn bulk(schema: &Schema, field: &Field) -> Option<Bulk> {
    array_length(field)?;
    if matches!(field.ty, FieldType::Timeval | FieldType::Timespec { .. }) {
        return None;
    }
    let end = field.offset + field.bytes(schema);
    let (first, last) = (field.offset.div_ceil(8), end / 8);
    (last >= first + LOOP_FROM)
        .then(|| Bulk { before: first * 8 - field.offset, after: last * 8 - field.offset })
}

/// Adds bytes `[from, to)` of a field to the words that they lie in.
fn compose(
    schema: &Schema,
    field: &Field,
    enums: Enums,
    (from, to): (u32, u32),
    parts: &mut [Vec<String>],
) {
    let mut put = |offset: u32, expression: String| {
        let shift = offset % 8 * 8;
        let expression = if shift == 0 { expression } else { format!("{expression} << {shift}") };
        parts[offset as usize / 8].push(expression);
    };
    let name = &field.name;
    if let FieldType::Char { .. } | FieldType::Bytes { .. } = field.ty {
        let mut at = from;
        while at < to {
            let offset = field.offset + at;
            let count = (8 - offset % 8).min(to - at);
            put(offset, format!("ppt1_bytes(f->{name}, {at}, {count})"));
            at += count;
        }
        return;
    }
    let size = field.ty.size(schema);
    for element in from / size..to / size {
        let index = field.array.map_or(String::new(), |_| format!("[{element}]"));
        let value = format!("f->{name}{index}");
        let offset = field.offset + element * size;
        match &field.ty {
            FieldType::F32 => put(offset, format!("ppt1_f32({value})")),
            FieldType::F64 => put(offset, format!("ppt1_f64({value})")),
            FieldType::Timeval => {
                put(offset, format!("ppt1_i64({value}.tv_sec)"));
                put(offset + 8, format!("ppt1_i64({value}.tv_usec)"));
            }
            FieldType::Timespec { .. } => {
                put(offset, format!("ppt1_i64({value}.tv_sec)"));
                put(offset + 8, format!("ppt1_i64({value}.tv_nsec)"));
            }
            FieldType::Enum { name } => {
                let repr = schema.enum_named(name).expect("a checked schema's enums exist").repr;
                let value = match enums {
                    Enums::Integers => value,
                    Enums::Classes => format!("static_cast<{}>({value})", int_type(repr)),
                };
                put(offset, integer(repr, &value));
            }
            FieldType::I8 => put(offset, integer(Int::I8, &value)),
            FieldType::I16 => put(offset, integer(Int::I16, &value)),
            FieldType::I32 => put(offset, integer(Int::I32, &value)),
            FieldType::I64 | FieldType::Duration | FieldType::Ns { .. } => {
                put(offset, integer(Int::I64, &value));
            }
            FieldType::U8 | FieldType::Bool => put(offset, integer(Int::U8, &value)),
            FieldType::U16 => put(offset, integer(Int::U16, &value)),
            FieldType::U32 => put(offset, integer(Int::U32, &value)),
            FieldType::U64 | FieldType::Tsc => put(offset, integer(Int::U64, &value)),
            FieldType::Char { .. } | FieldType::Bytes { .. } => unreachable!("stored above"),
        }
    }
}
