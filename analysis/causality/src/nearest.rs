//! For each vertex, the nearest beginning.

use crate::entry::Certainty;
use crate::graph::{EdgeKind, Graph, NONE, PROGRAM};

/// The last step of the path to a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastStep {
    /// The beginning of the path.
    pub origin: u32,
    /// The number of the edge, or [`PROGRAM`].
    pub number: u32,
    pub ambiguous: bool,
}

/// For each vertex, the path to it from the nearest beginning.
#[derive(Debug)]
pub(crate) struct Nearest {
    /// The beginning, or `NONE`.
    pub origin: Vec<u32>,
    /// The number of the last step; the highest bit marks an ambiguous path.
    step: Vec<u32>,
}

const AMBIGUOUS: u32 = 1 << 31;

impl Graph {
    /// Finds the nearest beginning of each vertex. `reached` gets each vertex that has one, with the last step
    /// to it.
    pub(crate) fn nearest(
        &self,
        from: impl Fn(u32) -> bool,
        mut reached: impl FnMut(u32, LastStep),
    ) -> Nearest {
        let mut labels = Nearest { origin: vec![NONE; self.len()], step: vec![NONE; self.len()] };
        for vertex in 0..self.len() as u32 {
            let last = labels.last_step(self, vertex);
            if let Some(last) = last {
                reached(vertex, last);
            }
            let at = vertex as usize;
            if from(vertex) {
                labels.origin[at] = vertex;
            } else if let Some(last) = last {
                labels.origin[at] = last.origin;
                labels.step[at] = last.number | if last.ambiguous { AMBIGUOUS } else { 0 };
            }
        }
        labels
    }
}

impl Nearest {
    fn origin(&self, vertex: u32) -> Option<u32> {
        let origin = self.origin[vertex as usize];
        (origin != NONE).then_some(origin)
    }

    /// Whether the path to a vertex is ambiguous; a beginning has none.
    fn ambiguous(&self, vertex: u32) -> bool {
        let step = self.step[vertex as usize];
        step != NONE && step & AMBIGUOUS != 0
    }

    /// The number of the last step to a vertex that has a beginning and is not one.
    pub fn step(&self, vertex: u32) -> u32 {
        self.step[vertex as usize] & !AMBIGUOUS
    }

    fn last_step(&self, graph: &Graph, vertex: u32) -> Option<LastStep> {
        let before = graph.before(vertex).and_then(|before| Some((self.origin(before)?, before)));
        if let Some(last) = self.last_link(graph, vertex, |kind| kind != EdgeKind::Wake) {
            return Some(last);
        }
        if graph.ignores_thread(vertex) {
            return None;
        }
        if let Some(mut last) = self.last_link(graph, vertex, |kind| kind == EdgeKind::Wake) {
            last.ambiguous |= before.is_some_and(|(origin, _)| origin != last.origin);
            return Some(last);
        }
        let (origin, before) = before?;
        let ambiguous = self.ambiguous(before)
            || graph.links(vertex).iter().any(|link| link.kind == EdgeKind::Span);
        Some(LastStep { origin, number: PROGRAM, ambiguous })
    }

    /// The edge to a vertex, among those of some kinds, whose path begins latest.
    fn last_link(
        &self,
        graph: &Graph,
        vertex: u32,
        is_wanted: impl Fn(EdgeKind) -> bool,
    ) -> Option<LastStep> {
        let mut best: Option<(u32, u32, Certainty, u32)> = None;
        let mut rivals = false;
        for (number, link) in (graph.first(vertex)..).zip(graph.links(vertex)) {
            let Some(origin) = self.origin(link.src).filter(|_| is_wanted(link.kind)) else {
                continue;
            };
            rivals |= best.is_some_and(|best| best.0 != origin);
            // A certain edge wins over a possible one between the same two vertices.
            let is_better = best.is_none_or(|(best_origin, src, certainty, _)| {
                (origin, link.src) > (best_origin, src)
                    || (origin, link.src) == (best_origin, src) && link.certainty < certainty
            });
            if is_better {
                best = Some((origin, link.src, link.certainty, number));
            }
        }
        let (origin, src, certainty, number) = best?;
        let ambiguous = rivals || certainty == Certainty::Possible || self.ambiguous(src);
        Some(LastStep { origin, number, ambiguous })
    }
}
