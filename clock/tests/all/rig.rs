//! Simulated hosts with known clocks, and the readings that they would make of each other.
//!
//! It shares only the text of `.sync` files with the code under test: time is true time in ns from
//! the start of the record, and every clock is a function of it.

use std::fmt::Write;

/// Random numbers: splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number between 0 and 1, exclusive.
    pub fn part(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.part()
    }
}

/// Delay of a packet in addition to [`RigCell::base_ns`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    None,
    /// Exponential, with a mean of 1 ms.
    Exponential,
    /// Pareto with the exponent 1.5, from 50 µs on.
    Pareto,
    /// 30 % of packets are lost.
    Loss,
    /// 200 µs more there than back.
    Asymmetric,
}

/// A set of hosts and their conditions.
#[derive(Debug, Clone)]
pub struct RigCell {
    pub hosts: usize,
    pub seconds: f64,
    /// Pairs of packets a second, between each pair of hosts.
    pub rate: f64,
    /// The hosts' rates are off by this, with alternating signs.
    pub ppm: f64,
    /// Change of their rates per minute.
    pub wander_ppm_per_min: f64,
    /// CLOCK_REALTIME of every host steps by this, ns, twice.
    pub step_ns: f64,
    pub delay: Delay,
    /// The minimum delay of a packet, in each direction.
    pub base_ns: f64,
    /// The ticks of one host step.
    pub tick_step: Option<TickStep>,
    /// Whether neighbours measure each other, too.
    pub ring: bool,
    pub seed: u64,
}

/// Ticks of `host` are ahead by `by_ns` from `at_ns` on.
#[derive(Debug, Clone, Copy)]
pub struct TickStep {
    pub host: usize,
    pub at_ns: f64,
    pub by_ns: f64,
}

impl Default for RigCell {
    fn default() -> Self {
        Self {
            hosts: 2,
            seconds: 20.0,
            rate: 10.0,
            ppm: 35.0,
            wander_ppm_per_min: 1.0,
            step_ns: 0.0,
            delay: Delay::None,
            base_ns: 20_000.0,
            tick_step: None,
            ring: true,
            seed: 1,
        }
    }
}

/// The clocks of one host.
pub struct RigClock {
    hz: f64,
    base: u64,
    epoch: f64,
    rate: f64,
    /// Changes of the rate: the start time, the rate and the accumulated sum at that time, and the
    /// change per ns.
    wander: Vec<[f64; 4]>,
    slews: Vec<(f64, f64, f64)>,
    steps: Vec<(f64, f64)>,
    ticks_step: Option<(f64, f64)>,
}

impl RigClock {
    fn new(cell: &RigCell, host: usize, random: &mut Random) -> Self {
        let sign = if host % 2 == 1 { 1.0 } else { -1.0 };
        let (start, end) = (-7200e9, cell.seconds * 1e9 + 7200e9);
        // The rate changes direction at random moments: this is the largest deviation from a line.
        let most = cell.wander_ppm_per_min * 1e-6 / 60e9;
        let mut wander = vec![[start, 0.0, 0.0, most]];
        while let Some(&[at, rate, sum, by]) = wander.last()
            && at < end
            && most > 0.0
        {
            let far = random.between(0.3e9, 20e9);
            // The total stays within what the model allows.
            let up = if rate.abs() > 30e-6 { rate < 0.0 } else { random.part() < 0.5 };
            let next = if up { most } else { -most };
            wander.push([at + far, rate + by * far, sum + rate * far + by * far * far / 2.0, next]);
        }
        // The discipline of CLOCK_REALTIME.
        let mut slews = vec![(start, 0.0, 0.0)];
        while let Some(&(at, slew, sum)) = slews.last()
            && at < end
        {
            let far = random.between(1e9, 64e9);
            slews.push((at + far, random.between(-450e-6, 450e-6), sum + slew * far));
        }
        let span = cell.seconds * 1e9;
        let mut steps = Vec::new();
        if cell.step_ns != 0.0 {
            steps.push((random.between(0.1, 0.5) * span, cell.step_ns));
            steps.push((random.between(0.5, 0.9) * span, -cell.step_ns));
        }
        let ticks_step = cell
            .tick_step
            .filter(|tick_step| tick_step.host == host)
            .map(|tick_step| (tick_step.at_ns, tick_step.by_ns));
        Self {
            hz: [2.5e9, 2.1e9, 3.593e9, 1e9][host % 4],
            base: (1 << 50) + random.next() % (1 << 50),
            epoch: 1.7e18 + random.between(-1e15, 1e15).round(),
            rate: if host == 0 { 0.0 } else { sign * cell.ppm * 1e-6 },
            wander,
            slews,
            steps,
            ticks_step,
        }
    }

    /// The count of its oscillator, in its own ns.
    fn own(&self, t: f64) -> f64 {
        let [at, rate, sum, by] =
            self.wander[self.wander.partition_point(|values| values[0] <= t) - 1];
        let d = t - at;
        t + self.rate * t + sum + rate * d + by * d * d / 2.0
    }

    /// Ticks, exactly.
    pub fn tick(&self, t: f64) -> u64 {
        let jump = self.ticks_step.map_or(0.0, |(at, by)| if t >= at { by } else { 0.0 });
        let ticks = (self.own(t) + jump) * (self.hz / 1e9);
        self.base.wrapping_add_signed(ticks.floor() as i64)
    }

    /// CLOCK_MONOTONIC, from the start of the record.
    fn monotonic(&self, t: f64) -> f64 {
        let own = self.own(t);
        let (at, slew, sum) = self.slews[self.slews.partition_point(|slew| slew.0 <= own) - 1];
        own + sum + slew * (own - at)
    }

    /// CLOCK_REALTIME.
    pub fn realtime(&self, t: f64) -> u64 {
        let stepped: f64 = self.steps.iter().filter(|step| t >= step.0).map(|step| step.1).sum();
        let small = self.monotonic(t) + stepped;
        (self.epoch as u64).wrapping_add_signed(small.floor() as i64)
    }
}

/// The hosts of a cell, their readings, and the truth.
pub struct Rig {
    pub clocks: Vec<RigClock>,
    pub text: String,
    /// For each pair with host 0, the true delays there and back: time and duration.
    pub there: Vec<Vec<(f64, f64)>>,
    pub back: Vec<Vec<(f64, f64)>>,
    random: Random,
}

impl Rig {
    pub fn new(cell: &RigCell) -> Self {
        let mut random = Random(cell.seed);
        let clocks: Vec<_> =
            (0..cell.hosts).map(|index| RigClock::new(cell, index, &mut random)).collect();
        let none = vec![Vec::new(); cell.hosts];
        let mut rig = Self { clocks, text: String::new(), there: none.clone(), back: none, random };
        rig.measure(cell);
        rig
    }

    fn measure(&mut self, cell: &RigCell) {
        self.text += "ppt sync 1\n";
        for (i, clock) in self.clocks.iter().enumerate() {
            writeln!(self.text, "host\t{i}\thost-{i}\tboot-{i}\t{}", clock.hz as u64).unwrap();
        }
        let mut pairs: Vec<_> = (1..cell.hosts).map(|index| (0, index)).collect();
        if cell.ring {
            pairs.extend((1..cell.hosts.saturating_sub(1)).map(|index| (index, index + 1)));
        }
        // Readings of a host's clocks are in chronological order.
        let mut lines: Vec<Vec<(f64, String)>> = vec![Vec::new(); cell.hosts];
        let bursts = (cell.seconds * cell.rate) as usize;
        let mut probes = String::new();
        for burst in 0..bursts {
            for (i, &(from, to)) in pairs.iter().enumerate() {
                let part = (i as f64 + 0.5) / pairs.len() as f64;
                let jitter = self.random.between(-0.2, 0.2) / pairs.len() as f64;
                let at = (burst as f64 + part + jitter) * 1e9 / cell.rate;
                // A pair of packets.
                self.burst(cell, from, to, at, &mut lines, &mut probes);
                self.burst(cell, from, to, at + 30e3, &mut lines, &mut probes);
            }
        }
        for (host, lines) in lines.iter_mut().enumerate() {
            for second in 0..=cell.seconds as usize {
                let at = second as f64 * 1e9 + self.random.between(-1e6, 1e6);
                let clock = &self.clocks[host];
                let stamp =
                    |t: f64| (1u64 << 53).wrapping_add_signed(clock.monotonic(t).floor() as i64);
                let (before, after) = (stamp(at - 25.0), stamp(at + 25.0));
                let line =
                    format!("monotonic\trealtime\t{before}\t{}\t{after}", clock.realtime(at));
                lines.push((at, line));
                self.bracket(host, at + 100.0, lines);
                self.bracket(host, at - 100.0, lines);
            }
            lines.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (_, line) in lines {
                writeln!(self.text, "clock\t{host}\t{line}").unwrap();
            }
        }
        self.text += &probes;
    }

    fn bracket(&mut self, host: usize, t: f64, lines: &mut Vec<(f64, String)>) {
        let clock = &self.clocks[host];
        let (before, after) = if self.random.part() < 0.02 {
            (self.random.between(20.0, 5e3), self.random.between(20.0, 5e3))
        } else {
            (self.random.between(8.0, 20.0), self.random.between(8.0, 20.0))
        };
        let (before, after) = (clock.tick(t - before), clock.tick(t + after));
        if before <= after {
            lines.push((t, format!("tick\trealtime\t{before}\t{}\t{after}", clock.realtime(t))));
        }
    }

    /// A packet and its answer, and the readings that both hosts make of their clocks around them.
    fn burst(
        &mut self,
        cell: &RigCell,
        from: usize,
        to: usize,
        start: f64,
        lines: &mut [Vec<(f64, String)>],
        probes: &mut String,
    ) {
        let (there, back) = (self.delay(cell, true), self.delay(cell, false));
        let sent = start + self.random.between(2e3, 6e3);
        let received = sent + there;
        let woken = received + self.random.between(2e3, 20e3);
        let answered = woken + self.random.between(2e3, 10e3);
        let arrived = answered + back;
        self.bracket(from, start - 200.0, &mut lines[from]);
        let lost = |random: &mut Random| cell.delay == Delay::Loss && random.part() < 0.3;
        let lost = lost(&mut self.random) || lost(&mut self.random);
        let late = sent + 20e6 + 2.0 * cell.base_ns;
        let ends = if lost { late } else { (arrived + self.random.between(2e3, 20e3)).min(late) };
        self.bracket(from, ends, &mut lines[from]);
        if lost {
            return;
        }
        self.bracket(to, woken + 100.0, &mut lines[to]);
        self.bracket(to, answered + 3e3, &mut lines[to]);
        let clock = |host: usize| &self.clocks[host];
        let (ticks, stamps) = (
            (clock(from).tick(start), clock(to).tick(woken)),
            [(from, sent), (to, received), (to, answered), (from, arrived)],
        );
        let [t1, t2, t3, t4] = stamps.map(|(host, t)| clock(host).realtime(t));
        writeln!(probes, "probe\t{from}\t{to}\t{}\t{}\t{t1}\t{t2}\t{t3}\t{t4}", ticks.0, ticks.1)
            .unwrap();
        if from == 0 {
            self.there[to].push((sent, there));
            self.back[to].push((sent, back));
        }
    }

    fn delay(&mut self, cell: &RigCell, there: bool) -> f64 {
        let more = match cell.delay {
            Delay::None | Delay::Loss => 0.0,
            Delay::Exponential => -self.random.part().ln() * 1e6,
            Delay::Pareto => 50e3 * self.random.part().powf(-1.0 / 1.5) - 50e3,
            Delay::Asymmetric => f64::from(u8::from(there)) * 200e3,
        };
        cell.base_ns + more
    }

    /// The mean of each window's minimum delay there and minimum delay back, in ns.
    pub fn least_delays(&self, host: usize, seconds: f64) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for start in 0..(seconds as usize).saturating_sub(1) {
            let (from, to) = (start as f64 * 1e9, (start + 2) as f64 * 1e9);
            let least = |of: &[(f64, f64)]| {
                let within = of.iter().filter(|entry| entry.0 >= from && entry.0 < to);
                within.map(|entry| entry.1).fold(f64::INFINITY, f64::min)
            };
            let both = least(&self.there[host]) + least(&self.back[host]);
            if both.is_finite() {
                sum += both;
                count += 1.0;
            }
        }
        sum / count
    }

    /// The scatter of the minimum delays of each second, one way: in the four seconds before or
    /// after a moment.
    pub fn scatter(&self, host: usize, at_ns: f64) -> f64 {
        let second = (at_ns / 1e9).floor();
        let least = |of: &[(f64, f64)], second: f64| {
            let within = of.iter().filter(|entry| (entry.0 / 1e9).floor() == second);
            within.map(|entry| entry.1).fold(f64::INFINITY, f64::min)
        };
        let range = |of: &[(f64, f64)], from: f64| {
            let all = (0..4).map(|number| least(of, from + f64::from(number)));
            let all: Vec<_> = all.filter(|value| value.is_finite()).collect();
            all.iter().copied().fold(0.0, f64::max) - all.into_iter().fold(f64::INFINITY, f64::min)
        };
        let ways = [&self.there[host], &self.back[host]];
        let sides = ways.map(|of| range(of, second - 4.0).max(range(of, second + 1.0)));
        sides[0].max(sides[1])
    }
}
