//! From a vertex to the next one.

use crate::entry::Certainty;
use crate::graph::{Graph, Kind, Link, PROGRAM};

/// What leads from a vertex to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// They follow each other in a thread.
    Program,
    /// An edge.
    Edge(Kind),
}

/// Where a step leads through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
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
pub struct Step {
    /// Where it begins.
    pub src: u32,
    /// Where it ends.
    pub dst: u32,
    /// What says that it leads there.
    pub by: By,
    /// Whether that is known.
    pub certainty: Certainty,
    /// Where it leads through.
    pub place: Place,
}

impl Graph {
    /// The step to a vertex, by an edge or from the one before it in its thread.
    pub(crate) fn step(&self, dst: u32, by: u32) -> Step {
        if by == PROGRAM {
            let src = self.before(dst).expect("a vertex that is led by its thread");
            let (by, certainty, place) = (By::Program, Certainty::Certain, Place::Thread);
            return Step { src, dst, by, certainty, place };
        }
        let &Link { src, kind, certainty, queue, .. } = self.link(by);
        let place = match () {
            () if queue => Place::Queue,
            () if self.thread(src) == self.thread(dst) => Place::Thread,
            () if self.process(src) == self.process(dst) => Place::Process,
            () => Place::Between,
        };
        Step { src, dst, by: By::Edge(kind), certainty, place }
    }

    /// Where the step to a vertex comes from.
    pub(crate) fn source(&self, vertex: u32, by: u32) -> u32 {
        self.step(vertex, by).src
    }
}
