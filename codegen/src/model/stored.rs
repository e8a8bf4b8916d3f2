//! How a field's type is stored.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::schema::{FieldType, Schema};

/// How a type of a checked schema is stored.
pub(super) fn stored<'a>(schema: &'a Schema, ty: &FieldType) -> Stored<'a> {
    ty.stored(schema).expect("a checked schema's enums exist")
}
