//! When windows begin and end: triggers become stretches of time, and stretches that overlap are one.
//!
//! Knows no frames and reads no clock.

use std::time::Duration;

use ppt_capture::Stretch;

/// Triggers that a window lists; it counts the others.
pub(crate) const LISTED: usize = 1000;

/// Windows that may be open at once: further ones are ignored.
pub(crate) const OPEN: usize = 1000;

/// How much time belongs to a trigger.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reach {
    before_ns: u64,
    after_ns: u64,
    /// After a trigger, others are ignored for so long.
    cooldown_ns: u64,
}

impl Reach {
    pub fn new(before: Duration, after: Duration, cooldown: Duration) -> Self {
        let [before_ns, after_ns, cooldown_ns] =
            [before, after, cooldown].map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        Self { before_ns, after_ns, cooldown_ns }
    }

    fn around(self, at: u64) -> Stretch {
        Stretch {
            from_ns: at.saturating_sub(self.before_ns),
            to_ns: at.saturating_add(self.after_ns),
        }
    }
}

/// A window that is not over yet, or not known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending<T> {
    pub wanted: Stretch,
    /// The time of its earliest trigger.
    pub first: u64,
    /// Its triggers, with their times, in the order in which they came.
    pub triggers: Vec<(u64, T)>,
    /// Further ones, which are not listed.
    pub more: u64,
}

impl<T> Pending<T> {
    fn overlaps(&self, other: Stretch) -> bool {
        self.wanted.from_ns <= other.to_ns && other.from_ns <= self.wanted.to_ns
    }

    fn join(&mut self, other: Self) {
        self.wanted.from_ns = self.wanted.from_ns.min(other.wanted.from_ns);
        self.wanted.to_ns = self.wanted.to_ns.max(other.wanted.to_ns);
        self.first = self.first.min(other.first);
        let room = LISTED.saturating_sub(self.triggers.len());
        let come = other.triggers.len() as u64;
        self.triggers.extend(other.triggers.into_iter().take(room));
        self.more += other.more + come.saturating_sub(room as u64);
    }
}

/// The windows that are not over yet. No two of them overlap.
#[derive(Debug)]
pub(crate) struct Windows<T> {
    reach: Reach,
    pending: Vec<Pending<T>>,
    /// Triggers before this moment are ignored.
    quiet_until: u64,
}

impl<T> Windows<T> {
    pub fn new(reach: Reach) -> Self {
        Self { reach, pending: Vec::new(), quiet_until: 0 }
    }

    /// Takes a trigger at `at`. It is ignored within the cooldown of another, if it `can_wait`; returns
    /// whether it counts.
    pub fn trigger(&mut self, at: u64, can_wait: bool, trigger: T) -> bool {
        let cooldown = self.reach.cooldown_ns;
        if can_wait && cooldown > 0 && at < self.quiet_until {
            return false;
        }
        let wanted = self.reach.around(at);
        if self.pending.len() >= OPEN && !self.pending.iter().any(|it| it.overlaps(wanted)) {
            return false;
        }
        self.quiet_until = self.quiet_until.max(at.saturating_add(cooldown));
        let mut joined = Pending { wanted, first: at, triggers: vec![(at, trigger)], more: 0 };
        // Those that it brings together are in their order; it came last.
        let overlapping = self.pending.extract_if(.., |it| it.overlaps(wanted));
        if let Some(mut all) = overlapping.reduce(|mut all, it| {
            all.join(it);
            all
        }) {
            all.join(joined);
            joined = all;
        }
        let place = self.pending.partition_point(|it| it.wanted.from_ns < joined.wanted.from_ns);
        self.pending.insert(place, joined);
        true
    }

    /// Takes out the windows that are over: everything up to `upto` is known.
    pub fn over(&mut self, upto: u64) -> Vec<Pending<T>> {
        self.pending.extract_if(.., |it| it.wanted.to_ns <= upto).collect()
    }

    /// Takes out the windows with a trigger that is not after `at`.
    pub fn triggered_by(&mut self, at: u64) -> Vec<Pending<T>> {
        self.pending.extract_if(.., |it| it.first <= at).collect()
    }

    /// The beginning of the earliest window.
    pub fn begin(&self) -> Option<u64> {
        self.pending.first().map(|it| it.wanted.from_ns)
    }

    /// Whether no window is open.
    pub fn are_none(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn reach(before: u64, after: u64, cooldown: u64) -> Reach {
        Reach { before_ns: before, after_ns: after, cooldown_ns: cooldown }
    }

    /// What happens to a recorder, in order.
    #[derive(Debug, Clone)]
    enum Step {
        /// So long after the one before; negative: it comes late.
        Trigger {
            after: i64,
            can_wait: bool,
        },
        Upto {
            after: u64,
        },
    }

    /// The same by another way: each moment of a small time line is in a window, or is not.
    #[derive(Default)]
    struct Moments {
        /// Triggers that count and are not in a window that is over, with the number of their step.
        open: Vec<(u64, usize)>,
        last: Option<u64>,
    }

    impl Moments {
        fn windows(&self, reach: Reach) -> Vec<(u64, u64, Vec<usize>)> {
            const END: u64 = 3000;
            let covers = |at: u64, moment: u64| {
                let it = reach.around(at);
                it.from_ns <= moment && moment <= it.to_ns
            };
            let mut windows: Vec<(u64, u64, Vec<usize>)> = Vec::new();
            // Stretches that overlap share a moment; those that merely follow each other do not.
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for one in 0..self.open.len() {
                let touches = |group: &Vec<usize>| {
                    group.iter().any(|&other| {
                        (0..END).any(|it| {
                            covers(self.open[one].0, it) && covers(self.open[other].0, it)
                        })
                    })
                };
                let (mut together, apart): (Vec<_>, Vec<_>) =
                    groups.into_iter().partition(|group| touches(group));
                together.push(vec![one]);
                groups = apart;
                groups.push(together.concat());
            }
            for group in groups {
                let inside = |moment| group.iter().any(|&it| covers(self.open[it].0, moment));
                let all: Vec<u64> = (0..END).filter(|&it| inside(it)).collect();
                let mut steps: Vec<usize> = group.iter().map(|&it| self.open[it].1).collect();
                steps.sort_unstable();
                windows.push((all[0], all[all.len() - 1], steps));
            }
            windows.sort_unstable();
            windows
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let trigger = (-20i64..60, prop::bool::weighted(0.8))
            .prop_map(|(after, can_wait)| Step::Trigger { after, can_wait });
        let upto = (0u64..60).prop_map(|after| Step::Upto { after });
        prop::collection::vec(prop_oneof![3 => trigger, 2 => upto], 0..25)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn windows_are_the_unions_of_what_triggers_ask_for(
            steps in steps(), before in 0u64..40, after in 0u64..40,
            cooldown in prop_oneof![2 => Just(0u64), 1 => 1u64..50],
        ) {
            let reach = reach(before, after, cooldown);
            let mut windows = Windows::new(reach);
            let mut model = Moments::default();
            let (mut now, mut upto) = (100u64, 0u64);
            let plain = |it: &Pending<usize>| {
                let mut steps: Vec<usize> = it.triggers.iter().map(|&(_, step)| step).collect();
                steps.sort_unstable();
                (it.wanted.from_ns, it.wanted.to_ns, steps)
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Trigger { after, can_wait } => {
                        now = now.saturating_add_signed(after);
                        let cool = cooldown > 0
                            && model.last.is_some_and(|last| now < last + cooldown);
                        let counts = !(can_wait && cool);
                        prop_assert_eq!(windows.trigger(now, can_wait, number), counts);
                        if counts {
                            model.open.push((now, number));
                            model.last = model.last.max(Some(now));
                        }
                    }
                    Step::Upto { after } => {
                        upto += after;
                        let is_over: Vec<_> =
                            model.windows(reach).into_iter().filter(|it| it.1 <= upto).collect();
                        let over: Vec<_> = windows.over(upto).iter().map(plain).collect();
                        prop_assert_eq!(&over, &is_over);
                        model.open.retain(|it| !is_over.iter().any(|one| one.2.contains(&it.1)));
                    }
                }
                let open: Vec<_> = windows.pending.iter().map(plain).collect();
                prop_assert_eq!(&open, &model.windows(reach));
                prop_assert_eq!(windows.begin(), open.first().map(|it| it.0));
                prop_assert_eq!(windows.are_none(), open.is_empty());
            }
        }
    }

    #[test]
    fn a_window_lists_so_many_triggers_and_counts_the_others() {
        let mut windows = Windows::new(reach(10, 10, 0));
        for at in 0..LISTED as u64 + 7 {
            assert!(windows.trigger(1000 + at / 100, true, at));
        }
        let over = windows.over(u64::MAX);
        assert_eq!((over.len(), over[0].triggers.len(), over[0].more), (1, LISTED, 7));
        assert_eq!(over[0].triggers[LISTED - 1].1, LISTED as u64 - 1, "the first ones");
    }

    #[test]
    fn so_many_windows_are_open_at_once() {
        let mut windows = Windows::new(reach(1, 1, 0));
        let counts = (0..OPEN as u64 + 9).filter(|at| windows.trigger(10 * at, true, ())).count();
        assert_eq!(counts, OPEN);
        assert!(windows.trigger(11, true, ()), "it joins one");
        assert_eq!(windows.over(u64::MAX).len(), OPEN);
        assert!(windows.trigger(0, true, ()));
    }

    #[test]
    fn the_end_of_time_is_no_end() {
        let forever = Duration::MAX;
        let mut windows = Windows::new(Reach::new(forever, forever, forever));
        assert!(windows.trigger(5, true, ()));
        assert!(!windows.trigger(u64::MAX - 1, true, ()) && windows.trigger(7, false, ()));
        assert!(windows.over(u64::MAX - 1).is_empty());
        assert_eq!(windows.triggered_by(4).len(), 0);
        let all = windows.triggered_by(5);
        assert_eq!(all[0].wanted, Stretch { from_ns: 0, to_ns: u64::MAX });
    }
}
