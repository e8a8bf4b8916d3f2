//! The values of a metric that no loss affects.

use std::collections::HashMap;

use super::doubtful_times::{TimeRange, overlaps};
use super::model::RetimeModel;
use super::moments::VertexPair;

/// The known values of a metric, and the share of the run's time that they do not cover.
pub(super) struct LossFree<T> {
    pub values: T,
    pub missing_share: f64,
}

/// Successive vertices in time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VertexRun {
    vertices: Vec<u32>,
    /// No frame is missing in their time.
    is_known: bool,
}

impl VertexRun {
    /// The vertices of the run if no frame is missing, otherwise none.
    pub fn known(&self) -> impl Iterator<Item = u32> {
        self.vertices.iter().copied().filter(|_| self.is_known)
    }
}

/// The pairs that no loss affects. In the share, each thread counts as often as it has values.
pub(super) fn loss_free_lengths(
    mut pairs: Vec<VertexPair>,
    model: &RetimeModel,
) -> LossFree<Vec<VertexPair>> {
    let (doubtful, moments) = (&model.doubtful, &model.moments);
    let mut threads: HashMap<[Option<usize>; 2], ([u32; 2], usize)> = HashMap::new();
    let count = pairs.len();
    pairs.retain(|&VertexPair { begin, end }| {
        let both = [begin, end].map(|at| moments.thread[at as usize]);
        threads.entry(both.map(|thread| doubtful.group(thread))).or_insert((both, 0)).1 += 1;
        let during = (moments.time[begin as usize], moments.time[end as usize]);
        both.iter().all(|&thread| !doubtful.touches(thread, during))
    });
    let lost = |(threads, values): &([u32; 2], usize)| {
        share(&doubtful.times(threads.iter().copied()), model) * *values as f64
    };
    let missing_share =
        if count == 0 { 0.0 } else { threads.values().map(lost).sum::<f64>() / count as f64 };
    LossFree { values: pairs, missing_share }
}

/// The ends of lengths, divided at times in which frames are missing.
pub(super) fn loss_free_ends(
    lengths: Vec<VertexPair>,
    model: &RetimeModel,
) -> LossFree<Vec<Vec<u32>>> {
    let (thread, time) = (&model.moments.thread, &model.moments.time);
    let missing = model.doubtful.times(lengths.iter().map(|length| thread[length.end as usize]));
    let mut ends: Vec<u32> = lengths.into_iter().map(|length| length.end).collect();
    ends.sort_unstable_by_key(|&end| (time[end as usize], end));
    let is_known =
        |from: u32, to: u32| !overlaps(&missing, (time[from as usize], time[to as usize]));
    ends.retain(|&end| is_known(end, end));
    let stretches = ends.chunk_by(|&one, &next| is_known(one, next)).map(<[u32]>::to_vec);
    LossFree { values: stretches.collect(), missing_share: share(&missing, model) }
}

/// All vertices, divided at times in which frames are missing; empty if none are missing.
pub(super) fn loss_free_stretches(model: &RetimeModel) -> LossFree<Vec<VertexRun>> {
    let (thread, time) = (&model.moments.thread, &model.moments.time);
    let missing = model.doubtful.times(thread.iter().copied());
    if missing.is_empty() {
        return LossFree { values: Vec::new(), missing_share: 0.0 };
    }
    let mut order: Vec<u32> = (0..time.len() as u32).collect();
    order.sort_by_key(|&at| time[at as usize]);
    let is_known =
        |from: u32, to: u32| !overlaps(&missing, (time[from as usize], time[to as usize]));
    let in_doubt = |at: u32| !is_known(at, at);
    let stretches =
        order.chunk_by(|&one, &next| is_known(one, next) || in_doubt(one) && in_doubt(next)).map(
            |vertices| VertexRun { vertices: vertices.to_vec(), is_known: !in_doubt(vertices[0]) },
        );
    LossFree { values: stretches.collect(), missing_share: share(&missing, model) }
}

/// The share of these times in the run.
fn share(missing: &[TimeRange], model: &RetimeModel) -> f64 {
    let time = &model.moments.time;
    let (Some(&first), Some(&last)) = (time.iter().min(), time.iter().max()) else { return 0.0 };
    // A capture may have any times, whose differences may not fit into i64.
    let length = |from: i64, to: i64| (i128::from(to) - i128::from(from)).max(0) as f64;
    let lost: f64 = missing.iter().map(|&(from, to)| length(from.max(first), to.min(last))).sum();
    if lost == 0.0 { 0.0 } else { lost / length(first, last) }
}

/// The sum of the lengths of all known stretches: each is a run of its own.
pub(super) fn progress(stretches: &[VertexRun], time: &[i64]) -> i64 {
    let length = |stretch: &VertexRun| {
        let times = || stretch.known().map(|at| time[at as usize]);
        times().max().zip(times().min()).map_or(0, |(last, first)| last.saturating_sub(first))
    };
    stretches.iter().map(length).fold(0, i64::saturating_add)
}
