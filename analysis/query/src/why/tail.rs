//! Where the intervals above the 99th percentile spent their time.

use super::answer::{LongestIntervals, SlowInterval, SlowPart};
use super::functions::FunctionCounts;
use crate::text::{duration, grouped};

/// The largest number of intervals of a tail that are read: the slowest ones.
pub(super) const MAX_INTERVALS: usize = 10_000;

/// The causes of the time of the tail of an interval, or of a kind of spans.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The frame and the interval, or the spans.
    pub name: String,
    /// The number of intervals.
    pub all: u64,
    /// The 99th percentile, ns: 1 % of the intervals are longer. None if there are too few
    /// intervals, and the requested slowest ones are used as the tail.
    pub p99: Option<i64>,
    /// The number of intervals that are longer.
    pub above: u64,
    /// The number of those that this summary covers: the slowest ones.
    pub count: u64,
    /// The total length of these intervals, ns.
    pub ns: i64,
    /// The causes of that time, the largest first. They add up to `ns`.
    pub causes: Vec<TailCause>,
    /// The functions in which the threads of these intervals ran, by stacks.
    pub functions: FunctionCounts,
}

/// A cause of the time of a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCause {
    /// The cause in a few words.
    pub cause: String,
    /// The time that went to the cause, ns.
    pub ns: i64,
    /// The number of intervals with that cause.
    pub intervals: u64,
}

/// The number of intervals above the 99th percentile by rank, of `all`; None if there are none.
pub(super) fn above(all: u64) -> Option<usize> {
    // Rank ⌈0.99 n⌉, without a float.
    let rank = (all * 99).div_ceil(100);
    usize::try_from(all - rank).ok().filter(|&count| count > 0)
}

impl Tail {
    /// `longest` are the longest intervals of the kind, the slowest first. None if there are none.
    pub(super) fn new(kind: &LongestIntervals, longest: &[SlowInterval]) -> Option<Tail> {
        // The first interval that is not above the percentile marks where the tail begins.
        let looked_at = kind.above.map(|count| count.min(MAX_INTERVALS));
        let p99 = looked_at.and_then(|index| Some(longest.get(index)?.dur));
        let own: Vec<&SlowInterval> = match (p99, looked_at) {
            (Some(p99), Some(above)) => {
                longest[..above].iter().take_while(|interval| interval.dur > p99).collect()
            }
            _ => Vec::new(),
        };
        // `own` is empty if the longest are all as long as the percentile.
        let (p99, own) = if own.is_empty() {
            (None, longest.iter().take(kind.slowest).collect())
        } else {
            (p99, own)
        };
        if own.is_empty() {
            return None;
        }
        let cut = p99.is_some() && kind.above > looked_at;
        let above = if cut { kind.above.unwrap_or_default() } else { own.len() };
        let mut functions = FunctionCounts::default();
        let parts = own.iter().flat_map(|slow| &slow.parts);
        parts.for_each(|part| functions.add_all(&part.functions));
        functions.sort();
        Some(Tail {
            name: kind.name.clone(),
            all: kind.all,
            p99,
            above: above as u64,
            count: own.len() as u64,
            ns: own.iter().map(|interval| interval.dur).sum(),
            causes: causes(&own),
            functions,
        })
    }
}

/// The causes of the time of these intervals, the largest first.
fn causes(intervals: &[&SlowInterval]) -> Vec<TailCause> {
    let mut causes: Vec<TailCause> = Vec::new();
    for slow in intervals {
        let mut counted: Vec<String> = Vec::new();
        for (cause, ns) in slow.parts.iter().flat_map(SlowPart::causes) {
            let is_new = !counted.contains(&cause);
            match causes.iter_mut().find(|known| known.cause == cause) {
                Some(known) => {
                    known.ns += ns;
                    known.intervals += u64::from(is_new);
                }
                None => causes.push(TailCause { cause: cause.clone(), ns, intervals: 1 }),
            }
            counted.push(cause);
        }
    }
    causes.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.cause.cmp(&b.cause)));
    causes
}

impl Tail {
    /// The heading of the summary, as a sentence.
    pub fn heading(&self) -> String {
        let (all, together) = (grouped(self.all), duration(self.ns as f64));
        let count = grouped(self.count);
        match self.p99 {
            Some(p99) if self.above > self.count => format!(
                "{} of {all} {} took longer than p99 ({}); the time of the slowest {count}, {together}, went to:",
                grouped(self.above),
                self.name,
                duration(p99 as f64)
            ),
            Some(p99) => format!(
                "{count} of {all} {} took longer than p99 ({}); their time, {together}, went to:",
                self.name,
                duration(p99 as f64)
            ),
            None => format!(
                "The time of the slowest {count} of {all} {}, {together}, went to:",
                self.name
            ),
        }
    }
}
