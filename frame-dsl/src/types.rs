//! Sizes and alignments of types: the same in C, C++ and Rust, on x86-64 and AArch64.

use crate::schema::{
    Clock, DEFAULT_SLOTS, Enum, Field, FieldType, Frame, Int, SLOTS_STATED, Schema,
};
use crate::stored::Stored;

impl Int {
    /// Every integer type.
    pub const ALL: [Int; 8] =
        [Int::I8, Int::I16, Int::I32, Int::I64, Int::U8, Int::U16, Int::U32, Int::U64];

    /// Bytes of one value, which is also its alignment.
    pub fn size(self) -> u32 {
        match self {
            Int::I8 | Int::U8 => 1,
            Int::I16 | Int::U16 => 2,
            Int::I32 | Int::U32 => 4,
            Int::I64 | Int::U64 => 8,
        }
    }

    /// The word in a frame file, in JSON and in Rust.
    pub fn word(self) -> &'static str {
        match self {
            Int::I8 => "i8",
            Int::I16 => "i16",
            Int::I32 => "i32",
            Int::I64 => "i64",
            Int::U8 => "u8",
            Int::U16 => "u16",
            Int::U32 => "u32",
            Int::U64 => "u64",
        }
    }

    /// Whether a value of this type can be negative.
    pub fn signed(self) -> bool {
        matches!(self, Int::I8 | Int::I16 | Int::I32 | Int::I64)
    }

    /// Smallest and largest value.
    pub fn range(self) -> (i128, i128) {
        let bits = self.size() * 8;
        if self.signed() {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        }
    }
}

impl Clock {
    /// Every clock.
    pub const ALL: [Clock; 5] =
        [Clock::Realtime, Clock::Monotonic, Clock::Boottime, Clock::ThreadCpu, Clock::ProcessCpu];

    /// The word in a frame file and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Clock::Realtime => "realtime",
            Clock::Monotonic => "monotonic",
            Clock::Boottime => "boottime",
            Clock::ThreadCpu => "thread_cpu",
            Clock::ProcessCpu => "process_cpu",
        }
    }

    /// Whether it counts CPU time. Reading such a clock enters the kernel, and its times cannot
    /// order frames.
    pub fn is_cpu(self) -> bool {
        matches!(self, Clock::ThreadCpu | Clock::ProcessCpu)
    }
}

impl FieldType {
    /// Bytes of one value. An enum is looked up in `schema`; a missing one has no bytes, which a
    /// checked schema excludes.
    pub fn size(&self, schema: &Schema) -> u32 {
        self.stored(schema).map_or(0, Stored::size)
    }

    /// Natural alignment in bytes: 1, 2, 4 or 8.
    pub fn align(&self, schema: &Schema) -> u32 {
        self.stored(schema).map_or(1, Stored::align)
    }

    /// Whether it is a point in time, as `time` is.
    pub fn is_time(&self) -> bool {
        matches!(
            self,
            FieldType::Timeval | FieldType::Timespec { .. } | FieldType::Ns { .. } | FieldType::Tsc
        )
    }

    /// The clock of a point in time, if it is a clock of clock_gettime(2).
    pub fn clock(&self) -> Option<Clock> {
        match self {
            FieldType::Timeval => Some(Clock::Realtime),
            FieldType::Timespec { clock } | FieldType::Ns { clock } => Some(*clock),
            _ => None,
        }
    }
}

impl Field {
    /// Number of values: 1, or the elements of an array.
    pub fn count(&self) -> u32 {
        self.array.unwrap_or(1)
    }

    /// Whether it can be stamped, because it is a single point in time.
    pub fn is_stamped(&self) -> bool {
        self.ty.is_time() && self.array.is_none()
    }

    /// Bytes of the field, all elements of an array.
    pub fn bytes(&self, schema: &Schema) -> u32 {
        self.ty.size(schema).saturating_mul(self.count())
    }
}

impl Frame {
    /// The field that gives the frame its time.
    pub fn at(&self) -> Option<&Field> {
        self.fields.iter().find(|field| field.at)
    }
}

impl Schema {
    /// The enum with that name.
    pub fn enum_named(&self, name: &str) -> Option<&Enum> {
        self.enums.iter().find(|enumeration| enumeration.name == name)
    }

    /// The frame with that name.
    pub fn frame_named(&self, name: &str) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.name == name)
    }

    /// Whether the frame file states the number of slots, as far as the schema shows that.
    pub fn states_slots(&self) -> bool {
        self.slots != DEFAULT_SLOTS || self.extra.contains_key(SLOTS_STATED)
    }

    /// Whether several frames share the buffer. Then each frame has its u16 frame id at offset 8.
    pub fn multi(&self) -> bool {
        self.frames.len() > 1
    }

    /// Bytes before the first field: the sequence number, and the frame id if there is one.
    pub fn header_bytes(&self) -> u32 {
        if self.multi() { 10 } else { 8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(Int::I8.range(), (-128, 127));
        assert_eq!(Int::U64.range(), (0, i128::from(u64::MAX)));
        assert_eq!(Int::I64.range(), (i128::from(i64::MIN), i128::from(i64::MAX)));
    }
}
