//! `edges`: what caused what; `unmatched`: what entered points and came from nowhere, or left them and
//! went nowhere; `matching`: how many of each.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;

use super::chains::{self, Chains};
use super::kernel::wakes::{WAKE, Wakes};
use super::named::NamedTable;
use super::paired::LinkColumn;
use super::spans::{self, Spans};
use crate::bounds::{Bounded, BoundedText, Bounds};
use crate::causality::{
    Causes, EdgeColumn, EndColumn, Endpoints, HASH, KEY, Matching, PointDirectory, ShownEnd, Shows,
    WHEN, asks_drained, edge_column, matched_in_memory, reads,
};
use crate::error::{SetError, TableError};
use crate::of_chunks::ChunkScan;
use crate::set::CaptureSet;
use crate::table::{CaptureTable, Pass, Planned, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let known = Arc::new(PointDirectory::new(set));
    let of = Arc::new(Endpoints::new(known.clone()));
    let causes = Arc::new(Causes::new(set, known)?);
    let spans = spans::all(set)?.into_iter().map(|entry| entry.1);
    let spans = spans.filter(|span| span.comparable().is_ok()).map(Links::Spans);
    let links: Arc<[Links]> =
        spans.chain(chains::all(set)?.into_iter().map(Links::Chains)).collect();
    let table = |shows: Shows| {
        let schema = Arc::new(shows.schema());
        let is_edges = shows == Shows::Edges;
        let beside = if is_edges { links.clone() } else { Arc::new([]) };
        let wakes = if is_edges { Wakes::new(set) } else { None };
        let (set, of, causes) = (set.clone(), of.clone(), causes.clone());
        Matched { set, of, causes, shows, schema, beside, wakes }
    };
    Ok(vec![
        NamedTable::fixed("edges", table(Shows::Edges)),
        NamedTable::fixed("unmatched", table(Shows::Unmatched)),
        NamedTable::fixed("matching", table(Shows::Counts)),
    ])
}

/// What comes of bringing together what leaves points and what enters them.
#[derive(Debug)]
struct Matched {
    set: Arc<CaptureSet>,
    of: Arc<Endpoints>,
    causes: Arc<Causes>,
    shows: Shows,
    schema: SchemaRef,
    /// More edges.
    beside: Arc<[Links]>,
    wakes: Option<Wakes>,
}

/// Frames that a key brings together.
#[derive(Debug)]
enum Links {
    /// A begin causes its end.
    Spans(Spans),
    /// A step causes the next one.
    Chains(Chains),
}

impl Links {
    /// What such edges are called.
    fn kind(&self) -> &'static str {
        match self {
            Links::Spans(_) => "span",
            Links::Chains(_) => "chain",
        }
    }

    fn name(&self) -> &str {
        match self {
            Links::Spans(spans) => spans.name(),
            Links::Chains(chains) => chains.name(),
        }
    }
}

impl CaptureTable for Matched {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        // Kinds of edges are made of different frames.
        let is_kind = self.shows == Shows::Edges && edge_column(column) == EdgeColumn::Kind;
        is_kind.then_some(Bounded::Word(BoundedText::Name))
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let wanted = |kind: &str| request.bounds.has_word(BoundedText::Name, kind);
        let mut planned = self.points(request, wanted(HASH))?;
        for links in self.beside.iter().filter(|links| wanted(links.kind())) {
            planned.beside.push(self.links(links, request)?);
        }
        if let Some(wakes) = self.wakes.as_ref().filter(|_| wanted(WAKE)) {
            let schema = Arc::new(self.schema.project(request.columns)?);
            planned.beside.push(wakes.links(request, schema)?);
        }
        Ok(planned)
    }
}

impl Matched {
    /// What comes of points; of none, where nobody asks for them.
    fn points(&self, request: &TableRequest<'_>, wanted: bool) -> Result<Planned, TableError> {
        self.causes.comparable(self.shows.table())?;
        let read = reads(self.shows, request.columns, self.causes.known.clocks.are_exact());
        let mut bounds = Bounds::default();
        if !wanted {
            bounds.one_of(BoundedText::Buffer, [].into());
        }
        // What belongs together may be anywhere.
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan = Arc::new(ChunkScan::new(&self.set, &self.of, &inner)?);
        let schema = Arc::new(self.schema.project(request.columns)?);
        // Only the columns show when a frame was drained.
        if !asks_drained(self.shows, request.columns)
            && let Some(scan) = matched_in_memory(&self.causes, self.shows, request, &schema, &scan)
        {
            return Ok(scan.into());
        }
        let (causes, columns) = (self.causes.clone(), request.columns.to_vec());
        let (shows, out) = (self.shows, schema.clone());
        let start = Start(Arc::new(move || {
            Box::new(Matching::new(causes.clone(), shows, columns.clone(), out.clone()))
        }));
        let told = format!(
            "{}: what leaves and enters points, by hash type and value",
            self.shows.table()
        );
        let pass = Pass {
            schema,
            together: vec![KEY],
            order: vec![(KEY, false), (WHEN, false)],
            start,
            told,
        };
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }

    fn links(&self, links: &Links, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let word = |text: &str| LinkColumn::Word(Arc::new(StringArray::from_iter_values([text])));
        let shown = |&column: &usize| match edge_column(column) {
            EdgeColumn::Of(_, EndColumn::Point) => word(links.name()),
            EdgeColumn::Of(ShownEnd::Source, EndColumn::Standard(standard)) => {
                LinkColumn::Own(standard)
            }
            EdgeColumn::Of(ShownEnd::Destination, EndColumn::Standard(standard)) => {
                LinkColumn::End(standard)
            }
            EdgeColumn::Kind => word(links.kind()),
            EdgeColumn::Type | EdgeColumn::Policy => LinkColumn::Null,
            EdgeColumn::Latency | EdgeColumn::LatencyLo | EdgeColumn::LatencyHi => LinkColumn::Dur,
            EdgeColumn::Certainty => word("certain"),
        };
        let schema = Arc::new(self.schema.project(request.columns)?);
        let columns: Vec<LinkColumn> = request.columns.iter().map(shown).collect();
        match links {
            Links::Spans(spans) => spans.closed(request, &columns, schema),
            Links::Chains(chains) => chains.links(request, &columns, schema),
        }
    }
}
