//! Columns that compare as integers: numbers, bools, times, values of enums.

use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, FrameThreads, Integer, PlainInteger, Reader, Time,
    TimeScale, TimevalHalf, Visitor,
};

use ppt_capture::drained_at;

use crate::row::PredicateRow;

/// The origin of a number.
#[derive(Debug, Clone)]
pub(crate) enum NumberOrigin {
    /// A column; whether it is read in one step.
    Column(Reader, bool),
    Seqno,
    Ring,
    /// The thread that the frame is about.
    Tid(Option<FrameThreads>),
    Pid,
    /// The time of the frame.
    Ts(Time),
    /// When the frame was drained, which is not before its own time.
    Drained(Option<Time>),
    /// There is no value.
    Nothing,
}

/// The type of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum As {
    Whole,
    Single,
    Double,
}

/// A number with the type of its comparison.
#[derive(Debug, Clone)]
pub(crate) struct ComparedNumber {
    pub source: NumberOrigin,
    pub compared: As,
}

/// A number in its own type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw {
    Whole(i128),
    Single(f32),
    Double(f64),
}

impl As {
    /// An integer that sorts like the values.
    #[inline]
    pub fn key(self, value: Raw) -> i128 {
        match (self, value) {
            (As::Whole, Raw::Whole(value)) => value,
            (As::Single, Raw::Whole(value)) => single(value as f32),
            (As::Single, Raw::Single(value)) => single(value),
            (As::Single, Raw::Double(value)) => single(value as f32),
            (As::Double, Raw::Whole(value)) => double(value as f64),
            // Never occurs: the wider type is used.
            (As::Double | As::Whole, Raw::Single(value)) => double(value.into()),
            (As::Double | As::Whole, Raw::Double(value)) => double(value),
        }
    }
}

/// The rank of a float in DataFusion's order: IEEE 754's total order, except that the zeros are
/// equal.
fn single(value: f32) -> i128 {
    let bits = if value == 0.0 { 0 } else { value.to_bits().cast_signed() };
    (bits ^ (((bits >> 31).cast_unsigned()) >> 1).cast_signed()).into()
}

/// As [`single`].
fn double(value: f64) -> i128 {
    let bits = if value == 0.0 { 0 } else { value.to_bits().cast_signed() };
    (bits ^ (((bits >> 63).cast_unsigned()) >> 1).cast_signed()).into()
}

impl ComparedNumber {
    /// The number in a row; None for NULL.
    #[inline(always)]
    pub fn get(&self, row: &PredicateRow<'_>) -> Option<i128> {
        if let (NumberOrigin::Column(reader, true), As::Whole) = (&self.source, self.compared) {
            return match reader.plain(row.bytes, row.chunk.stamps)? {
                PlainInteger::Signed(value) => Some(value.into()),
                PlainInteger::Unsigned(value) => Some(value.into()),
            };
        }
        self.other(row)
    }

    #[inline(never)]
    fn other(&self, row: &PredicateRow<'_>) -> Option<i128> {
        let head = row.chunk.head;
        let whole = |value: Option<i64>| value.map(|value| Raw::Whole(value.into()));
        let small = |value: u32| i32::try_from(value).ok().map(i64::from);
        let value = match &self.source {
            NumberOrigin::Column(reader, _) => reader.visit(row.chunk.stamps, Get(row)),
            NumberOrigin::Seqno => whole(i64::try_from(row.seqno).ok()),
            NumberOrigin::Ring => whole(small(head.ring)),
            NumberOrigin::Tid(others) => {
                let given = others.as_ref().and_then(|others| others.of(row.bytes));
                let own = || small(head.tid).filter(|&tid| tid != 0);
                whole(given.map(i64::from).or_else(own))
            }
            NumberOrigin::Pid => whole(small(row.chunk.pid)),
            NumberOrigin::Ts(time) => epoch(*time, row),
            NumberOrigin::Drained(time) => whole(drained(*time, row)),
            NumberOrigin::Nothing => None,
        };
        Some(self.compared.key(value?))
    }
}

fn epoch(time: Time, row: &PredicateRow<'_>) -> Option<Raw> {
    let ns = time.epoch(time.word(row.bytes), row.chunk.stamps, row.chunk.offset)?;
    i64::try_from(ns).ok().map(|ns| Raw::Whole(ns.into()))
}

fn drained(time: Option<Time>, row: &PredicateRow<'_>) -> Option<i64> {
    let (head, offset) = (row.chunk.head, row.chunk.offset?);
    let epoch = |ns: u64| (ns != 0).then(|| i128::from(ns) + offset);
    let own =
        time.and_then(|time| time.epoch(time.word(row.bytes), row.chunk.stamps, row.chunk.offset));
    let (first, by) = (epoch(head.drained_mono_ns)?, epoch(head.drained_by_mono_ns));
    i64::try_from(drained_at(first, by, own)).ok()
}

/// Reads a number of a row.
struct Get<'a>(&'a PredicateRow<'a>);

impl Visitor for Get<'_> {
    type Output = Option<Raw>;

    fn integer<T: Integer>(self, value: impl Access<Value = T>) -> Option<Raw> {
        value.get(self.0.bytes).map(|value| Raw::Whole(value.into()))
    }

    fn single(self, value: impl Access<Value = f32>) -> Option<Raw> {
        value.get(self.0.bytes).map(Raw::Single)
    }

    fn double(self, value: impl Access<Value = f64>) -> Option<Raw> {
        value.get(self.0.bytes).map(Raw::Double)
    }

    fn boolean(self, value: impl Access<Value = u8>) -> Option<Raw> {
        value.get(self.0.bytes).map(|byte| Raw::Whole((byte != 0).into()))
    }

    fn duration(self, value: impl Access<Value = i64>) -> Option<Raw> {
        self.integer(value)
    }

    fn time(self, time: Time) -> Option<Raw> {
        match time.scale() {
            TimeScale::Ns(clock) if clock.is_cpu() => {
                let ns = i64::try_from(time.word(self.0.bytes)).ok().filter(|&ns| ns != 0);
                ns.map(|ns| Raw::Whole(ns.into()))
            }
            TimeScale::Ticks | TimeScale::Ns(_) => epoch(time, self.0),
        }
    }

    fn half(self, half: TimevalHalf) -> Option<Raw> {
        half.get(self.0.bytes).map(|half| Raw::Whole(half.into()))
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) -> Option<Raw> {
        self.integer(value)
    }

    fn text(self, _: FixedText) -> Option<Raw> {
        None
    }

    fn bytes(self, _: Fixed) -> Option<Raw> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_total_order() {
        let rising = [
            -f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(rising.is_sorted_by(|a, b| a.total_cmp(b).is_lt()));
        assert!(rising.is_sorted_by(|a, b| double(*a) < double(*b)));
        assert_eq!((double(-0.0), single(-0.0)), (double(0.0), single(0.0)));
        assert!(rising.map(|it| it as f32).is_sorted_by(|a, b| single(*a) <= single(*b)));
    }
}
