//! Converts readings to bounds: the earliest departure and the latest arrival of each message.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Bounds;
use super::brackets::{Brackets, Unplaced};
use super::clocks::HostClocks;
use super::model::ClockModel;
use super::scale::ROUNDING;
use crate::sync::ClockReadings;

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
    let mut pairs: BTreeMap<(usize, usize), Bounds> = BTreeMap::new();
    let mut add = |from: usize, to: usize, sent: f64, received: f64| {
        let near = rank[from] <= rank[to];
        let pair = pairs.entry(if near { (from, to) } else { (to, from) }).or_default();
        if near {
            pair.upper.push((sent, received - sent));
        } else {
            pair.lower.push((received, sent - received));
        }
    };
    let mut unused = Unused::default();
    let brackets: Vec<_> = (0..clocks.of.len())
        .map(|index| {
            Brackets::from_readings(
                readings.clocks(index),
                clocks.scales[clocks.of[index]],
                model.slew(),
            )
        })
        .collect();
    let mut hints = vec![0; clocks.of.len()];
    for probe in readings.probes() {
        let mut place = |host: u32, stamp: u64, tick: u64| {
            let host = host as usize;
            let near = clocks.scales[clocks.of[host]].ns(tick).ok_or(Unplaced::Far);
            let moment = near.and_then(|near| brackets[host].place(stamp, near, &mut hints[host]));
            match moment {
                Ok(_) => {}
                Err(Unplaced::Stepped) => unused.stepped += 1,
                Err(Unplaced::Far) => unused.far += 1,
            }
            moment.ok()
        };
        let sent = place(probe.from, probe.t1, probe.from_tick);
        let back = place(probe.from, probe.t4, probe.from_tick);
        let received = place(probe.to, probe.t2, probe.to_tick);
        let answered = place(probe.to, probe.t3, probe.to_tick);
        let (from, to) = (clocks.of[probe.from as usize], clocks.of[probe.to as usize]);
        if let (Some(sent), Some(received)) = (sent, received) {
            add(from, to, sent.lo, received.hi);
        }
        if let (Some(answered), Some(back)) = (answered, back) {
            add(to, from, answered.lo, back.hi);
        }
    }
    for one_way in readings.one_ways() {
        let (from, to) = (clocks.of[one_way.from as usize], clocks.of[one_way.to as usize]);
        let (sent, received) =
            (clocks.scales[from].ns(one_way.from_tick), clocks.scales[to].ns(one_way.to_tick));
        match (sent, received) {
            (Some(sent), Some(received)) => add(from, to, sent - ROUNDING, received + ROUNDING),
            _ => unused.far += 1,
        }
    }
    for pulse in readings.pulses() {
        // True time leaves its second after the tick before, and arrives before the tick after.
        let clock = clocks.of[pulse.host as usize];
        let second = clocks.scales[clocks.truth].ns(pulse.second);
        let (before, after) =
            (clocks.scales[clock].ns(pulse.tick_before), clocks.scales[clock].ns(pulse.tick_after));
        match (before, second, after) {
            (Some(before), Some(second), Some(after)) => {
                add(clock, clocks.truth, before - ROUNDING, second + ROUNDING);
                add(clocks.truth, clock, second - ROUNDING, after + ROUNDING);
            }
            _ => unused.far += 1,
        }
    }
    for time_source in readings.time_sources().iter().filter(|_| model.believes_said) {
        let host = time_source.host as usize;
        let (clock, truth) = (clocks.of[host], clocks.scales[clocks.truth]);
        let shown =
            clocks.scales[clock].ns(time_source.tick).ok_or(Unplaced::Far).and_then(|tick| {
                let (value, lo, hi) = brackets[host].shown(tick, &mut hints[host])?;
                let (off, error) =
                    (time_source.offset_ns as f64, time_source.error_ns as f64 + ROUNDING);
                let value = truth.ns(value).ok_or(Unplaced::Far)? + off;
                Ok((tick, value + lo - error, value + hi + error))
            });
        match shown {
            Ok((tick, lo, hi)) => {
                add(clock, clocks.truth, tick - ROUNDING, hi);
                add(clocks.truth, clock, lo, tick + ROUNDING);
            }
            Err(Unplaced::Stepped) => unused.stepped += 1,
            Err(Unplaced::Far) => unused.far += 1,
        }
    }
    (pairs, unused)
}

/// The clocks that the readings connect.
pub(super) fn joined(
    readings: &ClockReadings,
    clocks: &HostClocks,
    model: &ClockModel,
) -> Vec<BTreeSet<usize>> {
    let mut joined = vec![BTreeSet::new(); clocks.scales.len()];
    let of = |host: u32| clocks.of[host as usize];
    let probes = readings.probes().iter().map(|probe| (of(probe.from), of(probe.to)));
    let one_ways = readings.one_ways().iter().map(|one_way| (of(one_way.from), of(one_way.to)));
    let pulses = readings.pulses().iter().map(|pulse| (of(pulse.host), clocks.truth));
    let said = readings.time_sources().iter().filter(|_| model.believes_said);
    let said = said.map(|report| (of(report.host), clocks.truth));
    for (a, b) in probes.chain(one_ways).chain(pulses).chain(said) {
        joined[a].insert(b);
        joined[b].insert(a);
    }
    joined
}
