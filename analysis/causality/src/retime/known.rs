//! What of a metric is known, where frames are missing.

use std::collections::HashMap;

use super::doubted::{TimeRange, within};
use super::model::RetimeModel;

/// The values that missing frames do not touch, and the share of the run's time that they do not cover.
pub(super) struct KnownPart<T> {
    pub values: T,
    pub missing_share: f64,
}

/// Vertices that follow each other in time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VertexRun {
    vertices: Vec<u32>,
    /// Nothing is missing.
    is_known: bool,
}

impl VertexRun {
    /// Its vertices, if nothing is missing.
    pub fn known(&self) -> impl Iterator<Item = u32> {
        self.vertices.iter().copied().filter(|_| self.is_known)
    }
}

/// Those of `pairs` that nothing touches. A thread that lost much of its time counts as often as it has values.
pub(super) fn known_lengths(
    mut pairs: Vec<(u32, u32)>,
    model: &RetimeModel,
) -> KnownPart<Vec<(u32, u32)>> {
    let (doubted, moments) = (&model.doubted, &model.moments);
    let mut threads: HashMap<[Option<usize>; 2], ([u32; 2], usize)> = HashMap::new();
    let all = pairs.len();
    pairs.retain(|&(begin, end)| {
        let both = [begin, end].map(|at| moments.thread[at as usize]);
        threads.entry(both.map(|thread| doubted.group(thread))).or_insert((both, 0)).1 += 1;
        let during = (moments.time[begin as usize], moments.time[end as usize]);
        both.iter().all(|&thread| !doubted.touches(thread, during))
    });
    let lost = |(of, values): &([u32; 2], usize)| {
        share(&doubted.times(of.iter().copied()), model) * *values as f64
    };
    let missing_share =
        if all == 0 { 0.0 } else { threads.values().map(lost).sum::<f64>() / all as f64 };
    KnownPart { values: pairs, missing_share }
}

/// Ends, apart wherever something is missing between them.
pub(super) fn known_ends(
    lengths: Vec<(u32, u32)>,
    model: &RetimeModel,
) -> KnownPart<Vec<Vec<u32>>> {
    let (thread, time) = (&model.moments.thread, &model.moments.time);
    let missing = model.doubted.times(lengths.iter().map(|length| thread[length.1 as usize]));
    let mut ends: Vec<u32> = lengths.into_iter().map(|length| length.1).collect();
    ends.sort_unstable_by_key(|&end| (time[end as usize], end));
    let is_known = |from: u32, to: u32| !within(&missing, (time[from as usize], time[to as usize]));
    ends.retain(|&end| is_known(end, end));
    let stretches = ends.chunk_by(|&one, &next| is_known(one, next)).map(<[u32]>::to_vec);
    KnownPart { values: stretches.collect(), missing_share: share(&missing, model) }
}

/// All vertices, apart wherever something is missing; nothing, if nothing is.
pub(super) fn known_stretches(model: &RetimeModel) -> KnownPart<Vec<VertexRun>> {
    let (thread, time) = (&model.moments.thread, &model.moments.time);
    let missing = model.doubted.times(thread.iter().copied());
    if missing.is_empty() {
        return KnownPart { values: Vec::new(), missing_share: 0.0 };
    }
    let mut order: Vec<u32> = (0..time.len() as u32).collect();
    order.sort_by_key(|&at| time[at as usize]);
    let is_known = |from: u32, to: u32| !within(&missing, (time[from as usize], time[to as usize]));
    let in_doubt = |at: u32| !is_known(at, at);
    let apart =
        order.chunk_by(|&one, &next| is_known(one, next) || in_doubt(one) && in_doubt(next)).map(
            |vertices| VertexRun { vertices: vertices.to_vec(), is_known: !in_doubt(vertices[0]) },
        );
    KnownPart { values: apart.collect(), missing_share: share(&missing, model) }
}

/// Which share of the run's time these are.
fn share(missing: &[TimeRange], model: &RetimeModel) -> f64 {
    let time = &model.moments.time;
    let (Some(&first), Some(&last)) = (time.iter().min(), time.iter().max()) else { return 0.0 };
    // A capture may state any times: in i64, their differences may not fit.
    let length = |from: i64, to: i64| (i128::from(to) - i128::from(from)).max(0) as f64;
    let lost: f64 = missing.iter().map(|&(from, to)| length(from.max(first), to.min(last))).sum();
    if lost == 0.0 { 0.0 } else { lost / length(first, last) }
}

/// How long it takes through all stretches that nothing is missing of: each is a run of its own.
pub(super) fn progress(stretches: &[VertexRun], time: &[i64]) -> i64 {
    let length = |stretch: &VertexRun| {
        let times = || stretch.known().map(|at| time[at as usize]);
        times().max().zip(times().min()).map_or(0, |(last, first)| last.saturating_sub(first))
    };
    stretches.iter().map(length).fold(0, i64::saturating_add)
}
