//! A kind of frame, and what its fields hold.

use ppt_capture::Stamps;
use ppt_capture::columns::{Access, Fixed, Half, Integer, Names, Reader, Text, Time, Visitor};
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{ColumnType, Measure, Style, columns};

use crate::pairs::Pairs;
use crate::rate::Rate;
use crate::recent::Recent;
use crate::words::Frequent;

/// Of each chunk and field at most so many values are taken for the most frequent ones.
const SAMPLE: usize = 256;
/// Bytes of a text that are looked at.
const TEXT: usize = 64;

/// A kind of frame.
pub(crate) struct Kind {
    pub buffer: String,
    pub name: String,
    pub schema_hash: u64,
    pub rate: Rate,
    pub fields: Vec<Field>,
    /// Of which spans they are.
    pub spans: Option<Pairs>,
}

/// A field, or an interval.
pub(crate) struct Field {
    pub name: String,
    pub unit: String,
    pub is_interval: bool,
    reader: Reader,
    pub values: Values,
}

/// What came of a field.
pub(crate) struct Values {
    /// None: it has no numbers.
    pub numbers: Option<Recent>,
    pub words: Seen,
}

/// The most frequent values.
pub(crate) enum Seen {
    Nothing,
    Whole(Frequent<i128>),
    Text(Frequent<Vec<u8>>),
}

impl Kind {
    /// A kind with at most `most` fields. Points in time and bytes are none that say much.
    pub fn new(
        (buffer, schema_hash): (&str, u64),
        schema: &Schema,
        frame: &Frame,
        stretch: Option<u64>,
        most: usize,
    ) -> Kind {
        let mut all: Vec<_> = columns(schema, frame, Style::Sql)
            .into_iter()
            .filter(|it| !matches!(it.ty, ColumnType::Time(_) | ColumnType::Bytes { .. }))
            .collect();
        // Intervals say most.
        all.sort_by_key(|it| !matches!(it.ty, ColumnType::Length { .. }));
        let fields = all.into_iter().take(most).map(|column| {
            let is_time = matches!(
                column.ty,
                ColumnType::Duration
                    | ColumnType::Length { of: Measure::Duration | Measure::Time(_), .. }
            );
            let said = &frame.fields[column.field].unit;
            let unit = if said.is_empty() && is_time { "ns" } else { said.as_str() };
            let has_numbers = !matches!(
                column.ty,
                ColumnType::Enum { .. } | ColumnType::Bool | ColumnType::Text { .. }
            );
            let words = match column.ty {
                ColumnType::Text { .. } => Seen::Text(Frequent::default()),
                ColumnType::Enum { .. } | ColumnType::Bool | ColumnType::Int(_) => {
                    Seen::Whole(Frequent::default())
                }
                _ => Seen::Nothing,
            };
            Field {
                unit: unit.to_owned(),
                is_interval: matches!(column.ty, ColumnType::Length { .. }),
                reader: Reader::new(schema, &column),
                values: Values { numbers: has_numbers.then(|| Recent::new(stretch)), words },
                name: column.name,
            }
        });
        Kind {
            buffer: buffer.to_owned(),
            name: frame.name.clone(),
            schema_hash,
            rate: Rate::default(),
            fields: fields.collect(),
            spans: Pairs::of(schema, frame, stretch),
        }
    }

    /// Takes in frames of this kind, which a process wrote, and which were drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        self.rate.add(now, rows.len() as u64);
        for field in &mut self.fields {
            field.reader.visit(stamps, Take { rows, now, to: &mut field.values });
        }
        if let Some(spans) = &mut self.spans {
            spans.add(rows, process, now, stamps);
        }
    }

    /// Pairs the begins and ends of spans whose order is known at `now`.
    pub fn advance(&mut self, now: u64) {
        if let Some(spans) = &mut self.spans {
            spans.advance(now);
        }
    }

    /// Lets what is old weigh less.
    pub fn fade(&mut self) {
        for field in &mut self.fields {
            match &mut field.values.words {
                Seen::Nothing => {}
                Seen::Whole(words) => words.fade(),
                Seen::Text(words) => words.fade(),
            }
        }
    }
}

impl Field {
    /// A value as the schema calls it.
    pub fn word(&self, value: i128) -> String {
        match (self.reader.ty(), value) {
            (ColumnType::Bool, 0) => "false".to_owned(),
            (ColumnType::Bool, _) => "true".to_owned(),
            _ => self.reader.names().get(value).map_or_else(|| value.to_string(), str::to_owned),
        }
    }
}

/// Takes the values of rows.
struct Take<'a> {
    rows: &'a [&'a [u8]],
    now: u64,
    to: &'a mut Values,
}

impl Take<'_> {
    fn numbers<T>(&mut self, value: impl Access<Value = T>, float: impl Fn(T) -> f64) {
        let Some(numbers) = &mut self.to.numbers else { return };
        let half = numbers.at(self.now);
        self.rows.iter().filter_map(|row| value.get(row)).for_each(|it| half.add(float(it)));
    }

    /// A few rows, one of each equal part, anywhere in it: frames often repeat in some rhythm.
    fn sample(&self) -> impl Iterator<Item = &[u8]> {
        let mut random = self.now | 1;
        self.rows.chunks(self.rows.len().div_ceil(SAMPLE).max(1)).map(move |part| {
            // Xorshift, after Marsaglia.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            part[random as usize % part.len()]
        })
    }

    fn whole(self, value: impl Fn(&[u8]) -> Option<i128>) {
        let sample: Vec<i128> = self.sample().filter_map(value).collect();
        if let Seen::Whole(words) = &mut self.to.words {
            sample.iter().for_each(|it| words.add(it));
        }
    }
}

impl Visitor for Take<'_> {
    type Output = ();

    fn integer<T: Integer>(mut self, value: impl Access<Value = T>) {
        self.numbers(value, |it| match T::SIGNED {
            true => it.bits() as i64 as f64,
            false => it.bits() as f64,
        });
        self.whole(|row| value.get(row).map(Into::into));
    }

    fn single(mut self, value: impl Access<Value = f32>) {
        self.numbers(value, f64::from);
    }

    fn double(mut self, value: impl Access<Value = f64>) {
        self.numbers(value, |it| it);
    }

    fn boolean(self, value: impl Access<Value = u8>) {
        self.whole(|row| value.get(row).map(|it| i128::from(it != 0)));
    }

    fn duration(mut self, value: impl Access<Value = i64>) {
        self.numbers(value, |it| it as f64);
    }

    fn time(self, _: Time) {}

    fn half(self, _: Half) {}

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &Names) {
        self.whole(|row| value.get(row).map(Into::into));
    }

    fn text(self, text: Text) {
        let cut = |row| text.get(row).map(|it| it[..it.len().min(TEXT)].to_vec());
        let sample: Vec<Vec<u8>> = self.sample().filter_map(cut).collect();
        if let Seen::Text(words) = &mut self.to.words {
            sample.iter().for_each(|it| words.add(it.as_slice()));
        }
    }

    fn bytes(self, _: Fixed) {}
}
