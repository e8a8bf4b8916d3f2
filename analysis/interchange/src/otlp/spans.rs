//! Rows as spans.

use std::collections::BTreeMap;

use super::attributes::{attributes, text};
use super::batch::Spans;
use super::causes::{CauseEdge, Causes, EdgeRow};
use super::ids::{FrameId, SpanContext, frame_of, root};
use super::message::{INTERNAL, LinkMessage, SpanMessage};
use super::open_slices::OpenSlices;
use super::traced_kind::TracedKind;
use crate::event::{EventRole, EventRows, is_loss};
use crate::threads::Threads;
use crate::values::FieldValue;

/// The maximum number of held spans. Beyond it, the spans that end first are written, although their causes may
/// follow later.
const MAX_HELD: usize = 1 << 16;

/// Converts rows into spans.
#[derive(Debug, Default)]
pub(super) struct SpanMaker {
    /// The open slices of each thread.
    open: Vec<OpenSlices<SpanContext>>,
    causes: Causes,
    held: HeldSpans,
    /// The number of spans without a frame.
    of_no_frame: u64,
    /// The finished spans.
    pub made: Spans,
}

/// Spans that a later edge may cause, by their ends, in the order of their rows.
#[derive(Debug, Default)]
struct HeldSpans {
    all: BTreeMap<(i64, u64), (FrameId, usize, SpanMessage)>,
    next: u64,
    /// Spans that were written before they ended.
    early: u64,
}

/// The meaning of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// To a cause of the span: the kind of the edge, and its type.
    Edge([Option<String>; 2]),
    /// To the slice around a span whose parent is another one.
    Around,
}

impl Link {
    /// The link to that span.
    pub fn message(&self, to: SpanContext) -> LinkMessage {
        let attributes = match self {
            Link::Edge(words) => {
                let words = ["ppt.edge.kind", "ppt.edge.type"].into_iter().zip(words);
                words.filter_map(|(name, word)| Some(text(name, word.as_ref()?))).collect()
            }
            Link::Around => vec![text("ppt.edge.kind", "around")],
        };
        LinkMessage { trace_id: to.trace.to_vec(), span_id: to.span.to_vec(), attributes }
    }
}

/// The candidates for the parent of a row: the slice around it, and its causes. `T` identifies a span.
pub(super) struct ParentCandidates<T> {
    pub whole: Option<T>,
    pub around: Option<T>,
    /// Whether the cause belongs to the same span or chain, the words of the edge, and the cause.
    pub edges: Vec<(bool, [Option<String>; 2], T)>,
}

impl<T: Copy> ParentCandidates<T> {
    /// The parent of the span, and its links.
    pub fn parent(mut self) -> (Option<T>, Vec<(T, Link)>) {
        let cause = self.edges.iter().position(|edge| edge.0);
        let cause = match (self.whole, cause, self.around) {
            (Some(_), ..) => None,
            // A row in a slice belongs to the slice; a row in none belongs to its cause.
            (None, None, None) if !self.edges.is_empty() => Some(0),
            (None, cause, _) => cause,
        };
        let cause = cause.map(|at| self.edges.remove(at).2);
        let edges = self.edges.into_iter();
        let mut links: Vec<_> = edges.map(|(_, words, to)| (to, Link::Edge(words))).collect();
        let of_whole = self.whole.or(cause);
        let around = self.around.filter(|_| of_whole.is_some());
        links.extend(around.map(|around| (around, Link::Around)));
        (of_whole.or(self.around), links)
    }
}

impl SpanMaker {
    /// Adds an edge, at the time of its cause.
    pub fn edge(&mut self, rows: &EventRows, row: usize) {
        let Some(EdgeRow { cause, effect, words }) = EdgeRow::read(rows, row) else { return };
        let is_of_whole = matches!(words[0].as_deref(), Some("span" | "chain"));
        self.causes.edge(effect, CauseEdge { cause, is_of_whole, words });
    }

    /// Converts a row of a thread into a span.
    pub fn span(
        &mut self,
        of: &TracedKind,
        (threads, thread): (&Threads, usize),
        rows: &EventRows,
        row: usize,
    ) {
        let (begin, mut end) = (rows.begin(row), rows.end(row));
        self.release(Some(begin));
        if self.open.len() <= thread {
            self.open.resize_with(thread + 1, OpenSlices::default);
        }
        let what = of.kind.what;
        let is_missing = what == EventRole::Missing;
        let frame = frame_of(rows, row).filter(|_| of.kind.is_of_frames());
        let found = self.found(of, (thread, frame), rows, row);
        self.of_no_frame += u64::from(frame.is_none());
        let mut context = root((&of.kind, &of.label), self.of_no_frame, rows, row);
        let (parent, links) = found.parent();
        let links = links.iter().map(|(to, link)| link.message(*to)).collect();
        if let Some(parent) = parent {
            context.trace = parent.trace;
        }
        if let Some(frame) = frame
            .filter(|_| what == EventRole::Spans || of.has_edges && rows.is_first_of_frame(row))
        {
            self.causes.seen(frame, context);
        }
        if is_missing
            && let Some(FieldValue::Int(until)) =
                rows.fields.get(2).and_then(|field| field.get(row))
        {
            end = end.max(until);
        } else if rows.dur(row).is_some() {
            self.open[thread].push(end, context);
        }
        let mut attributes = attributes(&of.kind, rows, row);
        if let Some(name) = threads.name(thread)
            && attributes.iter().all(|attribute| attribute.key != "thread.name")
        {
            attributes.push(text("thread.name", name));
        }
        let span = SpanMessage {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: parent.map(|parent| parent.span.to_vec()).unwrap_or_default(),
            name: name(of, rows, row),
            kind: INTERNAL,
            start_time_unix_nano: begin as u64,
            end_time_unix_nano: end as u64,
            attributes,
            links,
        };
        let (process, _) = threads.get(thread);
        match frame {
            Some(frame)
                if what == EventRole::Frames && of.has_edges && rows.is_first_of_frame(row) =>
            {
                let next = self.held.next;
                self.held.next += 1;
                self.held.all.insert((end, next), (frame, process, span));
                if self.held.all.len() > MAX_HELD {
                    self.held.early += 1;
                    self.release_first();
                }
            }
            _ => self.made.push(process, span),
        }
    }

    fn found(
        &mut self,
        of: &TracedKind,
        (thread, frame): (usize, Option<FrameId>),
        rows: &EventRows,
        row: usize,
    ) -> ParentCandidates<SpanContext> {
        let (begin, end) = (rows.begin(row), rows.end(row));
        let is_in_thread = !matches!(of.kind.what, EventRole::Spans | EventRole::States);
        let around = if is_in_thread { self.open[thread].around(begin, end) } else { None };
        let mut found = ParentCandidates { whole: None, around, edges: Vec::new() };
        if let Some(frame) =
            frame.filter(|_| of.kind.what == EventRole::Frames && rows.is_first_of_frame(row))
        {
            if of.kind.is_end_of_span() {
                found.whole = self.causes.get(frame);
            }
            if of.has_edges {
                let edges = self.causes.take(frame).into_iter();
                found.edges = edges.map(|(edge, to)| (edge.is_of_whole, edge.words, to)).collect();
            }
        }
        found
    }

    /// Writes spans that ended before `time`, or all. Edges that came in the meantime become links.
    pub fn release(&mut self, time: Option<i64>) {
        while let Some((&(end, _), _)) = self.held.all.first_key_value() {
            if time.is_some_and(|time| end >= time) {
                break;
            }
            self.release_first();
        }
    }

    /// Writes the span that ends first.
    fn release_first(&mut self) {
        let Some((_, (frame, process, mut span))) = self.held.all.pop_first() else { return };
        let late = self.causes.take(frame);
        span.links.extend(late.into_iter().map(|(edge, to)| Link::Edge(edge.words).message(to)));
        self.made.push(process, span);
    }

    /// The number of links that may be missing, because too many spans and edges were held.
    pub fn dropped_links(&self) -> u64 {
        self.causes.dropped_links() + self.held.early
    }
}

/// The name of a span.
pub(super) fn name(of: &TracedKind, rows: &EventRows, row: usize) -> String {
    if of.kind.what == EventRole::Missing {
        let (_, cause) = rows.missing(row);
        return if is_loss(cause) { "lost".to_owned() } else { cause.replace('_', " ") };
    }
    match of.named_by.and_then(|field| rows.fields.get(field)?.get(row)) {
        Some(FieldValue::Word(name) | FieldValue::Text(name)) if !name.is_empty() => {
            name.to_owned()
        }
        _ => of.label.clone(),
    }
}
