//! Maps hosts to clocks, and defines how the ticks of each are counted. True time is a clock, too.

use std::collections::HashSet;

use super::scale::Scale;
use crate::ClockId;
use crate::sync::Readings;

/// The clocks of all hosts.
#[derive(Debug)]
pub(super) struct HostClocks {
    /// The clock of each host.
    pub of: Vec<usize>,
    /// True time, a clock without a host, which counts ns since the epoch.
    pub truth: usize,
    /// How each clock is counted.
    pub scales: Vec<Scale>,
}

impl HostClocks {
    /// Hosts with equal boot ids share a clock, unless messages went between them: the messages
    /// then measure their clocks.
    pub fn from_readings(readings: &Readings) -> Self {
        let hosts = readings.hosts();
        let boot = |it: u32| hosts[it as usize].boot_id();
        let mut apart = HashSet::new();
        let probes = readings.probes().iter().map(|it| (it.from, it.to));
        for (from, to) in probes.chain(readings.one_ways().iter().map(|it| (it.from, it.to))) {
            if boot(from) == boot(to) {
                apart.extend([from, to]);
            }
        }
        let mut first: Vec<usize> = Vec::new();
        let of = hosts.iter().enumerate().map(|(i, host)| {
            let shared = |it: &usize| {
                let alone = apart.contains(&(*it as u32)) || apart.contains(&(i as u32));
                !alone && hosts[*it].boot_id() == host.boot_id()
            };
            first.iter().position(shared).unwrap_or_else(|| {
                first.push(i);
                first.len() - 1
            })
        });
        let of: Vec<_> = of.collect();
        let mut base = vec![u64::MAX; first.len()];
        let mut see = |host: usize, tick: u64| base[of[host]] = base[of[host]].min(tick);
        for host in 0..hosts.len() {
            let ticks = readings.clocks(host).iter().filter(|it| it.a == ClockId::Tick);
            ticks.for_each(|it| see(host, it.a_before));
        }
        for it in readings.pulses() {
            see(it.host as usize, it.tick_before);
        }
        for it in readings.one_ways() {
            see(it.from as usize, it.from_tick);
            see(it.to as usize, it.to_tick);
        }
        let scale = |(&base, &host): (&u64, &usize)| Scale { base, hz: hosts[host].tick_hz() };
        let mut scales: Vec<_> = base.iter().zip(&first).map(scale).collect();
        let seconds = readings.pulses().iter().map(|it| it.second);
        // Reports of true time are close to what CLOCK_REALTIME shows.
        let shown = (0..hosts.len()).flat_map(|it| readings.clocks(it));
        let shown = shown.filter(|it| it.b == ClockId::Realtime).map(|it| it.b_value);
        let base = seconds.min().or_else(|| shown.min()).unwrap_or(0);
        scales.push(Scale { base, hz: 1_000_000_000 });
        Self { of, truth: first.len(), scales }
    }

    /// A host that has this clock.
    pub fn host(&self, clock: usize) -> Option<usize> {
        self.of.iter().position(|&it| it == clock)
    }
}
