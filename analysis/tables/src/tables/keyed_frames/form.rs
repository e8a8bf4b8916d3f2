//! How keys and marks are read from frames.

use ppt_capture::frame_dsl::role::EDGES;
use ppt_capture::frame_dsl::schema::{self, FieldType};

use crate::tables::frame::FrameOfSource;

/// The reader of keys and marks from the frames of one schema.
#[derive(Debug)]
pub(super) struct KeyForm {
    /// The kind that frames carry; None if the buffer has only one kind.
    pub id: Option<u16>,
    keys: Vec<KeyBytes>,
    pub mark: Mark,
}

/// The position of a key field in the frame, and in the bytes of all keys.
#[derive(Debug)]
struct KeyBytes {
    from: usize,
    len: usize,
    to: usize,
    /// A text ends at its first zero byte.
    is_text: bool,
    is_bool: bool,
}

/// The field that has the half or the step of a frame.
#[derive(Debug)]
pub(super) struct Mark {
    at: usize,
    len: usize,
    signed: bool,
    /// By step: its value.
    values: Vec<i128>,
}

impl Mark {
    /// The step of a frame; −1: unknown.
    pub fn step(&self, frame: &[u8]) -> i32 {
        let Some(bytes) = frame.get(self.at..self.at + self.len) else { return -1 };
        let negative = self.signed && bytes.last().is_some_and(|byte| byte >> 7 == 1);
        let mut value = [if negative { 0xff } else { 0 }; 16];
        value[..bytes.len()].copy_from_slice(bytes);
        let value = i128::from_le_bytes(value);
        self.values.iter().position(|&number| number == value).map_or(-1, |step| step as i32)
    }
}

/// Identifies a schema: its layout, and the roles of its fields.
pub(super) fn version(kind: &FrameOfSource<'_>) -> (u64, Option<u64>) {
    (kind.info.source.schema_hash, kind.info.schema.roles_hash())
}

pub(super) fn form_of(kind: &FrameOfSource<'_>, place: impl Fn(&str) -> usize) -> KeyForm {
    let schema = &kind.info.schema;
    let key = |field: &schema::Field| KeyBytes {
        from: field.offset as usize,
        len: field.ty.size(schema) as usize,
        to: place(&field.name),
        is_text: matches!(field.ty, FieldType::Char { .. }),
        is_bool: field.ty == FieldType::Bool,
    };
    let mark = kind.frame.fields.iter().find(|field| field.is_mark());
    let repr = mark.and_then(|mark| match &mark.ty {
        FieldType::Enum { name } => schema.enum_named(name).map(|declared| declared.repr),
        _ => None,
    });
    // Edges are found by name, as steps are: their values may be others if the schema is not from a frame
    // file.
    let steps = kind.frame.steps(schema);
    let value = |name: &str| steps.iter().find(|step| step.0 == name).map(|step| step.1);
    let values = match kind.frame.span() {
        Some(_) => EDGES.map(|(name, usual)| value(name).unwrap_or(usual)).to_vec(),
        None => steps.iter().map(|step| step.1).collect(),
    };
    KeyForm {
        id: schema.multi().then_some(kind.id as u16),
        keys: kind.frame.fields.iter().filter(|field| field.is_key()).map(key).collect(),
        mark: Mark {
            at: mark.map_or(0, |mark| mark.offset as usize),
            len: repr.map_or(0, |repr| repr.size() as usize),
            signed: repr.is_some_and(|repr| repr.signed()),
            values,
        },
    }
}

impl KeyForm {
    /// Writes the bytes of all keys to `to`.
    pub fn key(&self, frame: &[u8], to: &mut [u8]) {
        to.fill(0);
        for key in &self.keys {
            let Some(bytes) = frame.get(key.from..key.from + key.len) else { continue };
            let bytes = match bytes.iter().position(|&byte| byte == 0) {
                Some(end) if key.is_text => &bytes[..end],
                _ => bytes,
            };
            if key.is_bool {
                to[key.to] = u8::from(bytes != [0]);
            } else {
                to[key.to..key.to + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}
