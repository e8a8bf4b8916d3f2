//! Matches edges with spans: edges wait for their effects, and causes wait for the edges that name them.

use std::collections::{HashMap, VecDeque};
use std::mem;

use super::ids::{FrameId, SpanContext, frame_id, frame_of};
use crate::event::EventRows;
use crate::values::FieldValue;

/// Frames that are remembered before an edge names them. Edges come at the time of their cause, so few
/// are enough.
const RECENT: usize = 1 << 15;

/// The maximum number of edges that wait for their effects. Beyond it, the oldest are dropped: their effects were
/// lost, or come very late.
const MAX_WAITING: usize = 1 << 18;

/// An edge that waits for its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CauseEdge {
    pub cause: FrameId,
    /// Whether cause and effect belong to one span or chain.
    pub is_of_whole: bool,
    /// The kind of the edge, and its type if it has one.
    pub words: [Option<String>; 2],
}

/// An edge as a row has it, at the time of its cause.
#[derive(Debug)]
pub(super) struct EdgeRow {
    pub cause: FrameId,
    pub effect: FrameId,
    /// The kind of the edge, and its type if it has one.
    pub words: [Option<String>; 2],
}

impl EdgeRow {
    /// Reads a row; None if one of its ends has no frame.
    pub fn read(rows: &EventRows, row: usize) -> Option<EdgeRow> {
        let word = |at: usize| match rows.fields.get(at)?.get(row)? {
            FieldValue::Word(text) | FieldValue::Text(text) => Some(text),
            _ => None,
        };
        let long = |at: usize| match rows.fields.get(at)?.get(row)? {
            FieldValue::Int(value) => Some(value),
            _ => None,
        };
        Some(EdgeRow {
            cause: frame_of(rows, row)?,
            effect: frame_id(word(0), word(1), long(2), long(3))?,
            words: [word(4), word(5)].map(|word| word.map(str::to_owned)),
        })
    }
}

/// A cause that edges wait for.
#[derive(Debug, Default)]
struct Needed {
    edges: usize,
    context: Option<SpanContext>,
}

/// Causes and edges that wait. Memory is bounded by the waiting ones.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// The last frames that may be causes, and those before.
    recent: [HashMap<FrameId, SpanContext>; 2],
    needed: HashMap<FrameId, Needed>,
    waiting: HashMap<FrameId, Vec<CauseEdge>>,
    /// The number of waiting edges.
    count: usize,
    /// The effects that edges wait for, in the order in which edges came; some are no longer waited for.
    effects: VecDeque<FrameId>,
    /// The number of dropped edges.
    dropped: u64,
}

impl Causes {
    /// Records that a frame has a span with this context, unless it has one already.
    pub fn seen(&mut self, frame: FrameId, context: SpanContext) {
        if self.get(frame).is_some() {
            return;
        }
        if let Some(needed) = self.needed.get_mut(&frame) {
            needed.context.get_or_insert(context);
        }
        if self.recent[0].len() >= RECENT {
            self.recent[1] = mem::take(&mut self.recent[0]);
        }
        self.recent[0].insert(frame, context);
    }

    /// The span of a frame.
    pub fn get(&self, frame: FrameId) -> Option<SpanContext> {
        let needed = self.needed.get(&frame).and_then(|needed| needed.context);
        needed.or_else(|| self.recent.iter().find_map(|recent| recent.get(&frame).copied()))
    }

    /// Adds an edge to that effect.
    pub fn edge(&mut self, effect: FrameId, edge: CauseEdge) {
        let context = self.get(edge.cause);
        let needed = self.needed.entry(edge.cause).or_default();
        needed.edges += 1;
        needed.context = needed.context.or(context);
        self.waiting.entry(effect).or_default().push(edge);
        self.count += 1;
        self.effects.push_back(effect);
        if self.effects.len() > 2 * MAX_WAITING {
            self.effects.retain(|effect| self.waiting.contains_key(effect));
        }
        while self.count > MAX_WAITING {
            let Some(oldest) = self.effects.pop_front() else { return };
            let before = self.count;
            self.take(oldest);
            self.dropped += (before - self.count) as u64;
        }
    }

    /// The number of dropped edges.
    pub fn dropped_links(&self) -> u64 {
        self.dropped
    }

    /// The edges to an effect that are known, each with the span of its cause. Each edge is returned once.
    pub fn take(&mut self, effect: FrameId) -> Vec<(CauseEdge, SpanContext)> {
        let edges = self.waiting.remove(&effect).unwrap_or_default();
        self.count -= edges.len();
        let mut all = Vec::with_capacity(edges.len());
        for edge in edges {
            let context = self.get(edge.cause);
            if let Some(needed) = self.needed.get_mut(&edge.cause) {
                needed.edges -= 1;
                if needed.edges == 0 {
                    self.needed.remove(&edge.cause);
                }
            }
            all.extend(context.map(|context| (edge, context)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(number: u8) -> SpanContext {
        SpanContext { trace: [number; 16], span: [number; 8] }
    }

    fn edge(cause: FrameId) -> CauseEdge {
        CauseEdge { cause, is_of_whole: false, words: [Some("hash".to_owned()), None] }
    }

    #[test]
    fn a_cause_is_known_however_long_its_effect_takes() {
        let mut causes = Causes::default();
        causes.seen(1, context(1));
        causes.edge(2, edge(1));
        causes.edge(3, edge(1));
        for frame in 10..10 + 3 * RECENT as u64 {
            causes.seen(frame, context(9));
        }
        for effect in [2, 3] {
            assert_eq!(causes.take(effect), [(edge(1), context(1))], "{effect}");
            assert_eq!(causes.take(effect), [], "an edge is given out once");
        }
        assert!(causes.needed.is_empty() && causes.waiting.is_empty());
        assert_eq!(causes.get(1), None, "nothing waits for it any more");
        assert!(causes.recent.iter().all(|recent| recent.len() <= RECENT));
    }

    #[test]
    fn edges_whose_effects_never_come_are_let_go_of() {
        let mut causes = Causes::default();
        let many = 3 * MAX_WAITING as u64;
        for cause in 0..many {
            causes.seen(cause, context(1));
            causes.edge(many + cause, edge(cause));
            // Every other effect comes.
            if cause % 2 == 0 {
                assert_eq!(causes.take(many + cause).len(), 1, "{cause}");
            }
        }
        let left = many / 2 - causes.dropped_links();
        assert_eq!((causes.count as u64, causes.waiting.len() as u64), (left, left));
        assert!(left <= MAX_WAITING as u64 && causes.needed.len() <= MAX_WAITING, "{left}");
        assert!(causes.effects.len() <= 2 * MAX_WAITING, "{}", causes.effects.len());
        assert_eq!(causes.take(many + 1), [], "the oldest is gone");
        assert_eq!(causes.take(2 * many - 1), [(edge(many - 1), context(1))], "the last is there");
    }

    #[test]
    fn an_edge_may_come_before_its_cause() {
        let mut causes = Causes::default();
        causes.edge(2, edge(1));
        causes.seen(1, context(1));
        causes.seen(1, context(5));
        assert_eq!(causes.take(2), [(edge(1), context(1))]);
        causes.edge(2, edge(77));
        assert_eq!(causes.take(2), [], "no span of that frame was told");
    }
}
