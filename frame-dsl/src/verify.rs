//! The rules of every schema. They are checked for each schema from outside.
//!
//! Readers rely on these rules without further checks: a field lies inside its frame, a name is an
//! identifier, and every enum that a field names exists.

use std::collections::HashSet;

use thiserror::Error;

use crate::names::is_identifier;
use crate::schema::{
    Enum, Field, FieldType, Frame, JSON_VERSION, MAX_ENUMS, MAX_FIELDS, MAX_FRAME_BYTES,
    MAX_FRAMES, MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_NAME_BYTES, MAX_SLOTS, MAX_VALUES, MIN_SLOTS,
    Schema,
};

/// Why a text is not a schema.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// More bytes than any schema needs.
    #[error("the schema has {bytes} bytes; at most {MAX_JSON_BYTES} are read")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
    },
    /// Too deeply nested brackets.
    #[error("the schema is nested more than {MAX_JSON_DEPTH} deep")]
    TooDeep,
    /// Not JSON, or not the JSON of a schema.
    #[error("the schema is not what ppt writes: {0}")]
    Json(#[from] serde_json::Error),
    /// A format that this version does not know.
    #[error("the schema has version {0}; this ppt reads version {JSON_VERSION}")]
    Version(u32),
    /// A name that is not an identifier.
    #[error("{0:?} is not a name (letters, digits and `_`, at most {MAX_NAME_BYTES} bytes)")]
    Name(String),
    /// Two declarations with one name.
    #[error("the {what} `{name}` is there twice")]
    Twice {
        /// `frame`, `field`, `enum` or `value`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No items, or more than the limit.
    #[error("{count} {what}s; there must be at least 1 and at most {most}")]
    Count {
        /// `frame`, `field`, `enum` or `value`.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// Not a power of two, or out of range.
    #[error("{0} slots: it must be a power of two from {MIN_SLOTS} to {MAX_SLOTS}")]
    Slots(u32),
    /// The size of a frame is not a multiple of 8, or out of range.
    #[error(
        "frame `{frame}` has {size} bytes: it must be a multiple of 8, at most {MAX_FRAME_BYTES}"
    )]
    Size {
        /// Name of the frame.
        frame: String,
        /// The size of the frame, bytes.
        size: u32,
    },
    /// The stride is not the size of the largest frame.
    #[error("the stride is {stride}, the largest frame has {largest} bytes")]
    Stride {
        /// The stride of the schema.
        stride: u32,
        /// Bytes of the largest frame.
        largest: u32,
    },
    /// Outside its frame, misaligned, or over another field or the header.
    #[error("field `{field}` of frame `{frame}` lies at {offset}, where it {fault}")]
    Offset {
        /// Name of the frame.
        frame: String,
        /// Name of the field.
        field: String,
        /// The offset of the field, bytes.
        offset: u32,
        /// The fault.
        fault: &'static str,
    },
    /// An array or text with no elements or too many.
    #[error("field `{field}` of frame `{frame}` has an impossible length")]
    Length {
        /// Name of the frame.
        frame: String,
        /// Name of the field.
        field: String,
    },
    /// An enum that does not exist.
    #[error("field `{field}` of frame `{frame}` is of the enum `{name}`, which is missing")]
    MissingEnum {
        /// Name of the frame.
        frame: String,
        /// Name of the field.
        field: String,
        /// Name of the enum.
        name: String,
    },
    /// An enum value that its integer type cannot hold.
    #[error("the value {value} of `{name}` does not fit its enum's type")]
    Value {
        /// Name of the value.
        name: String,
        /// The value.
        value: i128,
    },
    /// More than one `at`, or an `at` on a field that is not a single point in time.
    #[error("frame `{frame}`: `at` belongs to one field, a point in time")]
    At {
        /// Name of the frame.
        frame: String,
    },
}

/// Checks every rule; the first broken one is the error.
pub(crate) fn verify(schema: &Schema) -> Result<(), SchemaError> {
    if schema.v != JSON_VERSION {
        return Err(SchemaError::Version(schema.v));
    }
    name(&schema.buffer)?;
    if !is_slot_count(u64::from(schema.slots)) {
        return Err(SchemaError::Slots(schema.slots));
    }
    count("frame", schema.frames.len(), MAX_FRAMES)?;
    if schema.enums.len() > MAX_ENUMS {
        return Err(SchemaError::Count {
            what: "enum",
            count: schema.enums.len(),
            most: MAX_ENUMS,
        });
    }
    unique("enum", schema.enums.iter().map(|enumeration| enumeration.name.as_str()))?;
    unique("frame", schema.frames.iter().map(|frame| frame.name.as_str()))?;
    schema.enums.iter().try_for_each(enumeration)?;
    schema.frames.iter().try_for_each(|one| frame(schema, one))?;
    let largest = schema.frames.iter().map(|frame| frame.size).max().unwrap_or(0);
    if schema.stride != largest {
        return Err(SchemaError::Stride { stride: schema.stride, largest });
    }
    Ok(())
}

/// A power of two from 2 to 2^26.
pub(crate) fn is_slot_count(slots: u64) -> bool {
    slots.is_power_of_two() && (u64::from(MIN_SLOTS)..=u64::from(MAX_SLOTS)).contains(&slots)
}

fn name(text: &str) -> Result<(), SchemaError> {
    if is_identifier(text) {
        return Ok(());
    }
    // The text may be long and arbitrary: enough of it to find it again.
    Err(SchemaError::Name(text.chars().take(MAX_NAME_BYTES).collect()))
}

fn count(what: &'static str, count: usize, most: usize) -> Result<(), SchemaError> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(SchemaError::Count { what, count, most })
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), SchemaError> {
    let mut seen = HashSet::new();
    for text in names {
        name(text)?;
        if !seen.insert(text) {
            return Err(SchemaError::Twice { what, name: text.to_owned() });
        }
    }
    Ok(())
}

fn enumeration(it: &Enum) -> Result<(), SchemaError> {
    count("value", it.values.len(), MAX_VALUES)?;
    unique("value", it.values.iter().map(|(name, _)| name.as_str()))?;
    let (least, most) = it.repr.range();
    match it.values.iter().find(|(_, value)| !(least..=most).contains(value)) {
        Some((name, value)) => Err(SchemaError::Value { name: name.clone(), value: *value }),
        None => Ok(()),
    }
}

fn frame(schema: &Schema, frame: &Frame) -> Result<(), SchemaError> {
    name(&frame.kind)?;
    count("field", frame.fields.len(), MAX_FIELDS)?;
    unique("field", frame.fields.iter().map(|field| field.name.as_str()))?;
    if frame.size == 0 || !frame.size.is_multiple_of(8) || frame.size > MAX_FRAME_BYTES {
        return Err(SchemaError::Size { frame: frame.name.clone(), size: frame.size });
    }
    let mut runs = Vec::with_capacity(frame.fields.len());
    for field in &frame.fields {
        runs.push((field.offset, place(schema, frame, field)?, field));
    }
    runs.sort_by_key(|run| run.0);
    let mut free = schema.header_bytes();
    for (offset, bytes, field) in runs {
        if offset < free {
            return Err(misplaced(frame, field, "lies over something else"));
        }
        free = offset + bytes;
    }
    at(frame)
}

/// Bytes of the field, once they are known to lie inside the frame.
fn place(schema: &Schema, frame: &Frame, field: &Field) -> Result<u32, SchemaError> {
    if let FieldType::Enum { name } = &field.ty
        && schema.enum_named(name).is_none()
    {
        return Err(SchemaError::MissingEnum {
            frame: frame.name.clone(),
            field: field.name.clone(),
            name: name.chars().take(MAX_NAME_BYTES).collect(),
        });
    }
    let size = field.ty.size(schema);
    let bytes = u64::from(size) * u64::from(field.count());
    if bytes == 0 || bytes > u64::from(MAX_FRAME_BYTES) {
        return Err(SchemaError::Length { frame: frame.name.clone(), field: field.name.clone() });
    }
    if u64::from(field.offset) + bytes > u64::from(frame.size) {
        return Err(misplaced(frame, field, "does not lie inside the frame"));
    }
    if !field.offset.is_multiple_of(field.ty.align(schema)) {
        return Err(misplaced(frame, field, "is not aligned"));
    }
    Ok(size * field.count())
}

fn misplaced(frame: &Frame, field: &Field, fault: &'static str) -> SchemaError {
    SchemaError::Offset {
        frame: frame.name.clone(),
        field: field.name.clone(),
        offset: field.offset,
        fault,
    }
}

fn at(frame: &Frame) -> Result<(), SchemaError> {
    let mut marked = frame.fields.iter().filter(|field| field.at);
    let fits = marked.next().is_none_or(|field| field.ty.is_time() && field.array.is_none());
    if fits && marked.next().is_none() {
        return Ok(());
    }
    Err(SchemaError::At { frame: frame.name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":32,"frames":[{"name":"f","kind":"plain","size":32,"fields":[{"name":"a","type":"ns","clock":"monotonic","offset":16,"at":true},{"name":"e","type":"enum","enum":"E","offset":10},{"name":"c","type":"u16","array":3,"offset":24}]},{"name":"g","kind":"plain","size":16,"fields":[{"name":"x","type":"i32","offset":12}]}],"enums":[{"name":"E","type":"u8","values":[["A",0],["B",255]]}]}"#;

    #[track_caller]
    fn refused(from: &str, to: &str, why: &str) {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "`{from}` is not in the text");
        let error = Schema::from_json(text.as_bytes()).expect_err(to).to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn the_rules() {
        Schema::from_json(TEXT.as_bytes()).unwrap();
        refused(r#""v":1"#, r#""v":2"#, "version 2");
        refused(r#""buffer":"b""#, r#""buffer":"b/../c""#, "not a name");
        refused(r#""slots":16"#, r#""slots":17"#, "power of two");
        refused(r#""slots":16"#, r#""slots":1"#, "power of two");
        refused(r#""slots":16"#, r#""slots":134217728"#, "power of two");
        refused(r#""stride":32"#, r#""stride":40"#, "largest frame has 32");
        refused(r#""size":32"#, r#""size":33"#, "multiple of 8");
        refused(r#""size":32"#, r#""size":8192"#, "at most 4096");
        refused(r#""size":32"#, r#""size":24"#, "inside the frame");
        refused(r#""name":"g""#, r#""name":"f""#, "frame `f` is there twice");
        refused(r#""name":"e""#, r#""name":"a""#, "field `a` is there twice");
        refused(r#"["B",255]"#, r#"["A",255]"#, "value `A` is there twice");
        refused("255", "256", "does not fit");
        refused(r#""enum":"E""#, r#""enum":"F""#, "missing");
        refused(r#""offset":10"#, r#""offset":9"#, "lies over");
        refused(r#""offset":10"#, r#""offset":4294967295"#, "inside the frame");
        refused(r#""offset":24"#, r#""offset":22"#, "lies over");
        refused(r#""offset":24"#, r#""offset":25"#, "not aligned");
        refused(r#""array":3"#, r#""array":0"#, "length");
        refused(r#""array":3"#, r#""array":4294967295"#, "length");
        refused(r#""array":3"#, r#""array":3,"at":true"#, "`at`");
        refused(r#"[["A",0],["B",255]]"#, "[]", "0 values");
        refused(r#"[{"name":"x","type":"i32","offset":12}]"#, "[]", "0 fields");
    }
}
