//! `<name>_spans`: the spans of a kind of frames, from begins and ends.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::columns::whole_table;

use super::frame::{FrameOfSource, kinds};
use super::keyed_frames::{KeyedColumns, KeyedFrames, SpanOrChainColumn, is_span, whole_schema};
use super::named::NamedTable;
use super::pair_planner::{LinkColumn, PairPlanner};
use crate::bounds::Bounded;
use crate::error::{SetError, TableError};
use crate::growing::{GrowingTable, GrowingWholes, WholeForm, everything};
use crate::pair_pass::{FindMissing, PairColumn, PairPass};
use crate::set::CaptureSet;
use crate::spans_and_chains::Missing;
use crate::standard::STANDARD;
use crate::table::{CaptureTable, Planned, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let named = |(buffer, spans): (String, Spans)| {
        let frame = spans.name.clone();
        NamedTable::spans((&buffer, &frame), spans.table.clone(), spans)
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
    /// Name of the frames.
    name: String,
    table: String,
    frames: Arc<KeyedFrames>,
    columns: Vec<SpanOrChainColumn>,
    schema: SchemaRef,
}

impl Spans {
    fn new(
        set: &Arc<CaptureSet>,
        name: (&str, &str),
        table: String,
        kinds: &[FrameOfSource<'_>],
    ) -> Result<Spans, SetError> {
        let frames = Arc::new(KeyedFrames::new(set, name, kinds)?);
        let (columns, schema) = whole_schema(&frames, kinds);
        Ok(Spans { set: set.clone(), name: name.1.to_owned(), table, frames, columns, schema })
    }

    /// The name of the frames.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fails if a span can include frames of several hosts whose clocks are not related.
    pub fn comparable(&self) -> Result<(), TableError> {
        self.frames.comparable(&self.table)
    }

    /// Plans the rows of closed spans in another table with these columns.
    pub fn closed(
        &self,
        request: &TableRequest<'_>,
        columns: &[LinkColumn],
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        self.planner().links(request, columns, schema)
    }

    fn planner(&self) -> PairPlanner<'_> {
        let explain_text = format!("spans: begins and ends of each key of {}", self.name);
        PairPlanner { set: &self.set, frames: &self.frames, explain_text, steps: false }
    }
}

impl CaptureTable for Spans {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        STANDARD.get(column).map(|standard| standard.bounded())
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        self.comparable()?;
        let (read, columns, schema) = self.columns(request)?;
        self.planner().plan(request, &read, (columns, schema), false)
    }
}

impl GrowingTable for Spans {
    fn growing(&self, with_absent: bool) -> Result<GrowingWholes, TableError> {
        let (all, bounds) = everything(&self.schema);
        let request = TableRequest::all_rows(&all, &bounds);
        let (read, columns, schema) = self.columns(&request)?;
        let (scan, pass) =
            self.planner().scan_and_pass(&request, &read, (columns, schema), false)?;
        let frames = &self.frames;
        let forms = pass.fifo.iter().map(|&fifo| WholeForm::Span { fifo });
        let groups = frames.growing_groups(&self.set, forms, with_absent);
        let runner = move |missing: Vec<Missing>| {
            let missing: FindMissing = Arc::new(move || Ok(missing.clone()));
            PairPass { missing: Some(missing), ..pass.clone() }.runner()
        };
        let schema = self.schema.clone();
        Ok(GrowingWholes::new(scan, schema, read.half_columns(frames), groups, runner))
    }
}

impl Spans {
    /// The columns to read from the frames, and the output columns of the pass.
    fn columns(
        &self,
        request: &TableRequest<'_>,
    ) -> Result<(KeyedColumns, Vec<PairColumn>, SchemaRef), TableError> {
        let frames = &self.frames;
        let place = |column: &SpanOrChainColumn| match column {
            SpanOrChainColumn::Standard(place) | SpanOrChainColumn::Where(place) => Some(*place),
            SpanOrChainColumn::Key(name)
            | SpanOrChainColumn::Begin(name)
            | SpanOrChainColumn::End(name) => frames.column(name),
            _ => None,
        };
        let requested = || request.columns.iter().map(|&column| &self.columns[column]);
        let read = KeyedColumns::new(frames, requested().filter_map(place));
        let out = |column: &SpanOrChainColumn| {
            let at = place(column).map(|place| read.at(place)).unwrap_or_default();
            match column {
                SpanOrChainColumn::Standard(_) | SpanOrChainColumn::Key(_) => PairColumn::Own(at),
                SpanOrChainColumn::Begin(_) => PairColumn::Begin(at),
                SpanOrChainColumn::End(_) | SpanOrChainColumn::Where(_) => PairColumn::End(at),
                SpanOrChainColumn::State => PairColumn::State,
                _ => PairColumn::Dur,
            }
        };
        let columns = requested().map(out).collect();
        let schema = Arc::new(self.schema.project(request.columns)?);
        Ok((read, columns, schema))
    }
}
