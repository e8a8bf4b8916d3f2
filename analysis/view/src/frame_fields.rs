//! The fields of one frame.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimevalHalf, Visitor,
};
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{Style, columns};

/// The name of a frame, which does not depend on the view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameName {
    /// The first 16 hex digits of the capture's id.
    pub capture: String,
    /// The name of the buffer.
    pub buffer: String,
    /// The nonce of the segment.
    pub segment: u64,
    /// The number of the ring in the segment.
    pub ring: u32,
    /// The sequence number of the frame in the ring.
    pub seqno: u64,
}

/// A frame with the content of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameFields {
    /// The name of the frame.
    pub name: FrameName,
    /// The name of its kind in the frame file.
    pub frame: String,
    /// The thread in the field with `@thread`, else the thread that wrote the frame.
    pub tid: Option<u32>,
    /// The id of its process.
    pub pid: u32,
    /// The name of its host.
    pub host: String,
    /// The fields in the order of the frame file, and the lengths of intervals.
    pub fields: Vec<FieldContent>,
}

/// A field of a frame with its content.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldContent {
    /// The name of the field, or of the length of an interval.
    pub name: String,
    /// The unit in the frame file; may be empty.
    pub unit: String,
    /// The value. None if the program did not set it.
    pub content: Option<Content>,
}

/// The value of a field. Texts come from the target and must be escaped for display.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An integer of any width.
    Integer(i128),
    /// A float or a double.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A duration, ns.
    Duration(i64),
    /// A point in time, ns since the epoch.
    Time(i64),
    /// A reading of a CPU-time clock, ns.
    CpuTime(i64),
    /// A code address.
    Address(u64),
    /// The name of an enum value, if the schema has it, and its number.
    Enum(Option<String>, i128),
    /// The bytes of a text, up to its end.
    Text(Vec<u8>),
    /// The bytes of a field without a type.
    Bytes(Vec<u8>),
}

/// The fields of the frame `bytes`. `offset` converts monotonic times.
pub(crate) fn fields(
    schema: &Schema,
    frame: &Frame,
    bytes: &[u8],
    stamps: &Stamps<'_>,
    offset: Option<i128>,
) -> Vec<FieldContent> {
    let fields = columns(schema, frame, Style::Sql).into_iter().map(|column| {
        let visitor = ContentVisitor { bytes, stamps, offset };
        FieldContent {
            unit: frame.fields[column.field].unit.clone(),
            content: Reader::new(schema, &column).visit(stamps, visitor),
            name: column.name,
        }
    });
    fields.collect()
}

struct ContentVisitor<'a> {
    bytes: &'a [u8],
    stamps: &'a Stamps<'a>,
    offset: Option<i128>,
}

impl Visitor for ContentVisitor<'_> {
    type Output = Option<Content>;

    fn integer<T: Integer>(self, value: impl Access<Value = T>) -> Option<Content> {
        value.get(self.bytes).map(T::into).map(Content::Integer)
    }

    fn single(self, value: impl Access<Value = f32>) -> Option<Content> {
        value.get(self.bytes).map(f64::from).map(Content::Float)
    }

    fn double(self, value: impl Access<Value = f64>) -> Option<Content> {
        value.get(self.bytes).map(Content::Float)
    }

    fn boolean(self, value: impl Access<Value = u8>) -> Option<Content> {
        value.get(self.bytes).map(|byte| Content::Bool(byte != 0))
    }

    fn duration(self, value: impl Access<Value = i64>) -> Option<Content> {
        value.get(self.bytes).map(Content::Duration)
    }

    fn address(self, value: impl Access<Value = u64>) -> Option<Content> {
        value.get(self.bytes).map(Content::Address)
    }

    fn time(self, time: Time) -> Option<Content> {
        let word = time.word(self.bytes);
        if let ppt_capture::columns::TimeScale::Ns(clock) = time.scale()
            && clock.is_cpu()
        {
            return i64::try_from(word).ok().filter(|&ns| ns != 0).map(Content::CpuTime);
        }
        let ns = time.epoch(word, self.stamps, self.offset)?;
        i64::try_from(ns).ok().map(Content::Time)
    }

    fn half(self, half: TimevalHalf) -> Option<Content> {
        half.get(self.bytes).map(|half| Content::Integer(half.into()))
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, names: &EnumNames) -> Option<Content> {
        let number: i128 = value.get(self.bytes)?.into();
        Some(Content::Enum(names.get(number).map(str::to_owned), number))
    }

    fn text(self, text: FixedText) -> Option<Content> {
        text.get(self.bytes).map(|text| Content::Text(text.to_vec()))
    }

    fn bytes(self, bytes: Fixed) -> Option<Content> {
        bytes.get(self.bytes).map(|byte| Content::Bytes(byte.to_vec()))
    }
}
