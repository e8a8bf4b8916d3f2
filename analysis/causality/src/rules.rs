//! Which point may follow which.

use thiserror::Error;

/// Which of several possible causes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Every one: for values that do not repeat.
    All,
    /// The latest before the effect: for values that wrap or repeat.
    Nearest,
    /// The n-th cause has the n-th effect: for queues of equal things.
    Fifo,
}

/// One point may follow another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The point whose outs are causes.
    pub from: u32,
    /// The point whose ins are effects.
    pub to: u32,
    /// The longest time from the one to the other.
    pub within: Option<i64>,
    /// Which of several causes count.
    pub policy: Policy,
}

/// Two rules say different things of the same two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("two rules say different things of the points {} and {}", .0.from, .0.to)]
pub struct Conflict(pub Rule, pub Rule);

/// Which points of a hash type may follow which.
///
/// Without rules any two points match freely: every earlier out is a cause of an in ([`Policy::All`]).
/// With rules, only what they name.
#[derive(Debug, Clone)]
pub struct Rules {
    free: bool,
    /// In their order.
    points: Vec<u32>,
    rules: Vec<Rule>,
    /// By the place of the point in `points`; a single one where matching is free.
    at: Vec<PointRules>,
}

/// The rules of a point, by their place.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointRules {
    /// Those whose cause it is, and the place of the effect.
    pub outgoing: Vec<(usize, usize)>,
    /// Those whose effect it is, and the place of the cause.
    pub incoming: Vec<(usize, usize)>,
}

impl Rules {
    /// `points` are all points that have the hash type, `rules` those that touch it. A rule that is there
    /// twice counts once.
    ///
    /// # Errors
    /// Two rules of the same points contradict each other.
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
        if let Some(two) = rules
            .windows(2)
            .find(|window| (window[0].from, window[0].to) == (window[1].from, window[1].to))
        {
            return Err(Conflict(two[0], two[1]));
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

    /// The rules, each once; one that names no points where matching is free.
    pub(crate) fn all(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn points(&self) -> &[u32] {
        &self.points
    }

    /// Where a point is.
    pub(crate) fn place(&self, point: u32) -> Option<usize> {
        if self.free { Some(0) } else { self.points.binary_search(&point).ok() }
    }

    pub(crate) fn at(&self, place: usize) -> &PointRules {
        &self.at[place]
    }

    pub(crate) fn places(&self) -> usize {
        self.at.len()
    }

    /// The rules whose cause a point is.
    pub(crate) fn outgoing(&self, point: u32) -> impl Iterator<Item = &Rule> {
        let at = self.place(point).map(|place| &self.at[place]);
        at.into_iter().flat_map(|at| &at.outgoing).map(|&(rule, _)| &self.rules[rule])
    }

    /// The rules whose effect a point is.
    pub(crate) fn incoming(&self, point: u32) -> impl Iterator<Item = &Rule> {
        let at = self.place(point).map(|place| &self.at[place]);
        at.into_iter().flat_map(|at| &at.incoming).map(|&(rule, _)| &self.rules[rule])
    }
}
