//! Metrics of distributed systems, numbered as in Friston et al. (2018): those that are more than a count or
//! a percentile of latencies.

use std::collections::BTreeMap;

use crate::graph::{Graph, NONE};
use crate::stages::Stage;
use crate::steps::StepPlace;

/// M3: the number of messages in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlight {
    /// The average over time.
    pub mean: f64,
    /// The standard deviation over time.
    pub sd: f64,
    /// The maximum.
    pub most: u64,
    /// The time from the first departure to the last arrival, ns.
    pub time: i64,
}

/// M3 of messages with these times of departure and arrival; None if no time passes from the first departure
/// to the last arrival. A message that arrives at the moment when another departs is no longer in flight; one
/// that arrives before it departs is ignored.
pub fn in_flight(messages: impl IntoIterator<Item = (i64, i64)>) -> Option<InFlight> {
    let (mut leave, mut arrive): (Vec<i64>, Vec<i64>) =
        messages.into_iter().filter(|(leave, arrive)| leave <= arrive).unzip();
    leave.sort_unstable();
    arrive.sort_unstable();
    let (&first, &last) = (leave.first()?, arrive.last()?);
    let time = last.checked_sub(first).filter(|number| *number > 0)?;
    let (mut now, mut flying, mut most) = (first, 0u64, 0);
    let (mut sum, mut squares) = (0i128, 0i128);
    let mut leave = leave.into_iter().peekable();
    for arrival in arrive {
        let mut pass = |until: i64, flying: u64| {
            let area = i128::from(until - now) * i128::from(flying);
            sum += area;
            squares += area * i128::from(flying);
            now = until;
        };
        while let Some(departure) = leave.next_if(|number| *number < arrival) {
            pass(departure, flying);
            flying += 1;
            most = most.max(flying);
        }
        pass(arrival, flying);
        // A message that takes no time departs now.
        match leave.next_if(|number| *number == arrival && flying == 0) {
            Some(_) => most = most.max(1),
            None => flying -= 1,
        }
    }
    let mean = sum as f64 / time as f64;
    let variance = squares as f64 / time as f64 - mean * mean;
    Some(InFlight { mean, sd: variance.max(0.0).sqrt(), most, time })
}

/// M12: the time for which paths act on messages, and for which they pass them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Time within threads, ns.
    pub acting: i128,
    /// Time between threads, between processes and in queues, ns.
    pub passing: i128,
}

impl Overhead {
    /// The sums over the stages of paths.
    pub fn from_stages(stages: &[Stage]) -> Overhead {
        let (acting, passing): (Vec<&Stage>, Vec<_>) =
            stages.iter().partition(|stage| stage.place == StepPlace::Thread);
        let time = |stages: Vec<&Stage>| stages.iter().map(|stage| stage.time).sum();
        Overhead { acting: time(acting), passing: time(passing) }
    }

    /// `acting` by `passing`; None if nothing is passed on.
    pub fn ratio(self) -> Option<f64> {
        (self.passing > 0).then(|| self.acting as f64 / self.passing as f64)
    }
}

/// The time from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// The number of arrivals.
    pub count: u64,
    /// The sum of their latencies.
    pub sum: i128,
    /// The shortest latency, ns.
    pub min: i64,
    /// The longest latency, ns.
    pub max: i64,
}

impl Graph {
    /// The latencies from node to node: from the last vertex on a path at the one to its arrival at the other,
    /// by any route. A pair without an entry has no route. `nodes` has the node of each process. A path from a
    /// node to itself leads through another one.
    ///
    /// The method passes over the graph once for each node.
    pub fn latency_matrix(&self, nodes: &[u32]) -> BTreeMap<(u32, u32), Latency> {
        let node = |vertex: u32| nodes.get(self.process(vertex) as usize).copied().unwrap_or(NONE);
        let mut distinct: Vec<u32> = nodes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut matrix = BTreeMap::new();
        for from in distinct {
            let mut arrive = |vertex: u32, src: u32, origin: u32| {
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
                |vertex, last| arrive(vertex, self.source(vertex, last.number), last.origin),
            );
        }
        matrix
    }
}
