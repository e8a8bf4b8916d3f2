//! The graph of causes and effects between frames, which `paths`, `critical_path` and `ppt graph` search.

mod load;
mod texts;

use std::collections::HashMap;
use std::fmt::Write;

use ppt_causality::{EdgeKind, Graph, Path, Stage, StepCause, StepPlace};
use ppt_text::{did_you_mean, nearest};

pub(crate) use load::{Input, Loader};
pub(crate) use texts::Texts;

/// Frames, and the edges between them.
#[derive(Debug)]
pub struct Causality {
    /// The graph; its vertices are frames.
    pub graph: Graph,
    /// Names of points and of other kinds of frames, by their numbers in the graph.
    pub points: Vec<String>,
    /// By vertex.
    frames: Vec<FrameId>,
    owners: Vec<FrameOwner>,
}

/// Identifies a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FrameId {
    /// Number of the owner.
    owner: u32,
    /// Sequence number in the ring.
    seqno: i64,
}

/// A ring, and the thread that owned it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameOwner {
    /// The first 16 digits of the capture's id.
    pub capture: String,
    /// The name of the buffer.
    pub buffer: String,
    /// The nonce of the segment.
    pub segment: String,
    /// The ring in the segment, from 0.
    pub ring: Option<i32>,
    /// The process.
    pub pid: Option<i32>,
    /// The thread that owned the ring.
    pub tid: Option<i32>,
}

impl Causality {
    /// The numbers of the points that a text names: `frame`, or `buffer.frame`.
    pub fn points_named(&self, text: &str) -> Vec<u32> {
        let is_named = |name: &String| {
            name == text || name.split_once('.').is_some_and(|(_, frame)| frame == text)
        };
        let all = self.points.iter().enumerate();
        all.filter(|point| is_named(point.1)).map(|point| point.0 as u32).collect()
    }

    /// The message for a name that no point has.
    pub(crate) fn no_point(&self, name: &str) -> String {
        let mut names: Vec<String> =
            self.points.iter().map(|point| short(point).to_owned()).collect();
        names.sort();
        names.dedup();
        let near = did_you_mean(&nearest(name, &names));
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("no point is called `{name}`{near}; there are: {names}")
    }

    /// The name of a stage: the points at which it begins and ends.
    pub fn stage(&self, stage: &Stage) -> String {
        let name = |point: u32| short(&self.points[point as usize]);
        format!("{} {} {}", name(stage.from), arrow(stage.by), name(stage.to))
    }

    /// The points of a path: `->` stands for an edge, `..` for a step within a thread.
    pub fn route(&self, path: &Path) -> String {
        path.route.iter().fold(self.point(path.src).to_owned(), |mut text, step| {
            let _ = write!(text, " {} {}", arrow(step.by), self.point(step.dst));
            text
        })
    }

    /// The name of the point of a vertex, without its buffer.
    pub fn point(&self, vertex: u32) -> &str {
        short(&self.points[self.graph.point(vertex) as usize])
    }

    /// The owner of a vertex's frame.
    pub fn owner(&self, vertex: u32) -> &FrameOwner {
        &self.owners[self.frames[vertex as usize].owner as usize]
    }

    /// The sequence number of a vertex's frame.
    pub fn seqno(&self, vertex: u32) -> i64 {
        self.frames[vertex as usize].seqno
    }
}

/// The name of a point without its buffer.
pub fn short(name: &str) -> &str {
    name.split_once('.').map_or(name, |parts| parts.1)
}

fn arrow(by: StepCause) -> &'static str {
    match by {
        StepCause::Program => "..",
        StepCause::Edge(_) => "->",
    }
}

/// The name of a step: the kind of its edge, or `program`.
pub fn step_word(by: StepCause) -> &'static str {
    match by {
        StepCause::Program => "program",
        StepCause::Edge(EdgeKind::Hash) => "hash",
        StepCause::Edge(EdgeKind::Span) => "span",
        StepCause::Edge(EdgeKind::Chain) => "chain",
        StepCause::Edge(EdgeKind::Wake) => "wake",
    }
}

/// The name of a step's place.
pub fn place_word(place: StepPlace) -> &'static str {
    match place {
        StepPlace::Thread => "thread",
        StepPlace::Process => "process",
        StepPlace::Between => "between",
        StepPlace::Queue => "queue",
    }
}

/// Numbers values in the order of their first occurrence.
#[derive(Debug)]
pub(crate) struct Numbering<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        Numbering { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbering<T> {
    /// The values, in the order of their numbers.
    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// The number of a value, which is added if it is new.
    pub fn number(&mut self, value: T) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(value.clone()).or_insert_with(|| {
            self.all.push(value);
            next
        })
    }
}
