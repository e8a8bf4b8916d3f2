//! Frames that caused each other, as a graph: what `paths`, `critical_path` and `ppt graph` walk through.

mod load;
mod texts;

use std::collections::HashMap;
use std::fmt::Write;

use ppt_causality::{EdgeKind, Graph, Path, Stage, StepCause, StepPlace};
use ppt_text::{did_you_mean, nearest};

pub(crate) use load::{Input, Loader};
pub(crate) use texts::Texts;

/// Frames and what led from one to the next.
#[derive(Debug)]
pub struct Causality {
    /// Its vertices are frames.
    pub graph: Graph,
    /// Names of points and of other kinds of frames, by their numbers in the graph.
    pub points: Vec<String>,
    /// By vertex: the owner of the frame, and its number in the ring.
    frames: Vec<(u32, i64)>,
    owners: Vec<FrameOwner>,
}

/// Whose frames they are: a ring, and the thread that had it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameOwner {
    /// As in the column.
    pub capture: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub buffer: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub segment: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub ring: Option<i32>,
    #[expect(missing_docs, reason = "see `capture`")]
    pub pid: Option<i32>,
    #[expect(missing_docs, reason = "see `capture`")]
    pub tid: Option<i32>,
}

impl Causality {
    /// The numbers of the points that a text names: `frame`, or `buffer.frame`.
    pub fn called(&self, text: &str) -> Vec<u32> {
        let is = |name: &String| {
            name == text || name.split_once('.').is_some_and(|(_, frame)| frame == text)
        };
        let all = self.points.iter().enumerate();
        all.filter(|entry| is(entry.1)).map(|entry| entry.0 as u32).collect()
    }

    /// What to say of a name that no point has.
    pub(crate) fn no_point(&self, name: &str) -> String {
        let mut there: Vec<String> =
            self.points.iter().map(|point| short(point).to_owned()).collect();
        there.sort();
        there.dedup();
        let near = did_you_mean(&nearest(name, &there));
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        format!("no point is called `{name}`{near}; there are: {there}")
    }

    /// What a stage is called: where it begins and ends.
    pub fn stage(&self, stage: &Stage) -> String {
        let name = |point: u32| short(&self.points[point as usize]);
        format!("{} {} {}", name(stage.from), arrow(stage.by), name(stage.to))
    }

    /// The points of a path: `->` where something leads from one to the next, `..` where a thread goes on.
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

    /// Whose frame a vertex is.
    pub fn owner(&self, vertex: u32) -> &FrameOwner {
        &self.owners[self.frames[vertex as usize].0 as usize]
    }

    /// The number of its frame in the ring.
    pub fn seqno(&self, vertex: u32) -> i64 {
        self.frames[vertex as usize].1
    }
}

/// The name of a point without its buffer.
pub fn short(name: &str) -> &str {
    name.split_once('.').map_or(name, |entry| entry.1)
}

fn arrow(by: StepCause) -> &'static str {
    match by {
        StepCause::Program => "..",
        StepCause::Edge(_) => "->",
    }
}

/// What a step is called: the kind of its edge, or `program`.
pub fn step_word(by: StepCause) -> &'static str {
    match by {
        StepCause::Program => "program",
        StepCause::Edge(EdgeKind::Hash) => "hash",
        StepCause::Edge(EdgeKind::Span) => "span",
        StepCause::Edge(EdgeKind::Chain) => "chain",
        StepCause::Edge(EdgeKind::Wake) => "wake",
    }
}

/// What the place of a step is called.
pub fn place_word(place: StepPlace) -> &'static str {
    match place {
        StepPlace::Thread => "thread",
        StepPlace::Process => "process",
        StepPlace::Between => "between",
        StepPlace::Queue => "queue",
    }
}

/// Numbers for what is seen again.
#[derive(Debug)]
pub(crate) struct Numbering<T> {
    all: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        Numbering { all: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbering<T> {
    /// What was seen, by number.
    pub fn all(&self) -> &[T] {
        &self.all
    }

    pub fn number(&mut self, of: T) -> u32 {
        let next = self.all.len() as u32;
        *self.known.entry(of.clone()).or_insert_with(|| {
            self.all.push(of);
            next
        })
    }
}
