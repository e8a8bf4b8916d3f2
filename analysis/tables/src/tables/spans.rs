//! `<name>_spans`: the spans of a kind of frames, each of a begin and an end.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::columns::whole_table;
use ppt_capture::frame_dsl::role::Across;

use super::frame::{Kind, kinds};
use super::named::Named;
use super::parts::{Column, Hidden, Parts, Read, is_span, missing_of, whole};
use crate::bounds::{Bounded, Number};
use crate::error::{SetError, TableError};
use crate::of_chunks::ChunkScan;
use crate::pair::{Out, Pair};
use crate::set::CaptureSet;
use crate::standard::{STANDARD, Standard};
use crate::table::{Planned, Request, Scan, Start, Table};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
    let named = |(buffer, spans): (String, Spans)| {
        let frame = spans.name.clone();
        Named::spans((&buffer, &frame), spans.table.clone(), spans)
    };
    Ok(all(set)?.into_iter().map(named).collect())
}

/// The spans of each kind of frames, with their buffer.
pub(super) fn all(set: &Arc<CaptureSet>) -> Result<Vec<(String, Spans)>, SetError> {
    let tables = kinds(set, is_span).into_iter().filter_map(|((buffer, name), kinds)| {
        let table = whole_table(kinds.first()?.frame)?;
        let spans = Spans::new(set, (buffer, name), table, &kinds);
        Some(spans.map(|spans| (buffer.to_owned(), spans)))
    });
    tables.collect()
}

/// The spans of a kind of frames.
#[derive(Debug)]
pub(super) struct Spans {
    set: Arc<CaptureSet>,
    /// Of the frame.
    name: String,
    table: String,
    parts: Arc<Parts>,
    columns: Vec<Column>,
    schema: SchemaRef,
}

/// A column of spans in another table.
#[derive(Debug)]
pub(super) enum Shown {
    /// Of the begin.
    Own(Standard),
    Dur,
    Word(Arc<StringArray>),
    Zero,
    Null,
}

impl Spans {
    fn new(
        set: &Arc<CaptureSet>,
        name: (&str, &str),
        table: String,
        kinds: &[Kind<'_>],
    ) -> Result<Spans, SetError> {
        let parts = Arc::new(Parts::new(set, name, kinds)?);
        let (columns, schema) = whole(&parts, kinds);
        Ok(Spans { set: set.clone(), name: name.1.to_owned(), table, parts, columns, schema })
    }

    /// The name of their frames.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fails where they can be of several hosts.
    pub fn comparable(&self) -> Result<(), TableError> {
        self.parts.comparable(&self.table)
    }

    /// Those that were begun and ended.
    pub fn closed(
        &self,
        request: &Request<'_>,
        columns: Vec<Shown>,
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        let own = columns.iter().filter_map(|it| match it {
            Shown::Own(standard) => Some(Parts::standard(*standard)),
            _ => None,
        });
        let read = Read::of(&self.parts, own);
        let out = |shown| match shown {
            Shown::Own(standard) => Out::Own(read.at(Parts::standard(standard))),
            Shown::Dur => Out::Dur,
            Shown::Word(word) => Out::Word(word),
            Shown::Zero => Out::Zero,
            Shown::Null => Out::Null,
        };
        let out = columns.into_iter().map(out).collect();
        self.paired(request, &read, (out, schema), true)
    }

    fn paired(
        &self,
        request: &Request<'_>,
        read: &Read,
        (columns, schema): (Vec<Out>, SchemaRef),
        closed: bool,
    ) -> Result<Planned, TableError> {
        let parts = &self.parts;
        // Whole processes can be left out, where no span leaves its own.
        let is_own = parts.plans.iter().all(|it| it.across == Across::Process);
        let numbers: &[Number] = if is_own { &[Number::Pid] } else { &[] };
        let bounds = request.bounds.only(numbers, &[]);
        let inner = Request { columns: &read.columns, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, parts, &inner)?);
        let asks = columns.iter().any(|it| matches!(it, Out::State));
        let pair = Pair {
            group: read.at(parts.hidden(Hidden::Group)),
            key: read.at(parts.hidden(Hidden::Key)),
            mark: read.at(parts.hidden(Hidden::Mark)),
            ts: read.at(Parts::standard(Standard::Ts)),
            fifo: parts.groups.iter().map(|it| parts.plans[it.plan].fifo).collect(),
            columns,
            schema: schema.clone(),
            closed,
            missing: asks.then(|| missing_of(&self.set, parts)),
        };
        let start = Start(Arc::new(move || pair.runner()));
        let told = format!("spans: begins and ends of each key of {}", self.name);
        let pass = read.pass(parts, schema, &told, start);
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }
}

impl Table for Spans {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        STANDARD.get(column).map(|standard| standard.bounded())
    }

    fn plan(&self, request: &Request<'_>) -> Result<Planned, TableError> {
        self.comparable()?;
        let parts = &self.parts;
        let place = |column: &Column| match column {
            Column::Standard(place) | Column::Where(place) => Some(*place),
            Column::Key(name) | Column::Begin(name) | Column::End(name) => parts.column(name),
            _ => None,
        };
        let asked = || request.columns.iter().map(|&it| &self.columns[it]);
        let read = Read::of(parts, asked().filter_map(place));
        let out = |column: &Column| {
            let at = place(column).map(|it| read.at(it)).unwrap_or_default();
            match column {
                Column::Standard(_) | Column::Key(_) => Out::Own(at),
                Column::Begin(_) => Out::Begin(at),
                Column::End(_) | Column::Where(_) => Out::End(at),
                Column::State => Out::State,
                _ => Out::Dur,
            }
        };
        let columns = asked().map(out).collect();
        let schema = Arc::new(self.schema.project(request.columns)?);
        self.paired(request, &read, (columns, schema), false)
    }
}
