//! The matcher against one that decides every pair by the definition.

use std::sync::Arc;

use ppt_causality::{
    Certainty, Edge, Entry, KeyLimits, KeyRefusal, MatchCounts, Matcher, Matches, Policy, Rule,
    Rules, Side, UnmatchedReason,
};
use proptest::prelude::*;

const POINTS: u32 = 4;
/// The largest distance of bounds in generated entries.
const WIDTH: i64 = 4;

/// A point, and the times between which its frames may be missing.
type SeqGap = (u32, i64, i64);

/// For each point, the time from which it was recorded; None: from the start.
type Begins = [Option<i64>; POINTS as usize];

const FROM_START: Begins = [None; POINTS as usize];

fn missing(gaps: &[SeqGap], point: u32, from: i64, to: i64) -> bool {
    gaps.iter().any(|&(of, start, end)| of == point && start <= to && from <= end)
}

/// The sorted results of a matcher.
#[derive(Debug, PartialEq)]
struct SortedMatches {
    edges: Vec<(u32, u32, Policy, Certainty)>,
    unmatched: Vec<(u32, Side, UnmatchedReason)>,
    counts: MatchCounts,
}

impl SortedMatches {
    fn sorted(mut self) -> SortedMatches {
        self.edges.sort_unstable();
        self.unmatched.sort_unstable();
        self
    }
}

fn streamed(
    rules: &Rules,
    gaps: &[SeqGap],
    begins: Begins,
    entries: &[Entry<u32>],
) -> SortedMatches {
    let limits = KeyLimits { pairs: u64::MAX, kept: usize::MAX, width: WIDTH };
    let mut matcher = Matcher::new(Arc::new(rules.clone()), limits, |point, from, to| {
        missing(gaps, point, from, to)
    })
    .with_begins(|point| begins[point as usize]);
    let mut found = Matches::default();
    let mut counts = Vec::new();
    // The first key must leave nothing behind for the second.
    for _ in 0..2 {
        found = Matches::default();
        entries.iter().for_each(|&entry| matcher.take(entry, &mut found).unwrap());
        counts.push(matcher.finish(&mut found));
    }
    assert_eq!(counts[0], counts[1]);
    let edge = |edge: &Edge<u32>| (edge.src.frame, edge.dst.frame, edge.policy, edge.certainty);
    let edges = found.edges.iter().map(edge).collect();
    let unmatched = found
        .unmatched
        .iter()
        .map(|unmatched| (unmatched.frame, unmatched.side, unmatched.reason))
        .collect();
    SortedMatches { edges, unmatched, counts: counts[0] }.sorted()
}

/// Whether `a` was before `b`, or may have been.
fn before(a: &Entry<u32>, b: &Entry<u32>) -> Option<Certainty> {
    match (a.thread == b.thread, a.seqno < b.seqno) {
        (true, false) => None,
        (true, true) => Some(Certainty::Certain),
        (false, _) => match time(a, b) {
            (1.., _) => Some(Certainty::Certain),
            (_, 0..) => Some(Certainty::Possible),
            _ => None,
        },
    }
}

/// The shortest and the longest possible time from `a` to `b`.
fn time(a: &Entry<u32>, b: &Entry<u32>) -> (i64, i64) {
    if a.clock == b.clock { (b.ts - a.ts, b.ts - a.ts) } else { (b.lo - a.hi, b.hi - a.lo) }
}

fn unknown_order(a: &Entry<u32>, b: &Entry<u32>) -> bool {
    before(a, b) == Some(Certainty::Possible) && before(b, a) == Some(Certainty::Possible)
}

/// The causes of an in that a rule allows.
fn causes<'a>(
    rule: &Rule,
    b: &Entry<u32>,
    outs: &[&'a Entry<u32>],
) -> Vec<(&'a Entry<u32>, Certainty)> {
    let within = rule.within.unwrap_or(i64::MAX);
    let outs = outs.iter().filter(|a| time(a, b).0 <= within);
    let sure = |a: &Entry<u32>, certainty| {
        if time(a, b).1 > within { Certainty::Possible } else { certainty }
    };
    outs.filter_map(|a| Some((*a, sure(a, before(a, b)?)))).collect()
}

/// Decides every pair by the definition.
fn by_definition(
    rules: &[Rule],
    free: bool,
    (gaps, begins): (&[SeqGap], Begins),
    entries: &[Entry<u32>],
) -> SortedMatches {
    let all: Vec<&Entry<u32>> = entries.iter().collect();
    let of = |point: u32, side: Side| -> Vec<&Entry<u32>> {
        all.iter().copied().filter(|entry| entry.point == point && entry.side == side).collect()
    };
    let mut edges = Vec::new();
    let mut impossible = 0;
    for rule in rules {
        let (outs, ins) = (of(rule.from, Side::Out), of(rule.to, Side::In));
        let pairs = outs.iter().flat_map(|a| ins.iter().map(move |b| (a, b)));
        impossible += pairs.filter(|(a, b)| (a.stated || !free) && b.hi < a.lo).count() as u64;
        let begins = [rule.from, rule.to].map(|point| begins[point as usize]);
        let mut queue = Fifo { begins, ..Fifo::default() };
        for b in &ins {
            let found = match rule.policy {
                Policy::All => causes(rule, b, &outs),
                Policy::Nearest => {
                    let causes = causes(rule, b, &outs);
                    let nearest = causes.iter().max_by_key(|(a, _)| (a.ts, a.thread, a.seqno));
                    let doubt = |a: &Entry<u32>| {
                        causes.iter().any(|(entry, _)| unknown_order(a, entry))
                            || missing(gaps, rule.from, a.lo, b.hi)
                    };
                    let doubt =
                        |a, certainty| if doubt(a) { Certainty::Possible } else { certainty };
                    nearest.iter().map(|&&(a, certainty)| (a, doubt(a, certainty))).collect()
                }
                Policy::Fifo => {
                    // What has come by now, in its order.
                    let come = outs.iter().filter(|a| a.lo <= b.hi).copied().collect::<Vec<_>>();
                    let first = queue.first(rule, gaps, b, &come);
                    let others = |a| come.iter().any(|entry| unknown_order(a, entry));
                    let doubt = |a| {
                        others(a)
                            || ins.iter().any(|entry| unknown_order(b, entry))
                            || queue.shifted
                    };
                    let doubt =
                        |a, certainty| if doubt(a) { Certainty::Possible } else { certainty };
                    first.iter().map(|&(a, certainty)| (a, doubt(a, certainty))).collect()
                }
            };
            edges.extend(
                found.iter().map(|(a, certainty)| (a.frame, b.frame, rule.policy, *certainty)),
            );
        }
    }
    let unmatched = |entry: &&&Entry<u32>| match entry.side {
        Side::In => !edges.iter().any(|edge| edge.1 == entry.frame),
        Side::Out => entry.stated && !edges.iter().any(|edge| edge.0 == entry.frame),
    };
    let reason = |entry: &Entry<u32>| {
        let lost = rules.iter().any(|rule| {
            let within = rule.within.unwrap_or(1 << 40);
            match entry.side {
                Side::In => {
                    rule.to == entry.point && missing(gaps, rule.from, entry.lo - within, entry.hi)
                }
                Side::Out => {
                    rule.from == entry.point && missing(gaps, rule.to, entry.lo, entry.hi + within)
                }
            }
        });
        if lost { UnmatchedReason::Loss } else { UnmatchedReason::None }
    };
    let unmatched: Vec<_> = all
        .iter()
        .filter(unmatched)
        .map(|entry| (entry.frame, entry.side, reason(entry)))
        .collect();
    let side = |side| all.iter().filter(|entry| entry.side == side).count() as u64;
    let sure = |sure| edges.iter().filter(|edge| edge.3 == sure).count() as u64;
    let alone = |side| unmatched.iter().filter(|entry| entry.1 == side).count() as u64;
    let counts = MatchCounts {
        ins: side(Side::In),
        outs: side(Side::Out),
        certain: sure(Certainty::Certain),
        possible: sure(Certainty::Possible),
        impossible,
        unmatched_ins: alone(Side::In),
        unmatched_outs: alone(Side::Out),
        lost: unmatched.iter().filter(|entry| entry.2 == UnmatchedReason::Loss).count() as u64,
    };
    SortedMatches { edges, unmatched, counts }.sorted()
}

#[derive(Default)]
struct Fifo {
    /// Frames of outs that have left the queue.
    gone: Vec<u32>,
    shifted: bool,
    /// The times from which outs and ins were recorded.
    begins: [Option<i64>; 2],
}

impl Fifo {
    fn first<'a>(
        &mut self,
        rule: &Rule,
        gaps: &[SeqGap],
        b: &Entry<u32>,
        come: &[&'a Entry<u32>],
    ) -> Option<(&'a Entry<u32>, Certainty)> {
        // The last out before which the queue was known to be empty.
        let known = |index: usize| {
            let start = come[index].lo - rule.within?;
            let quiet = come[..index].iter().all(|entry| entry.hi < start)
                && self.begins[0].is_none_or(|begin| begin < start);
            (quiet && !missing(gaps, rule.from, start, come[index].lo)).then_some(index)
        };
        let known = (0..come.len()).rev().find_map(known);
        let since = known.map_or(-(1 << 40), |index| come[index].lo);
        self.shifted = missing(gaps, rule.from, since, b.hi)
            || missing(gaps, rule.to, since, b.hi)
            || self.begins.into_iter().flatten().any(|begin| since <= begin);
        let queue: Vec<_> = come[known.unwrap_or(0)..]
            .iter()
            .filter(|entry| !self.gone.contains(&entry.frame))
            .collect();
        let old = |a: &&&&Entry<u32>| rule.within.is_some_and(|within| time(a, b).0 > within);
        let stale = queue.iter().take_while(old).map(|entry| entry.frame);
        self.gone.extend(stale);
        let first = queue.iter().find(|entry| !self.gone.contains(&entry.frame))?;
        let cause = causes(rule, b, &[first]).pop()?;
        self.gone.push(first.frame);
        Some(cause)
    }
}

/// A frame: thread, point, sides (0: in, 1: out, 2: in with an implied out, 3: both), time since the previous
/// one, and how far its bounds lie below and above.
type MadePoint = (u64, u32, u8, i64, i64, i64);

/// Entries of frames, whose times never decrease on a clock.
fn entries(made: &[MadePoint]) -> Vec<Entry<u32>> {
    let mut now = [(0, 0, 0); 8];
    let mut entries = Vec::new();
    for (frame, &(thread, point, sides, later, below, above)) in made.iter().enumerate() {
        // The first two threads share a clock.
        let clock = thread.max(1) as u32;
        let (lo, ts, hi) = &mut now[clock as usize];
        let new = *ts + later;
        (*lo, *ts, *hi) = ((*lo).max(new - below), new, (*hi).max(new + above));
        let (lo, ts, hi) = now[clock as usize];
        let (frame, seqno) = (frame as u32, frame as u64);
        let entry =
            |side, stated| Entry { point, side, stated, lo, ts, hi, clock, thread, seqno, frame };
        if sides != 1 {
            entries.push(entry(Side::In, true));
        }
        if sides != 0 {
            entries.push(entry(Side::Out, sides != 2));
        }
    }
    entries.sort_by_key(Entry::order);
    entries
}

/// Threads, points, and times that often meet. Bounds stay within `WIDTH`.
fn frames(wide: bool) -> impl Strategy<Value = Vec<MadePoint>> {
    let bound = if wide { 0..3i64 } else { 0..1 };
    let frame = (0..4u64, 0..POINTS, 0..4u8, 0..4i64, bound.clone(), bound);
    prop::collection::vec(frame, 0..60)
}

fn rules(policies: &'static [Policy]) -> impl Strategy<Value = Vec<Rule>> {
    let within = prop::option::of(0..12i64);
    let rule = (0..POINTS, 0..POINTS, within, prop::sample::select(policies));
    let rule = rule.prop_map(|(from, to, within, policy)| Rule { from, to, within, policy });
    prop::collection::vec(rule, 1..5).prop_map(|mut rules| {
        rules.sort_by_key(|rule| (rule.from, rule.to));
        rules.dedup_by_key(|rule| (rule.from, rule.to));
        rules
    })
}

fn gaps() -> impl Strategy<Value = Vec<SeqGap>> {
    let gap =
        (0..POINTS, 0..60i64, 0..6i64).prop_map(|(point, from, long)| (point, from, from + long));
    prop::collection::vec(gap, 0..4)
}

fn begins() -> impl Strategy<Value = Begins> {
    prop::array::uniform4(prop::option::of(0..60i64))
}

fn agree(
    named: &[Rule],
    gaps: &[SeqGap],
    begins: Begins,
    made: &[MadePoint],
) -> Result<(), TestCaseError> {
    let entries = entries(made);
    let points: Vec<u32> = (0..POINTS).collect();
    let rules = Rules::new(&points, named).unwrap();
    let any = |from| (0..POINTS).map(move |to| (from, to));
    let free = (0..POINTS).flat_map(any).map(|(from, to)| Rule {
        from,
        to,
        within: None,
        policy: Policy::All,
    });
    let free: Vec<Rule> = free.collect();
    let meant = if named.is_empty() { &free } else { named };
    prop_assert_eq!(
        streamed(&rules, gaps, begins, &entries),
        by_definition(meant, named.is_empty(), (gaps, begins), &entries)
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn free(made in frames(true), gaps in gaps()) {
        agree(&[], &gaps, FROM_START, &made)?;
    }

    #[test]
    fn all(made in frames(true), rules in rules(&[Policy::All]), gaps in gaps()) {
        agree(&rules, &gaps, FROM_START, &made)?;
    }

    #[test]
    fn nearest(made in frames(true), rules in rules(&[Policy::Nearest]), gaps in gaps()) {
        agree(&rules, &gaps, FROM_START, &made)?;
    }

    #[test]
    fn fifo(
        made in frames(true),
        rules in rules(&[Policy::Fifo]),
        gaps in gaps(),
        begins in begins(),
    ) {
        agree(&rules, &gaps, begins, &made)?;
    }

    #[test]
    fn exact_times(
        made in frames(false),
        rules in rules(&[Policy::All, Policy::Nearest, Policy::Fifo]),
    ) {
        agree(&rules, &[], FROM_START, &made)?;
    }

    #[test]
    fn everything(
        made in frames(true),
        rules in rules(&[Policy::All, Policy::Nearest, Policy::Fifo]),
        gaps in gaps(),
        begins in begins(),
    ) {
        agree(&rules, &gaps, begins, &made)?;
    }
}

/// Entries with extreme times, decreasing sequence numbers, and bounds in any order.
fn garbage() -> impl Strategy<Value = Vec<Entry<u32>>> {
    let time = prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -3..3i64];
    let sides = prop::sample::select(vec![Side::Out, Side::In]);
    let entry = (0..POINTS, sides, any::<bool>(), [time.clone(), time.clone(), time], 0..3u64);
    let entry =
        (entry, 0..9u64).prop_map(|((point, side, stated, [lo, ts, hi], thread), seqno)| Entry {
            point,
            side,
            stated,
            lo,
            ts,
            hi,
            clock: thread as u32 / 2,
            thread,
            seqno,
            frame: 0,
        });
    prop::collection::vec(entry, 0..40)
}

proptest! {
    #[test]
    fn nothing_panics(
        mut entries in garbage(),
        rules in rules(&[Policy::All, Policy::Nearest, Policy::Fifo]),
        free in any::<bool>(),
        width in prop_oneof![Just(0), Just(i64::MAX)],
        sorted in any::<bool>(),
    ) {
        if sorted {
            entries.sort_by_key(Entry::order);
        }
        let points: Vec<u32> = (0..POINTS).collect();
        let rules = Arc::new(Rules::new(&points, if free { &[] } else { &rules }).unwrap());
        let limits = KeyLimits { pairs: u64::MAX, kept: usize::MAX, width };
        let mut matcher = Matcher::new(rules, limits, |_, _, _| false);
        let mut found = Matches::default();
        let taken = entries.iter().filter(|entry| matcher.take(**entry, &mut found).is_ok()).count();
        let counts = matcher.finish(&mut found);
        prop_assert!(counts.ins + counts.outs <= taken as u64);
        prop_assert_eq!(counts.certain + counts.possible, found.edges.len() as u64);
        for edge in &found.edges {
        std::hint::black_box((edge.latency_lo(), edge.latency(), edge.latency_hi()));
        }
    }
}

/// An out of thread 1, or an in of thread 2.
fn at(time: i64, side: Side, frame: u32) -> Entry<u32> {
    let (point, thread) = if side == Side::Out { (0, 1) } else { (1, 2) };
    let (lo, ts, hi, seqno) = (time, time, time, time as u64);
    Entry { point, side, stated: true, lo, ts, hi, clock: thread as u32, thread, seqno, frame }
}

/// The largest number of outs in memory: the smallest limit that is not exceeded.
fn needed(rule: &Rule, entries: &[Entry<u32>]) -> usize {
    let rules = Arc::new(Rules::new(&[0, 1], &[*rule]).unwrap());
    let enough = |kept: usize| {
        let limits = KeyLimits { pairs: u64::MAX, kept, width: 0 };
        let mut matcher = Matcher::new(rules.clone(), limits, |_, _, _| false);
        let mut found = Matches::default();
        // Two keys at the same times.
        (0..2).all(|_| {
            let taken = entries.iter().all(|&entry| matcher.take(entry, &mut found).is_ok());
            matcher.finish(&mut found);
            taken
        })
    };
    (0..=1000).collect::<Vec<_>>().partition_point(|&kept| !enough(kept))
}

#[test]
fn memory_is_what_may_still_cause_something() {
    let pair = |number: i64| [at(number * 10, Side::Out, 0), at(number * 10 + 5, Side::In, 1)];
    let pairs: Vec<_> = (0..1000).flat_map(pair).collect();
    let outs: Vec<_> = (0..1000).map(|number| at(number, Side::Out, 0)).collect();
    let rule = |policy, within| Rule { from: 0, to: 1, within, policy };
    assert_eq!(needed(&rule(Policy::All, None), &pairs), 1000);
    assert_eq!(needed(&rule(Policy::All, Some(100)), &pairs), 11);
    assert_eq!(needed(&rule(Policy::Nearest, None), &pairs), 2);
    assert_eq!(needed(&rule(Policy::Nearest, None), &outs), 2);
    assert_eq!(needed(&rule(Policy::Fifo, None), &pairs), 1);
    assert_eq!(needed(&rule(Policy::Fifo, None), &outs), 1000);
    assert_eq!(needed(&rule(Policy::Fifo, Some(9)), &outs), 10);
}

#[test]
fn hot_keys_are_refused() {
    let rules = Rules::new(&[0, 1], &[]).unwrap();
    let limits = KeyLimits { pairs: 1000, kept: 1000, width: 0 };
    let mut matcher = Matcher::new(Arc::new(rules), limits, |_, _, _| false);
    let mut found = Matches::default();
    let entries = (0..).flat_map(|number| [at(number, Side::Out, 0), at(number, Side::In, 1)]);
    let refused =
        entries.map(|entry| matcher.take(entry, &mut found)).find(|result| result.is_err());
    // 1 + 2 + … + 44 = 990
    assert_eq!(refused, Some(Err(KeyRefusal::Hot { outs: 45, ins: 45 })));
    assert_eq!(found.edges.len(), 1000);
    let wide = Entry { hi: 100, ..at(99, Side::Out, 0) };
    assert_eq!(matcher.take(wide, &mut found), Err(KeyRefusal::Wide { width: 1, limit: 0 }));
}

#[test]
fn what_has_no_time_is_as_good_as_lost() {
    let rules = Rules::new(&[0, 1], &[]).unwrap();
    let limits = KeyLimits { pairs: 10, kept: 10, width: 0 };
    let mut matcher = Matcher::new(Arc::new(rules), limits, |_, _, _| false);
    let mut found = Matches::default();
    matcher.take_untimed(0, Side::Out, 7, &mut found);
    matcher.take(at(3, Side::In, 8), &mut found).unwrap();
    // Repeated, like the entry of a frame that has the value in two fields.
    matcher.take(at(3, Side::In, 8), &mut found).unwrap();
    matcher.take(at(4, Side::Out, 9), &mut found).unwrap();
    let counts = matcher.finish(&mut found);
    let unmatched: Vec<_> = found
        .unmatched
        .iter()
        .map(|unmatched| (unmatched.frame, unmatched.side, unmatched.reason))
        .collect();
    let (lost, none) = (UnmatchedReason::Loss, UnmatchedReason::None);
    assert_eq!(unmatched, [(7, Side::Out, lost), (8, Side::In, lost), (9, Side::Out, none)]);
    assert_eq!((counts.ins, counts.outs, counts.lost, counts.impossible), (1, 2, 2, 1));
    matcher.take(at(3, Side::In, 8), &mut found).unwrap();
    assert_eq!(found.unmatched.last().map(|entry| entry.reason), Some(none), "another key");
}

#[test]
fn rules_that_differ_are_a_conflict() {
    let rule = |within| Rule { from: 0, to: 1, within, policy: Policy::All };
    assert!(Rules::new(&[0, 1], &[rule(None), rule(None)]).is_ok());
    let conflict = Rules::new(&[0, 1], &[rule(Some(1)), rule(None)]).unwrap_err();
    assert_eq!(conflict.to_string(), "two different rules for points 0 and 1");
}
