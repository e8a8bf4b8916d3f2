//! Appends the values of frames.

use arrow_schema::DataType;
use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimeScale, TimevalHalf, Visitor,
};

use super::dictionary::EnumKeys;
use super::{Builder, BuilderValues};
use crate::rows::RowsInChunk;

/// Frames from which values are read, and the conversion of their times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameValues<'a> {
    pub rows: RowsInChunk<'a>,
    pub stamps: &'a Stamps<'a>,
    /// Realtime − monotonic, ns.
    pub offset: Option<i128>,
    /// The keys of an enum's values.
    pub keys: Option<&'a EnumKeys>,
}

impl FrameValues<'_> {
    /// The time in a frame, ns since the epoch.
    #[inline(always)]
    pub fn epoch(&self, time: Time, frame: &[u8]) -> Option<i64> {
        let ns = time.epoch(time.word(frame), self.stamps, self.offset)?;
        i64::try_from(ns).ok()
    }
}

impl Builder {
    /// Appends the values that `reader` reads from frames.
    pub fn gather(&mut self, reader: &Reader, from: &FrameValues<'_>) {
        reader.visit(from.stamps, Append { builder: self, from });
    }

    /// Appends times, in ns since the epoch.
    pub fn time(&mut self, time: Time, from: &FrameValues<'_>) {
        match time.scale() {
            TimeScale::Ticks => self.each(from.rows, |frame| from.stamps.epoch(time.word(frame))),
            TimeScale::Ns(_) => self.each(from.rows, |frame| from.epoch(time, frame)),
        }
    }

    /// Appends integers of a narrower type: see [`wider`](super::wider).
    fn widened(&mut self, rows: RowsInChunk<'_>, read: impl Fn(&[u8]) -> Option<i128>) {
        // Each value fits: its type is narrower.
        match self.ty {
            DataType::Int16 => self.each(rows, |frame| read(frame).map(|number| number as i16)),
            DataType::Int32 => self.each(rows, |frame| read(frame).map(|number| number as i32)),
            DataType::Int64 => self.each(rows, |frame| read(frame).map(|number| number as i64)),
            DataType::UInt16 => self.each(rows, |frame| read(frame).map(|number| number as u16)),
            DataType::UInt32 => self.each(rows, |frame| read(frame).map(|number| number as u32)),
            DataType::UInt64 => self.each(rows, |frame| read(frame).map(|number| number as u64)),
            _ => self.nulls(rows.len()),
        }
    }
}

struct Append<'a> {
    builder: &'a mut Builder,
    from: &'a FrameValues<'a>,
}

impl Visitor for Append<'_> {
    type Output = ();

    fn integer<T: Integer>(self, value: impl Access<Value = T>) {
        let rows = self.from.rows;
        if self.builder.has::<T>() {
            self.builder.each(rows, |frame| value.get(frame));
        } else {
            self.builder.widened(rows, |frame| value.get(frame).map(T::into));
        }
    }

    fn single(self, value: impl Access<Value = f32>) {
        let rows = self.from.rows;
        if self.builder.has::<f32>() {
            self.builder.each(rows, |frame| value.get(frame));
        } else {
            self.builder.each(rows, |frame| value.get(frame).map(f64::from));
        }
    }

    fn double(self, value: impl Access<Value = f64>) {
        self.builder.each(self.from.rows, |frame| value.get(frame));
    }

    fn boolean(self, value: impl Access<Value = u8>) {
        self.builder.each(self.from.rows, |frame| value.get(frame).map(|byte| byte != 0));
    }

    fn duration(self, value: impl Access<Value = i64>) {
        self.builder.each(self.from.rows, |frame| value.get(frame));
    }

    fn time(self, time: Time) {
        let Append { builder, from } = self;
        match time.scale() {
            TimeScale::Ns(clock) if clock.is_cpu() => builder.each(from.rows, |frame| {
                i64::try_from(time.word(frame)).ok().filter(|&ns| ns != 0)
            }),
            TimeScale::Ticks | TimeScale::Ns(_) => builder.time(time, from),
        }
    }

    fn half(self, half: TimevalHalf) {
        self.builder.each(self.from.rows, |frame| half.get(frame));
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) {
        let Builder { values: BuilderValues::Words(words), nulls, .. } = self.builder else {
            return;
        };
        let Some(known) = self.from.keys else { return };
        self.from.rows.each(|frame| match value.get(frame) {
            Some(value) => {
                let value = value.into();
                let key = known.get(value).unwrap_or_else(|| words.number(value));
                words.keys.push(key);
                nulls.append_non_null();
            }
            None => {
                words.keys.push(0);
                nulls.append_null();
            }
        });
    }

    fn text(self, text: FixedText) {
        self.from.rows.each(|frame| self.builder.text(text.get(frame)));
    }

    fn bytes(self, value: Fixed) {
        let Builder { values: BuilderValues::Fixed(width, bytes), nulls, .. } = self.builder else {
            return;
        };
        self.from.rows.each(|frame| match value.get(frame) {
            Some(found) if found.len() == *width => {
                bytes.extend_from_slice(found);
                nulls.append_non_null();
            }
            _ => {
                bytes.resize(bytes.len() + *width, 0);
                nulls.append_null();
            }
        });
    }
}
