//! Time and memory of matching and paths, by the number of points:
//! `cargo bench -p ppt-causality --bench size -- 10000000`.

use std::sync::Arc;

use ppt_causality::{EdgeKind, Graph, GraphLink, KeyLimits, Matcher, Matches, Mode, Policy, Rules};
use ppt_stats::Budget;

#[path = "../tests/all/truth.rs"]
#[expect(dead_code, reason = "tests ask more of it")]
mod truth;

use truth::{Truth, TruthPlan};

/// The memory of this process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// The CPU time of this thread in ns, which other threads do not disturb.
fn ran() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

const STAGES: u32 = 6;

/// A run with this number of points.
fn made(points: u64, period: Option<u64>) -> Truth {
    let (seed, loss, one_type) = (1, 0, false);
    let requests = points / u64::from(STAGES);
    Truth::new(TruthPlan { seed, requests, stages: STAGES, period, one_type, loss })
}

fn matching(points: u64, period: Option<u64>) -> (Vec<GraphLink>, f64) {
    let truth = made(points, period);
    let limits = KeyLimits { pairs: u64::MAX, kept: usize::MAX, width: 0 };
    let mut links = Vec::new();
    let begun = ran();
    for entries in truth.entries.chunk_by(|a, b| a.0 == b.0) {
        let (points, rules) = &truth.types[entries[0].0 as usize];
        let rules = Arc::new(Rules::new(points, rules).expect("rules of a generator"));
        let mut matcher = Matcher::new(rules, limits, |_, _, _| false);
        let mut found = Matches::default();
        for key in entries.chunk_by(|a, b| a.1 == b.1) {
            for entry in key {
                matcher.take(entry.2, &mut found).expect("no hot key");
            }
            matcher.finish(&mut found);
            links.extend(found.edges.drain(..).map(|edge| {
                let (kind, queue) = (EdgeKind::Hash, edge.policy == Policy::Fifo);
                let (src, dst) = (edge.src.frame, edge.dst.frame);
                GraphLink { src, dst, kind, certainty: edge.certainty, queue }
            }));
            found.unmatched.clear();
        }
    }
    (links, ran() - begun)
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000] } else { sizes };
    for points in sizes {
        let before = memory();
        let each = |time: f64| time / points as f64;
        let (_, unique) = matching(points, None);
        let (links, repeated) = matching(points, Some(4096));
        println!("{points} points: match unique values {:.0} ns each", each(unique));
        println!("{points} points: match repeated values {:.0} ns each", each(repeated));
        let truth = made(points, None);
        let (vertices, edges) = (truth.vertices, links.len());
        drop(truth.entries);
        let processes = truth.processes;
        let begun = ran();
        let graph = Graph::new(processes, vertices, links).expect("a graph of a generator");
        println!("{points} points: graph of {edges} edges {:.0} ns each", each(ran() - begun));
        let begun = ran();
        let paths = graph.paths(&[0], &[STAGES - 1], Mode::Nearest).expect("no limit");
        println!("{points} points: {} paths {:.0} ns each", paths.ends(), each(ran() - begun));
        let begun = ran();
        let stages = paths.critical_path(&Budget::new(64 << 20));
        println!("{points} points: {} stages {:.0} ns each", stages.len(), each(ran() - begun));
        println!("{points} points: graph and paths take {} MiB", memory().saturating_sub(before));
    }
}
