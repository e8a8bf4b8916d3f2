//! The steps of paths.

use crate::entry::Certainty;
use crate::graph::{EdgeKind, Graph, GraphLink, PROGRAM};

/// The reason why a step leads from one vertex to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepCause {
    /// The vertices follow each other in a thread.
    Program,
    /// An edge joins them.
    Edge(EdgeKind),
}

/// The place in which a step spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepPlace {
    /// Within a thread.
    Thread,
    /// Between two threads of a process.
    Process,
    /// Between two processes.
    Between,
    /// In a queue, between any threads.
    Queue,
}

/// A step of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteStep {
    /// The vertex where it begins.
    pub src: u32,
    /// The vertex where it ends.
    pub dst: u32,
    /// The reason.
    pub by: StepCause,
    /// Whether the reason is known.
    pub certainty: Certainty,
    /// The place in which the step spends its time.
    pub place: StepPlace,
}

impl Graph {
    /// The step to a vertex by an edge, or, for [`PROGRAM`], from the previous vertex of its thread.
    pub(crate) fn step(&self, dst: u32, number: u32) -> RouteStep {
        if number == PROGRAM {
            let src = self.before(dst).expect("a vertex that is led by its thread");
            let (by, certainty, place) =
                (StepCause::Program, Certainty::Certain, StepPlace::Thread);
            return RouteStep { src, dst, by, certainty, place };
        }
        let &GraphLink { src, kind, certainty, queue, .. } = self.link(number);
        let place = match () {
            () if queue => StepPlace::Queue,
            () if self.thread(src) == self.thread(dst) => StepPlace::Thread,
            () if self.process(src) == self.process(dst) => StepPlace::Process,
            () => StepPlace::Between,
        };
        RouteStep { src, dst, by: StepCause::Edge(kind), certainty, place }
    }

    /// The source of the step to a vertex.
    pub(crate) fn source(&self, vertex: u32, number: u32) -> u32 {
        self.step(vertex, number).src
    }
}
