//! Frames, and the edges between them.

use thiserror::Error;

use crate::entry::Certainty;

/// Marks that there is no vertex.
pub(crate) const NONE: u32 = u32::MAX;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vertex {
    /// The number of the point, or of the kind of frame.
    pub point: u32,
    /// The number of the thread: a ring and its owner.
    pub thread: u32,
    /// The earliest possible time, ns since the epoch.
    pub lo: i64,
    /// The time, ns since the epoch.
    pub ts: i64,
    /// The latest possible time, ns since the epoch.
    pub hi: i64,
    /// Frames of its thread are missing before it, or one of its ins is unmatched because of a loss: the
    /// previous frame of its thread does not lead to it.
    pub cut: bool,
}

/// The evidence that one frame led to another, perhaps of another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdgeKind {
    /// An out of the cause equals an in of the effect.
    Hash,
    /// The frames begin and end a span.
    Span,
    /// The frames are steps of a chain.
    Chain,
    /// The thread of the cause woke the thread of the effect.
    Wake,
}

/// An edge between two vertices, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphLink {
    /// The effect.
    pub dst: u32,
    /// The cause.
    pub src: u32,
    /// The evidence.
    pub kind: EdgeKind,
    /// Whether it is known.
    pub certainty: Certainty,
    /// The policy *fifo* found it: between cause and effect, the value waits in a queue.
    pub queue: bool,
}

/// Why vertices and edges are not a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Vertices are not in the order of time.
    #[error("vertex {vertex} is before the one that it follows")]
    Disorder {
        /// The number of the vertex.
        vertex: usize,
    },
    /// A vertex has a thread that does not exist.
    #[error("vertex {vertex} has thread {thread}, which does not exist")]
    Thread {
        /// The number of the vertex.
        vertex: usize,
        /// The number of the thread.
        thread: u32,
    },
    /// An edge has an end that does not exist.
    #[error("an edge leads from vertex {src} to vertex {dst}, and there are {vertices}")]
    Link {
        /// The vertex where it begins.
        src: u32,
        /// The vertex where it ends.
        dst: u32,
        /// The number of vertices.
        vertices: usize,
    },
    /// The graph has more vertices or edges than it has numbers.
    #[error("{count} vertices or edges are too many")]
    TooMany {
        /// The larger of the two counts.
        count: usize,
    },
}

/// Vertices in the order of time, the edges between them, and the order within each thread.
///
/// Memory: 32 bytes a vertex and 12 an edge, twice that during construction; a search takes 8 more a vertex.
#[derive(Debug)]
pub struct Graph {
    pub(crate) ts: Vec<i64>,
    /// Distances of the bounds from `ts`.
    below: Vec<u32>,
    above: Vec<u32>,
    pub(crate) point: Vec<u32>,
    thread: Vec<u32>,
    /// For each vertex, the previous one of its thread, or `NONE` if that does not lead to it.
    before: Vec<u32>,
    /// For each vertex, the number of the first edge to it; one more at the end.
    first: Vec<u32>,
    /// Sorted by their ends.
    links: Vec<GraphLink>,
    /// The process of each thread.
    process: Vec<u32>,
    /// The clock of each thread, if threads share clocks.
    clock: Option<Vec<u32>>,
    /// For each point, whether one of its vertices has a hash edge.
    has_hash_edge: Vec<bool>,
    backward: u64,
}

impl Graph {
    /// `processes` has the process of each thread. Vertices come in the order of `ts`; the order of equal `ts`
    /// is deterministic and keeps that of each thread. Bounds are kept up to 4 s around `ts`.
    ///
    /// An edge whose cause does not come before its effect in that order is only counted, as
    /// [`backward`](Graph::backward): overlapping bounds allow it, but the times contradict it. So the graph
    /// has no cycles.
    ///
    /// # Errors
    /// A vertex or an edge has a thread or a vertex that does not exist, or the order is not that of
    /// `ts`.
    pub fn new(
        processes: Vec<u32>,
        vertices: impl IntoIterator<Item = Vertex>,
        mut links: Vec<GraphLink>,
    ) -> Result<Graph, Malformed> {
        let vertices = vertices.into_iter();
        let count = vertices.size_hint().0;
        let mut graph = Graph {
            ts: Vec::with_capacity(count),
            below: Vec::with_capacity(count),
            above: Vec::with_capacity(count),
            point: Vec::with_capacity(count),
            thread: Vec::with_capacity(count),
            before: Vec::with_capacity(count),
            first: Vec::new(),
            links: Vec::new(),
            has_hash_edge: Vec::new(),
            process: processes,
            clock: None,
            backward: 0,
        };
        let mut last = vec![NONE; graph.process.len()];
        for vertex in vertices {
            graph.add(vertex, &mut last)?;
        }
        let vertices = graph.ts.len();
        let too_many = vertices.max(links.len());
        if too_many >= PROGRAM as usize {
            return Err(Malformed::TooMany { count: too_many });
        }
        let has_no_end =
            |link: &&GraphLink| link.src as usize >= vertices || link.dst as usize >= vertices;
        if let Some(&GraphLink { src, dst, .. }) = links.iter().find(has_no_end) {
            return Err(Malformed::Link { src, dst, vertices });
        }
        for link in links.iter().filter(|link| link.kind == EdgeKind::Hash) {
            let point = graph.point[link.dst as usize] as usize;
            if graph.has_hash_edge.len() <= point {
                graph.has_hash_edge.resize(point + 1, false);
            }
            graph.has_hash_edge[point] = true;
        }
        let count = links.len();
        links.retain(|link| link.src < link.dst);
        graph.backward = (count - links.len()) as u64;
        (graph.first, links) = by_ends(vertices, links);
        graph.links = links;
        for vertex in 0..vertices as u32 {
            if graph.ignores_thread(vertex) {
                graph.before[vertex as usize] = NONE;
            }
        }
        Ok(graph)
    }

    /// Sets the clock of each thread. Differences of times of one clock are exact.
    #[must_use]
    pub fn with_clocks(self, clocks: Vec<u32>) -> Graph {
        Graph { clock: Some(clocks), ..self }
    }

    /// The shortest and the longest possible time from one vertex to another.
    pub fn until(&self, from: u32, to: u32) -> (i64, i64) {
        let clock = |vertex: u32| self.clock.as_ref()?.get(self.thread(vertex) as usize);
        if from == to || clock(from).is_some_and(|number| clock(to) == Some(number)) {
            let time = self.ts(to).saturating_sub(self.ts(from));
            return (time, time);
        }
        (self.lo(to).saturating_sub(self.hi(from)), self.hi(to).saturating_sub(self.lo(from)))
    }

    fn add(&mut self, added: Vertex, last: &mut [u32]) -> Result<(), Malformed> {
        let vertex = self.ts.len();
        if self.ts.last().is_some_and(|&last| last > added.ts) {
            return Err(Malformed::Disorder { vertex });
        }
        let Some(before) = last.get_mut(added.thread as usize) else {
            return Err(Malformed::Thread { vertex, thread: added.thread });
        };
        let distance = |early: i64, late: i64| {
            u32::try_from(late.saturating_sub(early).max(0)).unwrap_or(u32::MAX)
        };
        self.ts.push(added.ts);
        self.below.push(distance(added.lo, added.ts));
        self.above.push(distance(added.ts, added.hi));
        self.point.push(added.point);
        self.thread.push(added.thread);
        self.before.push(if added.cut { NONE } else { *before });
        *before = u32::try_from(vertex).unwrap_or(NONE);
        Ok(())
    }

    /// The number of vertices.
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether it has no vertex.
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// The number of dropped edges, which led back in the order of time.
    pub fn backward(&self) -> u64 {
        self.backward
    }

    /// The time of a vertex.
    pub fn ts(&self, vertex: u32) -> i64 {
        self.ts[vertex as usize]
    }

    /// The earliest possible time of a vertex.
    pub fn lo(&self, vertex: u32) -> i64 {
        self.ts(vertex).saturating_sub(self.below[vertex as usize].into())
    }

    /// The latest possible time of a vertex.
    pub fn hi(&self, vertex: u32) -> i64 {
        self.ts(vertex).saturating_add(self.above[vertex as usize].into())
    }

    /// The number of the point of a vertex.
    pub fn point(&self, vertex: u32) -> u32 {
        self.point[vertex as usize]
    }

    /// The thread of a vertex.
    pub fn thread(&self, vertex: u32) -> u32 {
        self.thread[vertex as usize]
    }

    /// The process of a vertex.
    pub fn process(&self, vertex: u32) -> u32 {
        self.process[self.thread(vertex) as usize]
    }

    /// The edges to a vertex, in the order of their sources.
    pub fn links(&self, vertex: u32) -> &[GraphLink] {
        &self.links[self.range(vertex)]
    }

    /// Whether a hash edge leads to any vertex of a point.
    pub fn has_hash_edge(&self, point: u32) -> bool {
        self.has_hash_edge.get(point as usize).copied().unwrap_or(false)
    }

    /// Whether neither wakes nor the thread's previous vertex lead to a vertex: it has an edge of kind *chain*,
    /// or its point has a hash edge.
    pub(crate) fn ignores_thread(&self, vertex: u32) -> bool {
        let chain = || self.links(vertex).iter().any(|link| link.kind == EdgeKind::Chain);
        self.has_hash_edge(self.point(vertex)) || chain()
    }

    /// The previous vertex of the thread, if it leads to this one.
    pub(crate) fn before(&self, vertex: u32) -> Option<u32> {
        let before = self.before[vertex as usize];
        (before != NONE).then_some(before)
    }

    fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        let vertex = vertex as usize;
        self.first[vertex] as usize..self.first[vertex + 1] as usize
    }

    /// The number of the first edge to a vertex.
    pub(crate) fn first(&self, vertex: u32) -> u32 {
        self.first[vertex as usize]
    }

    pub(crate) fn link(&self, number: u32) -> &GraphLink {
        &self.links[number as usize]
    }
}

/// Sorts edges by their ends. Returns the number of the first edge to each vertex, and the edges.
fn by_ends(vertices: usize, links: Vec<GraphLink>) -> (Vec<u32>, Vec<GraphLink>) {
    let mut first = vec![0u32; vertices + 1];
    links.iter().for_each(|link| first[link.dst as usize + 1] += 1);
    (0..vertices).for_each(|index| first[index + 1] += first[index]);
    if links.is_sorted() {
        return (first, links);
    }
    // Each edge is put where those to its vertex go; only these are compared.
    let mut sorted = links.clone();
    for link in links {
        let next = &mut first[link.dst as usize];
        sorted[*next as usize] = link;
        *next += 1;
    }
    // Each number is now that of the next vertex.
    first.rotate_right(1);
    first[0] = 0;
    sorted.chunk_by_mut(|a, b| a.dst == b.dst).for_each(<[GraphLink]>::sort_unstable);
    (first, sorted)
}

/// Stands for the number of an edge: the step from the previous vertex of the thread. The highest bit is free,
/// and with it set the value still differs from [`NONE`].
pub(crate) const PROGRAM: u32 = (u32::MAX >> 1) - 1;
