//! Converts readings to bounds: the earliest departure and the latest arrival of each message.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Bounds;
use super::brackets::{BracketedMoment, Brackets, Unplaced};
use super::clocks::HostClocks;
use super::model::ClockModel;
use super::scale::ROUNDING;
use crate::sync::{ClockReadings, OneWay, Probe, Pulse, TimeSourceReport};

/// Number of unused stamps, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unused {
    /// CLOCK_REALTIME was stepped next to them.
    pub stepped: u64,
    /// There are no readings of ticks and CLOCK_REALTIME near on both sides, or they are weeks from
    /// the first one.
    pub far: u64,
}

/// All bounds between clocks. In each pair, the clock that is earlier in `rank` comes first.
pub(super) fn bounds(
    readings: &ClockReadings,
    clocks: &HostClocks,
    model: &ClockModel,
    rank: &[usize],
) -> (BTreeMap<(usize, usize), Bounds>, Unused) {
    let mut collected = CollectedBounds::new(readings, clocks, model, rank);
    readings.probes().iter().for_each(|probe| collected.add_probe(probe));
    readings.one_ways().iter().for_each(|message| collected.add_one_way(message));
    readings.pulses().iter().for_each(|pulse| collected.add_pulse(pulse));
    if model.trusts_reports {
        readings.time_sources().iter().for_each(|report| collected.add_report(report));
    }
    (collected.pairs, collected.unused)
}

/// The bounds of the readings so far.
struct CollectedBounds<'a> {
    clocks: &'a HostClocks,
    rank: &'a [usize],
    /// The readings of CLOCK_REALTIME of each host, and where the last stamp was among them.
    brackets: Vec<Brackets>,
    hints: Vec<usize>,
    pairs: BTreeMap<(usize, usize), Bounds>,
    unused: Unused,
}

impl<'a> CollectedBounds<'a> {
    fn new(
        readings: &ClockReadings,
        clocks: &'a HostClocks,
        model: &ClockModel,
        rank: &'a [usize],
    ) -> Self {
        let brackets = clocks.of_host.iter().enumerate().map(|(host, &clock)| {
            Brackets::from_readings(readings.clocks(host), clocks.scales[clock], model.slew())
        });
        Self {
            clocks,
            rank,
            brackets: brackets.collect(),
            hints: vec![0; clocks.of_host.len()],
            pairs: BTreeMap::new(),
            unused: Unused::default(),
        }
    }

    /// Adds a message between two clocks.
    fn add(&mut self, from: usize, to: usize, sent: f64, received: f64) {
        let near = self.rank[from] <= self.rank[to];
        let pair = self.pairs.entry(if near { (from, to) } else { (to, from) }).or_default();
        if near {
            pair.upper.push((sent, received - sent));
        } else {
            pair.lower.push((received, sent - received));
        }
    }

    fn count_unused(&mut self, why: Unplaced) {
        match why {
            Unplaced::Stepped => self.unused.stepped += 1,
            Unplaced::Far => self.unused.far += 1,
        }
    }

    /// The moment of a stamp of a host, near `tick`. Counts a stamp without one.
    fn place(&mut self, host: u32, stamp: u64, tick: u64) -> Option<BracketedMoment> {
        let host = host as usize;
        let near = self.clocks.scales[self.clocks.of_host[host]].ns(tick).ok_or(Unplaced::Far);
        let moment =
            near.and_then(|near| self.brackets[host].place(stamp, near, &mut self.hints[host]));
        moment.inspect_err(|&why| self.count_unused(why)).ok()
    }

    fn add_probe(&mut self, probe: &Probe) {
        let sent = self.place(probe.from, probe.t1, probe.from_tick);
        let back = self.place(probe.from, probe.t4, probe.from_tick);
        let received = self.place(probe.to, probe.t2, probe.to_tick);
        let answered = self.place(probe.to, probe.t3, probe.to_tick);
        let of_host = &self.clocks.of_host;
        let (from, to) = (of_host[probe.from as usize], of_host[probe.to as usize]);
        if let (Some(sent), Some(received)) = (sent, received) {
            self.add(from, to, sent.lo, received.hi);
        }
        if let (Some(answered), Some(back)) = (answered, back) {
            self.add(to, from, answered.lo, back.hi);
        }
    }

    fn add_one_way(&mut self, message: &OneWay) {
        let HostClocks { of_host, scales, .. } = self.clocks;
        let (from, to) = (of_host[message.from as usize], of_host[message.to as usize]);
        match (scales[from].ns(message.from_tick), scales[to].ns(message.to_tick)) {
            (Some(sent), Some(received)) => {
                self.add(from, to, sent - ROUNDING, received + ROUNDING);
            }
            _ => self.unused.far += 1,
        }
    }

    /// True time leaves its second after the tick before, and arrives before the tick after.
    fn add_pulse(&mut self, pulse: &Pulse) {
        let HostClocks { of_host, scales, truth } = self.clocks;
        let (clock, truth) = (of_host[pulse.host as usize], *truth);
        let second = scales[truth].ns(pulse.second);
        let (before, after) =
            (scales[clock].ns(pulse.tick_before), scales[clock].ns(pulse.tick_after));
        match (before, second, after) {
            (Some(before), Some(second), Some(after)) => {
                self.add(clock, truth, before - ROUNDING, second + ROUNDING);
                self.add(truth, clock, second - ROUNDING, after + ROUNDING);
            }
            _ => self.unused.far += 1,
        }
    }

    /// Adds a report of another program on true time.
    fn add_report(&mut self, report: &TimeSourceReport) {
        let host = report.host as usize;
        let (clock, truth) = (self.clocks.of_host[host], self.clocks.truth);
        match self.reported(report) {
            Ok((tick, lo, hi)) => {
                self.add(clock, truth, tick - ROUNDING, hi);
                self.add(truth, clock, lo, tick + ROUNDING);
            }
            Err(why) => self.count_unused(why),
        }
    }

    /// The tick of a report, and the bounds of true time then.
    fn reported(&mut self, report: &TimeSourceReport) -> Result<(f64, f64, f64), Unplaced> {
        let host = report.host as usize;
        let HostClocks { of_host, scales, truth } = self.clocks;
        let tick = scales[of_host[host]].ns(report.tick).ok_or(Unplaced::Far)?;
        let (value, lo, hi) = self.brackets[host].shown(tick, &mut self.hints[host])?;
        let (offset, error) = (report.offset_ns as f64, report.error_ns as f64 + ROUNDING);
        let value = scales[*truth].ns(value).ok_or(Unplaced::Far)? + offset;
        Ok((tick, value + lo - error, value + hi + error))
    }
}

/// The clocks that the readings connect.
pub(super) fn joined(
    readings: &ClockReadings,
    clocks: &HostClocks,
    model: &ClockModel,
) -> Vec<BTreeSet<usize>> {
    let mut joined = vec![BTreeSet::new(); clocks.scales.len()];
    let of = |host: u32| clocks.of_host[host as usize];
    let probes = readings.probes().iter().map(|probe| (of(probe.from), of(probe.to)));
    let one_ways = readings.one_ways().iter().map(|one_way| (of(one_way.from), of(one_way.to)));
    let pulses = readings.pulses().iter().map(|pulse| (of(pulse.host), clocks.truth));
    let reports = readings.time_sources().iter().filter(|_| model.trusts_reports);
    let reports = reports.map(|report| (of(report.host), clocks.truth));
    for (a, b) in probes.chain(one_ways).chain(pulses).chain(reports) {
        joined[a].insert(b);
        joined[b].insert(a);
    }
    joined
}
