//! Converts text into the bytes of a field.

use chrono::{DateTime, NaiveDateTime};
use ppt_frame_dsl::schema::{Int, Schema};
use ppt_frame_dsl::{Column, ColumnType, TimeType};

use crate::decimal::scaled;

/// The destination of a column's values, and how their text is parsed.
#[derive(Debug, Clone)]
pub(crate) struct CellParser {
    /// The offset of the field in a frame.
    offset: usize,
    ty: ColumnType,
    /// The names and values of an enum.
    names: Vec<(String, i128)>,
    /// Nanoseconds per unit of a time or duration.
    unit: u64,
}

/// The mistake in the text of a cell.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(crate) enum BadCell {
    #[error("{0:?} is not a whole number from {1} to {2}")]
    Int(String, i128, i128),
    #[error("{0:?} is not a number")]
    Float(String),
    #[error("{0:?} is neither true nor false")]
    Bool(String),
    #[error("{0:?} is not a number of nanoseconds, nor of the unit that --unit names")]
    Duration(String),
    #[error(
        "{0:?} is neither a time such as 2026-11-21T15:04:05.5Z nor a number of nanoseconds, nor of \
         the unit that --unit names"
    )]
    Time(String),
    #[error(
        "{0:?} has a fraction, and a nanosecond has none: if the numbers are in seconds, say so with \
         --unit FIELD=s"
    )]
    Fraction(String),
    #[error("{0:?} is neither a name nor a number of the enum")]
    Name(String),
    #[error("the text takes {0} bytes, and the field has {1}")]
    Long(usize, u32),
    #[error("text with a NUL byte would end there")]
    Nul,
    #[error("{0:?} is not {1} bytes in hex")]
    Hex(String, u32),
}

impl CellParser {
    /// The parser of a column. `unit` is in ns. None for columns that a frame does not store, and for
    /// ticks, because no other tool could have read their clock.
    pub fn for_column(schema: &Schema, column: &Column, unit: u64) -> Option<CellParser> {
        let names = match column.ty {
            ColumnType::Length { .. } | ColumnType::Time(TimeType::Ticks) => return None,
            ColumnType::Enum { index, .. } => schema.enums.get(index)?.values.clone(),
            _ => Vec::new(),
        };
        Some(CellParser { offset: column.offset as usize, ty: column.ty, names, unit })
    }

    /// Whether values count in a unit of time.
    pub fn has_unit(&self) -> bool {
        matches!(self.ty, ColumnType::Time(_) | ColumnType::Duration)
    }

    /// Parses `text` and writes its value into `frame`.
    pub fn put(&self, frame: &mut [u8], text: &[u8]) -> Result<(), BadCell> {
        let shown = || String::from_utf8_lossy(text).into_owned();
        let word = str::from_utf8(text).unwrap_or("\u{fffd}").trim();
        match self.ty {
            ColumnType::Int(int) => self.int(frame, int, word),
            ColumnType::Addr => self.int(frame, Int::U64, word),
            ColumnType::F32 => {
                let value: f32 = word.parse().map_err(|_| BadCell::Float(shown()))?;
                self.bytes(frame, &value.to_le_bytes());
                Ok(())
            }
            ColumnType::F64 => {
                let value: f64 = word.parse().map_err(|_| BadCell::Float(shown()))?;
                self.bytes(frame, &value.to_le_bytes());
                Ok(())
            }
            ColumnType::Bool => {
                let value = match word {
                    "1" | "true" | "True" | "TRUE" => 1,
                    "0" | "false" | "False" | "FALSE" => 0,
                    _ => return Err(BadCell::Bool(shown())),
                };
                self.bytes(frame, &[value]);
                Ok(())
            }
            ColumnType::Duration => {
                self.check_fraction(word)?;
                let ns = scaled(word, self.unit).ok_or_else(|| BadCell::Duration(shown()))?;
                self.bytes(frame, &ns.to_le_bytes());
                Ok(())
            }
            ColumnType::Time(ty) => {
                self.check_fraction(word)?;
                let ns = time(word, self.unit).ok_or_else(|| BadCell::Time(shown()))?;
                self.time(frame, ty, ns);
                Ok(())
            }
            ColumnType::TimevalSeconds => self.half(frame, 0, word),
            ColumnType::TimevalMicroseconds => self.half(frame, 8, word),
            ColumnType::Enum { repr, .. } => match self.names.iter().find(|name| name.0 == word) {
                Some((_, value)) => self.number(frame, repr, *value),
                None => self.int(frame, repr, word).map_err(|_| BadCell::Name(shown())),
            },
            ColumnType::Text { len } => {
                if text.contains(&0) {
                    return Err(BadCell::Nul);
                }
                if text.len() > len as usize {
                    return Err(BadCell::Long(text.len(), len));
                }
                self.bytes(frame, text);
                Ok(())
            }
            ColumnType::Bytes { len } => {
                let bytes = hex::decode(word).ok().filter(|bytes| bytes.len() == len as usize);
                self.bytes(frame, &bytes.ok_or_else(|| BadCell::Hex(shown(), len))?);
                Ok(())
            }
            ColumnType::Length { .. } => unreachable!("no cell has this type"),
        }
    }

    /// Writes a number. Fails if the type cannot hold it.
    pub fn number(&self, frame: &mut [u8], int: Int, value: i128) -> Result<(), BadCell> {
        let (min, max) = int.range();
        if value < min || value > max {
            return Err(BadCell::Int(value.to_string(), min, max));
        }
        self.bytes(frame, &value.to_le_bytes()[..int.size() as usize]);
        Ok(())
    }

    /// Writes a time of `ns` nanoseconds.
    pub fn time(&self, frame: &mut [u8], ty: TimeType, ns: i64) {
        let (seconds, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        let rest = match ty {
            TimeType::Ticks | TimeType::Ns(_) => return self.bytes(frame, &ns.to_le_bytes()),
            TimeType::Timespec(_) => rest,
            TimeType::Timeval => rest / 1000,
        };
        self.bytes(frame, &seconds.to_le_bytes());
        if let Some(half) = frame.get_mut(self.offset + 8..self.offset + 16) {
            half.copy_from_slice(&rest.to_le_bytes());
        }
    }

    /// Writes bytes. A checked schema has no field that reaches beyond its frame.
    pub fn bytes(&self, frame: &mut [u8], bytes: &[u8]) {
        if let Some(field) = frame.get_mut(self.offset..self.offset + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }

    fn int(&self, frame: &mut [u8], int: Int, word: &str) -> Result<(), BadCell> {
        let (min, max) = int.range();
        let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let value = match hex {
            Some(digits) if !digits.starts_with(['+', '-']) => i128::from_str_radix(digits, 16),
            _ => word.parse(),
        };
        let value = value.map_err(|_| BadCell::Int(word.to_owned(), min, max))?;
        self.number(frame, int, value)
    }

    /// Rejects nanoseconds with a fraction, because they are most likely seconds.
    fn check_fraction(&self, word: &str) -> Result<(), BadCell> {
        let is_fraction = self.unit == 1 && word.contains('.') && scaled(word, 1).is_some();
        if is_fraction { Err(BadCell::Fraction(word.to_owned())) } else { Ok(()) }
    }

    /// Writes the seconds or microseconds of a timeval. An empty cell is 0, a time that was not recorded.
    fn half(&self, frame: &mut [u8], offset: usize, word: &str) -> Result<(), BadCell> {
        let cell = CellParser { offset: self.offset + offset, ..self.clone() };
        cell.int(frame, Int::I64, if word.is_empty() { "0" } else { word })
    }
}

/// The nanoseconds of a time. An empty cell is 0, a time that was not recorded.
fn time(word: &str, unit: u64) -> Option<i64> {
    if word.is_empty() {
        return Some(0);
    }
    if let Some(ns) = scaled(word, unit) {
        return Some(ns);
    }
    let with_offset = DateTime::parse_from_rfc3339(word).ok().map(|time| time.to_utc());
    let without = || {
        let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
        formats.iter().find_map(|format| NaiveDateTime::parse_from_str(word, format).ok())
    };
    with_offset.or_else(|| without().map(|without| without.and_utc()))?.timestamp_nanos_opt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_frame_dsl::{Style, columns, compile};

    /// The bytes of a field. A time is a `timeval`, or `realtime`.
    fn put(field: &str, text: &str) -> Result<Vec<u8>, BadCell> {
        let (time, field) = match field.strip_prefix("realtime ") {
            Some(name) => ("ns realtime", format!("time {name}")),
            None => ("timeval", field.to_owned()),
        };
        let file = format!("option time {time}; enum E {{ A, B = 7 }} frame f {{ {field}; }}");
        let schema = compile(file.as_bytes(), "f.frame").unwrap().schema;
        let columns = columns(&schema, &schema.frames[0], Style::Sql);
        let mut frame = vec![0; schema.stride as usize];
        let cell = CellParser::for_column(&schema, &columns[0], 1).unwrap();
        cell.put(&mut frame, text.as_bytes())?;
        Ok(frame[8..].to_vec())
    }

    fn is(field: &str, text: &str, bytes: &[u8]) {
        let found = put(field, text).unwrap();
        assert_eq!(&found[..bytes.len()], bytes, "{field} {text}");
        assert!(found[bytes.len()..].iter().all(|&it| it == 0), "{field} {text}");
    }

    #[test]
    fn text_becomes_the_value_of_its_type() {
        is("u8 x", "255", &[255]);
        is("i16 x", "-2", &(-2i16).to_le_bytes());
        is("u64 x", "18446744073709551615", &[255; 8]);
        is("u32 x", "0xff", &[255, 0, 0, 0]);
        is("addr x", "0x55d4c0de", &0x55d4_c0de_u64.to_le_bytes());
        is("f64 x", "1.5", &1.5f64.to_le_bytes());
        is("bool x", "true", &[1]);
        is("E x", "B", &[7]);
        is("E x", "9", &[9]);
        is("char x[4]", "añ", "añ".as_bytes());
        is("bytes x[2]", "0aFF", &[10, 255]);
        is("duration x", "-5", &(-5i64).to_le_bytes());
    }

    #[test]
    fn times_are_numbers_or_dates() {
        let ns = 1_795_273_445_500_000_000i64.to_le_bytes();
        let field = "realtime x";
        for text in ["1795273445500000000", "2026-11-21T15:04:05.5Z", "2026-11-21 16:04:05.5+01:00"]
        {
            is(field, text, &ns);
        }
        is(field, "2026-11-21 15:04:05.5", &ns);
        is(field, "", &[0; 8]);
        let mut timeval = 1_795_273_445i64.to_le_bytes().to_vec();
        timeval.extend(500_000i64.to_le_bytes());
        is("time x", "2026-11-21T15:04:05.5Z", &timeval);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        assert_eq!(put("u8 x", "256"), Err(BadCell::Int("256".into(), 0, 255)));
        for (field, text) in [
            ("u8 x", ""),
            ("u8 x", "1.0"),
            ("u8 x", "0x-1"),
            ("f32 x", "one"),
            ("bool x", "2"),
            ("E x", "C"),
            ("char x[4]", "longer"),
            ("char x[4]", "a\0"),
            ("bytes x[2]", "0a"),
            ("bytes x[2]", "+a+b"),
            ("duration x", "1s"),
            ("duration x", "0.5"),
            ("realtime x", "1795273445.25"),
            ("realtime x", "yesterday"),
            ("realtime x", "9999-01-01T00:00:00Z"),
        ] {
            assert!(put(field, text).is_err(), "{field} {text:?}");
        }
    }
}
