//! Why no path leads from some points to others.

use std::collections::BTreeMap;

use crate::graph::{EdgeKind, Graph, NONE};

/// The hash types of a point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PointTypes {
    /// Hash types of values that enter.
    pub ins: Vec<u32>,
    /// Hash types of values that leave.
    pub outs: Vec<u32>,
}

/// A point on either side of a disconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisconnectedPoint {
    /// The number of the point.
    pub point: u32,
    /// The number of its vertices on that side.
    pub count: u64,
    /// The number of those that border on it: on the near side nothing leads on from them, on the far
    /// side nothing leads to them.
    pub dead_ends: u64,
}

/// An edge that would join the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bridge {
    /// The point on the near side.
    pub from: u32,
    /// The point on the far side.
    pub to: u32,
    /// The hash type of values that leave `from` and enter `to`.
    pub hash_type: u32,
    /// The number of vertices of `to` on the far side that have no hash edge.
    pub open: u64,
}

/// Beginnings, and the ends that no path joins with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnection {
    /// The number of beginnings.
    pub beginnings: u64,
    /// The number of ends that no path leads to.
    pub ends: u64,
    /// The near side: the beginnings and the points that they lead to, the most dead ends first.
    pub forward: Vec<DisconnectedPoint>,
    /// The far side: those ends and the points that lead to them, the most dead ends first.
    pub backward: Vec<DisconnectedPoint>,
    /// Edges that would join the two sides, those with the most open vertices first. Empty if they have
    /// no hash type in common, or if every in has a cause that is on neither side.
    pub bridges: Vec<Bridge>,
}

impl Graph {
    /// The disconnection of vertices of the points `from` from those of the points `to` that no
    /// [path](Graph::paths) leads to. `types` has the hash types of each point.
    pub fn disconnection(&self, from: &[u32], to: &[u32], types: &[PointTypes]) -> Disconnection {
        let count = self.len();
        let is_from = |vertex: u32| from.contains(&self.point(vertex));
        let mut backward = vec![false; count];
        let vertices = 0..count as u32;
        for vertex in vertices.clone() {
            backward[vertex as usize] = to.contains(&self.point(vertex));
        }
        let forward = self.nearest(is_from, |vertex, _| backward[vertex as usize] = false);
        let forward: Vec<bool> = forward.origin.iter().map(|&number| number != NONE).collect();
        let ends = backward.iter().filter(|flag| **flag).count() as u64;
        let (mut leads_on, mut led_to) = (vec![false; count], vec![false; count]);
        for vertex in vertices.clone().rev() {
            let mut step = |src: u32| {
                leads_on[src as usize] = true;
                led_to[vertex as usize] = true;
                backward[src as usize] |= backward[vertex as usize];
            };
            let ignores_thread = self.ignores_thread(vertex);
            let links = self.links(vertex).iter();
            let links = links.filter(|link| !ignores_thread || link.kind != EdgeKind::Wake);
            links.for_each(|link| step(link.src));
            self.before(vertex).into_iter().for_each(&mut step);
        }
        let by_hash =
            |vertex: u32| self.links(vertex).iter().any(|link| link.kind == EdgeKind::Hash);
        let mut open = BTreeMap::<u32, u64>::new();
        for vertex in vertices.filter(|&number| backward[number as usize] && !by_hash(number)) {
            *open.entry(self.point(vertex)).or_default() += 1;
        }
        let forward = self.disconnected_points(&forward, &leads_on);
        let backward = self.disconnected_points(&backward, &led_to);
        let types_of = |point: u32| types.get(point as usize);
        let mut bridges = Vec::new();
        for from in forward.iter().map(|side| side.point) {
            for (&to, &open) in &open {
                let (Some(near), Some(far)) = (types_of(from), types_of(to)) else { continue };
                let common = near.outs.iter().filter(|out| far.ins.contains(out));
                bridges.extend(common.map(|&hash_type| Bridge { from, to, hash_type, open }));
            }
        }
        bridges.sort_unstable_by_key(|bridge| (std::cmp::Reverse(bridge.open), *bridge));
        bridges.dedup();
        Disconnection {
            beginnings: (0..count as u32).filter(|&number| is_from(number)).count() as u64,
            ends,
            forward,
            backward,
            bridges,
        }
    }

    /// The points of the vertices of a side. Those that are not `joined` are dead ends.
    fn disconnected_points(&self, side: &[bool], joined: &[bool]) -> Vec<DisconnectedPoint> {
        let mut points = BTreeMap::<u32, DisconnectedPoint>::new();
        for vertex in (0..self.len() as u32).filter(|&number| side[number as usize]) {
            let point = self.point(vertex);
            let entry =
                points.entry(point).or_insert(DisconnectedPoint { point, count: 0, dead_ends: 0 });
            entry.count += 1;
            entry.dead_ends += u64::from(!joined[vertex as usize]);
        }
        let mut points: Vec<DisconnectedPoint> = points.into_values().collect();
        points.sort_by_key(|point| (std::cmp::Reverse(point.dead_ends), point.point));
        points
    }
}
