//! The ways that lead from some points to others.

use crate::beginnings::{BeginningSets, TooMany};
use crate::entry::Certainty;
use crate::graph::{Graph, NONE};
use crate::nearest::{Led, Nearest};
use crate::steps::RouteStep;

/// Which causes of a vertex count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The nearest.
    Nearest,
    /// Every one that no other one is on the way from.
    All {
        /// The most paths, and the most that is kept to find them.
        limit: usize,
    },
}

/// From a vertex to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Where it begins.
    pub src: u32,
    /// Where it ends.
    pub dst: u32,
    /// A step of it is only possible, or it might begin elsewhere.
    pub ambiguous: bool,
    /// How it gets there: as many steps as it has hops.
    pub route: Vec<RouteStep>,
}

impl Path {
    /// From the time of the first to the time of the last: the sum of the steps.
    pub fn latency(&self, graph: &Graph) -> i64 {
        graph.ts(self.dst).saturating_sub(graph.ts(self.src))
    }

    /// The least that the bounds allow.
    pub fn latency_lo(&self, graph: &Graph) -> i64 {
        graph.until(self.src, self.dst).0
    }

    /// The most that the bounds allow.
    pub fn latency_hi(&self, graph: &Graph) -> i64 {
        graph.until(self.src, self.dst).1
    }
}

/// The ways from one set of points to another.
///
/// A vertex is led to
/// 1. by its edges of kinds *hash*, *span* and *chain*: they say what it belongs to;
/// 2. if none of them comes from a beginning, by those of kind *wake*: they say who made it run;
/// 3. if none of those does either, by the vertex before it in its thread.
///
/// Of several edges, the one counts whose beginning is the latest, then the one that came from the
/// latest vertex: the one that it waited for.
///
/// Whatever says what it belongs to belongs to nothing else. Where a vertex has an edge of kind *hash*
/// or *chain*, or another vertex of its point has one by hash, 2 and 3 do not count. So a thread that
/// handles one request after the other leads none to the next, also where the cause of the next is not in
/// the capture, or is not what was asked for. Nor does 3 count behind missing frames
/// ([`cut`](crate::Vertex::cut)). What that leaves out is what happens later in the same thread and shares
/// no value with the beginning, behind a point that does belong to something else.
///
/// Where it may be wrong, a path is ambiguous: a step is only possible; two causes of a vertex on
/// it have different beginnings; a wake leads elsewhere than the thread itself; the end of a span that
/// began before all beginnings is led to by its thread.
///
/// No way leads through a beginning: behind it, everything begins there. A vertex that is both end and
/// beginning ends what led to it.
#[derive(Debug)]
pub struct Paths<'a> {
    graph: &'a Graph,
    labels: Labels,
    ends: Vec<PathEnd>,
}

#[derive(Debug)]
struct PathEnd {
    vertex: u32,
    led: Led,
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
    /// More paths than the limit: [`TooMany`] has how far the search came.
    pub fn paths(&self, from: &[u32], to: &[u32], mode: Mode) -> Result<Paths<'_>, TooMany> {
        let from = |vertex| from.contains(&self.point(vertex));
        let to = |vertex| to.contains(&self.point(vertex));
        let mut ends = Vec::new();
        let labels = match mode {
            Mode::Nearest => Labels::Nearest(self.nearest(from, |vertex, led| {
                if to(vertex) {
                    ends.push(PathEnd { vertex, led });
                }
            })),
            Mode::All { limit } => {
                let mut paths = 0;
                let all = BeginningSets::new(self, limit, from, |vertex, set| {
                    if to(vertex) {
                        paths += set.len();
                        let led = Led { origin: NONE, by: NONE, ambiguous: set.len() > 1 };
                        ends.push(PathEnd { vertex, led });
                    }
                    paths <= limit
                });
                Labels::All(all?)
            }
        };
        Ok(Paths { graph: self, labels, ends })
    }
}

impl Paths<'_> {
    /// Where they are.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// How many vertices of `to` have a path.
    pub fn ends(&self) -> usize {
        self.ends.len()
    }

    /// Every path in the order of the ends, then of the beginnings. The route is there until `take` returns.
    pub fn each(&self, mut take: impl FnMut(&Path)) {
        let mut path = Path { src: 0, dst: 0, ambiguous: false, route: Vec::new() };
        for end in &self.ends {
            path.dst = end.vertex;
            match &self.labels {
                Labels::Nearest(labels) => {
                    path.src = end.led.origin;
                    path.ambiguous = end.led.ambiguous;
                    path.route.clear();
                    let (mut vertex, mut by) = (end.vertex, end.led.by);
                    while vertex != path.src || path.route.is_empty() {
                        let step = self.graph.step(vertex, by);
                        path.route.push(step);
                        vertex = step.src;
                        by = labels.by(vertex);
                    }
                    path.route.reverse();
                    take(&path);
                }
                Labels::All(all) => {
                    for &origin in &all.led(self.graph, end.vertex) {
                        path.src = origin;
                        path.route.clear();
                        let mut vertex = end.vertex;
                        while vertex != origin || path.route.is_empty() {
                            let step =
                                self.graph.step(vertex, all.step(self.graph, vertex, origin));
                            path.route.push(step);
                            vertex = step.src;
                        }
                        path.route.reverse();
                        let doubt = |step: &RouteStep| step.certainty == Certainty::Possible;
                        path.ambiguous = end.led.ambiguous || path.route.iter().any(doubt);
                        take(&path);
                    }
                }
            }
        }
    }

    /// All of them, where they are few.
    pub fn collect(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(|path| paths.push(path.clone()));
        paths
    }
}
