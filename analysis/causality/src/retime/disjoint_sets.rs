//! Disjoint sets (union-find).

/// Disjoint sets of numbers, each with one of its numbers as its root.
#[derive(Debug, Default)]
pub(super) struct DisjointSets(Vec<usize>);

impl DisjointSets {
    /// `count` sets of one number.
    pub fn singletons(count: usize) -> DisjointSets {
        DisjointSets((0..count).collect())
    }

    /// Adds a set of one number.
    pub fn another(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    pub fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    pub fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one] = other;
    }
}
