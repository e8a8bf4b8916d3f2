//! The checked meaning of a frame file, with every field placed.
//!
//! A [`Schema`] is embedded as JSON in the target, copied into every capture, and read by tools
//! that never saw the frame file. [`Schema::to_json`] is canonical (one schema, one text);
//! [`Schema::from_json`] trusts nothing. The serde names below are the JSON format, version
//! [`JSON_VERSION`]; unknown keys are kept in `extra`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the JSON text (`"v"`).
pub const JSON_VERSION: u32 = 1;

/// Bytes of the largest frame, sequence number included.
pub const MAX_FRAME_BYTES: u32 = 4096;
/// Most fields of one frame, with intervals expanded.
pub const MAX_FIELDS: usize = 1024;
/// Most frames of one buffer. The frame id has room for more; masks and tables do not need to.
pub const MAX_FRAMES: usize = 256;
/// Most enums of one buffer.
pub const MAX_ENUMS: usize = 256;
/// Most values of one enum.
pub const MAX_VALUES: usize = 4096;
/// Most bytes of a name.
pub const MAX_NAME_BYTES: usize = 64;
/// Most bytes of the JSON text.
pub const MAX_JSON_BYTES: usize = 1 << 20;
/// Deepest nesting of the JSON text.
pub const MAX_JSON_DEPTH: usize = 16;
/// Fewest slots of a ring.
pub const MIN_SLOTS: u32 = 2;
/// Most slots of a ring.
pub const MAX_SLOTS: u32 = 1 << 26;
/// Slots of a ring if the frame file states none.
pub const DEFAULT_SLOTS: u32 = 16384;
/// Offset of the u16 frame id in a buffer of several frames.
pub const FRAME_ID_OFFSET: u32 = 8;

/// Key of a schema whose frame file states [`DEFAULT_SLOTS`] explicitly, so that it is not changed.
pub(crate) const SLOTS_STATED: &str = "slots_stated";

/// Keys that this version does not know. They are kept unchanged.
pub type Extra = BTreeMap<String, serde_json::Value>;

/// One buffer: the frames that share its rings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Version of the JSON text.
    pub v: u32,
    /// Name of the buffer.
    pub buffer: String,
    /// Default number of slots in each ring, a power of two.
    pub slots: u32,
    /// Bytes of one slot: the size of the largest frame.
    pub stride: u32,
    /// Frames in declared order; the index is the frame id.
    pub frames: Vec<Frame>,
    /// Enums in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enums: Vec<Enum>,
    /// `option tag NAME "value"`: metadata for the capture, in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// Keys of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One kind of frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Name as the frame file spells it.
    pub name: String,
    /// `plain`, `span`, `chain` or `point` ([`crate::role`]). Later versions have more kinds.
    pub kind: String,
    /// Bytes of the frame, a multiple of 8, sequence number included.
    pub size: u32,
    /// Fields in declared order, intervals expanded.
    pub fields: Vec<Field>,
    /// `///` lines, joined by newlines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Attributes as written, known or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// Keys of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One field of a frame.
///
/// `json.rs` defines its JSON: the keys of the type are next to those of the field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name as the frame file spells it (`handle_start` for a half of `interval time handle`).
    pub name: String,
    /// Type of the field, or of one element if `array` is set.
    pub ty: FieldType,
    /// Number of elements of a fixed array.
    pub array: Option<u32>,
    /// Bytes from the start of the frame.
    pub offset: u32,
    /// The half of an interval that the field is.
    pub interval: Option<Interval>,
    /// Whether the field gives the frame its time. At most one field of a frame does.
    pub at: bool,
    /// `@unit("B")`.
    pub unit: String,
    /// `///` lines, joined by newlines.
    pub doc: String,
    /// Attributes as written, known or not, `@at` and `@unit` included.
    pub attributes: Vec<Attribute>,
    /// Keys of a later version.
    pub extra: Extra,
}

/// Type of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the plain numbers say what they are")]
pub enum FieldType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Bool,
    /// A duration: i64 nanoseconds.
    Duration,
    /// A code address of the process: u64. Readers show its function.
    Addr,
    /// `struct timeval`: i64 seconds, i64 microseconds, since the epoch (CLOCK_REALTIME).
    Timeval,
    /// `struct timespec`: i64 seconds, i64 nanoseconds, of `clock`.
    Timespec {
        clock: Clock,
    },
    /// i64 nanoseconds of `clock`.
    Ns {
        clock: Clock,
    },
    /// u64 ticks of the CPU's counter. If bit 63 is set, CLOCK_MONOTONIC in ns.
    Tsc,
    /// One of the schema's enums, stored as that enum's integer type.
    Enum {
        #[serde(rename = "enum")]
        name: String,
    },
    /// UTF-8 text of at most `len` bytes, zero-padded.
    Char {
        len: u32,
    },
    /// `len` opaque bytes.
    Bytes {
        len: u32,
    },
}

/// A half of an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Name of the interval as declared.
    pub name: String,
    /// Start or end.
    pub edge: IntervalEnd,
}

/// An end of an interval: its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum IntervalEnd {
    Start,
    End,
}

/// The bit that marks a value of type `tsc` as CLOCK_MONOTONIC in ns instead of ticks.
pub const STAMP_IS_MONOTONIC: u64 = 1 << 63;

/// A clock of clock_gettime(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named after the clocks of clock_gettime(2)")]
pub enum Clock {
    Realtime,
    Monotonic,
    Boottime,
    ThreadCpu,
    ProcessCpu,
}

/// A named set of integers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Enum {
    /// Name as the frame file spells it.
    pub name: String,
    /// Integer type: one of `i8 … u64`.
    #[serde(rename = "type")]
    pub repr: Int,
    /// Values in declared order; i128 holds every i64 and u64.
    #[serde(with = "crate::values")]
    pub values: Vec<(String, i128)>,
    /// `///` lines, joined by newlines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Keys of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The integer type of an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Int {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

/// `@word` or `@word(args)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The word after `@`.
    pub name: String,
    /// Arguments as text: words, numbers, or strings without their quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}
