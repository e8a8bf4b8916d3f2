//! Every number of every kind of frames, by run.

use std::collections::BTreeMap;

use ppt_models::{CompareError, Entry, Measured, Statistic, is_called};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::Expr;
use ppt_query::datafusion::prelude::ident;
use ppt_query::{Bounded, Engine, FrameTable, Number, QueryError, Word};

use crate::failure::Failure;
use crate::numbers;

/// Fields that are read together: one pass over a capture, and memory for so many numbers a row.
const TOGETHER: usize = 16;

/// What is read of the captures of one side.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    /// Only this kind of frames.
    pub(super) frame: Option<&'a str>,
    /// Only these fields, by their names or the ends of them; empty: all.
    pub(super) fields: &'a [String],
    /// The column that groups.
    pub(super) by: Option<&'a str>,
    pub(super) statistics: &'a [Statistic],
}

/// The numbers of one side, by field and group.
#[derive(Default)]
pub(super) struct MeasuredSide {
    pub(super) entries: Vec<Entry>,
    /// Fields of which nothing can be said.
    pub(super) unmeasured: Vec<Unmeasured>,
}

/// A field, or a group of its values, that cannot be compared.
pub(super) struct Unmeasured {
    pub(super) field: String,
    pub(super) by: BTreeMap<String, String>,
    pub(super) why: CompareError,
}

impl MeasuredSide {
    /// The names of all its fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        let measured = self.entries.iter().map(|entry| &*entry.field);
        measured.chain(self.unmeasured.iter().map(|field| &*field.field))
    }
}

/// Each number that is selected.
pub(super) async fn measured(
    engine: &Engine,
    selection: Selection<'_>,
) -> Result<MeasuredSide, Failure> {
    let mut side = MeasuredSide::default();
    let mut there = Vec::new();
    let tables = engine.frames(selection.frame)?;
    for table in &tables {
        let mut fields = fields(table, selection.by);
        let full = |field: &String| format!("{}.{}.{field}", table.buffer, table.frame);
        there.extend(fields.iter().map(full));
        let is_selected = |field: &String| {
            let mut names = selection.fields.iter();
            selection.fields.is_empty() || names.any(|name| is_called(&full(field), name))
        };
        fields.retain(is_selected);
        for some in fields.chunks(TOGETHER) {
            of_fields(engine, table, some, selection, &mut side).await?;
        }
    }
    let is_there = |name: &&String| there.iter().any(|field| is_called(field, name));
    match selection.fields.iter().find(|name| !is_there(name)) {
        Some(name) => Err(Failure::no_such_field(name, &there)),
        None => Ok(side),
    }
}

/// Columns of numbers that are no times, and no ends of intervals: those of CPU time are numbers, too.
fn fields(table: &FrameTable, by: Option<&str>) -> Vec<String> {
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
            && by != Some(field.name())
    };
    let all = schema.fields().iter().enumerate().filter(is_number);
    all.map(|(_, field)| field.name().clone()).collect()
}

/// The column that is bounded so.
fn standard(table: &FrameTable, what: Bounded) -> Option<Expr> {
    let schema = table.table.schema();
    let found = (0..schema.fields().len()).find(|&it| table.table.bounded(it) == Some(what))?;
    Some(ident(schema.field(found).name().as_str()))
}

async fn of_fields(
    engine: &Engine,
    table: &FrameTable,
    fields: &[String],
    selection: Selection<'_>,
    side: &mut MeasuredSide,
) -> Result<(), Failure> {
    let by = selection.by;
    let word = |word| standard(table, Bounded::Word(word));
    let number = |number| standard(table, Bounded::Number(number));
    let run = word(Word::Capture).unwrap_or_else(|| ident("capture"));
    let mut columns = vec![run.alias("run")];
    columns.extend(by.map(|by| ident(by).alias("group")));
    let times: Vec<Expr> = [Number::Ts, Number::Drained].into_iter().filter_map(number).collect();
    let timed = !times.is_empty();
    columns.extend(timed.then(|| coalesce(times).alias("time")));
    let value = |(at, field): (usize, &String)| ident(field).alias(format!("value {at}"));
    columns.extend(fields.iter().enumerate().map(value));
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let rows = rows.select(columns).map_err(QueryError::from)?;
    let read = numbers::numbers(rows).await?;
    let column =
        |name: &str| read.columns.iter().find(|it| it.0 == name).map_or(&[][..], |it| &it.1[..]);
    let runs = read.labels("run").unwrap_or_default();
    let groups = by.map(|_| read.labels("group").unwrap_or_default());
    let mut rows: BTreeMap<Option<&str>, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (row, run) in runs.iter().enumerate() {
        let group = groups.as_ref().map(|it| &it[row][..]);
        rows.entry(group).or_default().entry(run).or_default().push(row);
    }
    // The only run is cut in the order of time.
    let time = column("time");
    for only in rows.values_mut().filter(|it| timed && it.len() == 1) {
        let sort =
            |it: &mut Vec<usize>| it.sort_by(|&one, &other| time[one].total_cmp(&time[other]));
        only.values_mut().for_each(sort);
    }
    for (at, field) in fields.iter().enumerate() {
        let values = column(&format!("value {at}"));
        let field = format!("{}.{}.{field}", table.buffer, table.frame);
        if rows.is_empty() {
            let (field, by, why) = (field.clone(), BTreeMap::new(), CompareError::NoValues);
            side.unmeasured.push(Unmeasured { field, by, why });
        }
        for (group, runs) in &rows {
            let of_run = |rows: &Vec<usize>| rows.iter().map(|&row| values[row]).collect();
            let runs: Vec<Vec<f64>> = runs.values().map(of_run).collect();
            let by = by.zip(*group).map(|(by, group)| (by.to_owned(), group.to_owned()));
            let (field, by) = (field.clone(), by.into_iter().collect());
            match Measured::of(&runs, selection.statistics) {
                Ok(measured) => side.entries.push(Entry { field, by, measured }),
                Err(why) => side.unmeasured.push(Unmeasured { field, by, why }),
            }
        }
    }
    Ok(())
}
