//! The paths from some points to others. `nearest.rs` searches from the nearest beginnings, `beginnings.rs` from all.

use crate::beginnings::{BeginningSets, TooManyPaths};
use crate::entry::Certainty;
use crate::graph::{Graph, NONE};
use crate::nearest::{LastStep, Nearest};
use crate::steps::RouteStep;

/// The paths to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the nearest beginning.
    Nearest,
    /// From every beginning, unless the path leads through another one.
    All {
        /// The largest number of paths, and of beginnings that the search keeps in memory.
        limit: usize,
    },
}

/// A path from one vertex to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The vertex where it begins.
    pub src: u32,
    /// The vertex where it ends.
    pub dst: u32,
    /// One of its steps is only possible, or it might begin elsewhere.
    pub ambiguous: bool,
    /// The steps, in order.
    pub route: Vec<RouteStep>,
}

impl Path {
    /// The time from the first vertex to the last: the sum of the steps.
    pub fn latency(&self, graph: &Graph) -> i64 {
        graph.ts(self.dst).saturating_sub(graph.ts(self.src))
    }

    /// The shortest time that the bounds allow.
    pub fn latency_lo(&self, graph: &Graph) -> i64 {
        graph.until(self.src, self.dst).0
    }

    /// The longest time that the bounds allow.
    pub fn latency_hi(&self, graph: &Graph) -> i64 {
        graph.until(self.src, self.dst).1
    }
}

/// The paths from one set of points to another.
///
/// The predecessors of a vertex are
/// 1. the sources of its edges of kinds *hash*, *span* and *chain*: they show which request it belongs to;
/// 2. if no beginning leads to any of these, the sources of its *wake* edges: they show who made it run;
/// 3. if none leads to these either, the previous vertex of its thread.
///
/// Of several edges, the one with the latest beginning counts, then the one with the latest source: the vertex
/// waited for that.
///
/// If a vertex has an edge of kind *hash* or *chain*, or another vertex of its point has a hash edge, 2 and 3
/// do not count. So no path leads from one request to the next in a thread that handles them one after the
/// other, even if the cause of the next is not in the capture, or comes from no beginning. Nor does 3 count
/// after missing frames ([`cut`](crate::Vertex::cut)). This leaves out later vertices of the thread that share
/// no value with the beginning, once the thread has reached a point with edges of its own.
///
/// A path is ambiguous if it may be wrong: a step is only possible; two causes of one of its vertices have
/// different beginnings; a wake comes from another beginning than the thread's previous vertex; or only its
/// thread leads to the end of a span that began before all beginnings.
///
/// No path leads through a beginning: all later vertices have paths from there. A vertex that is both end and
/// beginning ends the paths that lead to it.
#[derive(Debug)]
pub struct Paths<'a> {
    graph: &'a Graph,
    labels: Labels,
    ends: Vec<PathEnd>,
}

#[derive(Debug)]
struct PathEnd {
    vertex: u32,
    last: LastStep,
}

#[derive(Debug)]
enum Labels {
    Nearest(Nearest),
    All(BeginningSets),
}

impl Graph {
    /// All paths from vertices of the points `from` to those of the points `to`.
    ///
    /// # Errors
    /// There are more paths than the limit: [`TooManyPaths`] shows how far the search came.
    pub fn paths(&self, from: &[u32], to: &[u32], mode: Mode) -> Result<Paths<'_>, TooManyPaths> {
        let from = |vertex| from.contains(&self.point(vertex));
        let to = |vertex| to.contains(&self.point(vertex));
        let mut ends = Vec::new();
        let labels = match mode {
            Mode::Nearest => Labels::Nearest(self.nearest(from, |vertex, last| {
                if to(vertex) {
                    ends.push(PathEnd { vertex, last });
                }
            })),
            Mode::All { limit } => {
                let mut paths = 0;
                let beginnings = BeginningSets::new(self, limit, from, |vertex, set| {
                    if to(vertex) {
                        paths += set.len();
                        let ambiguous = set.len() > 1;
                        let last = LastStep { origin: NONE, number: NONE, ambiguous };
                        ends.push(PathEnd { vertex, last });
                    }
                    paths <= limit
                });
                Labels::All(beginnings?)
            }
        };
        Ok(Paths { graph: self, labels, ends })
    }
}

impl Paths<'_> {
    /// The graph of the paths.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// The number of vertices of `to` that have a path.
    pub fn ends(&self) -> usize {
        self.ends.len()
    }

    /// Calls `take` with every path, in the order of the ends, then of the beginnings.
    pub fn each(&self, mut take: impl FnMut(&Path)) {
        let mut path = Path { src: 0, dst: 0, ambiguous: false, route: Vec::new() };
        for end in &self.ends {
            path.dst = end.vertex;
            match &self.labels {
                Labels::Nearest(labels) => {
                    path.src = end.last.origin;
                    path.ambiguous = end.last.ambiguous;
                    path.route.clear();
                    let (mut vertex, mut number) = (end.vertex, end.last.number);
                    while vertex != path.src || path.route.is_empty() {
                        let step = self.graph.step(vertex, number);
                        path.route.push(step);
                        vertex = step.src;
                        number = labels.step(vertex);
                    }
                    path.route.reverse();
                    take(&path);
                }
                Labels::All(beginnings) => {
                    for &origin in &beginnings.origins(self.graph, end.vertex) {
                        path.src = origin;
                        path.route.clear();
                        let mut vertex = end.vertex;
                        while vertex != origin || path.route.is_empty() {
                            let number = beginnings.step(self.graph, vertex, origin);
                            let step = self.graph.step(vertex, number);
                            path.route.push(step);
                            vertex = step.src;
                        }
                        path.route.reverse();
                        let is_possible = |step: &RouteStep| step.certainty == Certainty::Possible;
                        path.ambiguous = end.last.ambiguous || path.route.iter().any(is_possible);
                        take(&path);
                    }
                }
            }
        }
    }

    /// All paths, in the order of [`each`](Self::each).
    pub fn collect(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(|path| paths.push(path.clone()));
        paths
    }
}
