//! Decides when windows begin and end. Triggers become intervals, and overlapping intervals are
//! merged.
//!
//! This module knows no frames and reads no clock.

use std::time::Duration;

use ppt_capture::Stretch;

/// Number of triggers that [can wait](Triggered::can_wait) that a window lists; it counts further
/// ones. A window has at most this many that cannot wait, and lists all of them.
pub(crate) const LISTED: usize = 1000;

/// Number of windows that may be open at once. A further trigger that can wait is ignored; one that
/// cannot wait joins the last window.
pub(crate) const OPEN: usize = 1000;

/// The limit on the time between the triggers of a window is at least this long.
const SHORTEST_NS: u64 = 1_000_000_000;

/// The interval that belongs to a trigger.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reach {
    before_ns: u64,
    after_ns: u64,
    /// Time after a trigger in which others are ignored.
    cooldown_ns: u64,
    /// Longest time between the first and the last trigger of a window; a later trigger begins
    /// another window. So a window ends even if triggers fire continuously.
    longest_ns: u64,
}

impl Reach {
    /// For a recorder that keeps `keep` of history.
    pub fn new(before: Duration, after: Duration, cooldown: Duration, keep: Duration) -> Self {
        let [before_ns, after_ns, cooldown_ns, keep_ns] = [before, after, cooldown, keep]
            .map(|duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        let longest_ns = keep_ns.max(after_ns).max(SHORTEST_NS);
        Self { before_ns, after_ns, cooldown_ns, longest_ns }
    }

    fn around(self, at: u64) -> Stretch {
        Stretch {
            from_ns: at.saturating_sub(self.before_ns),
            to_ns: at.saturating_add(self.after_ns),
        }
    }
}

/// The result of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TriggerOutcome {
    /// The trigger is in a window.
    Counts,
    /// The trigger came within the cooldown of another one.
    InCooldown,
    /// Too many windows are open.
    TooMany,
}

/// A trigger of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Triggered<T> {
    pub at: u64,
    /// Whether the trigger may be ignored, because many like it may fire and one is enough. A
    /// user's request cannot wait.
    pub can_wait: bool,
    pub by: T,
}

/// A window that may still change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending<T> {
    pub wanted: Stretch,
    /// The time of its earliest trigger.
    pub first: u64,
    /// The time of its latest trigger.
    last: u64,
    /// The triggers, in order of arrival.
    pub triggers: Vec<Triggered<T>>,
    /// The number of those that cannot wait.
    urgent: usize,
    /// The number of further triggers, which are not listed.
    pub more: u64,
}

impl<T> Pending<T> {
    fn new(wanted: Stretch, trigger: Triggered<T>) -> Self {
        let (first, urgent) = (trigger.at, usize::from(!trigger.can_wait));
        Self { wanted, first, last: first, triggers: vec![trigger], urgent, more: 0 }
    }

    /// The number of all triggers, including unlisted ones.
    pub fn count(&self) -> u64 {
        self.more.saturating_add(self.triggers.len() as u64)
    }

    /// Whether it contains a trigger that cannot wait.
    pub fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    fn overlaps(&self, other: Stretch) -> bool {
        self.wanted.from_ns <= other.to_ns && other.from_ns <= self.wanted.to_ns
    }

    fn join(&mut self, other: Self) {
        self.wanted.from_ns = self.wanted.from_ns.min(other.wanted.from_ns);
        self.wanted.to_ns = self.wanted.to_ns.max(other.wanted.to_ns);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.more = self.more.saturating_add(other.more);
        for trigger in other.triggers {
            let listed = self.triggers.len() - self.urgent;
            if trigger.can_wait && listed >= LISTED {
                self.more = self.more.saturating_add(1);
            } else {
                self.urgent += usize::from(!trigger.can_wait);
                self.triggers.push(trigger);
            }
        }
    }
}

/// The extent of a window: its first and its last trigger, and the number of triggers that cannot
/// wait.
#[derive(Debug, Clone, Copy)]
struct Extent {
    first: u64,
    last: u64,
    urgent: usize,
}

impl Extent {
    /// The union of both, if a window may have that extent.
    fn with<T>(self, other: &Pending<T>, longest_ns: u64) -> Option<Self> {
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        let urgent = self.urgent + other.urgent;
        (last - first <= longest_ns && urgent <= LISTED).then_some(Self { first, last, urgent })
    }
}

/// The open windows. Two of them overlap only if merging them would exceed the limit.
#[derive(Debug)]
pub(crate) struct Windows<T> {
    reach: Reach,
    pending: Vec<Pending<T>>,
    /// Triggers before this time are ignored.
    quiet_until: u64,
}

impl<T> Windows<T> {
    pub fn new(reach: Reach) -> Self {
        Self { reach, pending: Vec::new(), quiet_until: 0 }
    }

    /// Processes a trigger at `at`. Only one that `can_wait` may be ignored.
    pub fn trigger(&mut self, at: u64, can_wait: bool, by: T) -> TriggerOutcome {
        let Reach { cooldown_ns, longest_ns, .. } = self.reach;
        if can_wait && cooldown_ns > 0 && at < self.quiet_until {
            return TriggerOutcome::InCooldown;
        }
        let wanted = self.reach.around(at);
        let mut extent = Extent { first: at, last: at, urgent: usize::from(!can_wait) };
        let joins = |pending: &Pending<T>, extent: Extent| {
            pending.overlaps(wanted).then(|| extent.with(pending, longest_ns)).flatten()
        };
        let is_full = self.pending.len() >= OPEN
            && self.pending.iter().all(|pending| joins(pending, extent).is_none());
        if is_full && can_wait {
            return TriggerOutcome::TooMany;
        }
        self.quiet_until = self.quiet_until.max(at.saturating_add(cooldown_ns));
        let mut joined = Pending::new(wanted, Triggered { at, can_wait, by });
        // The merged windows are in order; this trigger arrived last.
        let overlapping = self.pending.extract_if(.., |pending| match joins(pending, extent) {
            Some(both) => {
                extent = both;
                true
            }
            None => false,
        });
        let merged = overlapping.reduce(|mut merged, pending| {
            merged.join(pending);
            merged
        });
        let last = if is_full { self.pending.pop() } else { None };
        if let Some(mut merged) = merged.or(last) {
            merged.join(joined);
            joined = merged;
        }
        let place =
            self.pending.partition_point(|pending| pending.wanted.from_ns < joined.wanted.from_ns);
        self.pending.insert(place, joined);
        TriggerOutcome::Counts
    }

    /// Removes and returns the windows that are over, given that everything up to `upto` has
    /// arrived.
    pub fn over(&mut self, upto: u64) -> Vec<Pending<T>> {
        self.pending.extract_if(.., |pending| pending.wanted.to_ns <= upto).collect()
    }

    /// Removes and returns the windows with a trigger at or before `at`.
    pub fn triggered_by(&mut self, at: u64) -> Vec<Pending<T>> {
        self.pending.extract_if(.., |pending| pending.first <= at).collect()
    }

    /// The start of the earliest window.
    pub fn begin(&self) -> Option<u64> {
        self.pending.first().map(|pending| pending.wanted.from_ns)
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
        Reach { before_ns: before, after_ns: after, cooldown_ns: cooldown, longest_ns: u64::MAX }
    }

    /// The events of a recorder, in order.
    #[derive(Debug, Clone)]
    enum WindowStep {
        /// Time after the previous trigger; negative: this one arrives late.
        Trigger {
            after: i64,
            can_wait: bool,
        },
        Upto {
            after: u64,
        },
    }

    /// Computes windows by another method: each moment of a short time line is in a window or not.
    #[derive(Default)]
    struct MomentModel {
        /// Triggers that count and are not in a finished window, with the number of their step.
        open: Vec<(u64, usize)>,
        last: Option<u64>,
    }

    impl MomentModel {
        fn windows(&self, reach: Reach) -> Vec<(u64, u64, Vec<usize>)> {
            const END: u64 = 3000;
            let covers = |at: u64, moment: u64| {
                let around = reach.around(at);
                around.from_ns <= moment && moment <= around.to_ns
            };
            let mut windows: Vec<(u64, u64, Vec<usize>)> = Vec::new();
            // Overlapping intervals share a moment; adjacent ones do not.
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for trigger in 0..self.open.len() {
                let touches = |group: &Vec<usize>| {
                    group.iter().any(|&other| {
                        (0..END).any(|number| {
                            covers(self.open[trigger].0, number)
                                && covers(self.open[other].0, number)
                        })
                    })
                };
                let (mut together, apart): (Vec<_>, Vec<_>) =
                    groups.into_iter().partition(|group| touches(group));
                together.push(vec![trigger]);
                groups = apart;
                groups.push(together.concat());
            }
            for group in groups {
                let inside = |moment| group.iter().any(|&index| covers(self.open[index].0, moment));
                let moments: Vec<u64> = (0..END).filter(|&moment| inside(moment)).collect();
                let mut steps: Vec<usize> = group.iter().map(|&index| self.open[index].1).collect();
                steps.sort_unstable();
                windows.push((moments[0], moments[moments.len() - 1], steps));
            }
            windows.sort_unstable();
            windows
        }
    }

    fn steps() -> impl Strategy<Value = Vec<WindowStep>> {
        let trigger = (-20i64..60, prop::bool::weighted(0.8))
            .prop_map(|(after, can_wait)| WindowStep::Trigger { after, can_wait });
        let upto = (0u64..60).prop_map(|after| WindowStep::Upto { after });
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
            let mut model = MomentModel::default();
            let (mut now, mut upto) = (100u64, 0u64);
            let plain = |window: &Pending<usize>| {
                let mut steps: Vec<usize> =
                    window.triggers.iter().map(|trigger| trigger.by).collect();
                steps.sort_unstable();
                (window.wanted.from_ns, window.wanted.to_ns, steps)
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    WindowStep::Trigger { after, can_wait } => {
                        now = now.saturating_add_signed(after);
                        let cool = cooldown > 0
                            && model.last.is_some_and(|last| now < last + cooldown);
                        let counts = !(can_wait && cool);
                        let taken = windows.trigger(now, can_wait, number);
                        let expected = if counts { TriggerOutcome::Counts } else { TriggerOutcome::InCooldown };
                        prop_assert_eq!(taken, expected);
                        if counts {
                            model.open.push((now, number));
                            model.last = model.last.max(Some(now));
                        }
                    }
                    WindowStep::Upto { after } => {
                        upto += after;
                        let is_over: Vec<_> = model
                            .windows(reach)
                            .into_iter()
                            .filter(|(_, to_ns, _)| *to_ns <= upto)
                            .collect();
                        let over: Vec<_> = windows.over(upto).iter().map(plain).collect();
                        prop_assert_eq!(&over, &is_over);
                        model.open.retain(|(_, trigger)| {
                            !is_over.iter().any(|(_, _, steps)| steps.contains(trigger))
                        });
                    }
                }
                let open: Vec<_> = windows.pending.iter().map(plain).collect();
                prop_assert_eq!(&open, &model.windows(reach));
                prop_assert_eq!(windows.begin(), open.first().map(|window| window.0));
                prop_assert_eq!(windows.are_none(), open.is_empty());
            }
        }
    }

    #[test]
    fn a_window_lists_some_triggers_and_counts_the_others() {
        let mut windows = Windows::new(reach(10, 10, 0));
        for at in 0..LISTED as u64 + 7 {
            assert_eq!(windows.trigger(1000 + at / 100, true, at), TriggerOutcome::Counts);
        }
        let over = windows.over(u64::MAX);
        assert_eq!((over.len(), over[0].triggers.len(), over[0].more), (1, LISTED, 7));
        assert_eq!(over[0].triggers[LISTED - 1].by, LISTED as u64 - 1, "the first ones");
        assert_eq!(over[0].count(), LISTED as u64 + 7);
    }

    #[test]
    fn triggers_that_cannot_wait_are_listed_in_any_storm() {
        let mut windows = Windows::new(reach(10, 10, 0));
        for at in 0..5 * LISTED as u64 {
            let can_wait = at % 1000 != 999;
            assert_eq!(windows.trigger(1000 + at / 1000, can_wait, at), TriggerOutcome::Counts);
        }
        let over = windows.over(u64::MAX);
        let urgent: Vec<u64> = over[0]
            .triggers
            .iter()
            .filter(|trigger| !trigger.can_wait)
            .map(|trigger| trigger.by)
            .collect();
        assert_eq!(urgent, [999, 1999, 2999, 3999, 4999]);
        assert_eq!((over.len(), over[0].count()), (1, 5 * LISTED as u64));

        // None of the many triggers is left out, and no window exceeds its limit.
        let many = 3 * LISTED as u64 + 1;
        (0..many).for_each(|at| assert_eq!(windows.trigger(50, false, at), TriggerOutcome::Counts));
        let over = windows.over(u64::MAX);
        assert_eq!(over.len(), 4);
        assert!(over.iter().all(|window| window.more == 0 && window.triggers.len() <= LISTED));
        assert_eq!(over.iter().map(Pending::count).sum::<u64>(), many);
    }

    #[test]
    fn a_storm_writes_windows() {
        let mut windows = Windows::new(Reach { longest_ns: 100, ..reach(30, 5, 0) });
        let mut over = Vec::new();
        for at in (1000..2000).step_by(2) {
            assert_eq!(windows.trigger(at, true, at), TriggerOutcome::Counts);
            over.extend(windows.over(at));
        }
        assert_eq!(over.len(), 9, "while it lasts");
        over.extend(windows.over(u64::MAX));
        let spans: Vec<_> =
            over.iter().map(|pending| (pending.wanted.from_ns, pending.wanted.to_ns)).collect();
        assert_eq!(spans[..2], [(970, 1105), (1072, 1207)], "each is whole in itself");
        assert_eq!(over.iter().map(Pending::count).sum::<u64>(), 500, "each is in one of them");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn each_trigger_is_in_one_window_which_is_over_in_time(
            steps in steps(), before in 0u64..40, after in 0u64..40, longest in 0u64..60,
        ) {
            let reach = Reach { longest_ns: longest, ..reach(before, after, 0) };
            let mut windows = Windows::new(reach);
            let (mut now, mut upto, mut counted, mut over) = (100u64, 0u64, Vec::new(), Vec::new());
            for step in steps {
                match step {
                    WindowStep::Trigger { after, can_wait } => {
                        now = now.saturating_add_signed(after);
                        prop_assert_eq!(windows.trigger(now, can_wait, now), TriggerOutcome::Counts);
                        counted.push(now);
                    }
                    WindowStep::Upto { after } => {
                        upto += after;
                        over.extend(windows.over(upto));
                        let late = |window: &&Pending<u64>| {
                            window.first + longest + reach.after_ns <= upto
                        };
                        prop_assert_eq!(windows.pending.iter().find(late), None);
                    }
                }
            }
            over.extend(windows.over(u64::MAX));
            for window in &over {
                let times: Vec<u64> = window.triggers.iter().map(|trigger| trigger.at).collect();
                let (first, last) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
                prop_assert!(last - first <= longest);
                let wanted =
                    Stretch { from_ns: reach.around(first).from_ns, to_ns: reach.around(last).to_ns };
                prop_assert_eq!((window.wanted, window.first), (wanted, first));
            }
            let triggers = over.iter().flat_map(|window| &window.triggers);
            let mut by: Vec<u64> = triggers.map(|trigger| trigger.by).collect();
            by.sort_unstable();
            counted.sort_unstable();
            prop_assert_eq!(by, counted);
        }
    }

    #[test]
    fn the_number_of_open_windows_is_limited() {
        let mut windows = Windows::new(reach(1, 1, 0));
        let mut outcomes = (0..OPEN as u64 + 9).map(|at| windows.trigger(10 * at, true, ()));
        assert!(outcomes.by_ref().take(OPEN).all(|outcome| outcome == TriggerOutcome::Counts));
        assert!(outcomes.all(|outcome| outcome == TriggerOutcome::TooMany));
        assert_eq!(windows.trigger(11, true, ()), TriggerOutcome::Counts, "it joins one");
        let late = 100 * OPEN as u64;
        assert_eq!(windows.trigger(late, false, ()), TriggerOutcome::Counts, "it cannot wait");
        let over = windows.over(u64::MAX);
        assert_eq!((over.len(), over[OPEN - 1].wanted.to_ns), (OPEN, late + 1));
        assert_eq!(windows.trigger(0, true, ()), TriggerOutcome::Counts);
    }

    #[test]
    fn the_end_of_time_is_no_end() {
        let forever = Duration::MAX;
        let mut windows = Windows::new(Reach::new(forever, forever, forever, forever));
        assert_eq!(windows.trigger(5, true, ()), TriggerOutcome::Counts);
        assert_eq!(windows.trigger(u64::MAX - 1, true, ()), TriggerOutcome::InCooldown);
        assert_eq!(windows.trigger(7, false, ()), TriggerOutcome::Counts);
        assert!(windows.over(u64::MAX - 1).is_empty());
        assert_eq!(windows.triggered_by(4).len(), 0);
        let all = windows.triggered_by(5);
        assert_eq!(all[0].wanted, Stretch { from_ns: 0, to_ns: u64::MAX });
    }
}
