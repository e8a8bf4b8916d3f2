//! `edges`: pairs of cause and effect; `unmatched`: points without a partner; `matching`: counts of both.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;

use super::chains::{self, Chains};
use super::kernel::wakes::{WAKE, WakeEdges};
use super::named::NamedTable;
use super::pair_planner::LinkColumn;
use super::spans::{self, Spans};
use crate::bounds::{Bounded, BoundedText, Bounds};
use crate::causality::{
    Causes, EdgeColumn, EndColumn, Endpoints, HASH, KEY, Matching, MatchingTable, PointDirectory,
    ShownEnd, WHEN, columns_read, edge_column, matched_in_memory, needs_drained,
};
use crate::chunk_scan::ChunkScan;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::table::{CaptureTable, Pass, Planned, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let points = Arc::new(PointDirectory::new(set));
    let endpoints = Arc::new(Endpoints::new(points.clone()));
    let causes = Arc::new(Causes::new(set, points)?);
    let spans = spans::all(set)?.into_iter().map(|entry| entry.1);
    let spans = spans.filter(|span| span.comparable().is_ok()).map(Links::Spans);
    let links: Arc<[Links]> =
        spans.chain(chains::all(set)?.into_iter().map(Links::Chains)).collect();
    let table = |shown: MatchingTable| {
        let schema = Arc::new(shown.schema());
        let is_edges = shown == MatchingTable::Edges;
        let links = if is_edges { links.clone() } else { Arc::new([]) };
        let wakes = if is_edges { WakeEdges::new(set) } else { None };
        let (set, endpoints, causes) = (set.clone(), endpoints.clone(), causes.clone());
        Matched { set, endpoints, causes, shown, schema, links, wakes }
    };
    Ok(vec![
        NamedTable::fixed("edges", table(MatchingTable::Edges)),
        NamedTable::fixed("unmatched", table(MatchingTable::Unmatched)),
        NamedTable::fixed("matching", table(MatchingTable::Counts)),
    ])
}

/// A table of the results of matching points.
#[derive(Debug)]
struct Matched {
    set: Arc<CaptureSet>,
    endpoints: Arc<Endpoints>,
    causes: Arc<Causes>,
    shown: MatchingTable,
    schema: SchemaRef,
    /// Spans and chains, which make edges, too.
    links: Arc<[Links]>,
    wakes: Option<WakeEdges>,
}

/// Frames that a key links.
#[derive(Debug)]
enum Links {
    /// A begin causes its end.
    Spans(Spans),
    /// A step causes the next one.
    Chains(Chains),
}

impl Links {
    /// The kind of these edges.
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
        // Each kind of edges is made from other frames.
        let is_kind = self.shown == MatchingTable::Edges && edge_column(column) == EdgeColumn::Kind;
        is_kind.then_some(Bounded::Word(BoundedText::Name))
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let wanted = |kind: &str| request.bounds.has_word(BoundedText::Name, kind);
        let mut planned = self.plan_points(request, wanted(HASH))?;
        for links in self.links.iter().filter(|links| wanted(links.kind())) {
            planned.more.push(self.plan_links(links, request)?);
        }
        if let Some(wakes) = self.wakes.as_ref().filter(|_| wanted(WAKE)) {
            let schema = Arc::new(self.schema.project(request.columns)?);
            planned.more.push(wakes.links(request, schema)?);
        }
        Ok(planned)
    }
}

impl Matched {
    /// Plans the rows from points; no rows if they are not wanted.
    fn plan_points(
        &self,
        request: &TableRequest<'_>,
        is_wanted: bool,
    ) -> Result<Planned, TableError> {
        self.causes.comparable(self.shown.table())?;
        let read =
            columns_read(self.shown, request.columns, self.causes.directory.clocks.are_exact());
        let mut bounds = Bounds::default();
        if !is_wanted {
            bounds.one_of(BoundedText::Buffer, [].into());
        }
        // The partner of a row may be anywhere, so bounds and limit do not apply to the scan.
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan = Arc::new(ChunkScan::new(&self.set, &self.endpoints, &inner)?);
        let schema = Arc::new(self.schema.project(request.columns)?);
        // Matching in memory does not keep times of draining.
        if !needs_drained(self.shown, request.columns)
            && let Some(scan) = matched_in_memory(&self.causes, self.shown, request, &schema, &scan)
        {
            return Ok(scan.into());
        }
        let (causes, columns) = (self.causes.clone(), request.columns.to_vec());
        let (shown, out) = (self.shown, schema.clone());
        let start = Start(Arc::new(move || {
            Box::new(Matching::new(causes.clone(), shown, columns.clone(), out.clone()))
        }));
        let explain_text = format!(
            "{}: what leaves and enters points, by hash type and value",
            self.shown.table()
        );
        let pass = Pass {
            schema,
            group_by: vec![KEY],
            order: vec![(KEY, false), (WHEN, false)],
            start,
            explain_text,
        };
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }

    /// Plans the rows from spans or chains.
    fn plan_links(&self, links: &Links, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let word = |text: &str| LinkColumn::Word(Arc::new(StringArray::from_iter_values([text])));
        let shown = |&column: &usize| match edge_column(column) {
            EdgeColumn::End(_, EndColumn::Point) => word(links.name()),
            EdgeColumn::End(ShownEnd::Source, EndColumn::Standard(standard)) => {
                LinkColumn::Own(standard)
            }
            EdgeColumn::End(ShownEnd::Destination, EndColumn::Standard(standard)) => {
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
