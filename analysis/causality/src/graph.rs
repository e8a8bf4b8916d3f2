//! Frames, and what leads from one to the next.

use thiserror::Error;

use crate::entry::Certainty;

/// No vertex.
pub(crate) const NONE: u32 = u32::MAX;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vertex {
    /// The number of its point, or of its kind of frame.
    pub point: u32,
    /// The number of its thread: a ring and its owner.
    pub thread: u32,
    /// The earliest time at which it may have been.
    pub lo: i64,
    /// Its time.
    pub ts: i64,
    /// The latest time at which it may have been.
    pub hi: i64,
    /// Frames of its thread are missing before it, or one of its ins is unmatched by loss: the frame before
    /// it in its thread says nothing of it.
    pub cut: bool,
}

/// What says that one frame led to another one of perhaps another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdgeKind {
    /// An out of the one equals an in of the other.
    Hash,
    /// They begin and end a span.
    Span,
    /// They are steps of a chain.
    Chain,
    /// The one's thread woke the other's.
    Wake,
}

/// An edge between two vertices, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphLink {
    /// The effect.
    pub dst: u32,
    /// The cause.
    pub src: u32,
    /// What says so.
    pub kind: EdgeKind,
    /// Whether it is known.
    pub certainty: Certainty,
    /// It was found by the policy *fifo*: what waits between the two is in a queue.
    pub queue: bool,
}

/// What is no graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Vertices do not come in the order of time.
    #[error("vertex {vertex} is before the one that it follows")]
    Disorder {
        /// Its number.
        vertex: usize,
    },
    /// A vertex has a thread that is not there.
    #[error("vertex {vertex} has thread {thread}, which does not exist")]
    Thread {
        /// Its number.
        vertex: usize,
        /// The thread that it names.
        thread: u32,
    },
    /// An edge has an end that is not there.
    #[error("an edge leads from vertex {src} to vertex {dst}, and there are {vertices}")]
    Link {
        /// Where it begins.
        src: u32,
        /// Where it ends.
        dst: u32,
        /// How many vertices there are.
        vertices: usize,
    },
    /// Vertices or edges have no numbers any more.
    #[error("{count} vertices or edges are too many")]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

/// Vertices in the order of time, the edges between them, and which vertex comes before which in a thread.
///
/// It takes 32 bytes for a vertex and 12 for an edge, twice that while it is made; a search takes 8 more
/// for a vertex.
#[derive(Debug)]
pub struct Graph {
    pub(crate) ts: Vec<i64>,
    /// How far bounds are from `ts`.
    below: Vec<u32>,
    above: Vec<u32>,
    pub(crate) point: Vec<u32>,
    thread: Vec<u32>,
    /// The vertex before it in its thread where that leads to it, else `NONE`.
    before: Vec<u32>,
    /// The first edge to each vertex; one more at the end.
    first: Vec<u32>,
    /// By their ends.
    links: Vec<GraphLink>,
    /// By thread.
    process: Vec<u32>,
    /// By thread: the clock of its times, if several threads have one.
    clock: Option<Vec<u32>>,
    /// By point: values say where its vertices come from.
    led: Vec<bool>,
    backward: u64,
}

impl Graph {
    /// `processes` has the process of each thread. Vertices come in the order of `ts`, those of equal `ts`
    /// in any order that is the same every time and keeps that of each thread. Bounds are kept up to 4 s
    /// around `ts`.
    ///
    /// An edge whose cause does not come before its effect in that order leads nowhere, and is counted
    /// as [`backward`](Graph::backward): bounds that overlap allow it, the times speak against it. So
    /// there are no circles.
    ///
    /// # Errors
    /// A vertex or a link names a thread or a vertex that is not there, or the order is not that
    /// of `ts`.
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
            led: Vec::new(),
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
        let strange =
            |link: &&GraphLink| link.src as usize >= vertices || link.dst as usize >= vertices;
        if let Some(&GraphLink { src, dst, .. }) = links.iter().find(strange) {
            return Err(Malformed::Link { src, dst, vertices });
        }
        for link in links.iter().filter(|link| link.kind == EdgeKind::Hash) {
            let point = graph.point[link.dst as usize] as usize;
            if graph.led.len() <= point {
                graph.led.resize(point + 1, false);
            }
            graph.led[point] = true;
        }
        let all = links.len();
        links.retain(|link| link.src < link.dst);
        graph.backward = (all - links.len()) as u64;
        (graph.first, links) = by_ends(vertices, links);
        graph.links = links;
        for vertex in 0..vertices as u32 {
            if graph.belongs(vertex) {
                graph.before[vertex as usize] = NONE;
            }
        }
        Ok(graph)
    }

    /// Says which clock each thread's times were read on. Times of one clock are exact beside each other.
    #[must_use]
    pub fn with_clocks(self, clocks: Vec<u32>) -> Graph {
        Graph { clock: Some(clocks), ..self }
    }

    /// The least and the most time from one vertex to another.
    pub fn until(&self, from: u32, to: u32) -> (i64, i64) {
        let clock = |vertex: u32| self.clock.as_ref()?.get(self.thread(vertex) as usize);
        if from == to || clock(from).is_some_and(|number| clock(to) == Some(number)) {
            let time = self.ts(to).saturating_sub(self.ts(from));
            return (time, time);
        }
        (self.lo(to).saturating_sub(self.hi(from)), self.hi(to).saturating_sub(self.lo(from)))
    }

    fn add(&mut self, it: Vertex, last: &mut [u32]) -> Result<(), Malformed> {
        let vertex = self.ts.len();
        if self.ts.last().is_some_and(|&last| last > it.ts) {
            return Err(Malformed::Disorder { vertex });
        }
        let Some(before) = last.get_mut(it.thread as usize) else {
            return Err(Malformed::Thread { vertex, thread: it.thread });
        };
        let off = |early: i64, late: i64| {
            u32::try_from(late.saturating_sub(early).max(0)).unwrap_or(u32::MAX)
        };
        self.ts.push(it.ts);
        self.below.push(off(it.lo, it.ts));
        self.above.push(off(it.ts, it.hi));
        self.point.push(it.point);
        self.thread.push(it.thread);
        self.before.push(if it.cut { NONE } else { *before });
        *before = u32::try_from(vertex).unwrap_or(NONE);
        Ok(())
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// How many edges there were that lead back in the order of time.
    pub fn backward(&self) -> u64 {
        self.backward
    }

    /// The time of a vertex.
    pub fn ts(&self, vertex: u32) -> i64 {
        self.ts[vertex as usize]
    }

    /// The earliest time at which a vertex may have been.
    pub fn lo(&self, vertex: u32) -> i64 {
        self.ts(vertex).saturating_sub(self.below[vertex as usize].into())
    }

    /// The latest time at which a vertex may have been.
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

    /// The edges that lead to a vertex, those from earlier ones first.
    pub fn links(&self, vertex: u32) -> &[GraphLink] {
        &self.links[self.range(vertex)]
    }

    /// Whether values say where the vertices of a point come from: one of them has an edge by hash.
    pub fn led(&self, point: u32) -> bool {
        self.led.get(point as usize).copied().unwrap_or(false)
    }

    /// Whether a vertex belongs to what its edges by *hash* and *chain* say, and to nothing else.
    pub(crate) fn belongs(&self, vertex: u32) -> bool {
        let chain = || self.links(vertex).iter().any(|link| link.kind == EdgeKind::Chain);
        self.led(self.point(vertex)) || chain()
    }

    /// The vertex before it in its thread, where that says something of it.
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

/// Edges in their order, and the number of the first one to each vertex.
fn by_ends(vertices: usize, links: Vec<GraphLink>) -> (Vec<u32>, Vec<GraphLink>) {
    let mut first = vec![0u32; vertices + 1];
    links.iter().for_each(|link| first[link.dst as usize + 1] += 1);
    (0..vertices).for_each(|index| first[index + 1] += first[index]);
    if links.is_sorted() {
        return (first, links);
    }
    // Each goes to its end; only those that meet there are compared.
    let mut sorted = links.clone();
    for link in links {
        let next = &mut first[link.dst as usize];
        sorted[*next as usize] = link;
        *next += 1;
    }
    // Each number is now that of the vertex behind it.
    first.rotate_right(1);
    first[0] = 0;
    sorted.chunk_by_mut(|a, b| a.dst == b.dst).for_each(<[GraphLink]>::sort_unstable);
    (first, sorted)
}

/// In place of the number of an edge: the step from the vertex before it in its thread. A bit is left above
/// it, and with that bit it is not [`NONE`].
pub(crate) const PROGRAM: u32 = (u32::MAX >> 1) - 1;
