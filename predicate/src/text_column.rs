//! Columns of text and of bytes.

use std::borrow::Cow;

use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimevalHalf, Visitor,
};

use crate::ast::Comparison;
use crate::like::Pattern;
use crate::row::PredicateRow;

/// A test of text or bytes. Text is ordered by its bytes.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    Compare(Comparison, Vec<u8>),
    Between(Vec<u8>, Vec<u8>),
    /// Sorted.
    In(Vec<Vec<u8>>),
    Like(Pattern),
}

impl Test {
    pub fn holds(&self, value: &[u8]) -> bool {
        match self {
            Test::Compare(comparison, with) => comparison.holds(value.cmp(with)),
            Test::Between(low, high) => low.as_slice() <= value && value <= high.as_slice(),
            Test::In(list) => list.binary_search_by(|bytes| bytes.as_slice().cmp(value)).is_ok(),
            // The value is UTF-8.
            Test::Like(pattern) => std::str::from_utf8(value).is_ok_and(|text| pattern.fits(text)),
        }
    }
}

/// A column of text, bytes or names of values.
#[derive(Debug, Clone)]
pub(crate) struct TextColumn(pub Reader);

impl TextColumn {
    /// The value in a row, as in SQL: text with invalid bytes replaced, or the name of a value or
    /// its number.
    pub fn get<'a>(&self, row: &PredicateRow<'a>) -> Option<Cow<'a, [u8]>> {
        self.0.visit(row.chunk.stamps, Get { bytes: row.bytes, names: self.0.names() })
    }
}

struct Get<'a, 'n> {
    bytes: &'a [u8],
    names: &'n EnumNames,
}

impl<'a> Visitor for Get<'a, '_> {
    type Output = Option<Cow<'a, [u8]>>;

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) -> Self::Output {
        let value = value.get(self.bytes)?.into();
        let name = self.names.get(value).map(str::to_owned);
        Some(Cow::Owned(name.unwrap_or_else(|| value.to_string()).into_bytes()))
    }

    fn text(self, text: FixedText) -> Self::Output {
        Some(match String::from_utf8_lossy(text.get(self.bytes)?) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }

    fn bytes(self, bytes: Fixed) -> Self::Output {
        bytes.get(self.bytes).map(Cow::Borrowed)
    }

    // Numbers are read by `ComparedNumber`.
    fn integer<T: Integer>(self, _: impl Access<Value = T>) -> Self::Output {
        None
    }

    fn single(self, _: impl Access<Value = f32>) -> Self::Output {
        None
    }

    fn double(self, _: impl Access<Value = f64>) -> Self::Output {
        None
    }

    fn boolean(self, _: impl Access<Value = u8>) -> Self::Output {
        None
    }

    fn duration(self, _: impl Access<Value = i64>) -> Self::Output {
        None
    }

    fn time(self, _: Time) -> Self::Output {
        None
    }

    fn half(self, _: TimevalHalf) -> Self::Output {
        None
    }
}
