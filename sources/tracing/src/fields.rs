//! The fields of a span or an event, as a frame holds them: six numbers, and a line of text.

use std::fmt::{self, Write};

use tracing_core::Field;
use tracing_core::field::Visit;

/// The type of a number, as `tracing.frame` defines it.
#[derive(Clone, Copy)]
enum NumberType {
    U64 = 1,
    I64 = 2,
    F64 = 3,
    Bool = 4,
}

/// Numbers, and text of at most `N` bytes.
pub(crate) struct Fields<const N: usize> {
    /// The field and the type of each number in `whole` and `floats`, as `tracing.frame` defines them.
    pub(crate) types: [u8; WHOLE + FLOATS],
    pub(crate) whole: [i64; WHOLE],
    pub(crate) floats: [f64; FLOATS],
    pub(crate) text: CutText<N>,
    /// Whether a number or some text did not fit.
    pub(crate) cut: bool,
}

/// The number of integers and of floats in a frame.
const WHOLE: usize = 4;
const FLOATS: usize = 2;

impl<const N: usize> Fields<N> {
    pub(crate) const fn new() -> Self {
        Self {
            types: [0; WHOLE + FLOATS],
            whole: [0; WHOLE],
            floats: [0.0; FLOATS],
            text: CutText::new(),
            cut: false,
        }
    }

    /// Takes a free number for a field, and returns its index; `None` if there is none.
    fn take(
        &mut self,
        free: std::ops::Range<usize>,
        field: &Field,
        number: NumberType,
    ) -> Option<usize> {
        let position = u8::try_from(field.index()).ok().filter(|position| *position < 32);
        let found = free.clone().find(|index| self.types[*index] == 0);
        match (position, found) {
            (Some(position), Some(index)) => {
                self.types[index] = position << 3 | number as u8;
                Some(index - free.start)
            }
            _ => {
                self.cut = true;
                None
            }
        }
    }

    fn whole(&mut self, field: &Field, number: NumberType, value: i64) {
        if let Some(index) = self.take(0..WHOLE, field, number) {
            self.whole[index] = value;
        }
    }

    /// Begins a text field. The name of a field precedes its text, except for the message.
    fn name(&mut self, field: &Field) {
        if self.text.length > 0 {
            self.text.push(" ");
        }
        if field.name() != "message" {
            self.text.push(field.name());
            self.text.push("=");
        }
    }

    fn finish(&mut self) {
        self.cut |= self.text.cut;
    }
}

impl<const N: usize> Visit for Fields<N> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if !is_location(field) {
            self.whole(field, NumberType::U64, value as i64);
        }
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.whole(field, NumberType::I64, value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.whole(field, NumberType::Bool, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        if let Some(index) = self.take(WHOLE..WHOLE + FLOATS, field, NumberType::F64) {
            self.floats[index] = value;
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        if is_location(field) {
            return;
        }
        self.name(field);
        self.text.push(value);
        self.finish();
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if is_location(field) {
            return;
        }
        self.name(field);
        // Writing into a line does not fail.
        let _ = write!(self.text, "{value:?}");
        self.finish();
    }
}

/// Whether a field is part of the location of a record of the crate `log`, which the frame's target states.
fn is_location(field: &Field) -> bool {
    cfg!(feature = "log") && field.name().starts_with("log.")
}

/// A text that is cut at `N` bytes, between characters.
pub(crate) struct CutText<const N: usize> {
    bytes: [u8; N],
    length: usize,
    cut: bool,
}

impl<const N: usize> CutText<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], length: 0, cut: false }
    }

    pub(crate) fn push(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let mut count = text.len().min(N - self.length);
        self.cut = count < text.len();
        while !text.is_char_boundary(count) {
            count -= 1; // 0 is a boundary
        }
        self.bytes[self.length..self.length + count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

/// Never fails, because a program may panic if its `Debug` fails.
impl<const N: usize> Write for CutText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_characters() {
        let mut line = CutText::<8>::new();
        write!(line, "größe-{}", 17).unwrap();
        assert_eq!((line.as_str(), line.cut), ("größe-", true), "7 bytes, then 1, then none");
        line.push("x");
        assert_eq!(line.as_str(), "größe-", "nothing comes after what is missing");
    }
}
