//! Why no way leads from some points to others.

use std::collections::BTreeMap;

use crate::graph::{EdgeKind, Graph, NONE};

/// The hash types of a point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Types {
    /// Of what enters.
    pub ins: Vec<u32>,
    /// Of what leaves.
    pub outs: Vec<u32>,
}

/// A point on this side of a gap, or on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shore {
    /// The number of the point.
    pub point: u32,
    /// How many of its vertices are on this side.
    pub count: u64,
    /// How many of them are at the water: nothing leads on from them, or to them.
    pub last: u64,
}

/// An edge that would close the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bridge {
    /// The point on this side.
    pub from: u32,
    /// The point on the other side.
    pub to: u32,
    /// What leaves the one and enters the other.
    pub hash_type: u32,
    /// How many vertices of `to` on the other side have no edge by hash.
    pub open: u64,
}

/// What lies between some points and others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointGap {
    /// How many beginnings there are.
    pub beginnings: u64,
    /// How many ends no way leads to.
    pub ends: u64,
    /// What the beginnings lead to, they among it; where most ways end first.
    pub forward: Vec<Shore>,
    /// What leads to those ends, they among it; where most ways begin first.
    pub backward: Vec<Shore>,
    /// Edges that would close the gap, those with the most open ends first. None: the two sides have no
    /// hash type in common, or every in has a cause that is on neither side.
    pub bridges: Vec<Bridge>,
}

impl Graph {
    /// What lies between vertices of the points `from` and those of the points `to` that no
    /// [path](Graph::paths) leads to. `types` has the hash types of each point.
    pub fn gap(&self, from: &[u32], to: &[u32], types: &[Types]) -> PointGap {
        let count = self.len();
        let is_from = |vertex: u32| from.contains(&self.point(vertex));
        let mut backward = vec![false; count];
        let all = 0..count as u32;
        all.clone().for_each(|number| backward[number as usize] = to.contains(&self.point(number)));
        let forward = self.nearest(is_from, |vertex, _| backward[vertex as usize] = false);
        let forward: Vec<bool> = forward.origin.iter().map(|&number| number != NONE).collect();
        let ends = backward.iter().filter(|flag| **flag).count() as u64;
        let (mut leads_on, mut led_to) = (vec![false; count], vec![false; count]);
        for vertex in all.clone().rev() {
            let mut step = |src: u32| {
                leads_on[src as usize] = true;
                led_to[vertex as usize] = true;
                backward[src as usize] |= backward[vertex as usize];
            };
            let belongs = self.belongs(vertex);
            let links =
                self.links(vertex).iter().filter(|link| !belongs || link.kind != EdgeKind::Wake);
            links.for_each(|link| step(link.src));
            self.before(vertex).into_iter().for_each(&mut step);
        }
        let by_hash =
            |vertex: u32| self.links(vertex).iter().any(|link| link.kind == EdgeKind::Hash);
        let mut open = BTreeMap::<u32, u64>::new();
        for vertex in all.filter(|&number| backward[number as usize] && !by_hash(number)) {
            *open.entry(self.point(vertex)).or_default() += 1;
        }
        let forward_shore = self.shore(&forward, &leads_on);
        let backward_shore = self.shore(&backward, &led_to);
        let of = |point: u32| types.get(point as usize);
        let mut bridges = Vec::new();
        for from in forward_shore.iter().map(|shore| shore.point) {
            for (&to, &open) in &open {
                let (Some(outs), Some(ins)) = (of(from), of(to)) else { continue };
                let common = outs.outs.iter().filter(|out| ins.ins.contains(out));
                bridges.extend(common.map(|&hash_type| Bridge { from, to, hash_type, open }));
            }
        }
        bridges.sort_unstable_by_key(|bridge| (std::cmp::Reverse(bridge.open), *bridge));
        bridges.dedup();
        PointGap {
            beginnings: (0..count as u32).filter(|&number| is_from(number)).count() as u64,
            ends,
            forward: forward_shore,
            backward: backward_shore,
            bridges,
        }
    }

    fn shore(&self, side: &[bool], joined: &[bool]) -> Vec<Shore> {
        let mut points = BTreeMap::<u32, Shore>::new();
        for vertex in (0..self.len() as u32).filter(|&number| side[number as usize]) {
            let point = self.point(vertex);
            let shore = points.entry(point).or_insert(Shore { point, count: 0, last: 0 });
            shore.count += 1;
            shore.last += u64::from(!joined[vertex as usize]);
        }
        let mut shore: Vec<Shore> = points.into_values().collect();
        shore.sort_by_key(|shore| (std::cmp::Reverse(shore.last), shore.point));
        shore
    }
}
