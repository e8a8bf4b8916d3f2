//! Maps hosts to clocks, and defines how the ticks of each are counted. True time is a clock, too.

use std::collections::HashSet;

use super::scale::TickOrigin;
use crate::ClockId;
use crate::sync::ClockReadings;

/// The clocks of all hosts.
#[derive(Debug)]
pub(super) struct HostClocks {
    /// The clock of each host.
    pub of_host: Vec<usize>,
    /// True time, a clock without a host, which counts ns since the epoch.
    pub truth: usize,
    /// How each clock is counted.
    pub scales: Vec<TickOrigin>,
}

impl HostClocks {
    /// Hosts with equal boot ids share a clock, unless messages went between them: the messages
    /// then measure their clocks.
    pub fn from_readings(readings: &ClockReadings) -> Self {
        let hosts = readings.hosts();
        let boot = |number: u32| hosts[number as usize].boot_id();
        let mut apart = HashSet::new();
        let probes = readings.probes().iter().map(|probe| (probe.from, probe.to));
        for (from, to) in
            probes.chain(readings.one_ways().iter().map(|one_way| (one_way.from, one_way.to)))
        {
            if boot(from) == boot(to) {
                apart.extend([from, to]);
            }
        }
        let mut first: Vec<usize> = Vec::new();
        let of_host = hosts.iter().enumerate().map(|(i, host)| {
            let shared = |index: &usize| {
                let alone = apart.contains(&(*index as u32)) || apart.contains(&(i as u32));
                !alone && hosts[*index].boot_id() == host.boot_id()
            };
            first.iter().position(shared).unwrap_or_else(|| {
                first.push(i);
                first.len() - 1
            })
        });
        let of_host: Vec<_> = of_host.collect();
        let mut base = vec![u64::MAX; first.len()];
        let mut see = |host: usize, tick: u64| base[of_host[host]] = base[of_host[host]].min(tick);
        for host in 0..hosts.len() {
            let ticks = readings.clocks(host).iter().filter(|clock| clock.a == ClockId::Tick);
            ticks.for_each(|tick| see(host, tick.a_before));
        }
        for pulse in readings.pulses() {
            see(pulse.host as usize, pulse.tick_before);
        }
        for way in readings.one_ways() {
            see(way.from as usize, way.from_tick);
            see(way.to as usize, way.to_tick);
        }
        let scale = |(&base, &host): (&u64, &usize)| TickOrigin { base, hz: hosts[host].tick_hz() };
        let mut scales: Vec<_> = base.iter().zip(&first).map(scale).collect();
        let seconds = readings.pulses().iter().map(|pulse| pulse.second);
        // Reports of true time are close to what CLOCK_REALTIME shows.
        let shown = (0..hosts.len()).flat_map(|index| readings.clocks(index));
        let shown =
            shown.filter(|reading| reading.b == ClockId::Realtime).map(|reading| reading.b_value);
        let base = seconds.min().or_else(|| shown.min()).unwrap_or(0);
        scales.push(TickOrigin { base, hz: 1_000_000_000 });
        Self { of_host, truth: first.len(), scales }
    }

    /// A host that has this clock.
    pub fn host(&self, clock: usize) -> Option<usize> {
        self.of_host.iter().position(|&index| index == clock)
    }
}
