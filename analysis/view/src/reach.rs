//! The reach of the slices of a chunk, and the slices that may contain slices of other chunks.
//!
//! The depth of a slice depends only on the slices that contain it. If the chunks of a thread follow each
//! other in time, few slices of other chunks contain it: those that begin before the first end of their
//! chunk, or end after its last start. A [`Reach`] has these slices. If chunks overlap in time, as those of
//! two buffers of a thread do, all slices of both are needed.

use crate::slice::{OrderedSlice, Slice};

/// The extent of the slices of a chunk, and those that may contain slices of other chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    pub extent: Extent,
    /// The slices that begin no later than the first end.
    pub early: Vec<Slice>,
    /// The slices that end no sooner than the last start.
    pub late: Vec<Slice>,
}

/// The first and last starts and ends of the slices of a chunk, ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub first_start: i64,
    pub last_start: i64,
    pub first_end: i64,
    pub last_end: i64,
}

/// The slices of one chunk that may contain slices of another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    /// The early slices of the reach.
    Early,
    /// The late slices of the reach.
    Late,
    /// All slices, because the chunks overlap in time.
    All,
}

impl Reach {
    /// The reach of slices in nesting order. None without slices.
    pub fn spanning(slices: &[Slice]) -> Option<Reach> {
        let (first, last) = (slices.first()?, slices.last()?);
        let first_end = slices.iter().map(Slice::end).min()?;
        let last_end = slices.iter().map(Slice::end).max()?;
        let (first_start, last_start) = (first.start, last.start);
        let extent = Extent { first_start, last_start, first_end, last_end };
        let early = slices.iter().take_while(|slice| slice.start <= first_end).copied().collect();
        let late = slices.iter().filter(|slice| slice.end() >= last_start).copied().collect();
        Some(Reach { extent, early, late })
    }
}

impl Extent {
    /// The slices of this chunk that may contain slices of `other`.
    pub fn around(&self, other: &Extent) -> Around {
        if self.first_start > other.last_start || self.last_end < other.first_end {
            Around::Nothing
        } else if other.last_start < self.first_end {
            Around::Early
        } else if self.last_start < other.first_end {
            Around::Late
        } else {
            Around::All
        }
    }

    /// Whether `slice` may contain a slice of this chunk.
    pub fn may_be_in(&self, slice: &Slice) -> bool {
        slice.start <= self.last_start && slice.end() >= self.first_end
    }

    /// Whether `slice` begins before all slices of this chunk and contains them.
    fn is_in(&self, slice: &Slice) -> bool {
        slice.start < self.first_start && slice.end() >= self.last_end
    }
}

/// The slices of other chunks that contain slices of one chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The number of nested slices that contain all slices of the chunk and of `inner`.
    pub depth: u32,
    /// The other slices, in nesting order.
    pub inner: Vec<OrderedSlice>,
}

impl Surroundings {
    /// The surroundings of a chunk with this extent. `others` are the slices of other chunks that may contain
    /// slices of the chunk, in any order.
    pub fn around(mut others: Vec<OrderedSlice>, extent: &Extent) -> Surroundings {
        others.sort_unstable_by(OrderedSlice::order);
        let (outer, inner): (Vec<OrderedSlice>, Vec<OrderedSlice>) =
            others.iter().copied().partition(|other| extent.is_in(&other.slice));
        let Some(innermost) = outer.last() else { return Surroundings { depth: 0, inner } };
        // `depth` counts for all of `inner` only if the innermost slice contains them.
        if !inner.iter().all(|slice| innermost.contains(slice)) {
            return Surroundings { depth: 0, inner: others };
        }
        let mut nest = Nest::default();
        let depth = outer.iter().map(|other| nest.push(&other.slice)).last().unwrap_or(0) + 1;
        Surroundings { depth, inner }
    }

    /// The depth of each of `slices` among themselves and `inner`. `ordered` adds the order of a slice.
    pub fn depths(&self, slices: &[Slice], ordered: impl Fn(&Slice) -> OrderedSlice) -> Vec<u32> {
        let mut nest = Nest::default();
        let mut inner = self.inner.iter().peekable();
        let depth = |slice: &Slice| {
            // `inner` is empty for most chunks.
            if inner.peek().is_some() {
                let own = ordered(slice);
                while let Some(other) = inner.next_if(|other| other.order(&own).is_lt()) {
                    nest.push(&other.slice);
                }
            }
            nest.push(slice)
        };
        slices.iter().map(depth).collect()
    }
}

/// The ends of the open slices, the innermost last.
#[derive(Debug, Default)]
struct Nest {
    open: Vec<i64>,
}

impl Nest {
    /// Adds the next slice. Returns its depth.
    #[inline]
    fn push(&mut self, slice: &Slice) -> u32 {
        let end = slice.start.saturating_add(slice.len);
        let latest = end.max(slice.start);
        while self.open.last().is_some_and(|&open| open < latest) {
            self.open.pop();
        }
        self.open.push(end);
        self.open.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of pseudo-random numbers.
    struct PseudoRandom(u64);

    impl PseudoRandom {
        fn below(&mut self, most: u64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 33) % most) as i64
        }
    }

    fn ordered(slice: Slice, chunk: usize) -> OrderedSlice {
        OrderedSlice { slice, seqno: (100 * chunk) as u64 + u64::from(slice.frame), ring: 0 }
    }

    /// The depth of a slice, found by comparing all pairs.
    fn expected(all: &[OrderedSlice], slice: &OrderedSlice) -> u32 {
        let (mut depth, mut current) = (0, *slice);
        let parent = |slice: &OrderedSlice| {
            all.iter().filter(|other| other.contains(slice)).max_by(|a, b| a.order(b)).copied()
        };
        while let Some(outer) = parent(&current) {
            depth += 1;
            current = outer;
        }
        depth
    }

    #[test]
    fn the_reaches_of_other_chunks_suffice_for_the_depths_of_slices() {
        let mut random = PseudoRandom(3);
        let mut deepest = 0;
        for round in 0..400 {
            let spread = [3, 12, 100][round % 3];
            let chunks: Vec<Vec<Slice>> = (0..4)
                .map(|chunk| {
                    let slice = |frame| {
                        let start = chunk * spread + random.below(14);
                        let long = if random.below(6) == 0 { 400 } else { 9 };
                        Slice { start, len: random.below(long) - 1, frame, kind: 0 }
                    };
                    let mut slices: Vec<Slice> = (0..6).map(slice).collect();
                    if random.below(3) == 0 {
                        let start = random.below(10);
                        let len = chunk * spread + 20 - start;
                        slices.push(Slice { start, len, frame: 6, kind: 0 });
                    }
                    slices.sort_by(|a, b| ordered(*a, 0).order(&ordered(*b, 0)));
                    slices
                })
                .collect();
            let all: Vec<OrderedSlice> = chunks
                .iter()
                .enumerate()
                .flat_map(|(chunk, slices)| slices.iter().map(move |slice| ordered(*slice, chunk)))
                .collect();
            let reaches: Vec<Reach> =
                chunks.iter().filter_map(|chunk| Reach::spanning(chunk)).collect();
            for (chunk, slices) in chunks.iter().enumerate() {
                let extent = &reaches[chunk].extent;
                let mut others = Vec::new();
                for (other, reach) in reaches.iter().enumerate().filter(|entry| entry.0 != chunk) {
                    let candidates: &[Slice] = match reach.extent.around(extent) {
                        Around::Nothing => &[],
                        Around::Early => &reach.early,
                        Around::Late => &reach.late,
                        Around::All => &chunks[other],
                    };
                    let possible = candidates.iter().filter(|slice| extent.may_be_in(slice));
                    others.extend(possible.map(|slice| ordered(*slice, other)));
                }
                let around = Surroundings::around(others, extent);
                let depths = around.depths(slices, |slice| ordered(*slice, chunk));
                for (slice, depth) in slices.iter().zip(depths) {
                    let sum = around.depth + depth;
                    assert_eq!(sum, expected(&all, &ordered(*slice, chunk)), "{round}: {chunks:?}");
                    deepest = deepest.max(sum);
                }
            }
        }
        assert!(deepest > 4, "{deepest}");
    }
}
