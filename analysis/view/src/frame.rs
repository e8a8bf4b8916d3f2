//! One frame: what it is called, and what its fields hold.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimevalHalf, Visitor,
};
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{Style, columns};

/// What a frame is called, wherever captures are read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameName {
    /// The first 16 hex digits of the capture's id.
    pub capture: String,
    /// The buffer.
    pub buffer: String,
    /// The nonce of the segment.
    pub segment: u64,
    /// The ring in the segment.
    pub ring: u32,
    /// Its number in the ring.
    pub seqno: u64,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameFields {
    /// What it is called.
    pub name: FrameName,
    /// The kind of frame, as its frame file calls it.
    pub frame: String,
    /// The thread that it is about: as a field says, or the one that wrote it.
    pub tid: Option<u32>,
    /// Its process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The fields, in their order, and the lengths of intervals.
    pub fields: Vec<FieldContent>,
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldContent {
    /// Its name.
    pub name: String,
    /// Its unit, as the frame file says.
    pub unit: String,
    /// What it holds; None: nothing was written.
    pub content: Option<Content>,
}

/// What a field holds. Text is the target's: escape it before you show it.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A length of time, ns.
    Duration(i64),
    /// A point in time, ns since the epoch.
    Time(i64),
    /// A time that a CPU worked, ns.
    CpuTime(i64),
    /// A code address.
    Address(u64),
    /// A value of an enum: its name, if it has one, and its number.
    Enum(Option<String>, i128),
    /// Text.
    Text(Vec<u8>),
    /// Bytes without meaning.
    Bytes(Vec<u8>),
}

/// The fields of a frame.
pub(crate) fn fields(
    schema: &Schema,
    frame: &Frame,
    bytes: &[u8],
    stamps: &Stamps<'_>,
    offset: Option<i128>,
) -> Vec<FieldContent> {
    let fields = columns(schema, frame, Style::Sql).into_iter().map(|column| {
        let take = Take { bytes, stamps, offset };
        FieldContent {
            unit: frame.fields[column.field].unit.clone(),
            content: Reader::new(schema, &column).visit(stamps, take),
            name: column.name,
        }
    });
    fields.collect()
}

struct Take<'a> {
    bytes: &'a [u8],
    stamps: &'a Stamps<'a>,
    offset: Option<i128>,
}

impl Visitor for Take<'_> {
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
