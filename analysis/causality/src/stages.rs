//! Stages: where the time of paths goes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use ppt_stats::{Budget, Samples, SummaryNumber};

use crate::graph::Graph;
use crate::paths::{Path, Paths};
use crate::steps::{StepCause, StepPlace};

/// All steps of the same cause and place between two points.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The point where the steps begin.
    pub from: u32,
    /// The point where the steps end.
    pub to: u32,
    /// The cause of the steps.
    pub by: StepCause,
    /// The place that the steps lead through.
    pub place: StepPlace,
    /// The number of steps. A step of several paths counts for each of them.
    pub count: u64,
    /// The sum of the steps' times, ns. All stages together take as long as all paths together.
    pub time: i128,
    /// The share of that sum in the time of all paths, 0 to 1; 0 if the paths take no time.
    pub share: f64,
    /// The median time of a step, ns.
    pub p50: f64,
    /// The 99th percentile of the time of a step, ns.
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
            let summary = times.finish();
            let time = match summary.sum {
                SummaryNumber::Whole(sum) => sum,
                SummaryNumber::Real(sum) => sum as i128,
            };
            let [p50, _, p99, _] =
                summary.percentiles_as_floats().map(|percentile| percentile.unwrap_or(0.0));
            Stage { from, to, by, place, count: summary.count, time, share: 0.0, p50, p99 }
        };
        let mut stages: Vec<Stage> = stages.into_iter().map(stage).collect();
        stages.sort_by_key(|stage| {
            (Reverse(stage.time), stage.from, stage.to, stage.by, stage.place)
        });
        let total: i128 = stages.iter().map(|stage| stage.time).sum();
        if total > 0 {
            stages.iter_mut().for_each(|stage| stage.share = stage.time as f64 / total as f64);
        }
        stages
    }

    /// The paths of the longest latencies, the longest first.
    pub fn slowest(&self, count: usize) -> Vec<Path> {
        let mut slowest = BinaryHeap::new();
        let mut paths = HashMap::new();
        let mut number = 0u64;
        self.each(|path| {
            // Of equal latencies, the first ones are kept.
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

/// The parts of a path's latency, in ns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathTimes {
    /// The time within each process.
    pub within: BTreeMap<u32, i128>,
    /// The time between processes, ns.
    pub between: i128,
    /// The time in queues, ns.
    pub queues: i128,
}

impl Path {
    /// The parts of its latency.
    pub fn times(&self, graph: &Graph) -> PathTimes {
        let mut times = PathTimes::default();
        for step in &self.route {
            let time = i128::from(graph.ts(step.dst)) - i128::from(graph.ts(step.src));
            let part = match step.place {
                StepPlace::Thread | StepPlace::Process => {
                    times.within.entry(graph.process(step.src)).or_default()
                }
                StepPlace::Between => &mut times.between,
                StepPlace::Queue => &mut times.queues,
            };
            *part += time;
        }
        times
    }
}
