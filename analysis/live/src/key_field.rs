//! The bytes of a key in a frame.

use ppt_capture::frame_dsl::schema::{Field, FieldType, Schema};

/// The position of a key field in a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyField {
    offset: usize,
    pub len: usize,
    is_text: bool,
}

impl KeyField {
    pub fn new(schema: &Schema, field: &Field) -> KeyField {
        KeyField {
            offset: field.offset as usize,
            len: field.ty.size(schema) as usize,
            is_text: matches!(field.ty, FieldType::Char { .. }),
        }
    }

    /// The bytes of the key in a frame; of a text, those before the first zero. None if the frame is too
    /// short.
    pub fn value<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = frame.get(self.offset..self.offset + self.len)?;
        let end = bytes.iter().position(|byte| *byte == 0).filter(|_| self.is_text);
        Some(&bytes[..end.unwrap_or(self.len)])
    }
}
