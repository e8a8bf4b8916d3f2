//! A kind of frames, as spans and points.

use crate::event::EventSchema;

#[derive(Debug)]
pub(super) struct TracedKind {
    pub kind: EventSchema,
    pub label: String,
    pub named_by: Option<usize>,
    pub counters: Vec<usize>,
    /// Whether edges may begin or end at its frames, and are known.
    pub has_edges: bool,
}

impl TracedKind {
    pub fn new(kind: &EventSchema, edges_are_known: bool) -> TracedKind {
        TracedKind {
            label: kind.label(),
            named_by: kind.marked(|marks| marks.name),
            counters: kind.counters(),
            has_edges: edges_are_known && kind.may_have_edges(),
            kind: kind.clone(),
        }
    }
}
