//! A kind, as spans and points tell it.

use crate::event::Kind;

#[derive(Debug)]
pub(super) struct TracedKind {
    pub kind: Kind,
    pub label: String,
    pub named_by: Option<usize>,
    pub counters: Vec<usize>,
    /// Whether edges may begin or end at its frames, and are known.
    pub has_edges: bool,
}

impl TracedKind {
    pub fn new(kind: &Kind, edges_are_known: bool) -> TracedKind {
        TracedKind {
            label: kind.label(),
            named_by: kind.marked(|marks| marks.name),
            counters: kind.counters(),
            has_edges: edges_are_known && kind.may_have_edges(),
            kind: kind.clone(),
        }
    }
}
