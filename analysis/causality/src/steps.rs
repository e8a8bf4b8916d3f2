//! From a vertex to the next one.

use crate::entry::Certainty;
use crate::graph::{EdgeKind, Graph, GraphLink, PROGRAM};

/// What leads from a vertex to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepCause {
    /// They follow each other in a thread.
    Program,
    /// An edge.
    Edge(EdgeKind),
}

/// Where a step leads through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepPlace {
    /// It stays in a thread.
    Thread,
    /// From one thread to another one of the process.
    Process,
    /// From one process to another one.
    Between,
    /// Through a queue, whichever threads are at its ends.
    Queue,
}

/// A step of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteStep {
    /// Where it begins.
    pub src: u32,
    /// Where it ends.
    pub dst: u32,
    /// What says that it leads there.
    pub by: StepCause,
    /// Whether that is known.
    pub certainty: Certainty,
    /// Where it leads through.
    pub place: StepPlace,
}

impl Graph {
    /// The step to a vertex, by an edge or from the one before it in its thread.
    pub(crate) fn step(&self, dst: u32, by: u32) -> RouteStep {
        if by == PROGRAM {
            let src = self.before(dst).expect("a vertex that is led by its thread");
            let (by, certainty, place) =
                (StepCause::Program, Certainty::Certain, StepPlace::Thread);
            return RouteStep { src, dst, by, certainty, place };
        }
        let &GraphLink { src, kind, certainty, queue, .. } = self.link(by);
        let place = match () {
            () if queue => StepPlace::Queue,
            () if self.thread(src) == self.thread(dst) => StepPlace::Thread,
            () if self.process(src) == self.process(dst) => StepPlace::Process,
            () => StepPlace::Between,
        };
        RouteStep { src, dst, by: StepCause::Edge(kind), certainty, place }
    }

    /// Where the step to a vertex comes from.
    pub(crate) fn source(&self, vertex: u32, by: u32) -> u32 {
        self.step(vertex, by).src
    }
}
