//! How far the slices of a chunk reach, and which of them may be around slices of other chunks.
//!
//! How deep a slice lies depends on the slices that contain it, and on nothing else. Those of other chunks
//! are few where the chunks of a thread follow each other in time: what begins before the first end of
//! its chunk, or ends after the last start. A [`Reach`] keeps these. Where chunks lie side by side, as
//! those of two buffers of a thread, the slices of both must be there.

use crate::slice::{Placed, Slice};

/// How far the slices of a chunk reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    pub extent: Extent,
    /// Those that begin no later than the first end.
    pub early: Vec<Slice>,
    /// Those that end no sooner than the last start.
    pub late: Vec<Slice>,
}

/// The starts and ends of the slices of a chunk: the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: (i64, i64),
    pub end: (i64, i64),
}

/// What one chunk has that may be around slices of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    Early,
    Late,
    /// They lie side by side.
    All,
}

impl Reach {
    /// Of slices in the order in which they nest; None: there are none.
    pub fn spanning(slices: &[Slice]) -> Option<Reach> {
        let (first, last) = (slices.first()?, slices.last()?);
        let least = slices.iter().map(Slice::end).min()?;
        let most = slices.iter().map(Slice::end).max()?;
        let extent = Extent { start: (first.start, last.start), end: (least, most) };
        let early = slices.iter().take_while(|slice| slice.start <= least).copied().collect();
        let late = slices.iter().filter(|slice| slice.end() >= last.start).copied().collect();
        Some(Reach { extent, early, late })
    }
}

impl Extent {
    /// What this chunk may have around slices of `other`.
    pub fn around(&self, other: &Extent) -> Around {
        if self.start.0 > other.start.1 || self.end.1 < other.end.0 {
            Around::Nothing
        } else if other.start.1 < self.end.0 {
            Around::Early
        } else if self.start.1 < other.end.0 {
            Around::Late
        } else {
            Around::All
        }
    }

    /// Whether a slice may be around one of this chunk.
    pub fn may_be_in(&self, slice: &Slice) -> bool {
        slice.start <= self.start.1 && slice.end() >= self.end.0
    }

    /// Whether a slice is around all of this chunk, and begins before it.
    fn is_in(&self, slice: &Slice) -> bool {
        slice.start < self.start.0 && slice.end() >= self.end.1
    }
}

/// What other chunks have around the slices of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// How many slices, each in the one before, are around all slices of the chunk and of `inner`.
    pub depth: u32,
    /// The others, in the order in which they nest.
    pub inner: Vec<Placed>,
}

impl Surroundings {
    /// Of these slices of other chunks, in any order, around those of a chunk with this extent.
    pub fn around(mut others: Vec<Placed>, extent: &Extent) -> Surroundings {
        others.sort_unstable_by(Placed::order);
        let (outer, inner): (Vec<Placed>, Vec<Placed>) =
            others.iter().copied().partition(|placed| extent.is_in(&placed.slice));
        let Some(innermost) = outer.last() else { return Surroundings { depth: 0, inner } };
        // Who is in the innermost is in nothing else of `outer` more closely.
        if !inner.iter().all(|placed| innermost.contains(placed)) {
            return Surroundings { depth: 0, inner: others };
        }
        let mut nest = Nest::default();
        let depth = outer.iter().map(|placed| nest.push(&placed.slice)).last().unwrap_or(0) + 1;
        Surroundings { depth, inner }
    }

    /// How deep each of `slices` lies in the others and in `inner`; `placed` says what orders one.
    pub fn depths(&self, slices: &[Slice], placed: impl Fn(&Slice) -> Placed) -> Vec<u32> {
        let mut nest = Nest::default();
        let mut inner = self.inner.iter().peekable();
        let depth = |slice: &Slice| {
            // Few chunks have any around them that begin within.
            if inner.peek().is_some() {
                let own = placed(slice);
                while let Some(other) = inner.next_if(|placed| placed.order(&own).is_lt()) {
                    nest.push(&other.slice);
                }
            }
            nest.push(slice)
        };
        slices.iter().map(depth).collect()
    }
}

/// The ends of the slices that are open, the innermost last.
#[derive(Debug, Default)]
struct Nest {
    open: Vec<i64>,
}

impl Nest {
    /// How deep the next slice lies.
    #[inline]
    fn push(&mut self, slice: &Slice) -> u32 {
        let end = slice.start.saturating_add(slice.len);
        let most = end.max(slice.start);
        while self.open.last().is_some_and(|&open| open < most) {
            self.open.pop();
        }
        self.open.push(end);
        self.open.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    struct PseudoRandom(u64);

    impl PseudoRandom {
        fn below(&mut self, most: u64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 33) % most) as i64
        }
    }

    fn place(slice: Slice, chunk: usize) -> Placed {
        Placed { slice, seqno: (100 * chunk) as u64 + u64::from(slice.frame), ring: 0 }
    }

    /// By all pairs: the chain of the innermost slices around.
    fn expected(all: &[Placed], of: &Placed) -> u32 {
        let (mut depth, mut at) = (0, *of);
        let parent = |at: &Placed| {
            all.iter().filter(|placed| placed.contains(at)).max_by(|a, b| a.order(b)).copied()
        };
        while let Some(up) = parent(&at) {
            depth += 1;
            at = up;
        }
        depth
    }

    #[test]
    fn what_chunks_keep_of_each_other_tells_how_deep_slices_lie() {
        let mut dice = PseudoRandom(3);
        let mut deepest = 0;
        for round in 0..400 {
            let spread = [3, 12, 100][round % 3];
            let chunks: Vec<Vec<Slice>> = (0..4)
                .map(|chunk| {
                    let slice = |frame| {
                        let start = chunk * spread + dice.below(14);
                        let long = if dice.below(6) == 0 { 400 } else { 9 };
                        Slice { start, len: dice.below(long) - 1, frame, kind: 0 }
                    };
                    let mut slices: Vec<Slice> = (0..6).map(slice).collect();
                    if dice.below(3) == 0 {
                        let start = dice.below(10);
                        let len = chunk * spread + 20 - start;
                        slices.push(Slice { start, len, frame: 6, kind: 0 });
                    }
                    slices.sort_by(|a, b| place(*a, 0).order(&place(*b, 0)));
                    slices
                })
                .collect();
            let all: Vec<Placed> = chunks
                .iter()
                .enumerate()
                .flat_map(|(chunk, slices)| slices.iter().map(move |slice| place(*slice, chunk)))
                .collect();
            let reaches: Vec<Reach> =
                chunks.iter().filter_map(|chunk| Reach::spanning(chunk)).collect();
            for (chunk, slices) in chunks.iter().enumerate() {
                let extent = &reaches[chunk].extent;
                let mut others = Vec::new();
                for (other, reach) in reaches.iter().enumerate().filter(|entry| entry.0 != chunk) {
                    let from: &[Slice] = match reach.extent.around(extent) {
                        Around::Nothing => &[],
                        Around::Early => &reach.early,
                        Around::Late => &reach.late,
                        Around::All => &chunks[other],
                    };
                    let may = from.iter().filter(|slice| extent.may_be_in(slice));
                    others.extend(may.map(|slice| place(*slice, other)));
                }
                let around = Surroundings::around(others, extent);
                let depths = around.depths(slices, |slice| place(*slice, chunk));
                for (slice, depth) in slices.iter().zip(depths) {
                    let told = around.depth + depth;
                    assert_eq!(told, expected(&all, &place(*slice, chunk)), "{round}: {chunks:?}");
                    // The others are counted as well as those that are known to be around all.
                    deepest = deepest.max(told);
                }
            }
        }
        assert!(deepest > 4, "{deepest}");
    }
}
