//! Edges and paths of generated runs with known causes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ppt_causality::{
    Certainty, EdgeKind, Graph, GraphLink, KeyLimits, MatchCounts, Matcher, Matches, Mode,
    Overhead, Policy, Rule, Rules, StepPlace, UnmatchedReason, in_flight,
};
use ppt_stats::Budget;
use proptest::prelude::*;

use crate::truth::{Truth, TruthPlan, queue};

const LIMITS: KeyLimits = KeyLimits { pairs: 100_000, kept: 100_000, width: 0 };

fn matched(truth: &Truth) -> (Matches<u32>, MatchCounts) {
    let (mut found, mut counts) = (Matches::default(), MatchCounts::default());
    let same_type = truth.entries.chunk_by(|a, b| a.0 == b.0);
    for entries in same_type {
        let (points, rules) = &truth.types[entries[0].0 as usize];
        let rules = Arc::new(Rules::new(points, rules).unwrap());
        let missing = |point, from, to| truth.missing(point, from, to);
        let mut matcher = Matcher::new(rules, LIMITS, missing);
        for key in entries.chunk_by(|a, b| a.1 == b.1) {
            key.iter().for_each(|key| matcher.take(key.2, &mut found).unwrap());
            counts += matcher.finish(&mut found);
        }
    }
    (found, counts)
}

fn edges(found: &Matches<u32>) -> Vec<(u32, u32)> {
    let mut edges: Vec<_> =
        found.edges.iter().map(|edge| (edge.src.frame, edge.dst.frame)).collect();
    edges.sort_unstable_by_key(|edge| (edge.1, edge.0));
    edges
}

fn graph(truth: &Truth, found: &Matches<u32>) -> Graph {
    let link = |edge: &ppt_causality::Edge<u32>| {
        let (kind, certainty, queue) =
            (EdgeKind::Hash, edge.certainty, edge.policy == Policy::Fifo);
        GraphLink { src: edge.src.frame, dst: edge.dst.frame, kind, certainty, queue }
    };
    let links = found.edges.iter().map(link).collect();
    Graph::new(truth.processes.clone(), truth.vertices.iter().copied(), links).unwrap()
}

fn plans() -> impl Strategy<Value = TruthPlan> {
    let loss = prop::sample::select(vec![0, 10, 100]);
    (any::<u64>(), 1..300u64, 2..9u32, any::<bool>(), loss).prop_map(
        |(seed, requests, stages, one_type, loss)| TruthPlan {
            seed,
            requests,
            stages,
            period: None,
            one_type,
            loss,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn unique_values_are_matched_without_a_fault(plan in plans()) {
        let truth = Truth::new(plan);
        let (found, counts) = matched(&truth);
        prop_assert_eq!(edges(&found), truth.edges.clone());
        prop_assert_eq!((counts.certain, counts.possible), (truth.edges.len() as u64, 0));
        if !plan.one_type {
            let ins = found.unmatched.iter().filter(|entry| entry.side == ppt_causality::Side::In);
            let reasons: Vec<_> = ins.map(|entry| entry.reason).collect();
            prop_assert_eq!(reasons, vec![UnmatchedReason::Loss; truth.orphans]);
        }
    }

    #[test]
    fn paths_are_those_of_the_requests(plan in plans()) {
        let truth = Truth::new(plan);
        let (found, _) = matched(&truth);
        let graph = graph(&truth, &found);
        let last = plan.stages - 1;
        let vertices = 0..truth.vertices.len() as u32;
        let ends = vertices.filter(|&vertex| graph.point(vertex) == last);
        let ways: Vec<Vec<u32>> = ends.filter_map(|vertex| truth.way(vertex)).collect();
        let paths = graph.paths(&[0], &[last], Mode::Nearest).unwrap();
        let collected = paths.collect();
        let routes = collected.iter().map(|path| {
        let back = path.route.iter().rev().map(|step| step.dst);
            back.chain([path.src]).collect::<Vec<_>>()
        });
        prop_assert_eq!(routes.collect::<Vec<_>>(), ways.clone());
        prop_assert!(collected.iter().all(|path| !path.ambiguous));
        let request = |vertex: u32| truth.requests[vertex as usize];
        prop_assert!(collected.iter().all(|path| request(path.src) == request(path.dst)));
        let all = graph.paths(&[0], &[last], Mode::All { limit: 10_000 }).unwrap();
        prop_assert_eq!(&all.collect(), &collected);

        let ts = |vertex: u32| truth.vertices[vertex as usize].ts;
        let mut expected = BTreeMap::<(u32, u32), (u64, i128)>::new();
        for step in ways.iter().flat_map(|way| way.windows(2)) {
            let stage = (graph.point(step[1]), graph.point(step[0]));
            let (count, time) = expected.entry(stage).or_default();
            *count += 1;
            *time += i128::from(ts(step[0]) - ts(step[1]));
        }
        let stages = paths.critical_path(&Budget::new(1 << 20));
        let mut by_points = BTreeMap::<(u32, u32), (u64, i128)>::new();
        for stage in &stages {
            let (count, time) = by_points.entry((stage.from, stage.to)).or_default();
            *count += stage.count;
            *time += stage.time;
            let is_of_stage = |step: &&ppt_causality::RouteStep| {
            let points = (graph.point(step.src), graph.point(step.dst));
            (points, step.by, step.place) == ((stage.from, stage.to), stage.by, stage.place)
            };
            let steps = collected.iter().flat_map(|path| &path.route).filter(is_of_stage);
            let mut times: Vec<f64> =
            steps.map(|step| (ts(step.dst) - ts(step.src)) as f64).collect();
            times.sort_by(f64::total_cmp);
            let percentiles = [0.5, 0.99].map(|share| ppt_stats::quantile(&times, share));
            prop_assert_eq!([Some(stage.p50), Some(stage.p99)], percentiles);
        }
        prop_assert_eq!(by_points, expected);
        let latency: i128 = collected.iter().map(|path| i128::from(path.latency(&graph))).sum();
        prop_assert_eq!(stages.iter().map(|stage| stage.time).sum::<i128>(), latency);
        let shares: f64 = stages.iter().map(|stage| stage.share).sum();
        prop_assert!(latency == 0 || (shares - 1.0).abs() < 1e-12);
        prop_assert!(stages.is_sorted_by_key(|stage| std::cmp::Reverse(stage.time)));

        // Steps within threads act on messages; all others pass them on.
        let overhead = Overhead::from_stages(&stages);
        prop_assert_eq!(overhead.acting + overhead.passing, latency);
        let steps = collected.iter().flat_map(|path| &path.route);
        let acting = steps.filter(|step| step.place == StepPlace::Thread);
        let acting: i64 = acting.map(|step| ts(step.dst) - ts(step.src)).sum();
        prop_assert_eq!(overhead.acting, i128::from(acting));

        for path in &collected {
            let times = path.times(&graph);
            let sum = times.within.values().sum::<i128>() + times.between + times.queues;
            prop_assert_eq!(sum, i128::from(path.latency(&graph)));
        }
        let mut slowest = collected.clone();
        slowest.sort_by_key(|path| std::cmp::Reverse(path.latency(&graph)));
        slowest.truncate(20);
        prop_assert_eq!(paths.slowest(20), slowest);
    }

    #[test]
    fn what_is_certain_of_a_queue_is_true(
        seed in any::<u64>(),
        loss in 20..200u64,
        burst in prop::sample::select(vec![1, 5, 40]),
    ) {
        let within = 100;
        let made = queue(seed, 400, within, (loss, burst));
        let missing = |point, from, to| {
            made.lost.iter().any(|&(lost, time)| lost == point && from <= time && time <= to)
        };
        let rule = Rule { from: 0, to: 1, within: Some(within), policy: Policy::Fifo };
        let rules = Arc::new(Rules::new(&[0, 1], &[rule]).unwrap());
        let mut matcher = Matcher::new(rules, LIMITS, missing);
        let mut found = Matches::default();
        made.entries.iter().for_each(|&entry| matcher.take(entry, &mut found).unwrap());
        let counts = matcher.finish(&mut found);
        let certain = found.edges.iter().filter(|edge| edge.certainty == Certainty::Certain);
        let certain: Vec<_> = certain.map(|edge| (edge.src.frame, edge.dst.frame)).collect();
        prop_assert!(certain.iter().all(|&(put, taken)| taken == put | 1 << 31), "{certain:?}");
        // After each loss, the queue gets in step again.
        prop_assert!(made.lost.len() > 12 || counts.certain > 50, "{counts:?} of {}", made.lost.len());
    }
}

/// Ids that repeat long after their last use.
#[test]
fn repeated_values_are_matched_to_the_nearest() {
    for one_type in [false, true] {
        let (seed, requests, stages, loss) = (7, 20_000, 7, 0);
        let truth =
            Truth::new(TruthPlan { seed, requests, stages, period: Some(256), one_type, loss });
        let (found, counts) = matched(&truth);
        assert_eq!(edges(&found), truth.edges);
        assert_eq!(counts.possible, 0);
    }
}

#[test]
fn a_queue_of_equal_things_is_known_without_loss() {
    let made = queue(3, 5000, 100, (0, 1));
    let rule = Rule { from: 0, to: 1, within: None, policy: Policy::Fifo };
    let rules = Arc::new(Rules::new(&[0, 1], &[rule]).unwrap());
    let mut matcher = Matcher::new(rules, LIMITS, |_, _, _| false);
    let mut found = Matches::default();
    made.entries.iter().for_each(|&entry| matcher.take(entry, &mut found).unwrap());
    let counts = matcher.finish(&mut found);
    assert_eq!((counts.certain, counts.possible, found.edges.len()), (5000, 0, 5000));
    assert!(found.edges.iter().all(|edge| edge.dst.frame == edge.src.frame | 1 << 31));
}

proptest! {
    #[test]
    fn messages_in_flight(messages in prop::collection::vec((0..30i64, -1..9i64), 0..20)) {
        let messages: Vec<_> = messages.iter().map(|&(at, long)| (at, at + long)).collect();
        let found = in_flight(messages.iter().copied());
        let sent: Vec<_> = messages.iter().filter(|(leave, arrive)| leave <= arrive).collect();
        let first = sent.iter().map(|message| message.0).min();
        let last = sent.iter().map(|message| message.1).max();
        let (Some(first), Some(last)) = (first, last) else {
            prop_assert!(found.is_none());
            return Ok(());
        };
        if first == last {
            prop_assert!(found.is_none());
            return Ok(());
        }
        let flying = |time: i64| {
        sent.iter().filter(|message| message.0 <= time && time < message.1).count() as f64
        };
        let counts: Vec<f64> = (first..last).map(flying).collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance =
        counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        let found = found.unwrap();
        prop_assert!((found.mean - mean).abs() < 1e-9 && (found.sd - variance.sqrt()).abs() < 1e-6);
        prop_assert_eq!(found.time, last - first);
        let most = counts.iter().copied().fold(0.0, f64::max);
        let at_once = sent.iter().any(|message| message.0 == message.1);
        prop_assert!(found.most as f64 == most || most == 0.0 || at_once);
    }
}
