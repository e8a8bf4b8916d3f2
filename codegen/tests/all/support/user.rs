//! A user's program that uses everything a header offers, as C11 and as C++17.

use std::fmt::Write;

use ppt_codegen::Schema;
use ppt_frame_dsl::metric::Metric;
use ppt_frame_dsl::schema::{Field, FieldType, Frame};

use super::Generated;

/// A program that writes each frame in both forms, sets every field, takes every time stamp and
/// names every enumerator. It ends with status 0 and prints nothing.
pub fn program(generated: &Generated) -> String {
    let schema = &generated.schema;
    let buffer = &schema.buffer;
    let mut text = format!("#include \"{}.h\"\n\nint main(void) {{\n", generated.stem);
    for frame in schema.frames.iter().filter(|frame| !frame.is_hidden()) {
        macro_form(schema, frame, &mut text);
        block_form(schema, frame, &mut text);
    }
    for metric in schema.metrics() {
        let verb = metric.shape.verb();
        let name = format!("PPT_{verb}_{}", metric.name).to_uppercase();
        writeln!(text, "    {name}(7);").unwrap();
    }
    for now in clocks(generated) {
        writeln!(text, "    (void){now}();").unwrap();
    }
    writeln!(text, "    ppt_{buffer}_prepare();\n    return ppt_{buffer}_on();\n}}").unwrap();
    text
}

/// Values for each counter and histogram, with the cell to which each is added, and the cell that counts it.
pub fn adds(schema: &Schema) -> Vec<(Metric, i128, u32, Option<u32>)> {
    let mut adds = Vec::new();
    for metric in schema.metrics() {
        let first = metric.cells.start;
        for value in [0, 1, 9, 10, 13, 15, 16, 19, 20, 1023, 1024, i128::from(i32::MAX)] {
            let holds = |(lo, hi): (Option<i128>, Option<i128>)| {
                lo.is_none_or(|lo| lo <= value) && hi.is_none_or(|hi| value < hi)
            };
            let of = |cell: &u32| metric.shape.bucket(cell - first).is_some_and(holds);
            adds.push((metric.clone(), value, first, metric.cells.clone().find(of)));
        }
    }
    adds
}

fn macro_form(schema: &Schema, frame: &Frame, text: &mut String) {
    for field in frame.fields.iter().filter(|field| !field.is_own()) {
        let name = format!("WRITE_{}_{}", frame.name, field.name).to_uppercase();
        text.push_str("    {\n");
        writeln!(text, "        {}", variable(schema, field)).unwrap();
        writeln!(text, "        {name}(value);").unwrap();
        for enumerator in enumerators(schema, field) {
            writeln!(text, "        {name}({enumerator});").unwrap();
        }
        if field.ty.is_time() && field.array.is_none() {
            writeln!(text, "        {name}_TIMESTAMP();").unwrap();
        }
        text.push_str("    }\n");
    }
    for verb in frame.verbs() {
        let step =
            steps(schema, frame).map(|step| format!("{}_{step}", frame_prefix(schema, frame)));
        let step = step.unwrap_or_default();
        writeln!(text, "    ppt_{verb}_{}_frame({step});", frame.name).unwrap();
    }
}

fn block_form(schema: &Schema, frame: &Frame, text: &mut String) {
    for verb in frame.verbs() {
        block(verb, schema, frame, text);
    }
}

fn block(verb: &str, schema: &Schema, frame: &Frame, text: &mut String) {
    let name = format!("PPT_{verb}_{}", frame.name).to_uppercase();
    let step = steps(schema, frame).map_or(String::new(), |step| format!("{step}, "));
    writeln!(text, "    {name}({step}f) {{").unwrap();
    for field in given(frame, verb) {
        writeln!(text, "        {{\n            {}", variable(schema, field)).unwrap();
        let name = &field.name;
        if is_c_array(field) {
            writeln!(text, "            memcpy(f.{name}, value, sizeof f.{name});").unwrap();
        } else {
            writeln!(text, "            f.{name} = value;").unwrap();
        }
        for enumerator in enumerators(schema, field) {
            writeln!(text, "            f.{name} = {enumerator};").unwrap();
        }
        text.push_str("        }\n");
    }
    text.push_str("        if (f.ppt_seqno != 0)\n            break;\n    }\n");
}

/// The fields that a program sets in a form: the halves of a span may have different ones.
pub fn given<'f>(frame: &'f Frame, verb: &'f str) -> impl Iterator<Item = &'f Field> {
    let is_in = move |field: &&Field| {
        let only = frame.only_half(field);
        !field.is_own() && only.is_none_or(|half| half.word() == verb)
    };
    frame.fields.iter().filter(is_in)
}

/// The name of a field in a struct of C and C++, where `step` is the name of a function.
pub fn member(field: &Field) -> &str {
    if field.is_own() && field.name == "step" { "ppt_step" } else { &field.name }
}

/// The last step of a chain.
pub fn steps(schema: &Schema, frame: &Frame) -> Option<String> {
    let FieldType::Enum { name } = &frame.chain()?.step.ty else { panic!("an enum") };
    Some(schema.enum_named(name)?.values.last()?.0.to_uppercase())
}

/// The prefix of the enumerators of its steps.
pub fn frame_prefix(schema: &Schema, frame: &Frame) -> String {
    format!("{}_{}", schema.buffer, frame.name).to_uppercase()
}

/// Every enumerator that a field can hold.
fn enumerators(schema: &Schema, field: &Field) -> Vec<String> {
    let FieldType::Enum { name } = &field.ty else { return Vec::new() };
    if field.array.is_some() {
        return Vec::new();
    }
    let values = &schema.enum_named(name).unwrap().values;
    let name = |(value, _): &(String, i128)| format!("{}_{name}_{value}", schema.buffer);
    values.iter().map(|value| name(value).to_uppercase()).collect()
}

pub fn is_c_array(field: &Field) -> bool {
    field.array.is_some() || matches!(field.ty, FieldType::Char { .. } | FieldType::Bytes { .. })
}

/// `T value…;`, with a value that the field can take.
fn variable(schema: &Schema, field: &Field) -> String {
    match &field.ty {
        FieldType::Char { len } => format!("static const char value[{len}] = {{'x'}};"),
        FieldType::Bytes { len } => format!("static const uint8_t value[{len}] = {{1}};"),
        ty => {
            let c = c_type(schema, ty);
            let one = match ty {
                FieldType::Timeval | FieldType::Timespec { .. } => "{1, 2}",
                FieldType::Bool => "true",
                _ => "1",
            };
            match field.array {
                Some(count) => format!("static const {c} value[{count}] = {{{one}}};"),
                None => format!("static const {c} value = {one};"),
            }
        }
    }
}

/// The C type of one element, as the user's documentation states it.
pub fn c_type(schema: &Schema, ty: &FieldType) -> &'static str {
    match ty {
        FieldType::I8 => "int8_t",
        FieldType::I16 => "int16_t",
        FieldType::I32 => "int",
        FieldType::I64 | FieldType::Duration | FieldType::Ns { .. } => "int64_t",
        FieldType::U8 | FieldType::Bytes { .. } => "uint8_t",
        FieldType::U16 => "uint16_t",
        FieldType::U32 => "uint32_t",
        FieldType::U64 | FieldType::Addr | FieldType::Tsc => "uint64_t",
        FieldType::F32 => "float",
        FieldType::F64 => "double",
        FieldType::Bool => "bool",
        FieldType::Timeval => "struct timeval",
        FieldType::Timespec { .. } => "struct timespec",
        FieldType::Char { .. } => "char",
        FieldType::Enum { name } => match schema.enum_named(name).unwrap().repr.word() {
            "i8" => "int8_t",
            "i16" => "int16_t",
            "i32" => "int32_t",
            "i64" => "int64_t",
            "u8" => "uint8_t",
            "u16" => "uint16_t",
            "u32" => "uint32_t",
            _ => "uint64_t",
        },
    }
}

/// The names of the header's clocks.
fn clocks(generated: &Generated) -> Vec<String> {
    let prefix = format!("ppt_{}_now", generated.schema.buffer);
    let mut names: Vec<String> = generated
        .header()
        .lines()
        .filter(|line| line.starts_with("static inline "))
        .filter_map(|line| {
            Some(format!("{prefix}{}", line.split_once(&prefix)?.1.split_once('(')?.0))
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
