//! A frame as the 64-bit words that are stored into a slot.
//!
//! Words are composed from the fields, so that a compiler can keep the fields in registers; a
//! struct that is read back as words costs twice as much.

use ppt_frame_dsl::schema::{Field, FieldType, Frame, Schema};

use super::array_length;

/// Full words inside one array that are worth a loop.
const LOOP_FROM: u32 = 8;

/// Statements that store the words of `frame`, but word 0, from `f` into `s`.
pub(super) fn stores(schema: &Schema, frame: &Frame, id: Option<usize>) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); frame.size as usize / 8];
    if let Some(id) = id {
        parts[1].push(format!("{id}"));
    }
    let mut loops = Vec::new();
    for field in &frame.fields {
        match bulk(schema, field) {
            Some(words) => {
                compose(schema, field, 0, words.before, &mut parts);
                compose(schema, field, words.after, field.bytes(schema), &mut parts);
                let first = (field.offset + words.before) / 8;
                loops.push((first, words, field));
            }
            None => compose(schema, field, 0, field.bytes(schema), &mut parts),
        }
    }
    let mut statements = Vec::new();
    let mut word = 1;
    while word < parts.len() as u32 {
        if let Some((first, words, field)) = loops.iter().find(|it| it.0 == word) {
            let count = (words.after - words.before) / 8;
            statements.push(format!("for (unsigned i = 0; i < {count}; i++)"));
            statements.push(format!(
                "    ppt1_put(s + {first} + i, ppt1_bytes((const char *)f->{} + {} + 8 * i, 8));",
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
fn compose(schema: &Schema, field: &Field, from: u32, to: u32, parts: &mut [Vec<String>]) {
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
            let start = if at == 0 { String::new() } else { format!(" + {at}") };
            put(offset, format!("ppt1_bytes(f->{name}{start}, {count})"));
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
                put(offset, format!("(uint64_t){value}.tv_sec"));
                put(offset + 8, format!("(uint64_t){value}.tv_usec"));
            }
            FieldType::Timespec { .. } => {
                put(offset, format!("(uint64_t){value}.tv_sec"));
                put(offset + 8, format!("(uint64_t){value}.tv_nsec"));
            }
            // By way of the unsigned type of its width: no sign may reach the neighbours.
            _ => match size {
                8 => put(offset, format!("(uint64_t){value}")),
                _ => put(offset, format!("(uint64_t)(uint{}_t){value}", size * 8)),
            },
        }
    }
}
