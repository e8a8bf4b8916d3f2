//! For each vertex, the nearest beginning.

use crate::entry::Certainty;
use crate::graph::{EdgeKind, Graph, NONE, PROGRAM};

/// Where a vertex is led from: by an edge or by its thread, and beginning where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Led {
    pub origin: u32,
    /// The number of the edge, or [`PROGRAM`].
    pub by: u32,
    pub ambiguous: bool,
}

/// For each vertex, where it is led from.
#[derive(Debug)]
pub(crate) struct Nearest {
    /// The beginning; `NONE` without one.
    pub origin: Vec<u32>,
    /// The step, and in the highest bit whether the way is ambiguous.
    by: Vec<u32>,
}

const AMBIGUOUS: u32 = 1 << 31;

impl Graph {
    /// The nearest beginning of each vertex. `reached` gets those that have one, and how they are led.
    pub(crate) fn nearest(
        &self,
        from: impl Fn(u32) -> bool,
        mut reached: impl FnMut(u32, Led),
    ) -> Nearest {
        let mut labels = Nearest { origin: vec![NONE; self.len()], by: vec![NONE; self.len()] };
        for vertex in 0..self.len() as u32 {
            let led = labels.led(self, vertex);
            if let Some(led) = led {
                reached(vertex, led);
            }
            let at = vertex as usize;
            if from(vertex) {
                labels.origin[at] = vertex;
            } else if let Some(led) = led {
                labels.origin[at] = led.origin;
                labels.by[at] = led.by | if led.ambiguous { AMBIGUOUS } else { 0 };
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

    /// Whether the way to a vertex is ambiguous; none leads to a beginning.
    fn ambiguous(&self, vertex: u32) -> bool {
        let by = self.by[vertex as usize];
        by != NONE && by & AMBIGUOUS != 0
    }

    /// The step to a vertex that has a beginning and is none.
    pub fn by(&self, vertex: u32) -> u32 {
        self.by[vertex as usize] & !AMBIGUOUS
    }

    fn led(&self, graph: &Graph, vertex: u32) -> Option<Led> {
        let before = graph.before(vertex).and_then(|before| Some((self.origin(before)?, before)));
        if let Some(led) = self.by_links(graph, vertex, |kind| kind != EdgeKind::Wake) {
            return Some(led);
        }
        if graph.belongs(vertex) {
            return None;
        }
        if let Some(mut led) = self.by_links(graph, vertex, |kind| kind == EdgeKind::Wake) {
            led.ambiguous |= before.is_some_and(|(origin, _)| origin != led.origin);
            return Some(led);
        }
        let (origin, before) = before?;
        let ambiguous = self.ambiguous(before)
            || graph.links(vertex).iter().any(|link| link.kind == EdgeKind::Span);
        Some(Led { origin, by: PROGRAM, ambiguous })
    }

    fn by_links(&self, graph: &Graph, vertex: u32, of: impl Fn(EdgeKind) -> bool) -> Option<Led> {
        let mut best: Option<(u32, u32, Certainty, u32)> = None;
        let mut rivals = false;
        for (number, link) in (graph.first(vertex)..).zip(graph.links(vertex)) {
            let Some(origin) = self.origin(link.src).filter(|_| of(link.kind)) else { continue };
            rivals |= best.is_some_and(|best| best.0 != origin);
            // Of edges between the same two, one that is certain.
            let better = best.is_none_or(|(of, src, certainty, _)| {
                (origin, link.src) > (of, src)
                    || (origin, link.src) == (of, src) && link.certainty < certainty
            });
            if better {
                best = Some((origin, link.src, link.certainty, number));
            }
        }
        let (origin, src, certainty, by) = best?;
        let ambiguous = rivals || certainty == Certainty::Possible || self.ambiguous(src);
        Some(Led { origin, by, ambiguous })
    }
}
