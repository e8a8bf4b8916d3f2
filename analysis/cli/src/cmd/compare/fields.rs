//! All numbers of all kinds of frames, by run.

use std::collections::BTreeMap;

use ppt_models::{CompareError, Entry, MeasuredField, Statistic, is_called};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::{Expr, lit, when};
use ppt_query::datafusion::prelude::ident;
use ppt_query::summary::{is_identity, step_column};
use ppt_query::{Bounded, BoundedNumber, BoundedText, Engine, FrameTable, QueryError};

use crate::error::AnswerError;
use crate::numbers;

/// Number of fields that are read in one pass over a capture, with memory for as many numbers per row.
const TOGETHER: usize = 16;

/// Selection of the numbers of one side.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    /// Name of a kind of frames; None: all.
    pub(super) frame: Option<&'a str>,
    /// Names of fields, or their endings; empty: all.
    pub(super) fields: &'a [String],
    /// Column for groups.
    pub(super) by: Option<&'a str>,
    pub(super) statistics: &'a [Statistic],
}

/// The numbers of one side, by field and group.
#[derive(Default)]
pub(super) struct MeasuredSide {
    pub(super) entries: Vec<Entry>,
    /// Fields that cannot be measured.
    pub(super) unmeasured: Vec<Unmeasured>,
}

/// A field, or one group of it, that cannot be compared.
pub(super) struct Unmeasured {
    pub(super) field: String,
    pub(super) by: BTreeMap<String, String>,
    pub(super) why: CompareError,
}

impl MeasuredSide {
    /// The names of all fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        let measured = self.entries.iter().map(|entry| &*entry.field);
        measured.chain(self.unmeasured.iter().map(|field| &*field.field))
    }
}

/// Measures the selected fields.
pub(super) async fn measured(
    engine: &Engine,
    selection: Selection<'_>,
) -> Result<MeasuredSide, AnswerError> {
    let mut side = MeasuredSide::default();
    let mut names = Vec::new();
    let tables = tables(engine, selection.frame)?;
    for table in &tables {
        let steps = steps(engine, table).await?;
        let mut fields = fields(table, selection.by, &steps);
        let full = |field: &OfStep| field.full_name(table);
        names.extend(fields.iter().map(full));
        let is_selected = |field: &OfStep| {
            let mut names = selection.fields.iter();
            selection.fields.is_empty() || names.any(|name| is_called(&full(field), name))
        };
        fields.retain(is_selected);
        let mut found = Vec::new();
        for some in fields.chunks(TOGETHER) {
            found.extend(of_fields(engine, table, some, selection).await?);
        }
        for measured in without_unset(found) {
            side.entries.extend(measured.entries);
            side.unmeasured.extend(measured.unmeasured);
        }
    }
    let is_there = |name: &&String| names.iter().any(|field| is_called(field, name));
    match selection.fields.iter().find(|name| !is_there(name)) {
        Some(name) => Err(AnswerError::no_such_field(name, &names)),
        None => Ok(side),
    }
}

/// The kinds of frames that are compared: all, or the named one. Spans and chains have the names of
/// their tables (`request_spans`).
fn tables(engine: &Engine, frame: Option<&str>) -> Result<Vec<FrameTable>, QueryError> {
    match frame {
        None => engine.frames(None),
        Some(name) => {
            Ok(engine.frames_spans_or_chains(name)?.into_iter().map(|(table, _)| table).collect())
        }
    }
}

/// A column, in the frames of one step of a span or a chain, or in all frames.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OfStep {
    column: String,
    /// The column with the steps of frames, and the step.
    step: Option<(String, String)>,
}

/// The measurements of a column.
struct FieldMeasure {
    of: OfStep,
    /// Whether all values are 0.
    is_unset: bool,
    side: MeasuredSide,
}

impl OfStep {
    /// Name of the field, with its buffer and frame.
    fn full_name(&self, table: &FrameTable) -> String {
        let step = self.step.as_ref().map_or(String::new(), |(_, word)| format!("{word}."));
        format!("{}.{}.{step}{}", table.buffer, table.frame, self.column)
    }
}

/// The column with the steps of a span or a chain, and the steps that occur.
async fn steps(
    engine: &Engine,
    table: &FrameTable,
) -> Result<Option<(String, Vec<String>)>, AnswerError> {
    let schema = table.table.schema();
    let Some(at) = step_column(schema) else { return Ok(None) };
    let column = schema.field(at).name().clone();
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let name = ident(column.as_str()).alias("step");
    let rows =
        rows.select(vec![name]).and_then(|names| names.distinct()).map_err(QueryError::from)?;
    let mut steps = numbers::numbers(rows).await?.labels("step").unwrap_or_default();
    steps.sort_unstable();
    Ok(Some((column, steps)).filter(|(_, steps)| !steps.is_empty()))
}

/// Numeric columns other than times, keys and ends of intervals; ends of CPU time are included. Frames
/// of each step are measured separately.
fn fields(
    table: &FrameTable,
    by: Option<&str>,
    steps: &Option<(String, Vec<String>)>,
) -> Vec<OfStep> {
    let schema = table.table.schema();
    if by.is_some_and(|by| schema.index_of(by).is_err()) {
        return Vec::new();
    }
    let is_number = |(index, field): &(usize, &std::sync::Arc<_>)| {
        let field: &ppt_query::arrow::datatypes::Field = field;
        let role = field.metadata().get("role").map_or("", String::as_str);
        table.table.bounded(*index).is_none()
            && field.data_type().is_numeric()
            && !["at", "start", "end"].contains(&role)
            && !is_identity(field)
            && by != Some(field.name())
    };
    let all = schema.fields().iter().enumerate().filter(is_number);
    let of_steps = all.flat_map(|(_, field)| {
        let of = |step| OfStep { column: field.name().clone(), step };
        let Some((column, steps)) = steps else { return vec![of(None)] };
        let half = field.metadata().get("half");
        let wanted = steps.iter().filter(|step| half.is_none_or(|half| half == *step));
        wanted.map(|step| of(Some((column.clone(), step.clone())))).collect()
    });
    of_steps.collect()
}

/// Removes steps whose values are all 0, if the field is set in another step.
fn without_unset(found: Vec<FieldMeasure>) -> impl Iterator<Item = MeasuredSide> {
    let set: Vec<String> =
        found.iter().filter(|one| !one.is_unset).map(|one| one.of.column.clone()).collect();
    let is_told = move |one: &FieldMeasure| !one.is_unset || !set.contains(&one.of.column);
    found.into_iter().filter(is_told).map(|one| one.side)
}

/// The column with these bounds.
fn standard(table: &FrameTable, what: Bounded) -> Option<Expr> {
    let schema = table.table.schema();
    let found =
        (0..schema.fields().len()).find(|&index| table.table.bounded(index) == Some(what))?;
    Some(ident(schema.field(found).name().as_str()))
}

async fn of_fields(
    engine: &Engine,
    table: &FrameTable,
    fields: &[OfStep],
    selection: Selection<'_>,
) -> Result<Vec<FieldMeasure>, AnswerError> {
    let by = selection.by;
    let word = |word| standard(table, Bounded::Word(word));
    let number = |number| standard(table, Bounded::Number(number));
    let run = word(BoundedText::Capture).unwrap_or_else(|| ident("capture"));
    let mut columns = vec![run.alias("run")];
    columns.extend(by.map(|by| ident(by).alias("group")));
    let times: Vec<Expr> =
        [BoundedNumber::Ts, BoundedNumber::Drained].into_iter().filter_map(number).collect();
    let timed = !times.is_empty();
    columns.extend(timed.then(|| coalesce(times).alias("time")));
    for (at, of) in fields.iter().enumerate() {
        let column = ident(of.column.as_str());
        let value = match &of.step {
            None => column,
            Some((step, word)) => when(ident(step.as_str()).eq(lit(word.as_str())), column)
                .end()
                .map_err(QueryError::from)?,
        };
        columns.push(value.alias(format!("value {at}")));
    }
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let rows = rows.select(columns).map_err(QueryError::from)?;
    let read = numbers::numbers(rows).await?;
    let column = |name: &str| {
        read.columns.iter().find(|column| column.0 == name).map_or(&[][..], |column| &column.1[..])
    };
    let runs = read.labels("run").unwrap_or_default();
    let groups = by.map(|_| read.labels("group").unwrap_or_default());
    let mut rows: BTreeMap<Option<&str>, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (row, run) in runs.iter().enumerate() {
        let group = groups.as_ref().map(|group| &group[row][..]);
        rows.entry(group).or_default().entry(run).or_default().push(row);
    }
    // A single run is divided in the order of time.
    let time = column("time");
    for only in rows.values_mut().filter(|row| timed && row.len() == 1) {
        let sort = |indexes: &mut Vec<usize>| {
            indexes.sort_by(|&one, &other| time[one].total_cmp(&time[other]));
        };
        only.values_mut().for_each(sort);
    }
    let mut found = Vec::new();
    for (at, of) in fields.iter().enumerate() {
        let values = column(&format!("value {at}"));
        let field = of.full_name(table);
        let mut side = MeasuredSide::default();
        if rows.is_empty() {
            let (field, by, why) = (field.clone(), BTreeMap::new(), CompareError::NoValues);
            side.unmeasured.push(Unmeasured { field, by, why });
        }
        for (group, runs) in &rows {
            // Frames of other steps have NaN.
            let is_its = |value: &f64| of.step.is_none() || !value.is_nan();
            let of_run =
                |rows: &Vec<usize>| rows.iter().map(|&row| values[row]).filter(is_its).collect();
            let runs: Vec<Vec<f64>> = runs.values().map(of_run).collect();
            let by = by.zip(*group).map(|(by, group)| (by.to_owned(), group.to_owned()));
            let (field, by) = (field.clone(), by.into_iter().collect());
            match MeasuredField::measure(&runs, selection.statistics) {
                Ok(measured) => side.entries.push(Entry { field, by, measured }),
                Err(why) => side.unmeasured.push(Unmeasured { field, by, why }),
            }
        }
        let is_unset = values.iter().all(|value| *value == 0.0 || value.is_nan());
        found.push(FieldMeasure { of: of.clone(), is_unset, side });
    }
    Ok(found)
}
