//! Several hosts: every path from one to another bounds them, and the tightest counts.
//!
//! Bounds between hosts are difference constraints, so the tightest bound is a shortest path. Two
//! paths that contradict each other are a cycle of negative length: then a host on it has wrong
//! readings.

use super::path::HostEdge;
use super::scale::ROUNDING;

/// The readings of all hosts at one moment, with bounds.
#[derive(Debug, Clone)]
pub(super) struct NetworkMoment {
    pub lo: Vec<f64>,
    pub hi: Vec<f64>,
    /// The edge and the host from which each bound came.
    lo_by: Vec<Option<usize>>,
    hi_by: Vec<Option<usize>>,
}

/// Hosts whose readings contradict each other.
#[derive(Debug)]
pub(super) struct Wrong(pub Vec<usize>);

/// A bound must become tighter by this to count, in ns, so that cycles end.
const TIGHTER: f64 = 1e-3;

impl NetworkMoment {
    pub fn new(hosts: usize) -> Self {
        Self {
            lo: vec![f64::NEG_INFINITY; hosts],
            hi: vec![f64::INFINITY; hosts],
            lo_by: vec![None; hosts],
            hi_by: vec![None; hosts],
        }
    }

    /// The readings of all hosts when `reference` reads `x`.
    pub fn find(&mut self, edges: &[HostEdge], reference: usize, x: f64) -> Result<(), Wrong> {
        self.lo.fill(f64::NEG_INFINITY);
        self.hi.fill(f64::INFINITY);
        self.lo_by.fill(None);
        self.hi_by.fill(None);
        (self.lo[reference], self.hi[reference]) = (x, x);
        for _ in 0..=self.lo.len() {
            let mut better = false;
            for edge in edges {
                for (from, to) in [(edge.near, edge.far), (edge.far, edge.near)] {
                    better |= self.follow(edge, from, to);
                    if self.lo[to] > self.hi[to] + 2.0 * ROUNDING {
                        return Err(self.wrong(reference, to));
                    }
                }
            }
            if !better {
                return Ok(());
            }
        }
        // No bound has crossed the other one, but they keep changing: almost a contradiction.
        Ok(())
    }

    /// Follows one edge from `from` to `to`. Returns whether that tightened a bound.
    fn follow(&mut self, edge: &HostEdge, from: usize, to: usize) -> bool {
        let over = |x: f64| if from == edge.near { edge.far(x) } else { edge.near(x) };
        let mut better = false;
        if self.lo[from].is_finite()
            && let Some((lo, _)) = over(self.lo[from])
            && lo > self.lo[to] + TIGHTER
        {
            (self.lo[to], self.lo_by[to]) = (lo, Some(from));
            better = true;
        }
        if self.hi[from].is_finite()
            && let Some((_, hi)) = over(self.hi[from])
            && hi < self.hi[to] - TIGHTER
        {
            (self.hi[to], self.hi_by[to]) = (hi, Some(from));
            better = true;
        }
        better
    }

    /// The hosts on both paths to `host`.
    fn wrong(&self, reference: usize, host: usize) -> Wrong {
        let mut hosts = vec![host];
        for by in [&self.lo_by, &self.hi_by] {
            let mut at = host;
            // A cycle may not lead back to the reference.
            for _ in 0..by.len() {
                let Some(from) = by[at] else { break };
                hosts.push(from);
                at = from;
            }
        }
        hosts.retain(|&host| host != reference);
        hosts.sort_unstable();
        hosts.dedup();
        Wrong(hosts)
    }
}
