//! Reads the columns of frames. Only this module decodes the bytes of each type.
//!
//! A [`Reader`] is one column of one kind of frame. [`Reader::visit`] passes a typed [`Access`] to
//! a [`Visitor`], which reads one cell or all cells of a chunk. Each visitor is compiled for the
//! type, and nothing is allocated. All bytes are valid values. A field that reaches beyond the
//! frame has no value; no checked schema has such a field.
//!
//! A new type of column is a method of [`Visitor`] and an arm here. The compiler then reports every
//! output that lacks it.

mod access;
mod names;
mod plain;
mod thread;
mod time;

use ppt_clock::Stamps;
use ppt_frame_dsl::schema::{FRAME_ID_OFFSET, Int, Schema};
use ppt_frame_dsl::{Column, ColumnType, Measure};

pub use access::{Access, Difference, Fixed, FixedText, Integer, NumberAt, PlainNumber};
pub use names::EnumNames;
pub use plain::PlainInteger;
use plain::Shortcut;
pub use thread::FrameThreads;
pub use time::{Time, TimeLength, TimeScale, TimevalHalf};

/// One column of one kind of frame, ready to be read.
#[derive(Debug, Clone)]
pub struct Reader {
    at: usize,
    ty: ColumnType,
    shortcut: Shortcut,
    names: EnumNames,
}

/// An output's operation on a column: one method for each type of values.
///
/// The methods get an [`Access`], which reads a value from a frame. The length of an interval has
/// the type of its values.
pub trait Visitor: Sized {
    /// The result of each method.
    type Output;

    /// An integer.
    fn integer<T: Integer>(self, value: impl Access<Value = T>) -> Self::Output;
    /// A 32-bit float.
    fn single(self, value: impl Access<Value = f32>) -> Self::Output;
    /// A 64-bit float.
    fn double(self, value: impl Access<Value = f64>) -> Self::Output;
    /// A bool: 0 or 1. A faulty writer may have left another byte.
    fn boolean(self, value: impl Access<Value = u8>) -> Self::Output;
    /// Nanoseconds.
    fn duration(self, value: impl Access<Value = i64>) -> Self::Output;
    /// A code address of the process. It is treated as an integer unless the output overrides this.
    fn address(self, value: impl Access<Value = u64>) -> Self::Output {
        self.integer(value)
    }
    /// A point in time.
    fn time(self, time: Time) -> Self::Output;
    /// One half of a timeval; tables in text show it as two columns.
    fn half(self, half: TimevalHalf) -> Self::Output;
    /// A value of an enum.
    fn name<T: Integer>(self, value: impl Access<Value = T>, names: &EnumNames) -> Self::Output;
    /// Text.
    fn text(self, text: FixedText) -> Self::Output;
    /// Opaque bytes.
    fn bytes(self, bytes: Fixed) -> Self::Output;
}

impl Reader {
    /// Creates the reader of `column` of a checked schema.
    pub fn new(schema: &Schema, column: &Column) -> Reader {
        let names = match column.ty {
            ColumnType::Enum { index, .. } => schema.enums.get(index).map(EnumNames::from_enum),
            _ => None,
        };
        let (at, ty) = (column.offset as usize, column.ty);
        Reader { at, ty, shortcut: Shortcut::for_type(ty), names: names.unwrap_or_default() }
    }

    /// The type of the column.
    pub fn ty(&self) -> ColumnType {
        self.ty
    }

    /// The code address in `frame`, if the column holds addresses.
    #[inline]
    pub fn address(&self, frame: &[u8]) -> Option<u64> {
        match self.ty {
            ColumnType::Addr => NumberAt::<u64>::new(self.at).get(frame),
            _ => None,
        }
    }

    /// The point in time that the column holds, if any. `None` for the halves of a timeval.
    pub fn time(&self) -> Option<Time> {
        match self.ty {
            ColumnType::Time(ty) => Some(Time::new(self.at, ty)),
            _ => None,
        }
    }

    /// The names of an enum's values. Empty for other types.
    pub fn names(&self) -> &EnumNames {
        &self.names
    }

    /// Reads the value in `frame` if it is an integer, a duration, a bool or ticks, as most are.
    /// The result is that of [`Self::visit`], in fewer steps for readers of single cells. None for
    /// other types.
    #[inline(always)]
    pub fn plain(&self, frame: &[u8], stamps: &Stamps<'_>) -> Option<PlainInteger> {
        self.shortcut.read(self.at, frame, stamps)
    }

    /// Passes the column to `visitor`, for a chunk whose stamps `stamps` converts.
    #[inline]
    pub fn visit<V: Visitor>(&self, stamps: &Stamps<'_>, visitor: V) -> V::Output {
        let at = self.at;
        match self.ty {
            ColumnType::Int(Int::I8) => visitor.integer(NumberAt::<i8>::new(at)),
            ColumnType::Int(Int::I16) => visitor.integer(NumberAt::<i16>::new(at)),
            ColumnType::Int(Int::I32) => visitor.integer(NumberAt::<i32>::new(at)),
            ColumnType::Int(Int::I64) => visitor.integer(NumberAt::<i64>::new(at)),
            ColumnType::Int(Int::U8) => visitor.integer(NumberAt::<u8>::new(at)),
            ColumnType::Int(Int::U16) => visitor.integer(NumberAt::<u16>::new(at)),
            ColumnType::Int(Int::U32) => visitor.integer(NumberAt::<u32>::new(at)),
            ColumnType::Int(Int::U64) => visitor.integer(NumberAt::<u64>::new(at)),
            ColumnType::F32 => visitor.single(NumberAt::<f32>::new(at)),
            ColumnType::F64 => visitor.double(NumberAt::<f64>::new(at)),
            ColumnType::Bool => visitor.boolean(NumberAt::<u8>::new(at)),
            ColumnType::Duration => visitor.duration(NumberAt::<i64>::new(at)),
            ColumnType::Addr => visitor.address(NumberAt::<u64>::new(at)),
            ColumnType::Time(ty) => visitor.time(Time::new(at, ty)),
            ColumnType::TimevalSeconds => visitor.half(TimevalHalf::seconds(at)),
            ColumnType::TimevalMicroseconds => visitor.half(TimevalHalf::microseconds(at)),
            ColumnType::Enum { repr, .. } => self.enumerated(repr, visitor),
            ColumnType::Text { len } => visitor.text(FixedText::new(at, len)),
            ColumnType::Bytes { len } => visitor.bytes(Fixed::new(at, len)),
            ColumnType::Length { of, end } => length(at, end as usize, of, stamps, visitor),
        }
    }

    #[inline(never)]
    fn enumerated<V: Visitor>(&self, repr: Int, visitor: V) -> V::Output {
        let (at, names) = (self.at, &self.names);
        match repr {
            Int::I8 => visitor.name(NumberAt::<i8>::new(at), names),
            Int::I16 => visitor.name(NumberAt::<i16>::new(at), names),
            Int::I32 => visitor.name(NumberAt::<i32>::new(at), names),
            Int::I64 => visitor.name(NumberAt::<i64>::new(at), names),
            Int::U8 => visitor.name(NumberAt::<u8>::new(at), names),
            Int::U16 => visitor.name(NumberAt::<u16>::new(at), names),
            Int::U32 => visitor.name(NumberAt::<u32>::new(at), names),
            Int::U64 => visitor.name(NumberAt::<u64>::new(at), names),
        }
    }
}

#[inline(never)]
fn length<V: Visitor>(
    start: usize,
    end: usize,
    of: Measure,
    stamps: &Stamps<'_>,
    visitor: V,
) -> V::Output {
    match of {
        Measure::Int(Int::I8) => visitor.integer(Difference::<i8>::new(start, end)),
        Measure::Int(Int::I16) => visitor.integer(Difference::<i16>::new(start, end)),
        Measure::Int(Int::I32) => visitor.integer(Difference::<i32>::new(start, end)),
        Measure::Int(Int::I64) => visitor.integer(Difference::<i64>::new(start, end)),
        Measure::Int(Int::U8) => visitor.integer(Difference::<u8>::new(start, end)),
        Measure::Int(Int::U16) => visitor.integer(Difference::<u16>::new(start, end)),
        Measure::Int(Int::U32) => visitor.integer(Difference::<u32>::new(start, end)),
        Measure::Int(Int::U64) => visitor.integer(Difference::<u64>::new(start, end)),
        Measure::F32 => visitor.single(Difference::<f32>::new(start, end)),
        Measure::F64 => visitor.double(Difference::<f64>::new(start, end)),
        Measure::Duration => visitor.duration(Difference::<i64>::new(start, end)),
        Measure::Time(ty) => {
            visitor.duration(TimeLength::new(Time::new(start, ty), Time::new(end, ty), stamps))
        }
    }
}

/// Reads the id that names the kind of a frame, in a buffer with several kinds. Returns 0 if
/// `frame` is too short.
#[inline]
pub fn frame_id(frame: &[u8]) -> u16 {
    NumberAt::<u16>::new(FRAME_ID_OFFSET as usize).get(frame).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use ppt_frame_dsl::schema::Clock;
    use ppt_frame_dsl::{Style, TimeType, columns};

    use super::*;
    use ppt_clock::{ClockId, ClockReading, ClockTable, TimeNamespace};

    /// Intervals in ticks, in ns of a clock, and of integers.
    const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":64,"frames":[{"name":"f",
        "kind":"plain","size":64,"fields":[
        {"name":"a_start","type":"tsc","interval":{"name":"a","edge":"start"},"offset":8},
        {"name":"a_end","type":"tsc","interval":{"name":"a","edge":"end"},"at":true,"offset":16},
        {"name":"b_start","type":"ns","clock":"thread_cpu","interval":{"name":"b","edge":"start"},"offset":24},
        {"name":"b_end","type":"ns","clock":"thread_cpu","interval":{"name":"b","edge":"end"},"offset":32},
        {"name":"c_start","type":"u8","interval":{"name":"c","edge":"start"},"offset":40},
        {"name":"c_end","type":"u8","interval":{"name":"c","edge":"end"},"offset":41}]}]}"#;

    /// Shows each read as text: the method and the value.
    struct ReadAsText<'a>(&'a [u8]);

    impl Visitor for ReadAsText<'_> {
        type Output = String;

        fn integer<T: Integer>(self, value: impl Access<Value = T>) -> String {
            format!("integer {:?}", value.get(self.0).map(Into::<i128>::into))
        }
        fn single(self, value: impl Access<Value = f32>) -> String {
            format!("single {:?}", value.get(self.0))
        }
        fn double(self, value: impl Access<Value = f64>) -> String {
            format!("double {:?}", value.get(self.0))
        }
        fn boolean(self, value: impl Access<Value = u8>) -> String {
            format!("boolean {:?}", value.get(self.0))
        }
        fn duration(self, value: impl Access<Value = i64>) -> String {
            format!("duration {:?}", value.get(self.0))
        }
        fn time(self, time: Time) -> String {
            format!("time {:?} {}", time.scale(), time.word(self.0))
        }
        fn half(self, half: TimevalHalf) -> String {
            format!("half {:?}", half.get(self.0))
        }
        fn name<T: Integer>(self, value: impl Access<Value = T>, names: &EnumNames) -> String {
            format!(
                "name {:?}",
                value.get(self.0).map(|value| names.get(value.into()).map(str::to_owned))
            )
        }
        fn text(self, text: FixedText) -> String {
            format!("text {:?}", text.get(self.0))
        }
        fn bytes(self, bytes: Fixed) -> String {
            format!("bytes {:?}", bytes.get(self.0))
        }
    }

    fn table() -> ClockTable {
        let reading = |a, a_value, b, b_value| ClockReading {
            a,
            a_before: a_value,
            b,
            b_value,
            a_after: a_value,
            distrusted: false,
        };
        let mut table = ClockTable::default();
        table.add(&[
            reading(ClockId::Tick, 1000, ClockId::Monotonic, 500),
            reading(ClockId::Tick, 3000, ClockId::Monotonic, 1500),
            reading(ClockId::Monotonic, 500, ClockId::Realtime, 10_500),
        ]);
        table
    }

    fn told(words: [u64; 7]) -> Vec<String> {
        let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
        let clocks = table();
        let stamps = Stamps::new(&clocks, 1000, TimeNamespace::SAME);
        let frame: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let columns = columns(&schema, &schema.frames[0], Style::Sql).into_iter();
        let readers = columns.map(|column| Reader::new(&schema, &column));
        readers.map(|reader| reader.visit(&stamps, ReadAsText(&frame))).collect()
    }

    #[test]
    fn lengths_are_of_the_type_of_their_interval() {
        let words = told([1, 1000, 1600, 7, 9, 5 | 8 << 8, 0]);
        assert_eq!(words[..2], ["time Ticks 1000", "time Ticks 1600"]);
        assert_eq!(
            words[4..],
            [
                "integer Some(5)",
                "integer Some(8)",
                "duration Some(300)",
                "duration Some(2)",
                "integer Some(3)"
            ]
        );
    }

    #[test]
    fn a_length_without_both_ends_is_none() {
        let words = told([1, 0, 1600, 7, 0, 8 | 5 << 8, 0]);
        assert_eq!(words[6..], ["duration None", "duration None", "integer None"]);
    }

    #[test]
    fn times_that_cannot_be_are_none_in_heads_and_numbers_in_text() {
        let frame: Vec<u8> = [2, u64::MAX].into_iter().flat_map(u64::to_le_bytes).collect();
        let read = |ty| {
            let time = Time::new(0, ty);
            (time.word(&frame), time.number(&frame))
        };
        let realtime = Clock::Realtime;
        assert_eq!(read(TimeType::Ns(realtime)), (2, Some(2)));
        assert_eq!(read(TimeType::Timespec(realtime)), (0, Some(1_999_999_999)));
        assert_eq!(read(TimeType::Timeval), (0, Some(1_999_999_000)));
        assert_eq!(read(TimeType::Ticks), (2, None));
        assert_eq!(Time::new(8, TimeType::Ns(realtime)).word(&frame), 0);
        assert_eq!(Time::new(12, TimeType::Ns(realtime)).number(&frame), None, "outside");
    }
}
