//! The states of a thread, cut to an interval: parts that add up to it.

use std::collections::BTreeMap;

/// The state of a thread in a part of an interval.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TimeUse {
    /// The thread had a CPU.
    Running,
    /// The thread lost its CPU to another one, or gave way to it.
    Preempted {
        /// The thread that got the CPU, of this or another process. 0: none, the CPU was idle.
        by: Option<i32>,
        /// The name of that thread.
        name: Option<String>,
    },
    /// The thread was woken, and had no CPU yet.
    WokenLate(WokenBy),
    /// The thread waited.
    Blocked {
        /// The system call.
        call: Option<String>,
        /// The waker that ended the wait.
        by: WokenBy,
    },
    /// The thread waited for a page.
    Faulting(WokenBy),
    /// Unknown.
    Unknown,
}

/// The waker of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WokenBy {
    /// `THREAD`, `PROCESS` or `INTERRUPT`.
    pub kind: Option<String>,
    /// The thread, if it is one of the program.
    pub thread: Option<i32>,
    /// The last name of that thread, if it is known.
    pub name: Option<String>,
}

impl TimeUse {
    /// The waker of the thread, if it had to be woken.
    pub fn woken(&self) -> Option<&WokenBy> {
        match self {
            TimeUse::Blocked { by, .. } | TimeUse::Faulting(by) | TimeUse::WokenLate(by) => {
                Some(by)
            }
            TimeUse::Running | TimeUse::Preempted { .. } | TimeUse::Unknown => None,
        }
    }

    /// Whether it is a wait, which ends when something wakes the thread.
    pub fn is_wait(&self) -> bool {
        matches!(self, TimeUse::Blocked { .. } | TimeUse::Faulting(_))
    }
}

/// The time that a part of an interval took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// ns.
    pub ns: i64,
    /// The number of pieces.
    pub times: u64,
    /// The longest piece (the first of them, if several are as long): from and to, ns since the epoch.
    pub longest: (i64, i64),
}

/// The parts of a thread's time in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// Parts that add up to that time, the largest first.
    pub parts: Vec<(TimeUse, Spent)>,
    /// The times at which the thread ran: from and to, ns since the epoch, in order.
    pub running: Vec<(i64, i64)>,
}

/// Cuts an interval into parts. The states of its thread must be added in the order of their beginning.
#[derive(Debug)]
pub(super) struct TimeCutter {
    to: i64,
    /// Everything before is accounted for.
    at: i64,
    spent: BTreeMap<TimeUse, Spent>,
    running: Vec<(i64, i64)>,
}

impl TimeCutter {
    /// An interval from the first time to the second one.
    pub fn new(from: i64, to: i64) -> TimeCutter {
        TimeCutter { to, at: from, spent: BTreeMap::new(), running: Vec::new() }
    }

    /// The thread was in a state, from the first time to the second one. Where states overlap, the
    /// first one counts.
    pub fn add_state(&mut self, from: i64, to: i64, part: &TimeUse) {
        let (from, to) = (from.max(self.at), to.min(self.to));
        // Another session may know a part that one session does not.
        if from >= to || *part == TimeUse::Unknown {
            return;
        }
        self.spend(from, TimeUse::Unknown);
        self.spend(to, part.clone());
    }

    fn spend(&mut self, to: i64, part: TimeUse) {
        let piece = (self.at, to);
        let ns = to - self.at;
        if ns <= 0 {
            return;
        }
        self.at = to;
        if part == TimeUse::Running {
            match self.running.last_mut().filter(|before| before.1 == piece.0) {
                Some(before) => before.1 = to,
                None => self.running.push(piece),
            }
        }
        let spent = self.spent.entry(part).or_insert(Spent { ns: 0, times: 0, longest: piece });
        spent.ns += ns;
        spent.times += 1;
        if ns > spent.longest.1 - spent.longest.0 {
            spent.longest = piece;
        }
    }

    /// No more states.
    pub fn finish(mut self) -> ThreadTime {
        self.spend(self.to, TimeUse::Unknown);
        let mut parts: Vec<_> = self.spent.into_iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.1.ns));
        ThreadTime { parts, running: self.running }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(kind: u8) -> TimeUse {
        let by = |thread| WokenBy { kind: Some("THREAD".into()), thread: Some(thread), name: None };
        match kind {
            0 => TimeUse::Running,
            1 => TimeUse::Preempted { by: Some(7), name: None },
            2 => TimeUse::Blocked { call: Some("read".into()), by: by(1) },
            3 => TimeUse::Blocked { call: Some("read".into()), by: by(2) },
            4 => TimeUse::WokenLate(by(1)),
            5 => TimeUse::Faulting(WokenBy::default()),
            _ => TimeUse::Unknown,
        }
    }

    proptest! {
        /// The parts add up to the length, and each ns is counted in the part of its state.
        #[test]
        fn parts_add_up_to_the_interval(
            mut states in proptest::collection::vec((0i64..60, 0i64..20, 0u8..7), 0..20),
            from in 0i64..60,
            length in 0i64..40,
        ) {
            states.sort();
            let to = from + length;
            let mut cut = TimeCutter::new(from, to);
            for (begin, length, kind) in &states {
                cut.add_state(*begin, begin + length, &part(*kind));
            }
            let ThreadTime { parts, running } = cut.finish();
            prop_assert_eq!(parts.iter().map(|part| part.1.ns).sum::<i64>(), length);
            let at = |ns: i64| {
                let has_ns = |state: &&(i64, i64, u8)| state.0 <= ns && ns < state.0 + state.1 && state.2 < 6;
                states.iter().find(has_ns).map_or(TimeUse::Unknown, |state| part(state.2))
            };
            let mut expected: BTreeMap<TimeUse, i64> = BTreeMap::new();
            (from..to).for_each(|ns| *expected.entry(at(ns)).or_default() += 1);
            let found: BTreeMap<TimeUse, i64> = parts.iter().map(|part| (part.0.clone(), part.1.ns)).collect();
            prop_assert_eq!(found, expected);
            for (part, spent) in &parts {
                let (begin, end) = spent.longest;
                prop_assert!(begin >= from && end <= to && end - begin <= spent.ns && begin < end);
                prop_assert!((begin..end).all(|ns| at(ns) == *part));
            }
            prop_assert!(parts.is_sorted_by_key(|part| -part.1.ns));
            let ran = (from..to).filter(|&ns| at(ns) == TimeUse::Running);
            let pieces = running.iter().flat_map(|&(begin, end)| begin..end);
            prop_assert!(pieces.eq(ran), "{:?}", running);
        }
    }

    #[test]
    fn time_without_states_is_unknown() {
        let mut cut = TimeCutter::new(10, 100);
        cut.add_state(0, 20, &TimeUse::Running);
        cut.add_state(30, 40, &TimeUse::Running);
        cut.add_state(35, 50, &part(2));
        cut.add_state(90, 200, &TimeUse::Unknown);
        let parts = cut.finish().parts;
        let brief: Vec<_> = parts.iter().map(|part| (&part.0, part.1.ns, part.1.times)).collect();
        assert_eq!(
            brief,
            [(&TimeUse::Unknown, 60, 2), (&TimeUse::Running, 20, 2), (&part(2), 10, 1)]
        );
        assert_eq!(parts[0].1.longest, (50, 100));
        assert_eq!(TimeCutter::new(5, 5).finish(), ThreadTime::default());
    }
}
