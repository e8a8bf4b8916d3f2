//! How frames store values, independent of their meaning. Languages and layouts use this.

use crate::schema::{Enum, FieldType, Int, Schema};

/// How a frame stores a value. Several types can be stored in the same way: a duration is an i64.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the plain numbers say what they are")]
pub enum Stored<'a> {
    Int(Int),
    F32,
    F64,
    /// One byte: 0 or 1.
    Bool,
    /// The number of one of the enum's values, as the enum's integer type.
    Enum(&'a Enum),
    /// i64 seconds, i64 microseconds.
    Timeval,
    /// i64 seconds, i64 nanoseconds.
    Timespec,
    /// UTF-8 text in `len` bytes, zero-padded.
    Text {
        len: u32,
    },
    /// `len` bytes.
    Bytes {
        len: u32,
    },
}

/// The types that consist of a single word: the word in frame files and in JSON, and the storage.
pub(crate) static PLAIN: &[(FieldType, &str, Stored<'static>)] = &[
    (FieldType::I8, "i8", Stored::Int(Int::I8)),
    (FieldType::I16, "i16", Stored::Int(Int::I16)),
    (FieldType::I32, "i32", Stored::Int(Int::I32)),
    (FieldType::I64, "i64", Stored::Int(Int::I64)),
    (FieldType::U8, "u8", Stored::Int(Int::U8)),
    (FieldType::U16, "u16", Stored::Int(Int::U16)),
    (FieldType::U32, "u32", Stored::Int(Int::U32)),
    (FieldType::U64, "u64", Stored::Int(Int::U64)),
    (FieldType::F32, "f32", Stored::F32),
    (FieldType::F64, "f64", Stored::F64),
    (FieldType::Bool, "bool", Stored::Bool),
    (FieldType::Duration, "duration", Stored::Int(Int::I64)),
    (FieldType::Addr, "addr", Stored::Int(Int::U64)),
];

/// The type of [`PLAIN`] with this word.
pub(crate) fn plain(word: &str) -> Option<FieldType> {
    PLAIN.iter().find(|entry| entry.1 == word).map(|plain| plain.0.clone())
}

impl FieldType {
    /// How one value is stored. `None` for an enum that is not in `schema`, which is impossible in
    /// a checked schema.
    pub fn stored<'a>(&self, schema: &'a Schema) -> Option<Stored<'a>> {
        Some(match self {
            FieldType::Timeval => Stored::Timeval,
            FieldType::Timespec { .. } => Stored::Timespec,
            FieldType::Ns { .. } => Stored::Int(Int::I64),
            FieldType::Tsc => Stored::Int(Int::U64),
            FieldType::Enum { name } => Stored::Enum(schema.enum_named(name)?),
            FieldType::Char { len } => Stored::Text { len: *len },
            FieldType::Bytes { len } => Stored::Bytes { len: *len },
            plain => PLAIN.iter().find(|entry| entry.0 == *plain)?.2,
        })
    }

    /// The word of the type in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            FieldType::Timeval => "timeval",
            FieldType::Timespec { .. } => "timespec",
            FieldType::Ns { .. } => "ns",
            FieldType::Tsc => "tsc",
            FieldType::Enum { .. } => "enum",
            FieldType::Char { .. } => "char",
            FieldType::Bytes { .. } => "bytes",
            plain => PLAIN.iter().find(|entry| entry.0 == *plain).expect("listed").1,
        }
    }
}

impl Stored<'_> {
    /// Bytes of one value.
    pub fn size(self) -> u32 {
        match self {
            Stored::Int(int) => int.size(),
            Stored::Enum(it) => it.repr.size(),
            Stored::Bool => 1,
            Stored::F32 => 4,
            Stored::F64 => 8,
            Stored::Timeval | Stored::Timespec => 16,
            Stored::Text { len } | Stored::Bytes { len } => len,
        }
    }

    /// Natural alignment in bytes: 1, 2, 4 or 8.
    pub fn align(self) -> u32 {
        match self {
            Stored::Timeval | Stored::Timespec => 8,
            Stored::Text { .. } | Stored::Bytes { .. } => 1,
            number => number.size(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `stored` and `word` look up plain types.
    #[test]
    fn every_type_is_listed() {
        let schema = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[]}"#;
        let schema: Schema = serde_json::from_str(schema).unwrap();
        for (ty, word, stored) in PLAIN {
            assert_eq!(plain(word).as_ref(), Some(ty));
            assert_eq!((ty.word(), ty.stored(&schema)), (*word, Some(*stored)));
            // Each case without fields has the same spelling in Rust.
            assert_eq!(format!("{ty:?}").to_lowercase(), *word);
        }
    }
}
