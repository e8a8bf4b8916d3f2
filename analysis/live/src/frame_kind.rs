//! A frame type and the values of its fields.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimevalHalf, Visitor,
};
use ppt_capture::frame_dsl::role::SpanHalf;
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{Column, ColumnType, Measure, Style, columns};
use ppt_stats::Budget;

use crate::frequent::Frequent;
use crate::keys::RecentKeys;
use crate::pairs::Pairs;
use crate::rate::Rate;
use crate::recent::Recent;

/// The most values per chunk and field that are sampled for the most frequent ones.
const SAMPLE: usize = 256;
/// Bytes of a text that are compared.
const TEXT: usize = 64;

/// A frame type.
pub(crate) struct FrameKind {
    pub buffer: String,
    pub name: String,
    pub schema_hash: u64,
    pub rate: Rate,
    pub fields: Vec<Field>,
    /// Its spans.
    pub spans: Option<Pairs>,
    /// The step of a span or a chain, if fields are reported step by step.
    mark: Option<Mark>,
}

/// The step of a frame.
struct Mark {
    at: usize,
    len: usize,
    /// The steps, as their bytes in a frame.
    steps: Vec<u64>,
}

/// Limits of memory.
pub(crate) struct Memory<'a> {
    /// The time covered by the reported values, in ns; None: all.
    pub stretch: Option<u64>,
    /// The number of fields of the type.
    pub most: usize,
    /// Bytes for distinct keys.
    pub budget: &'a Budget,
}

/// A field or an interval.
pub(crate) struct Field {
    pub name: String,
    /// The number and name of the step that is reported; None: all steps.
    pub step: Option<(usize, String)>,
    pub unit: String,
    pub is_interval: bool,
    reader: Reader,
    pub values: LiveValues,
}

/// The values of a field.
pub(crate) struct LiveValues {
    /// None if it has no numbers.
    pub numbers: Option<Recent>,
    pub words: FrequentValues,
    /// For keys and hashes.
    pub keys: Option<RecentKeys>,
    /// Whether any value was not 0, which shows that the program sets the field.
    pub is_set: bool,
}

/// The most frequent values.
pub(crate) enum FrequentValues {
    Nothing,
    Whole(Frequent<i128>),
    Text(Frequent<Vec<u8>>),
}

impl FrameKind {
    /// A frame type. Omits points in time and bytes that are not keys, which are not informative.
    pub fn new(
        (buffer, schema_hash): (&str, u64),
        schema: &Schema,
        frame: &Frame,
        memory: &Memory<'_>,
    ) -> FrameKind {
        let stretch = memory.stretch;
        let is_identity = |column: &Column| {
            let field = &frame.fields[column.field];
            field.is_key() || field.hash().is_some()
        };
        let mut all: Vec<_> = columns(schema, frame, Style::Sql)
            .into_iter()
            .filter(|column| !matches!(column.ty, ColumnType::Time(_)))
            .filter(|column| !matches!(column.ty, ColumnType::Bytes { .. }) || is_identity(column))
            .collect();
        // Intervals come first, because they are the most informative.
        all.sort_by_key(|column| !matches!(column.ty, ColumnType::Length { .. }));
        let mark = Mark::new(schema, frame);
        let steps = frame.steps(schema);
        let of_steps = all.into_iter().flat_map(|column| {
            let field = &frame.fields[column.field];
            let is_of_all = mark.is_none() || field.is_key() || field.is_own();
            let half = frame.only_half(field).map(SpanHalf::word);
            let named = steps.iter().enumerate();
            let wanted = named.filter(|(_, step)| half.is_none_or(|half| half == step.0));
            let told: Vec<Option<(usize, String)>> = if is_of_all {
                vec![None]
            } else {
                wanted.map(|(number, step)| Some((number, step.0.clone()))).collect()
            };
            told.into_iter().map(move |step| (column.clone(), step))
        });
        let fields = of_steps.take(memory.most).map(|(column, step)| {
            let is_time = matches!(
                column.ty,
                ColumnType::Duration
                    | ColumnType::Length { of: Measure::Duration | Measure::Time(_), .. }
            );
            let field = &frame.fields[column.field];
            let unit = if field.unit.is_empty() && is_time { "ns" } else { field.unit.as_str() };
            // Words say which they are.
            let is_word = matches!(column.ty, ColumnType::Enum { .. } | ColumnType::Bool);
            let keys = RecentKeys::new(schema, field, stretch, memory.budget).filter(|_| !is_word);
            let has_numbers = !matches!(
                column.ty,
                ColumnType::Enum { .. }
                    | ColumnType::Bool
                    | ColumnType::Addr
                    | ColumnType::Text { .. }
            );
            let words = match column.ty {
                ColumnType::Text { .. } => FrequentValues::Text(Frequent::default()),
                ColumnType::Enum { .. }
                | ColumnType::Bool
                | ColumnType::Int(_)
                | ColumnType::Addr => FrequentValues::Whole(Frequent::default()),
                _ => FrequentValues::Nothing,
            };
            let numbers = (has_numbers && keys.is_none()).then(|| Recent::new(stretch));
            Field {
                unit: unit.to_owned(),
                is_interval: matches!(column.ty, ColumnType::Length { .. }),
                reader: Reader::new(schema, &column),
                values: LiveValues { numbers, words, keys, is_set: false },
                name: column.name,
                step,
            }
        });
        FrameKind {
            buffer: buffer.to_owned(),
            name: frame.name.clone(),
            schema_hash,
            rate: Rate::default(),
            fields: fields.collect(),
            spans: Pairs::new(schema, frame, stretch),
            mark,
        }
    }

    /// Adds frames of this type from one process, drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        self.rate.add(now, rows.len() as u64);
        let by_step = self.mark.as_ref().map(|mark| mark.divided(rows)).unwrap_or_default();
        for field in &mut self.fields {
            let rows = match &field.step {
                Some((step, _)) => &by_step[*step],
                None => rows,
            };
            if let Some(keys) = &mut field.values.keys {
                keys.add(rows, now);
            }
            field.reader.visit(stamps, Take { rows, now, to: &mut field.values });
        }
        if let Some(spans) = &mut self.spans {
            spans.add(rows, process, now, stamps);
        }
    }

    /// Pairs the begins and ends of spans with an order known at `now`.
    pub fn advance(&mut self, now: u64) {
        if let Some(spans) = &mut self.spans {
            spans.advance(now);
        }
    }

    /// The fields reported. A step with only zeros does not set a field if another step does; if
    /// none does, one step stands for all.
    pub fn shown_fields(&self) -> impl Iterator<Item = &Field> {
        let all = self.fields.iter().enumerate();
        all.filter(|(at, field)| self.is_told(*at, field)).map(|(_, field)| field)
    }

    fn is_told(&self, at: usize, field: &Field) -> bool {
        if field.step.is_none() || field.values.is_set {
            return true;
        }
        let same = |other: &&Field| other.name == field.name;
        let some_is_set = self.fields.iter().filter(same).any(|other| other.values.is_set);
        let is_first = !self.fields[..at].iter().any(|other| same(&other));
        !some_is_set && is_first
    }

    /// Reduces the weight of old values.
    pub fn fade(&mut self) {
        for field in &mut self.fields {
            match &mut field.values.words {
                FrequentValues::Nothing => {}
                FrequentValues::Whole(words) => words.fade(),
                FrequentValues::Text(words) => words.fade(),
            }
        }
    }
}

impl Mark {
    /// None if these frames belong to no span and no chain.
    fn new(schema: &Schema, frame: &Frame) -> Option<Mark> {
        frame.span().map(drop).or_else(|| frame.chain().map(drop))?;
        let field = frame.fields.iter().find(|field| field.is_mark())?;
        let steps = frame.steps(schema).iter().map(|step| step.1 as u64).collect();
        let (at, len) = (field.offset as usize, field.ty.size(schema) as usize);
        Some(Mark { at, len, steps })
    }

    /// The frames of each step.
    fn divided<'a>(&self, rows: &[&'a [u8]]) -> Vec<Vec<&'a [u8]>> {
        let mut all = vec![Vec::new(); self.steps.len()];
        // A value below 0 has no more bytes than the field.
        let mask = u64::MAX >> (64 - 8 * self.len.clamp(1, 8));
        for row in rows {
            let Some(bytes) = row.get(self.at..self.at + self.len) else { continue };
            let mut value = [0; 8];
            value[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            let value = u64::from_le_bytes(value);
            if let Some(step) = self.steps.iter().position(|step| step & mask == value) {
                all[step].push(*row);
            }
        }
        all
    }
}

impl Field {
    /// The schema's name of a value.
    pub fn word(&self, value: i128) -> String {
        match (self.reader.ty(), value) {
            (ColumnType::Bool, 0) => "false".to_owned(),
            (ColumnType::Bool, _) => "true".to_owned(),
            (ColumnType::Addr, value) => format!("{value:#x}"),
            _ => self.reader.names().get(value).map_or_else(|| value.to_string(), str::to_owned),
        }
    }
}

/// Receives the values of rows.
struct Take<'a> {
    rows: &'a [&'a [u8]],
    now: u64,
    to: &'a mut LiveValues,
}

impl Take<'_> {
    fn numbers<T>(&mut self, value: impl Access<Value = T>, float: impl Fn(T) -> f64) {
        let Some(numbers) = &mut self.to.numbers else { return };
        let half = numbers.at(self.now);
        for value in self.rows.iter().filter_map(|row| value.get(row)).map(float) {
            self.to.is_set |= value != 0.0;
            half.add(value);
        }
    }

    /// Samples a few rows, one at random from each equal part, because frames often repeat in a
    /// rhythm.
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
        let is_other = |row: &&[u8]| value(row).is_some_and(|value| value != 0);
        self.to.is_set = self.to.is_set || self.rows.iter().any(is_other);
        let sample: Vec<i128> = self.sample().filter_map(value).collect();
        if let FrequentValues::Whole(words) = &mut self.to.words {
            sample.iter().for_each(|number| words.add(number));
        }
    }
}

impl Visitor for Take<'_> {
    type Output = ();

    fn integer<T: Integer>(mut self, value: impl Access<Value = T>) {
        self.numbers(
            value,
            |it| if T::SIGNED { it.bits() as i64 as f64 } else { it.bits() as f64 },
        );
        self.whole(|row| value.get(row).map(Into::into));
    }

    fn single(mut self, value: impl Access<Value = f32>) {
        self.numbers(value, f64::from);
    }

    fn double(mut self, value: impl Access<Value = f64>) {
        self.numbers(value, |value| value);
    }

    fn boolean(self, value: impl Access<Value = u8>) {
        self.whole(|row| value.get(row).map(|byte| i128::from(byte != 0)));
    }

    fn duration(mut self, value: impl Access<Value = i64>) {
        self.numbers(value, |number| number as f64);
    }

    fn time(self, _: Time) {}

    fn half(self, _: TimevalHalf) {}

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) {
        self.whole(|row| value.get(row).map(Into::into));
    }

    fn text(self, text: FixedText) {
        let is_other = |row: &&[u8]| text.get(row).is_some_and(|text| !text.is_empty());
        self.to.is_set = self.to.is_set || self.rows.iter().any(is_other);
        let cut = |row| text.get(row).map(|text| text[..text.len().min(TEXT)].to_vec());
        let sample: Vec<Vec<u8>> = self.sample().filter_map(cut).collect();
        if let FrequentValues::Text(words) = &mut self.to.words {
            sample.iter().for_each(|bytes| words.add(bytes.as_slice()));
        }
    }

    fn bytes(self, _: Fixed) {}
}
