//! The debts of CPUs, and the virtual clock.
//!
//! A CPU owes (1 − 1/k) of the time in which the span ran on other CPUs but not on itself, and in which it was not
//! idle: an idle CPU is ahead of nobody. A payer's time counts as that of the thread which it preempted.

use std::collections::VecDeque;

/// A time, in ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub from: i64,
    pub to: i64,
}

impl Stretch {
    pub fn within(self, other: Stretch) -> Stretch {
        Stretch { from: self.from.max(other.from), to: self.to.min(other.to) }
    }

    pub fn length(self) -> i64 {
        (self.to - self.from).max(0)
    }
}

/// A context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuSwitch {
    pub at: i64,
    /// The thread that got the CPU; 0: it became idle.
    pub tid: i32,
}

/// A point of G, which grows by `rate` from there to the next point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockPoint {
    /// The time, in ns of CLOCK_MONOTONIC.
    pub at_ns: i64,
    /// The sum of all pauses since the round began, in ns.
    pub paused_ns: u64,
    /// The growth, from 0 to 1.
    pub rate: f64,
}

/// The sums of a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RoundAccount {
    pub clock: Vec<ClockPoint>,
    pub owed_ns: u64,
    pub paid_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct OnCpu {
    from: i64,
    tid: i32,
    /// The thread that had the CPU before.
    before: i32,
}

#[derive(Debug, Default)]
struct CpuAccount {
    /// The real-time thread that pays.
    payer: i32,
    history: VecDeque<OnCpu>,
    debt: f64,
    owed: f64,
    paid: f64,
}

impl CpuAccount {
    /// Calls `take` with each part of a stretch, and the thread whose time it was.
    fn each_part(&self, stretch: Stretch, mut take: impl FnMut(Stretch, i32)) {
        let first = self.history.partition_point(|switch| switch.from <= stretch.from);
        for number in first.saturating_sub(1)..self.history.len() {
            let switch = self.history[number];
            if switch.from >= stretch.to {
                break;
            }
            let to = self.history.get(number + 1).map_or(stretch.to, |next| next.from);
            let part = stretch.within(Stretch { from: switch.from, to });
            if part.length() > 0 {
                take(part, if switch.tid == self.payer { switch.before } else { switch.tid });
            }
        }
    }

    fn owe(&mut self, ns: f64) {
        self.debt += ns;
        self.owed += ns;
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    cpus: Vec<CpuAccount>,
    /// 1 − 1/k.
    share: f64,
    round: Option<Stretch>,
    /// The times of the round in which the span ran on any CPU: sorted and disjoint.
    active: Vec<Stretch>,
}

impl Ledger {
    pub fn new(cpus: usize) -> Self {
        let cpus = (0..cpus).map(|_| CpuAccount::default()).collect();
        Self { cpus, share: 0.0, round: None, active: Vec::new() }
    }

    /// Names the real-time thread of a CPU.
    pub fn set_payer(&mut self, cpu: usize, tid: i32) {
        self.cpus[cpu].payer = tid;
    }

    /// A thread got a CPU.
    pub fn switched(&mut self, cpu: usize, switch: CpuSwitch) {
        let account = &mut self.cpus[cpu];
        let last = account.history.back().copied();
        if self.round.is_none() {
            account.history.clear();
        }
        let before = last.map_or(0, |last| last.tid);
        account.history.push_back(OnCpu { from: switch.at, tid: switch.tid, before });
    }

    /// The thread that the payer of a CPU preempted, if it has the CPU.
    pub fn preempted(&self, cpu: usize) -> Option<i32> {
        let account = &self.cpus[cpu];
        let last = account.history.back().filter(|last| last.tid == account.payer)?;
        Some(last.before)
    }

    pub fn begin(&mut self, share: f64, now: i64) {
        self.share = share;
        self.round = Some(Stretch { from: now, to: i64::MAX });
        self.active.clear();
        for account in &mut self.cpus {
            (account.debt, account.owed, account.paid) = (0.0, 0.0, 0.0);
        }
    }

    /// A thread was in the span during this stretch, on whatever CPU it had.
    pub fn ran(&mut self, tid: i32, stretch: Stretch) {
        let Some(round) = self.round else { return };
        let mut parts = Vec::new();
        for (cpu, account) in self.cpus.iter().enumerate() {
            account.each_part(stretch.within(round), |part, runner| {
                if runner == tid {
                    parts.push((cpu, part));
                }
            });
        }
        parts.into_iter().for_each(|(cpu, part)| self.ran_on(cpu, part));
    }

    /// The span ran on `cpu`. Where it also ran on another CPU, this one was charged, which is taken back.
    fn ran_on(&mut self, cpu: usize, part: Stretch) {
        let first = self.active.partition_point(|active| active.to < part.from);
        let last = self.active.partition_point(|active| active.from <= part.to);
        let mut joined = part;
        let (mut at, mut elsewhere) = (part.from, 0);
        for number in first..last {
            let active = self.active[number];
            self.charge(cpu, Stretch { from: at, to: active.from });
            elsewhere += active.within(part).length();
            at = at.max(active.to);
            joined = Stretch { from: joined.from.min(active.from), to: joined.to.max(active.to) };
        }
        self.charge(cpu, Stretch { from: at, to: part.to });
        self.cpus[cpu].owe(-self.share * elsewhere as f64);
        self.active.splice(first..last, [joined]);
    }

    /// The span ran on `runner`, as was not known before: the other CPUs owe.
    fn charge(&mut self, runner: usize, stretch: Stretch) {
        if stretch.length() == 0 {
            return;
        }
        let share = self.share;
        for (cpu, account) in self.cpus.iter_mut().enumerate() {
            if cpu == runner {
                continue;
            }
            let mut busy = 0;
            account.each_part(stretch, |part, tid| {
                if tid != 0 {
                    busy += part.length();
                }
            });
            account.owe(share * busy as f64);
        }
    }

    /// What a CPU owes, in ns.
    pub fn debt(&self, cpu: usize) -> f64 {
        self.cpus[cpu].debt
    }

    /// A CPU has been paused.
    pub fn pay(&mut self, cpu: usize, ns: i64) {
        let account = &mut self.cpus[cpu];
        account.debt -= ns as f64;
        account.paid += ns as f64;
    }

    /// Ends the round.
    pub fn end(&mut self, now: i64) -> RoundAccount {
        let mut account = RoundAccount::default();
        let Some(round) = self.round.take() else { return account };
        let round = Stretch { to: now, ..round };
        let mut paused = 0.0;
        for active in &self.active {
            let active = active.within(round);
            if active.length() == 0 {
                continue;
            }
            let point =
                |at_ns, paused: f64, rate| ClockPoint { at_ns, paused_ns: paused as u64, rate };
            account.clock.push(point(active.from, paused, self.share));
            paused += self.share * active.length() as f64;
            account.clock.push(point(active.to, paused, 0.0));
        }
        let sum = |value: fn(&CpuAccount) -> f64| self.cpus.iter().map(value).sum::<f64>().max(0.0);
        account.owed_ns = sum(|cpu| cpu.owed) as u64;
        account.paid_ns = sum(|cpu| cpu.paid) as u64;
        for cpu in &mut self.cpus {
            cpu.debt = 0.0;
            let kept = cpu.history.len().saturating_sub(1);
            cpu.history.drain(..kept);
        }
        self.active.clear();
        account
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAYERS: [i32; 3] = [901, 902, 903];

    fn ledger(switches: &[(usize, i64, i32)], share: f64) -> Ledger {
        let mut ledger = Ledger::new(3);
        (0..3).for_each(|cpu| ledger.set_payer(cpu, PAYERS[cpu]));
        ledger.begin(share, 0);
        for &(cpu, at, tid) in switches {
            ledger.switched(cpu, CpuSwitch { at, tid });
        }
        ledger
    }

    #[test]
    fn other_busy_cpus_owe_while_the_span_runs() {
        // CPU 1 is busy all the time, CPU 2 idle from 40 on.
        let switches = [(0, 0, 7), (1, 0, 8), (2, 0, 9), (2, 40, 0)];
        let mut ledger = ledger(&switches, 0.5);
        ledger.ran(7, Stretch { from: 20, to: 120 });
        assert_eq!([0, 1, 2].map(|cpu| ledger.debt(cpu)), [0.0, 50.0, 10.0]);
        // The span also runs on CPU 1: nobody owes twice, and CPU 1 owes less.
        ledger.ran(8, Stretch { from: 100, to: 140 });
        assert_eq!([0, 1, 2].map(|cpu| ledger.debt(cpu)), [10.0, 40.0, 10.0]);
        ledger.pay(1, 30);
        let RoundAccount { clock, owed_ns, paid_ns } = ledger.end(1_000);
        assert_eq!((owed_ns, paid_ns), (60, 30));
        let points: Vec<_> = clock.iter().map(|point| (point.at_ns, point.paused_ns)).collect();
        assert_eq!(points, [(20, 0), (140, 60)]);
    }

    #[test]
    fn a_payers_time_is_that_of_whom_it_preempted() {
        let switches = [(0, 0, 7), (0, 50, PAYERS[0]), (0, 60, 7), (1, 0, 8)];
        let mut ledger = ledger(&switches, 0.5);
        assert_eq!(ledger.preempted(0), None);
        ledger.ran(7, Stretch { from: 0, to: 100 });
        assert_eq!(ledger.debt(1), 50.0);
        ledger.switched(1, CpuSwitch { at: 100, tid: PAYERS[1] });
        assert_eq!(ledger.preempted(1), Some(8));
    }

    #[test]
    fn a_stretch_counts_from_the_start_of_its_round() {
        let mut ledger = ledger(&[(0, 0, 7), (1, 0, 8)], 0.5);
        ledger.ran(7, Stretch { from: 0, to: 100 });
        ledger.end(100);
        ledger.begin(0.2, 200);
        ledger.ran(7, Stretch { from: 150, to: 300 });
        let clock = ledger.end(300).clock;
        assert_eq!(clock[0], ClockPoint { at_ns: 200, paused_ns: 0, rate: 0.2 });
        assert_eq!(clock[1], ClockPoint { at_ns: 300, paused_ns: 20, rate: 0.0 });
    }

    proptest! {
        /// The same, ns by ns.
        #[test]
        fn debts_are_what_they_are_by_definition(
            switches in prop::collection::vec((0..3usize, 0..200i64, 0..4i32), 0..30),
            spans in prop::collection::vec((1..4i32, 0..30i64, 1..40i64), 0..12),
        ) {
            let mut switches = switches;
            switches.sort_by_key(|switch| switch.1);
            let mut ledger = ledger(&switches, 0.5);
            let mut is_in_span = vec![[false; 4]; 256];
            // Spans of a thread follow each other.
            let mut ends = [0; 4];
            for &(tid, gap, length) in &spans {
                let from = ends[tid as usize] + gap;
                let to = (from + length).min(256);
                ends[tid as usize] = to;
                if from < to {
                    ledger.ran(tid, Stretch { from, to });
                    (from..to).for_each(|at| is_in_span[at as usize][tid as usize] = true);
                }
            }
            let runs = |cpu: usize, at: i64| {
                let last = switches.iter().rev().find(|switch| switch.0 == cpu && switch.1 <= at);
                last.map(|switch| switch.2)
            };
            let (mut debts, mut active) = ([0.0; 3], 0);
            for at in 0..256 {
                let running = [0, 1, 2].map(|cpu| runs(cpu, at));
                let is_span = running.map(|tid| tid.is_some_and(|tid| is_in_span[at as usize][tid as usize]));
                if is_span.contains(&true) {
                    active += 1;
                    for cpu in 0..3 {
                        let is_busy = running[cpu].is_some_and(|tid| tid != 0);
                        debts[cpu] += if is_busy && !is_span[cpu] { 0.5 } else { 0.0 };
                    }
                }
            }
            prop_assert_eq!([0, 1, 2].map(|cpu| ledger.debt(cpu)), debts);
            let clock = ledger.end(256).clock;
            prop_assert_eq!(clock.last().map_or(0, |point| point.paused_ns), active / 2);
        }
    }
}
