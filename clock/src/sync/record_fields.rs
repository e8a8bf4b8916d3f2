//! The fields of one line.

use super::error::RecordError;
use super::limits::is_name;
use crate::ClockId;

/// Most fields of a line, including its first word.
const MAX_FIELDS: usize = 9;

/// The fields after the first word.
pub(super) struct RecordFields<'a> {
    fields: [&'a [u8]; MAX_FIELDS],
}

impl<'a> RecordFields<'a> {
    /// The fields of `line` after `word`. There must be `expected` of them.
    pub(super) fn split_line(
        line: &'a [u8],
        word: &'static str,
        expected: usize,
    ) -> Result<Self, RecordError> {
        let mut fields = [&line[..0]; MAX_FIELDS];
        let mut found = 0;
        for field in line.split(|&byte| byte == b'\t') {
            if let Some(place) = fields.get_mut(found) {
                *place = field;
            }
            found += 1;
        }
        match found - 1 {
            found if found != expected => Err(RecordError::Fields { word, expected, found }),
            _ => Ok(Self { fields }),
        }
    }

    pub(super) fn number(&self, field: usize) -> Result<u64, RecordError> {
        let mut number = 0u64;
        let digits = self.fields[field];
        for digit in digits {
            let more = digit.is_ascii_digit().then(|| u64::from(digit - b'0'));
            let sum = more.and_then(|n| number.checked_mul(10)?.checked_add(n));
            number = sum.ok_or(RecordError::Number { field })?;
        }
        match digits {
            [] => Err(RecordError::Number { field }),
            _ => Ok(number),
        }
    }

    pub(super) fn signed(&self, field: usize) -> Result<i64, RecordError> {
        let wrong = RecordError::Number { field };
        match self.fields[field] {
            [b'-', digits @ ..] => {
                let mut fields = Self { fields: self.fields };
                fields.fields[field] = digits;
                0i64.checked_sub_unsigned(fields.number(field)?).ok_or(wrong)
            }
            _ => i64::try_from(self.number(field)?).map_err(|_| wrong),
        }
    }

    pub(super) fn index(&self, field: usize) -> Result<u32, RecordError> {
        u32::try_from(self.number(field)?).map_err(|_| RecordError::Number { field })
    }

    pub(super) fn name(&self, field: usize) -> Result<&'a str, RecordError> {
        let name = std::str::from_utf8(self.fields[field]).ok().filter(|text| is_name(text));
        name.ok_or(RecordError::Name { field })
    }

    pub(super) fn clock(&self, field: usize) -> Result<ClockId, RecordError> {
        let clock = ClockId::ALL.into_iter().find(|id| id.name().as_bytes() == self.fields[field]);
        clock.ok_or(RecordError::Clock { field })
    }

    /// Two readings of one clock, before and after an event.
    pub(super) fn around(&self, before: usize, after: usize) -> Result<(u64, u64), RecordError> {
        let (before, after) = (self.number(before)?, self.number(after)?);
        if before <= after {
            Ok((before, after))
        } else {
            Err(RecordError::Backwards { before, after })
        }
    }

    /// Two hosts.
    pub(super) fn hosts(&self) -> Result<(u32, u32), RecordError> {
        let (from, to) = (self.index(1)?, self.index(2)?);
        if from == to { Err(RecordError::SameHost { host: from }) } else { Ok((from, to)) }
    }
}
