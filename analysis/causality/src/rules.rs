//! Rules: which points may follow which.

use thiserror::Error;

/// The choice among several possible causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Every cause: for values that do not repeat.
    All,
    /// The latest before the effect: for values that wrap or repeat.
    Nearest,
    /// The n-th cause of the n-th effect: for queues of equal things.
    Fifo,
}

/// A pair of points, of which one may follow the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The point whose outs are causes.
    pub from: u32,
    /// The point whose ins are effects.
    pub to: u32,
    /// The longest time from cause to effect, ns.
    pub within: Option<i64>,
    /// The choice among several causes.
    pub policy: Policy,
}

/// Two different rules for the same two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("two different rules for points {} and {}", .0.from, .0.to)]
pub struct Conflict(pub Rule, pub Rule);

/// The rules of a hash type.
///
/// Without rules, any two points match freely: every earlier out is a cause of an in ([`Policy::All`]). With
/// rules, only the pairs that they name match.
#[derive(Debug, Clone)]
pub struct Rules {
    free: bool,
    /// Sorted.
    points: Vec<u32>,
    rules: Vec<Rule>,
    /// By index of the point in `points`; a single entry if matching is free.
    at: Vec<PointRules>,
}

/// The rules of a point, as pairs of the indexes of a rule and of its other point.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointRules {
    /// The rules in which it is the cause, with their effects.
    pub outgoing: Vec<(usize, usize)>,
    /// The rules in which it is the effect, with their causes.
    pub incoming: Vec<(usize, usize)>,
}

impl Rules {
    /// `points` are all points that have the hash type, `rules` those about it. A repeated rule counts once.
    ///
    /// # Errors
    /// Two rules for the same points differ.
    pub fn new(points: &[u32], rules: &[Rule]) -> Result<Rules, Conflict> {
        let named = rules.iter().flat_map(|rule| [rule.from, rule.to]);
        let mut points: Vec<u32> = points.iter().copied().chain(named).collect();
        points.sort_unstable();
        points.dedup();
        let free = rules.is_empty();
        if free {
            let any = Rule { from: 0, to: 0, within: None, policy: Policy::All };
            let at = vec![PointRules { outgoing: vec![(0, 0)], incoming: vec![(0, 0)] }];
            return Ok(Rules { free, points, rules: vec![any], at });
        }
        let mut rules = rules.to_vec();
        rules.sort_by_key(|rule| (rule.from, rule.to));
        rules.dedup();
        if let Some(pair) = rules
            .windows(2)
            .find(|window| (window[0].from, window[0].to) == (window[1].from, window[1].to))
        {
            return Err(Conflict(pair[0], pair[1]));
        }
        let mut at = vec![PointRules::default(); points.len()];
        for (index, rule) in rules.iter().enumerate() {
            let place = |point| points.partition_point(|&number| number < point);
            at[place(rule.from)].outgoing.push((index, place(rule.to)));
            at[place(rule.to)].incoming.push((index, place(rule.from)));
        }
        Ok(Rules { free, points, rules, at })
    }

    /// Whether any two points match.
    pub fn free(&self) -> bool {
        self.free
    }

    /// The distinct rules; a single one without points if matching is free.
    pub(crate) fn all(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn points(&self) -> &[u32] {
        &self.points
    }

    /// The index of a point.
    pub(crate) fn place(&self, point: u32) -> Option<usize> {
        if self.free { Some(0) } else { self.points.binary_search(&point).ok() }
    }

    pub(crate) fn at(&self, place: usize) -> &PointRules {
        &self.at[place]
    }

    pub(crate) fn places(&self) -> usize {
        self.at.len()
    }

    /// The rules in which a point is the cause.
    pub(crate) fn outgoing(&self, point: u32) -> impl Iterator<Item = &Rule> {
        let at = self.place(point).map(|place| &self.at[place]);
        at.into_iter().flat_map(|at| &at.outgoing).map(|&(rule, _)| &self.rules[rule])
    }

    /// The rules in which a point is the effect.
    pub(crate) fn incoming(&self, point: u32) -> impl Iterator<Item = &Rule> {
        let at = self.place(point).map(|place| &self.at[place]);
        at.into_iter().flat_map(|at| &at.incoming).map(|&(rule, _)| &self.rules[rule])
    }
}
