//! For each vertex, the set of beginnings that lead to it.

use thiserror::Error;

use crate::graph::{EdgeKind, Graph, PROGRAM};

/// The search found more paths than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {limit} pairs of a beginning and an end, after {vertices} of {total} frames")]
pub struct TooManyPaths {
    /// The largest number of paths.
    pub limit: usize,
    /// The number of vertices that had been visited.
    pub vertices: usize,
    /// The number of all vertices.
    pub total: usize,
}

/// Sets of vertices, by number. Vertices that the same set leads to share it.
#[derive(Debug)]
pub(crate) struct BeginningSets {
    /// For each vertex, the index of its set.
    set: Vec<u32>,
    /// Sorted beginnings. The first set is empty.
    sets: Vec<Vec<u32>>,
}

impl BeginningSets {
    pub fn new(
        graph: &Graph,
        limit: usize,
        from: impl Fn(u32) -> bool,
        mut reached: impl FnMut(u32, &[u32]) -> bool,
    ) -> Result<BeginningSets, TooManyPaths> {
        let mut beginnings = BeginningSets { set: vec![0; graph.len()], sets: vec![Vec::new()] };
        let mut stored = 0;
        for vertex in 0..graph.len() as u32 {
            let sources = beginnings.sources(graph, vertex);
            let mut sets: Vec<u32> =
                sources.iter().map(|&source| beginnings.set[source as usize]).collect();
            sets.sort_unstable();
            sets.dedup();
            let set = match sets[..] {
                [] => 0,
                [set] => set,
                _ => {
                    let members = |&set: &u32| beginnings.sets[set as usize].iter().copied();
                    let mut joined: Vec<u32> = sets.iter().flat_map(members).collect();
                    joined.sort_unstable();
                    joined.dedup();
                    beginnings.add(joined, &mut stored)
                }
            };
            let is_within_limit = set == 0 || reached(vertex, &beginnings.sets[set as usize]);
            beginnings.set[vertex as usize] = set;
            if from(vertex) {
                beginnings.set[vertex as usize] = beginnings.add(vec![vertex], &mut stored);
            }
            if !is_within_limit || stored > limit {
                return Err(TooManyPaths {
                    limit,
                    vertices: vertex as usize + 1,
                    total: graph.len(),
                });
            }
        }
        Ok(beginnings)
    }

    fn add(&mut self, set: Vec<u32>, stored: &mut usize) -> u32 {
        // Sets of one are as many as vertices, whatever the limit.
        *stored += if set.len() > 1 { set.len() } else { 0 };
        self.sets.push(set);
        (self.sets.len() - 1) as u32
    }

    fn at(&self, vertex: u32) -> &[u32] {
        &self.sets[self.set[vertex as usize] as usize]
    }

    /// The steps to a vertex that come from a beginning: numbers of edges, or [`PROGRAM`].
    fn steps(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        let links = graph.links(vertex);
        let reached_by = |wake: bool| {
            let numbered = (graph.first(vertex)..).zip(links);
            numbered
                .filter(|(_, link)| (link.kind == EdgeKind::Wake) == wake)
                .filter(|(_, link)| !self.at(link.src).is_empty())
                .map(|(number, _)| number)
                .collect::<Vec<_>>()
        };
        let mut steps = reached_by(false);
        if steps.is_empty() && !graph.ignores_thread(vertex) {
            steps = reached_by(true);
            let before = graph.before(vertex).filter(|&before| !self.at(before).is_empty());
            if steps.is_empty() && before.is_some() {
                steps.push(PROGRAM);
            }
        }
        steps
    }

    fn sources(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        self.steps(graph, vertex).iter().map(|&step| graph.source(vertex, step)).collect()
    }

    /// The beginnings of the paths to a vertex. A vertex that is itself a beginning may have some, too.
    pub fn origins(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        let sources = self.sources(graph, vertex);
        let mut origins: Vec<u32> =
            sources.iter().flat_map(|&source| self.at(source)).copied().collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    /// The step to a vertex on a path from `origin`: the one whose source is the latest.
    pub fn step(&self, graph: &Graph, vertex: u32, origin: u32) -> u32 {
        let steps = self.steps(graph, vertex).into_iter();
        let steps = steps.map(|number| (graph.step(vertex, number), number));
        let from_origin =
            steps.filter(|(step, _)| self.at(step.src).binary_search(&origin).is_ok());
        let latest = from_origin.max_by_key(|(step, number)| {
            (step.src, std::cmp::Reverse(step.certainty), std::cmp::Reverse(*number))
        });
        latest.map_or(PROGRAM, |(_, number)| number)
    }
}
