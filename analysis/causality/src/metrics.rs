//! Metrics of distributed systems, by the numbers that Friston et al. (2018) give them: those that are
//! more than a count or a percentile of latencies.

use std::collections::BTreeMap;

use crate::graph::{Graph, NONE};
use crate::stages::Stage;
use crate::steps::StepPlace;

/// M3: how many messages are on their way at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlight {
    /// The average over time.
    pub mean: f64,
    /// The standard deviation over time.
    pub sd: f64,
    /// The most at a time.
    pub most: u64,
    /// From the first departure to the last arrival.
    pub time: i64,
}

/// M3 of messages that leave and arrive at these times, from the first departure to the last arrival; None
/// where that is no time. A message that arrives at the moment that another one leaves is not
/// on its way any more; one that arrives before it leaves is none.
pub fn in_flight(messages: impl IntoIterator<Item = (i64, i64)>) -> Option<InFlight> {
    let (mut leave, mut arrive): (Vec<i64>, Vec<i64>) =
        messages.into_iter().filter(|(leave, arrive)| leave <= arrive).unzip();
    leave.sort_unstable();
    arrive.sort_unstable();
    let (&first, &last) = (leave.first()?, arrive.last()?);
    let time = last.checked_sub(first).filter(|number| *number > 0)?;
    let (mut now, mut on_their_way, mut most) = (first, 0u64, 0);
    let (mut sum, mut squares) = (0i128, 0i128);
    let mut leave = leave.into_iter().peekable();
    for arrival in arrive {
        let mut pass = |until: i64, on_their_way: u64| {
            let area = i128::from(until - now) * i128::from(on_their_way);
            sum += area;
            squares += area * i128::from(on_their_way);
            now = until;
        };
        while let Some(departure) = leave.next_if(|number| *number < arrival) {
            pass(departure, on_their_way);
            on_their_way += 1;
            most = most.max(on_their_way);
        }
        pass(arrival, on_their_way);
        // One that takes no time leaves now.
        match leave.next_if(|number| *number == arrival && on_their_way == 0) {
            Some(_) => most = most.max(1),
            None => on_their_way -= 1,
        }
    }
    let mean = sum as f64 / time as f64;
    let variance = squares as f64 / time as f64 - mean * mean;
    Some(InFlight { mean, sd: variance.max(0.0).sqrt(), most, time })
}

/// M12: how long paths act on messages, and how long they pass them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Time within threads.
    pub acting: i128,
    /// Time between threads, between processes and in queues.
    pub passing: i128,
}

impl Overhead {
    /// Of the stages of paths.
    pub fn from_stages(stages: &[Stage]) -> Overhead {
        let (acting, passing): (Vec<&Stage>, Vec<_>) =
            stages.iter().partition(|stage| stage.place == StepPlace::Thread);
        let time = |stages: Vec<&Stage>| stages.iter().map(|stage| stage.time).sum();
        Overhead { acting: time(acting), passing: time(passing) }
    }

    /// The one by the other; None where nothing is passed on.
    pub fn ratio(self) -> Option<f64> {
        (self.passing > 0).then(|| self.acting as f64 / self.passing as f64)
    }
}

/// How long it takes from one node to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// How often something came.
    pub count: u64,
    /// How long it took together.
    pub sum: i128,
    /// The least.
    pub min: i64,
    /// The most.
    pub max: i64,
}

impl Graph {
    /// The latencies from node to node: from the last time that something was at the one until it
    /// comes to the other, on whatever way. A pair without an entry has no route. `nodes` has the node of
    /// each process. From a node to itself it goes through another one.
    ///
    /// It passes over the graph once for each node.
    pub fn latency_matrix(&self, nodes: &[u32]) -> BTreeMap<(u32, u32), Latency> {
        let node = |vertex: u32| nodes.get(self.process(vertex) as usize).copied().unwrap_or(NONE);
        let mut all: Vec<u32> = nodes.to_vec();
        all.sort_unstable();
        all.dedup();
        let mut matrix = BTreeMap::new();
        for from in all {
            let mut comes = |vertex: u32, src: u32, origin: u32| {
                let to = node(vertex);
                if to == node(src) {
                    return;
                }
                let time = self.ts(vertex).saturating_sub(self.ts(origin));
                let none = Latency { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };
                let latency = matrix.entry((from, to)).or_insert(none);
                latency.count += 1;
                latency.sum += i128::from(time);
                (latency.min, latency.max) = (latency.min.min(time), latency.max.max(time));
            };
            self.nearest(
                |vertex| node(vertex) == from,
                |vertex, led| comes(vertex, self.source(vertex, led.by), led.origin),
            );
        }
        matrix
    }
}
