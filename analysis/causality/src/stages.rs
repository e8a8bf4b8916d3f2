//! Where the time of paths goes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use ppt_stats::{Budget, Samples, SummaryNumber};

use crate::graph::Graph;
use crate::paths::{Path, Paths};
use crate::steps::{StepCause, StepPlace};

/// All steps from one point to another one that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The point where they begin.
    pub from: u32,
    /// The point where they end.
    pub to: u32,
    /// What says that they lead there.
    pub by: StepCause,
    /// Where they lead through.
    pub place: StepPlace,
    /// How many there are: a step that is part of several paths counts for each.
    pub count: u64,
    /// How long they take together. The stages together take as long as the paths together.
    pub time: i128,
    /// The share of that; 0 where the paths take no time.
    pub share: f64,
    /// Half of them take at most so long.
    pub p50: f64,
    /// 99 % of them take at most so long.
    pub p99: f64,
}

impl Paths<'_> {
    /// The stages of all paths, the longest first.
    pub fn critical_path(&self, budget: &Budget) -> Vec<Stage> {
        let mut stages = HashMap::new();
        let graph = self.graph();
        self.each(|path| {
            for step in &path.route {
                let points = (graph.point(step.src), graph.point(step.dst));
                let stage = stages.entry((points, step.by, step.place));
                let times = stage.or_insert_with(|| Samples::new(budget));
                times.push(graph.ts(step.dst).saturating_sub(graph.ts(step.src)));
            }
        });
        let stage = |(((from, to), by, place), times): (_, Samples<i64>)| {
            let told = times.finish();
            let time = match told.sum {
                SummaryNumber::Whole(sum) => sum,
                SummaryNumber::Real(sum) => sum as i128,
            };
            let [p50, _, p99, _] = told
                .percentiles_as_floats()
                .map(|percentiles_as_float| percentiles_as_float.unwrap_or(0.0));
            Stage { from, to, by, place, count: told.count, time, share: 0.0, p50, p99 }
        };
        let mut stages: Vec<Stage> = stages.into_iter().map(stage).collect();
        stages.sort_by_key(|stage| {
            (Reverse(stage.time), stage.from, stage.to, stage.by, stage.place)
        });
        let all: i128 = stages.iter().map(|stage| stage.time).sum();
        if all > 0 {
            stages.iter_mut().for_each(|stage| stage.share = stage.time as f64 / all as f64);
        }
        stages
    }

    /// The paths that take longest, the longest first.
    pub fn slowest(&self, count: usize) -> Vec<Path> {
        let mut slowest = BinaryHeap::new();
        let mut paths = HashMap::new();
        let mut number = 0u64;
        self.each(|path| {
            // Of equals, the first ones.
            slowest.push(Reverse((path.latency(self.graph()), Reverse(number))));
            let dropped = if slowest.len() > count { slowest.pop() } else { None };
            let dropped = dropped.map(|Reverse((_, Reverse(number)))| number);
            if dropped != Some(number) {
                paths.insert(number, path.clone());
                dropped.and_then(|dropped| paths.remove(&dropped));
            }
            number += 1;
        });
        let slowest = slowest.into_sorted_vec().into_iter();
        slowest.filter_map(|Reverse((_, Reverse(number)))| paths.remove(&number)).collect()
    }
}

/// Where a path spends its time: the sum of all is its latency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    /// Within each process.
    pub within: BTreeMap<u32, i128>,
    /// From one process to another one.
    pub between: i128,
    /// In queues.
    pub queues: i128,
}

impl Path {
    /// Where it spends its time.
    pub fn times(&self, graph: &Graph) -> Times {
        let mut times = Times::default();
        for step in &self.route {
            let time = i128::from(graph.ts(step.dst)) - i128::from(graph.ts(step.src));
            let at = match step.place {
                StepPlace::Thread | StepPlace::Process => {
                    times.within.entry(graph.process(step.src)).or_default()
                }
                StepPlace::Between => &mut times.between,
                StepPlace::Queue => &mut times.queues,
            };
            *at += time;
        }
        times
    }
}
