//! Finds the parents of spans, and the spans that are complete.
//!
//! The slice around a frame is written at its end, so it may arrive later than the frame. A draft waits until all
//! frames published within some seconds of its end have arrived, and until its parent is complete, too, so that
//! traces are exported with a known first span. Frames of a span or a chain wait until it is complete.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::super::ids::{FrameId, SpanContext};
use super::super::message::SpanMessage;
use super::super::open_slices::OpenSlices;
use super::super::spans::{Link, ParentCandidates};
use super::state::{Cause, Draft, KnownContext};

/// The maximum time in ns by which the slice around a span may end later than the span.
const WAIT_NS: i64 = 10_000_000_000;

/// The maximum numbers of waiting drafts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Drafts that wait only for slices around them.
    pub young: usize,
    /// All drafts.
    pub all: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { young: 100_000, all: 250_000 }
    }
}

/// A reference to a span: a draft, or a span that was exported earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanRef {
    Draft(usize),
    Exported(SpanContext),
}

/// The spans that a draft refers to.
#[derive(Debug, Default)]
struct DraftRelations {
    around: Option<SpanRef>,
    parent: Option<SpanRef>,
    links: Vec<(SpanRef, Link)>,
}

impl DraftRelations {
    /// The drafts among its parent and its links.
    fn drafts(&self) -> impl Iterator<Item = usize> + '_ {
        let links = self.links.iter().map(|link| link.0);
        self.parent.into_iter().chain(links).filter_map(|known| match known {
            SpanRef::Draft(on) => Some(on),
            SpanRef::Exported(_) => None,
        })
    }
}

/// Drafts in the order of their beginnings.
#[derive(Debug)]
pub(super) struct Assembly {
    drafts: Vec<Draft>,
    causes: Vec<Cause>,
    contexts: Vec<SpanContext>,
    relations: Vec<DraftRelations>,
    is_done: Vec<bool>,
    /// The first draft of a frame, by its number.
    by_frame: HashMap<FrameId, usize>,
}

impl Assembly {
    pub fn new(mut drafts: Vec<Draft>, causes: Vec<Cause>) -> Assembly {
        drafts.sort_by(|one, other| {
            let key = |of: &Draft| (of.begin(), Reverse(of.dur), !of.is_whole);
            key(one).cmp(&key(other)).then_with(|| one.ties.cmp(&other.ties))
        });
        let contexts = drafts.iter().map(Draft::own_context).collect();
        let (relations, is_done, by_frame) =
            (Vec::new(), vec![false; drafts.len()], HashMap::new());
        Assembly { drafts, causes, contexts, relations, is_done, by_frame }
    }

    /// Finds the parents.
    pub fn resolve(&mut self) {
        for (at, draft) in self.drafts.iter().enumerate() {
            if let Some(frame) = draft.frame.filter(|_| draft.is_whole || draft.has_edges) {
                let known = self.by_frame.entry(frame).or_insert(at);
                if draft.is_whole {
                    // The times of a frame may differ a little between two ranges.
                    *known = at;
                }
            }
        }
        let mut causes: HashMap<FrameId, Vec<usize>> = HashMap::new();
        for (at, cause) in self.causes.iter().enumerate() {
            causes.entry(cause.effect).or_default().push(at);
        }
        let mut open: HashMap<u32, OpenSlices<usize>> = HashMap::new();
        for at in 0..self.drafts.len() {
            let draft = &self.drafts[at];
            let (begin, open) = (draft.begin(), open.entry(draft.thread).or_default());
            let gone = draft.around.as_ref().and_then(|around| around.get());
            let around = open.around(begin, draft.reach).filter(|_| draft.is_in_thread);
            let around = gone.map(SpanRef::Exported).or(around.map(SpanRef::Draft));
            if draft.dur.is_some() {
                open.push(draft.reach, at);
            }
            let whole = draft.frame.filter(|_| draft.is_end).and_then(|frame| {
                let known = self.by_frame.get(&frame).copied()?;
                self.drafts[known].is_whole.then_some(SpanRef::Draft(known))
            });
            let (mut edges, mut late) = (Vec::new(), Vec::new());
            let own = draft.frame.filter(|_| draft.has_edges);
            for &edge in own.and_then(|frame| causes.get(&frame)).into_iter().flatten() {
                let edge = &self.causes[edge];
                let gone = || edge.context.as_ref().and_then(|context| context.get());
                let known = match self.by_frame.get(&edge.cause) {
                    Some(&cause) => SpanRef::Draft(cause),
                    None => match gone() {
                        Some(context) => SpanRef::Exported(context),
                        None => continue,
                    },
                };
                let is_before = match known {
                    SpanRef::Draft(cause) => cause < at || self.drafts[cause].is_whole,
                    SpanRef::Exported(_) => true,
                };
                let words = [edge.word.clone(), edge.ty.clone()];
                let is_early = edge.is_of_whole || edge.ts < begin;
                if is_before && is_early {
                    edges.push((edge.is_of_whole, words, known));
                } else {
                    late.push((known, Link::Edge(words)));
                }
            }
            let (parent, mut links) = ParentCandidates { whole, around, edges }.parent();
            links.append(&mut late);
            if let Some(parent) = parent {
                self.contexts[at].trace = self.context(parent).trace;
            }
            self.relations.push(DraftRelations { around, parent, links });
        }
    }

    fn context(&self, known: SpanRef) -> SpanContext {
        match known {
            SpanRef::Draft(at) => self.contexts[at],
            SpanRef::Exported(context) => context,
        }
    }

    /// Marks the complete drafts. `until` is the time up to which all frames have arrived; None marks all drafts.
    /// `done` has the frames of complete spans and chains. Returns the number of drafts that are released early,
    /// because too many wait.
    pub fn settle(&mut self, until: Option<i64>, done: &HashSet<FrameId>, limits: Limits) -> u64 {
        let Some(until) = until else {
            self.is_done.fill(true);
            return 0;
        };
        let settled = self.settled(until, limits.young);
        for draft in self.drafts.iter_mut().filter(|draft| draft.is_of_whole) {
            draft.is_of_whole = draft.frame.is_none_or(|frame| !done.contains(&frame));
        }
        let waits = |draft: &Draft| draft.end() > settled || draft.is_of_whole;
        self.is_done = self.drafts.iter().map(|draft| !waits(draft)).collect();
        self.wait_for_others();
        self.let_go(limits.all)
    }

    /// Releases the earliest traces if too many spans wait, and returns their number of spans. It releases whole
    /// traces, because a span gets its trace from its parent.
    fn let_go(&mut self, most: usize) -> u64 {
        let waiting = self.is_done.iter().filter(|is_done| !**is_done).count();
        if waiting <= most {
            return 0;
        }
        let mut beside: Vec<Vec<u32>> = vec![Vec::new(); self.drafts.len()];
        for (at, relations) in self.relations.iter().enumerate() {
            for on in relations.drafts() {
                beside[on].push(at as u32);
                beside[at].push(on as u32);
            }
        }
        let (mut left, mut next) = (waiting, Vec::new());
        for at in 0..self.drafts.len() {
            if left <= most / 2 {
                break;
            }
            next.push(at as u32);
            while let Some(at) = next.pop() {
                if !std::mem::replace(&mut self.is_done[at as usize], true) {
                    left -= 1;
                    next.extend(&beside[at as usize]);
                }
            }
        }
        (waiting - left) as u64
    }

    /// The latest end of spans that have waited long enough for slices around them: [`WAIT_NS`], or less if there
    /// are many.
    fn settled(&self, until: i64, most: usize) -> i64 {
        let settled = until.saturating_sub(WAIT_NS);
        let young = self.drafts.iter().map(Draft::end);
        let mut young: Vec<i64> = young.filter(|&end| end > settled && end <= until).collect();
        if young.len() <= most {
            return settled;
        }
        let last = young.len() - most;
        *young.select_nth_unstable(last).1
    }

    /// Makes drafts wait if they refer to a draft that waits.
    fn wait_for_others(&mut self) {
        let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); self.drafts.len()];
        for (at, relations) in self.relations.iter().enumerate() {
            for on in relations.drafts() {
                dependents[on].push(at as u32);
                // A begin and its end need their span.
                if self.drafts[on].is_whole && relations.parent == Some(SpanRef::Draft(on)) {
                    dependents[at].push(on as u32);
                }
            }
        }
        let mut left: Vec<usize> =
            (0..self.is_done.len()).filter(|&at| !self.is_done[at]).collect();
        while let Some(at) = left.pop() {
            for &other in &dependents[at] {
                if std::mem::replace(&mut self.is_done[other as usize], false) {
                    left.push(other as usize);
                }
            }
        }
    }

    /// The complete spans, each with the number of its resource.
    pub fn done(&self) -> impl Iterator<Item = (usize, SpanMessage)> + '_ {
        let done = (0..self.drafts.len()).filter(|&at| self.is_done[at]);
        done.filter_map(|at| {
            let (draft, relations) = (&self.drafts[at], &self.relations[at]);
            let links = relations.links.iter().map(|(to, link)| link.message(self.context(*to)));
            let parent = relations.parent.map(|parent| self.context(parent).span.to_vec());
            let span = SpanMessage {
                trace_id: self.contexts[at].trace.to_vec(),
                parent_span_id: parent.unwrap_or_default(),
                links: links.collect(),
                ..draft.span.clone()?
            };
            Some((draft.resource as usize, span))
        })
    }

    /// The waiting drafts, and the edges to them.
    pub fn rest(mut self) -> (Vec<Draft>, Vec<Cause>) {
        let gone = |known: Option<SpanRef>, all: &Assembly| -> Option<KnownContext> {
            match known? {
                SpanRef::Draft(at) if !all.is_done[at] => None,
                known => Some(all.context(known).into()),
            }
        };
        let around: Vec<_> =
            self.relations.iter().map(|relations| gone(relations.around, &self)).collect();
        let mut waits = HashSet::new();
        for (draft, is_done) in self.drafts.iter().zip(&self.is_done) {
            waits.extend(draft.frame.filter(|_| !is_done && draft.has_edges));
        }
        let mut causes = std::mem::take(&mut self.causes);
        causes.retain(|cause| waits.contains(&cause.effect));
        for cause in &mut causes {
            if let Some(&at) = self.by_frame.get(&cause.cause) {
                cause.context = gone(Some(SpanRef::Draft(at)), &self);
            }
        }
        let is_done = self.is_done;
        let all = self.drafts.into_iter().zip(around).zip(is_done);
        let drafts = all.filter(|(_, is_done)| !is_done);
        let drafts = drafts.map(|((draft, around), _)| Draft { around, ..draft });
        (drafts.collect(), causes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn id(number: u64) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    /// A span of a thread.
    fn draft(number: u64, begin: i64, dur: i64) -> Draft {
        let span = SpanMessage {
            trace_id: [id(0), id(number)].concat(),
            span_id: id(number),
            start_time_unix_nano: begin as u64,
            end_time_unix_nano: (begin + dur) as u64,
            ..SpanMessage::default()
        };
        Draft {
            span: Some(span),
            reach: begin + dur,
            dur: Some(dur),
            is_in_thread: true,
            ..Draft::default()
        }
    }

    /// The spans exported by `until`, the waiting drafts, and the number released early.
    fn settled(
        drafts: Vec<Draft>,
        until: i64,
        limits: Limits,
    ) -> (Vec<SpanMessage>, Vec<Draft>, u64) {
        let mut assembly = Assembly::new(drafts, Vec::new());
        assembly.resolve();
        let let_go = assembly.settle(Some(until), &HashSet::new(), limits);
        let done = assembly.done().map(|(_, span)| span).collect();
        (done, assembly.rest().0, let_go)
    }

    /// Traces of three spans each: one around two others.
    fn traces(count: u64) -> Vec<Draft> {
        let trace = |at: u64| {
            let begin = at as i64 * 100;
            [(0, 0, 90), (1, 10, 20), (2, 40, 20)]
                .map(|(number, from, dur)| draft(3 * at + number + 1, begin + from, dur))
        };
        (0..count).flat_map(trace).collect()
    }

    #[test]
    fn of_too_many_spans_the_earliest_traces_go_as_a_whole_and_are_counted() {
        let limits = Limits { young: 1000, all: 100 };
        let (done, rest, let_go) = settled(traces(33), 5 * SECOND, limits);
        assert_eq!((done.len(), rest.len(), let_go), (0, 99, 0), "there is room for these");
        let (done, rest, let_go) = settled(traces(40), 5 * SECOND, limits);
        assert_eq!((done.len(), rest.len(), let_go), (72, 48, 72));
        assert!(rest.iter().all(|draft| draft.begin() >= 24 * 100));
        // Each is together with its parent, in its trace.
        for span in done.iter().filter(|span| !span.parent_span_id.is_empty()) {
            let parent = done.iter().find(|other| other.span_id == span.parent_span_id).unwrap();
            assert_eq!(parent.trace_id, span.trace_id);
        }
        assert_eq!(done.iter().filter(|span| span.parent_span_id.is_empty()).count(), 24);
    }

    #[test]
    fn of_many_young_spans_the_earliest_wait_less() {
        let limits = Limits { young: 10, all: 1000 };
        let (done, rest, let_go) = settled(traces(20), 5 * SECOND, limits);
        assert_eq!((done.len(), rest.len(), let_go), (51, 9, 0));
        let (done, ..) = settled(traces(20), 11 * SECOND, Limits { young: 60, all: 1000 });
        assert_eq!(done.len(), 60, "they have waited long enough");
    }
}
