//! For each vertex, every beginning.

use thiserror::Error;

use crate::graph::{EdgeKind, Graph, PROGRAM};

/// More paths than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {limit} pairs of a beginning and an end, after {vertices} of {of} frames")]
pub struct TooMany {
    /// How many may be.
    pub limit: usize,
    /// How many vertices had been looked at.
    pub vertices: usize,
    /// Of how many.
    pub of: usize,
}

/// For each vertex, everything that it is led from.
#[derive(Debug)]
pub(crate) struct BeginningSets {
    /// The number of a set.
    set: Vec<u32>,
    /// Beginnings in their order. The first set is empty.
    sets: Vec<Vec<u32>>,
}

impl BeginningSets {
    pub fn new(
        graph: &Graph,
        limit: usize,
        from: impl Fn(u32) -> bool,
        mut reached: impl FnMut(u32, &[u32]) -> bool,
    ) -> Result<BeginningSets, TooMany> {
        let mut all = BeginningSets { set: vec![0; graph.len()], sets: vec![Vec::new()] };
        let mut kept = 0;
        for vertex in 0..graph.len() as u32 {
            let sources = all.sources(graph, vertex);
            let mut sets: Vec<u32> =
                sources.iter().map(|&source| all.set[source as usize]).collect();
            sets.sort_unstable();
            sets.dedup();
            let set = match sets[..] {
                [] => 0,
                [one] => one,
                _ => {
                    let each = |&number: &u32| all.sets[number as usize].iter().copied();
                    let mut joined: Vec<u32> = sets.iter().flat_map(each).collect();
                    joined.sort_unstable();
                    joined.dedup();
                    all.add(joined, &mut kept)
                }
            };
            let within = set == 0 || reached(vertex, &all.sets[set as usize]);
            all.set[vertex as usize] = set;
            if from(vertex) {
                all.set[vertex as usize] = all.add(vec![vertex], &mut kept);
            }
            if !within || kept > limit {
                return Err(TooMany { limit, vertices: vertex as usize + 1, of: graph.len() });
            }
        }
        Ok(all)
    }

    fn add(&mut self, set: Vec<u32>, kept: &mut usize) -> u32 {
        // A beginning by itself is no more than the vertex that it is.
        *kept += if set.len() > 1 { set.len() } else { 0 };
        self.sets.push(set);
        (self.sets.len() - 1) as u32
    }

    fn at(&self, vertex: u32) -> &[u32] {
        &self.sets[self.set[vertex as usize] as usize]
    }

    /// What leads to a vertex and has a beginning: numbers of edges, or the step of its thread.
    fn steps(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        let links = graph.links(vertex);
        let of = |wake: bool| {
            let all = (graph.first(vertex)..).zip(links);
            let these = all.filter(move |(_, link)| (link.kind == EdgeKind::Wake) == wake);
            these
                .filter(|(_, link)| !self.at(link.src).is_empty())
                .map(|entry| entry.0)
                .collect::<Vec<_>>()
        };
        let mut steps = of(false);
        if steps.is_empty() && !graph.belongs(vertex) {
            steps = of(true);
            let before = graph.before(vertex).filter(|&before| !self.at(before).is_empty());
            if steps.is_empty() && before.is_some() {
                steps.push(PROGRAM);
            }
        }
        steps
    }

    fn sources(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        self.steps(graph, vertex).iter().map(|&by| graph.source(vertex, by)).collect()
    }

    /// The beginnings of the ways to a vertex, also where it is one itself.
    pub fn led(&self, graph: &Graph, vertex: u32) -> Vec<u32> {
        let sources = self.sources(graph, vertex);
        let mut all: Vec<u32> =
            sources.iter().flat_map(|&source| self.at(source)).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The step to a vertex that leads there from a beginning, coming from as late as can be.
    pub fn step(&self, graph: &Graph, vertex: u32, origin: u32) -> u32 {
        let steps = self.steps(graph, vertex).into_iter();
        let steps = steps.map(|by| (graph.step(vertex, by), by));
        let from_it = steps.filter(|(step, _)| self.at(step.src).binary_search(&origin).is_ok());
        let latest = from_it.max_by_key(|(step, by)| {
            (step.src, std::cmp::Reverse(step.certainty), std::cmp::Reverse(*by))
        });
        latest.map_or(PROGRAM, |latest| latest.1)
    }
}
