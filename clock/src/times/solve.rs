//! Computes the times of all hosts from readings.

use std::collections::{BTreeSet, VecDeque};

use thiserror::Error;

use super::blocks::{self, Blocks};
use super::clocks::HostClocks;
use super::levels;
use super::line::{self, TickBounds, TickKnot};
use super::messages::{self, Unused};
use super::model::ClockModel;
use super::network::{NetworkMoment, Wrong};
use super::path::HostEdge;
use super::scale::TickOrigin;
use super::track::{self, TrackLimits, Tracker};
use crate::sync::ClockReadings;

/// The ticks of all hosts as ticks of a reference.
#[derive(Debug)]
pub struct Times {
    /// The clock of the reference.
    root: usize,
    clocks: HostClocks,
    /// By clock, the parts of its line.
    lines: Vec<Vec<Vec<TickKnot>>>,
    steps: Vec<ClockStep>,
    loops: Vec<Loop>,
    wrong: Vec<usize>,
    unused: Unused,
}

/// Why there are no times.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimesError {
    /// There is no host with this index.
    #[error("there is no host {host}; the readings are of {hosts} hosts")]
    NoHost {
        /// The requested index.
        host: usize,
        /// The number of hosts.
        hosts: usize,
    },
    /// True time was requested, but no reading is related to it.
    #[error("no reading says anything of true time")]
    NoTruth,
}

/// The difference of two hosts changed by more than the model allows. No bound uses readings
/// between the two ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// One of the hosts; `None` is true time.
    pub from: Option<usize>,
    /// The other one: one of them stepped, or its readings are wrong.
    pub to: Option<usize>,
    /// Ticks of `from` before and after the step.
    pub between: (i128, i128),
    /// The range of the step of `to`'s clock ahead of `from`'s, in ns.
    pub by_ns: (i64, i64),
}

/// Two hosts with readings between them that are also compared through other hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loop {
    /// One of the hosts; `None` is true time.
    pub from: Option<usize>,
    /// The other one.
    pub to: Option<usize>,
    /// Mean difference of the estimate from these two only and that from all, in ns.
    pub mean_ns: f64,
    /// The largest such difference.
    pub worst_ns: f64,
}

impl Times {
    /// Compares all hosts with the one with index `reference`.
    ///
    /// # Errors
    /// There is no such host.
    pub fn between_hosts(
        readings: &ClockReadings,
        reference: usize,
        model: &ClockModel,
    ) -> Result<Self, TimesError> {
        let hosts = readings.hosts().len();
        if reference >= hosts {
            return Err(TimesError::NoHost { host: reference, hosts });
        }
        let clocks = HostClocks::from_readings(readings);
        let root = clocks.of_host[reference];
        Ok(Self::compare(readings, clocks, root, model))
    }

    /// Compares all hosts with true time: ticks of the reference are ns since the epoch. Hosts are
    /// related to it by pulses, and by reports of other programs if the model trusts them.
    ///
    /// # Errors
    /// No reading is related to true time.
    pub fn of_truth(readings: &ClockReadings, model: &ClockModel) -> Result<Self, TimesError> {
        let clocks = HostClocks::from_readings(readings);
        let root = clocks.truth;
        let has_reports = model.trusts_reports && !readings.time_sources().is_empty();
        if has_reports || !readings.pulses().is_empty() {
            Ok(Self::compare(readings, clocks, root, model))
        } else {
            Err(TimesError::NoTruth)
        }
    }

    fn compare(
        readings: &ClockReadings,
        clocks: HostClocks,
        root: usize,
        model: &ClockModel,
    ) -> Self {
        let (rank, parents) = ranks(&messages::joined(readings, &clocks, model), root);
        let (pairs, unused) = messages::bounds(readings, &clocks, model, &rank);
        let limits = TrackLimits { curve: model.curve(), slope: model.slope() };
        let pairs = pairs.into_iter().filter(|&((near, _), _)| rank[near] < usize::MAX);
        let edge = |((near, far), bounds)| {
            let blocks = Blocks::from_bounds(bounds, limits.curve);
            let steps = levels::steps(&blocks, limits.curve);
            HostEdge::new(near, far, Tracker::new(&blocks, limits).track(&steps))
        };
        let mut edges: Vec<HostEdge> = pairs.map(edge).collect();
        edges.sort_by_key(|edge| (rank[edge.near], rank[edge.far]));
        let step = |edge: &HostEdge, jump: &track::Jump| {
            let scale = clocks.scales[edge.near];
            let between = (scale.tick_before(jump.between.0), scale.tick_after(jump.between.1));
            let by_ns = (jump.by.0.floor() as i64, jump.by.1.ceil() as i64);
            let (from, to) = (clocks.host(edge.near), clocks.host(edge.far));
            ClockStep { from, to, between, by_ns }
        };
        let steps =
            edges.iter().flat_map(|edge| edge.jumps.iter().map(move |jump| step(edge, jump)));
        let steps = steps.collect();
        let moments = moments(&edges, &parents, root);
        let wrong = wrong(&mut edges, &moments, root, clocks.scales.len());
        let (tracks, loops) = tracks(&edges, &moments, &parents, root, &clocks);
        let scale = |clock: usize| -> TickOrigin { clocks.scales[clock] };
        let line = |(clock, parts): (usize, Vec<Vec<track::DifferenceKnot>>)| {
            let parts = parts.iter().map(|part| line::turn(part, model, scale(clock), scale(root)));
            parts.filter(|part| !part.is_empty()).collect()
        };
        let lines = tracks.into_iter().enumerate().map(line).collect();
        let is_wrong = |index: &usize| wrong.contains(index);
        let wrong =
            (0..clocks.of_host.len()).filter(|&index| is_wrong(&clocks.of_host[index])).collect();
        Self { root, clocks, lines, steps, loops, wrong, unused }
    }

    /// The time of `tick` of `host`, in ticks of the reference. Returns `None` if it is unknown:
    /// the host is not connected to the reference, its clock stepped there, or the tick is more
    /// than an hour before or after the readings.
    pub fn at(&self, host: usize, tick: u64) -> Option<TickBounds> {
        let clock = *self.clocks.of_host.get(host)?;
        if clock == self.root {
            let tick = tick.into();
            return Some(TickBounds { lo: tick, mid: tick, hi: tick });
        }
        let mut found = self.lines[clock].iter().filter_map(|knots| line::at(knots, tick)).take(2);
        match (found.next(), found.next()) {
            (found, None) => found,
            // After a step back, a tick occurs twice.
            _ => None,
        }
    }

    /// Whether the clock of `host` is that of the reference.
    pub fn is_reference(&self, host: usize) -> bool {
        self.clocks.of_host.get(host) == Some(&self.root)
    }

    /// The parts of a host's line: [`Times::at`] is linear between the knots of a part, and `None`
    /// between parts. Empty for the reference itself, and for hosts that are not comparable.
    pub fn parts(&self, host: usize) -> impl Iterator<Item = &[TickKnot]> {
        let clock = self.clocks.of_host.get(host).filter(|_| !self.is_reference(host));
        clock.into_iter().flat_map(|&index| &self.lines[index]).map(Vec::as_slice)
    }

    /// The differences that changed by more than the model allows.
    pub fn steps(&self) -> &[ClockStep] {
        &self.steps
    }

    /// How well pairs agree with the paths around them.
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// Hosts whose readings contradict those of others. They have no times.
    pub fn contradicted(&self) -> &[usize] {
        &self.wrong
    }

    /// The unused stamps.
    pub fn unused(&self) -> Unused {
        self.unused
    }
}

/// The distance of each clock from the reference, and the next clock on the path to it. A clock
/// without a connection has the last rank.
fn ranks(joined: &[BTreeSet<usize>], root: usize) -> (Vec<usize>, Vec<Option<usize>>) {
    let (mut rank, mut parent) = (vec![usize::MAX; joined.len()], vec![None; joined.len()]);
    let mut queue = VecDeque::from([root]);
    rank[root] = 0;
    let mut found = 0;
    while let Some(clock) = queue.pop_front() {
        for &next in &joined[clock] {
            if rank[next] == usize::MAX {
                found += 1;
                (rank[next], parent[next]) = (found, Some(clock));
                queue.push_back(next);
            }
        }
    }
    (rank, parent)
}

/// The moments of the reference with a result, in order.
fn moments(edges: &[HostEdge], parents: &[Option<usize>], root: usize) -> Vec<f64> {
    let mut indices = Vec::new();
    for edge in edges {
        let unbounded = edge.unbounded.iter().map(|&number| blocks::middle(number));
        for mut x in edge.knots().map(|knot| knot.x).chain(unbounded) {
            let mut at = edge.near;
            while let Some(parent) = parents[at] {
                let joins = |edge: &&HostEdge| (edge.near, edge.far) == (parent, at);
                let back = edges.iter().find(joins).and_then(|edge| edge.near(x));
                let Some((lo, hi)) = back else { break };
                (x, at) = (lo.midpoint(hi), parent);
            }
            if at == root {
                indices.push(blocks::index(x));
            }
        }
    }
    indices.sort_unstable();
    indices.dedup();
    indices.into_iter().map(blocks::middle).collect()
}

/// Hosts whose readings contradict others; their edges are removed.
fn wrong(edges: &mut Vec<HostEdge>, moments: &[f64], root: usize, count: usize) -> Vec<usize> {
    let mut out = Vec::new();
    if edges.len() < count {
        return out; // No other path.
    }
    loop {
        let mut moment = NetworkMoment::new(count);
        let mut against = |edges: &[HostEdge], at: &[f64]| -> Vec<(f64, Vec<usize>)> {
            let wrong = at.iter().filter_map(|&x| match moment.find(edges, root, x) {
                Err(Wrong(hosts)) => Some((x, hosts)),
                Ok(()) => None,
            });
            wrong.collect()
        };
        let found = against(edges, moments);
        if found.is_empty() {
            return out;
        }
        // Which host's removal leaves the fewest contradictions?
        let some = found.iter().step_by(found.len().div_ceil(64));
        let at: Vec<_> = some.map(|entry| entry.0).collect();
        let mut hosts: Vec<_> = found.into_iter().flat_map(|entry| entry.1).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut left = Vec::new();
        for &host in &hosts {
            let (without, with): (Vec<_>, Vec<_>) =
                edges.drain(..).partition(|edge| edge.near != host && edge.far != host);
            left.push(against(&without, &at).len());
            edges.extend(without.into_iter().chain(with));
        }
        let least = left.iter().min().copied();
        let liars: Vec<_> = hosts
            .into_iter()
            .zip(left)
            .filter(|entry| Some(entry.1) == least)
            .map(|entry| entry.0)
            .collect();
        edges.retain(|edge| !liars.contains(&edge.near) && !liars.contains(&edge.far));
        if liars.is_empty() {
            return out; // Never: every contradiction has a host.
        }
        out.extend(liars);
    }
}

/// The reading of each clock, in parts without a gap, and how well the edges that are on no
/// shortest path agree.
fn tracks(
    edges: &[HostEdge],
    moments: &[f64],
    parents: &[Option<usize>],
    root: usize,
    clocks: &HostClocks,
) -> (Vec<Vec<Vec<track::DifferenceKnot>>>, Vec<Loop>) {
    let count = clocks.scales.len();
    let mut tracks: Vec<Vec<Vec<track::DifferenceKnot>>> = vec![Vec::new(); count];
    let mut open = vec![false; count];
    let loops = edges.iter().filter(|edge| parents[edge.far] != Some(edge.near));
    let mut loops: Vec<_> = loops.map(|edge| (edge, 0.0, 0.0, 0.0f64)).collect();
    let mut moment = NetworkMoment::new(count);
    for &x in moments {
        if moment.find(edges, root, x).is_err() {
            open.fill(false);
            continue;
        }
        for clock in (0..count).filter(|&index| index != root) {
            let (lo, hi) = (moment.lo[clock], moment.hi[clock]);
            let is_bounded = lo.is_finite() && hi.is_finite();
            if is_bounded && !open[clock] {
                tracks[clock].push(Vec::new());
            }
            if is_bounded && let Some(part) = tracks[clock].last_mut() {
                // Rounding may have moved a lower bound slightly above the upper one.
                part.push(track::DifferenceKnot { x, lo: lo.min(hi) - x, hi: hi.max(lo) - x });
            }
            open[clock] = is_bounded;
        }
        for (edge, sum, number, worst) in &mut loops {
            let middle = |index: usize| moment.lo[index].midpoint(moment.hi[index]);
            let Some((lo, hi)) = edge.far(middle(edge.near)) else { continue };
            let off = lo.midpoint(hi) - middle(edge.far);
            if off.is_finite() {
                *sum += off;
                *number += 1.0;
                *worst = worst.max(off.abs());
            }
        }
    }
    let loops =
        loops.into_iter().filter(|entry| entry.2 > 0.0).map(|(edge, sum, number, worst)| Loop {
            from: clocks.host(edge.near),
            to: clocks.host(edge.far),
            mean_ns: sum / number,
            worst_ns: worst,
        });
    (tracks, loops.collect())
}
