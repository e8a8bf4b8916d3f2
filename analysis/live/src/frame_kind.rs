//! A kind of frames and the values of its fields.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimevalHalf, Visitor,
};
use ppt_capture::frame_dsl::role::SpanHalf;
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{Column, ColumnType, Measure, Style, columns};
use ppt_stats::Budget;

use crate::frequent::Frequent;
use crate::rate::Rate;
use crate::recent_keys::RecentKeys;
use crate::recent_numbers::RecentNumbers;
use crate::span_pairs::SpanPairs;

/// The most values per chunk and field that are sampled for the most frequent ones.
const MAX_SAMPLE: usize = 256;
/// The number of bytes by which texts are compared.
const TEXT_BYTES: usize = 64;

/// A kind of frames.
pub(crate) struct FrameKind {
    pub buffer: String,
    pub name: String,
    pub schema_hash: u64,
    pub rate: Rate,
    pub fields: Vec<Field>,
    /// The spans of its frames. None if they mark no spans.
    pub spans: Option<SpanPairs>,
    /// The field with the step of a span or a chain. None if fields are not reported step by step.
    step_field: Option<StepField>,
}

/// The field of a frame that holds its step.
struct StepField {
    offset: usize,
    len: usize,
    /// The value of the field for each step.
    steps: Vec<u64>,
}

/// The limits of a kind of frames.
pub(crate) struct KindLimits<'a> {
    /// The length of a period in ns. Values cover one or two periods; None if all time.
    pub period: Option<u64>,
    /// The most fields of the kind.
    pub max_fields: usize,
    /// Bytes for distinct keys.
    pub budget: &'a Budget,
}

/// A field or an interval.
pub(crate) struct Field {
    pub name: String,
    /// The step that is reported. None if all steps are.
    pub step: Option<FieldStep>,
    pub unit: String,
    pub is_interval: bool,
    reader: Reader,
    pub values: LiveValues,
}

/// The step of which a field is reported.
pub(crate) struct FieldStep {
    /// The index in the steps of the kind.
    number: usize,
    pub name: String,
}

/// The values of a field.
pub(crate) struct LiveValues {
    /// The distribution of numbers. None if the values are not numbers.
    pub numbers: Option<RecentNumbers>,
    pub words: FrequentValues,
    /// The distinct values of a key or a hash. None for other fields.
    pub keys: Option<RecentKeys>,
    /// Whether any value was not 0, which shows that the program sets the field.
    pub is_set: bool,
}

/// The most frequent values.
pub(crate) enum FrequentValues {
    /// The values are not counted.
    Nothing,
    Whole(Frequent<i128>),
    Text(Frequent<Vec<u8>>),
}

impl FrameKind {
    /// A kind of frames of a buffer with this schema. Leaves out points in time, and bytes that are not keys,
    /// because they are not informative.
    pub fn new(
        (buffer, schema_hash): (&str, u64),
        schema: &Schema,
        frame: &Frame,
        limits: &KindLimits<'_>,
    ) -> FrameKind {
        let is_identity = |column: &Column| {
            let field = &frame.fields[column.field];
            field.is_key() || field.hash().is_some()
        };
        let mut informative: Vec<_> = columns(schema, frame, Style::Sql)
            .into_iter()
            .filter(|column| !matches!(column.ty, ColumnType::Time(_)))
            .filter(|column| !matches!(column.ty, ColumnType::Bytes { .. }) || is_identity(column))
            .collect();
        // Intervals come first, because they are the most informative.
        informative.sort_by_key(|column| !matches!(column.ty, ColumnType::Length { .. }));
        let step_field = StepField::new(schema, frame);
        let steps = frame.steps(schema);
        let by_step = informative.into_iter().flat_map(|column| {
            let field = &frame.fields[column.field];
            let has_all_steps = step_field.is_none() || field.is_key() || field.is_own();
            let half = frame.only_half(field).map(SpanHalf::word);
            let numbered = steps.iter().enumerate();
            let reported = numbered.filter(|(_, step)| half.is_none_or(|half| half == step.0));
            let field_steps: Vec<Option<FieldStep>> = if has_all_steps {
                vec![None]
            } else {
                let names = reported.map(|(number, step)| (number, step.0.clone()));
                names.map(|(number, name)| Some(FieldStep { number, name })).collect()
            };
            field_steps.into_iter().map(move |step| (column.clone(), step))
        });
        let fields = by_step.take(limits.max_fields);
        let fields = fields.map(|(column, step)| Field::new(schema, frame, column, step, limits));
        FrameKind {
            buffer: buffer.to_owned(),
            name: frame.name.clone(),
            schema_hash,
            rate: Rate::default(),
            fields: fields.collect(),
            spans: SpanPairs::new(schema, frame, limits.period),
            step_field,
        }
    }

    /// Adds frames of this kind from one process, drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        self.rate.add(now, rows.len() as u64);
        let by_step = self.step_field.as_ref().map(|field| field.group(rows)).unwrap_or_default();
        for field in &mut self.fields {
            let rows = match &field.step {
                Some(step) => &by_step[step.number],
                None => rows,
            };
            if let Some(keys) = &mut field.values.keys {
                keys.add(rows, now);
            }
            field.reader.visit(stamps, ValueReceiver { rows, now, values: &mut field.values });
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

    /// The reported fields. Leaves out a step with only zeros if another step sets the field. If no step
    /// sets it, one step stands for all.
    pub fn shown_fields(&self) -> impl Iterator<Item = &Field> {
        let fields = self.fields.iter().enumerate();
        fields.filter(|(index, field)| self.is_shown(*index, field)).map(|(_, field)| field)
    }

    fn is_shown(&self, index: usize, field: &Field) -> bool {
        if field.step.is_none() || field.values.is_set {
            return true;
        }
        let same = |other: &&Field| other.name == field.name;
        let some_is_set = self.fields.iter().filter(same).any(|other| other.values.is_set);
        let is_first = !self.fields[..index].iter().any(|other| same(&other));
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

impl StepField {
    /// None if the frames belong to neither a span nor a chain.
    fn new(schema: &Schema, frame: &Frame) -> Option<StepField> {
        frame.span().map(drop).or_else(|| frame.chain().map(drop))?;
        let field = frame.fields.iter().find(|field| field.is_mark())?;
        let steps = frame.steps(schema).iter().map(|step| step.1 as u64).collect();
        let (offset, len) = (field.offset as usize, field.ty.size(schema) as usize);
        Some(StepField { offset, len, steps })
    }

    /// The frames of each step.
    fn group<'a>(&self, rows: &[&'a [u8]]) -> Vec<Vec<&'a [u8]>> {
        let mut groups = vec![Vec::new(); self.steps.len()];
        // A negative value is compared by the bytes of the field alone.
        let mask = u64::MAX >> (64 - 8 * self.len.clamp(1, 8));
        for row in rows {
            let Some(bytes) = row.get(self.offset..self.offset + self.len) else { continue };
            let mut value = [0; 8];
            value[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            let value = u64::from_le_bytes(value);
            if let Some(step) = self.steps.iter().position(|step| step & mask == value) {
                groups[step].push(*row);
            }
        }
        groups
    }
}

impl Field {
    fn new(
        schema: &Schema,
        frame: &Frame,
        column: Column,
        step: Option<FieldStep>,
        limits: &KindLimits<'_>,
    ) -> Field {
        let is_time = matches!(
            column.ty,
            ColumnType::Duration
                | ColumnType::Length { of: Measure::Duration | Measure::Time(_), .. }
        );
        let field = &frame.fields[column.field];
        let unit = if field.unit.is_empty() && is_time { "ns" } else { field.unit.as_str() };
        // The few values of enums and booleans are listed, not counted.
        let is_word = matches!(column.ty, ColumnType::Enum { .. } | ColumnType::Bool);
        let keys = RecentKeys::new(schema, field, limits.period, limits.budget);
        let keys = keys.filter(|_| !is_word);
        let has_numbers = !matches!(
            column.ty,
            ColumnType::Enum { .. } | ColumnType::Bool | ColumnType::Addr | ColumnType::Text { .. }
        );
        let words = match column.ty {
            ColumnType::Text { .. } => FrequentValues::Text(Frequent::default()),
            ColumnType::Enum { .. } | ColumnType::Bool | ColumnType::Int(_) | ColumnType::Addr => {
                FrequentValues::Whole(Frequent::default())
            }
            _ => FrequentValues::Nothing,
        };
        let numbers = (has_numbers && keys.is_none()).then(|| RecentNumbers::new(limits.period));
        Field {
            unit: unit.to_owned(),
            is_interval: matches!(column.ty, ColumnType::Length { .. }),
            reader: Reader::new(schema, &column),
            values: LiveValues { numbers, words, keys, is_set: false },
            name: column.name,
            step,
        }
    }

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

/// Receives the values of a field in some frames.
struct ValueReceiver<'a> {
    rows: &'a [&'a [u8]],
    /// The time at which the frames were drained, in ns.
    now: u64,
    values: &'a mut LiveValues,
}

impl ValueReceiver<'_> {
    fn add_numbers<T>(&mut self, value: impl Access<Value = T>, float: impl Fn(T) -> f64) {
        let Some(numbers) = &mut self.values.numbers else { return };
        let period = numbers.period_at(self.now);
        for value in self.rows.iter().filter_map(|row| value.get(row)).map(float) {
            self.values.is_set |= value != 0.0;
            period.add(value);
        }
    }

    /// Samples one random frame from each of some equal parts. Frames often repeat at regular intervals,
    /// which would bias a regular sample.
    fn sample(&self) -> impl Iterator<Item = &[u8]> {
        let mut random = self.now | 1;
        self.rows.chunks(self.rows.len().div_ceil(MAX_SAMPLE).max(1)).map(move |part| {
            // Xorshift, after Marsaglia.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            part[random as usize % part.len()]
        })
    }

    fn count_integers(self, value: impl Fn(&[u8]) -> Option<i128>) {
        let is_set = |row: &&[u8]| value(row).is_some_and(|value| value != 0);
        self.values.is_set = self.values.is_set || self.rows.iter().any(is_set);
        let sample: Vec<i128> = self.sample().filter_map(value).collect();
        if let FrequentValues::Whole(words) = &mut self.values.words {
            sample.iter().for_each(|number| words.add(number));
        }
    }
}

impl Visitor for ValueReceiver<'_> {
    type Output = ();

    fn integer<T: Integer>(mut self, value: impl Access<Value = T>) {
        let float = |number: T| {
            let bits = number.bits();
            if T::SIGNED { bits as i64 as f64 } else { bits as f64 }
        };
        self.add_numbers(value, float);
        self.count_integers(|row| value.get(row).map(Into::into));
    }

    fn single(mut self, value: impl Access<Value = f32>) {
        self.add_numbers(value, f64::from);
    }

    fn double(mut self, value: impl Access<Value = f64>) {
        self.add_numbers(value, |value| value);
    }

    fn boolean(self, value: impl Access<Value = u8>) {
        self.count_integers(|row| value.get(row).map(|byte| i128::from(byte != 0)));
    }

    fn duration(mut self, value: impl Access<Value = i64>) {
        self.add_numbers(value, |number| number as f64);
    }

    fn time(self, _: Time) {}

    fn half(self, _: TimevalHalf) {}

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) {
        self.count_integers(|row| value.get(row).map(Into::into));
    }

    fn text(self, text: FixedText) {
        let is_set = |row: &&[u8]| text.get(row).is_some_and(|text| !text.is_empty());
        self.values.is_set = self.values.is_set || self.rows.iter().any(is_set);
        let cut = |row| text.get(row).map(|text| text[..text.len().min(TEXT_BYTES)].to_vec());
        let sample: Vec<Vec<u8>> = self.sample().filter_map(cut).collect();
        if let FrequentValues::Text(words) = &mut self.values.words {
            sample.iter().for_each(|bytes| words.add(bytes.as_slice()));
        }
    }

    fn bytes(self, _: Fixed) {}
}
