//! Compares bounds between hosts with known clocks, and with every possible line.

use ppt_clock::sync::ClockReadings;
use ppt_clock::times::{ClockModel, Times, TimesError};

use crate::rig::{Delay, Random, Rig, RigCell, TickStep};

const DELAYS: [Delay; 5] =
    [Delay::None, Delay::Exponential, Delay::Pareto, Delay::Loss, Delay::Asymmetric];

fn read(text: &str) -> ClockReadings {
    let mut readings = ClockReadings::default();
    readings.read(text.as_bytes()).unwrap();
    readings
}

fn solve(rig: &Rig) -> Times {
    Times::between_hosts(&read(&rig.text), 0, &ClockModel::default()).unwrap()
}

/// How many of `stamps` in a time range have no bound, and how many are outside of it.
fn held(rig: &Rig, times: &Times, stamps: u32, from: f64, to: f64) -> (u32, u32) {
    let mut random = Random(77);
    let (mut unbounded, mut outside) = (0, 0);
    for _ in 0..stamps {
        let t = random.between(from, to);
        let host = random.next() as usize % rig.clocks.len();
        let truth = i128::from(rig.clocks[0].tick(t));
        match times.at(host, rig.clocks[host].tick(t)) {
            Some(bounds) => {
                assert!(bounds.lo <= bounds.mid && bounds.mid <= bounds.hi);
                outside += u32::from(truth < bounds.lo || truth > bounds.hi);
            }
            None => unbounded += 1,
        }
    }
    (unbounded, outside)
}

fn cell(random: &mut Random) -> RigCell {
    let of = |random: &mut Random, all: &[f64]| all[random.next() as usize % all.len()];
    RigCell {
        hosts: 2 + random.next() as usize % 5,
        seconds: random.between(1.0, 30.0),
        rate: of(random, &[0.5, 2.0, 10.0]),
        ppm: of(random, &[0.0, 35.0, -35.0, 200.0, -200.0]),
        wander_ppm_per_min: of(random, &[0.0, 0.3, 1.0]),
        step_ns: of(random, &[0.0, 50e3, -50e3, 10e6, -10e6]),
        delay: DELAYS[random.next() as usize % DELAYS.len()],
        base_ns: of(random, &[0.0, 300.0, 20e3, 10e6]),
        tick_step: None,
        ring: random.part() < 0.5,
        seed: random.next(),
    }
}

#[test]
fn the_truth_is_inside_at_all_times() {
    let mut random = Random(4);
    for _ in 0..60 {
        let cell = cell(&mut random);
        let rig = Rig::new(&cell);
        let times = solve(&rig);
        let end = cell.seconds * 1e9;
        let (unbounded, outside) = held(&rig, &times, 1000, 0.0, end);
        // The first burst of a slow pair comes late, and a lost one is not a reading.
        let joined = times.parts(1).next().is_some();
        assert_eq!(outside, 0, "{cell:?}");
        assert!(unbounded == 0 || cell.rate < 1.0 || cell.seconds < 3.0, "{unbounded}: {cell:?}");
        assert!(joined || cell.rate < 1.0 || cell.seconds < 3.0, "{cell:?}");
        assert_eq!(held(&rig, &times, 300, end, end + 3600e9).1, 0, "after: {cell:?}");
        assert_eq!(held(&rig, &times, 300, -3600e9, 0.0).1, 0, "before: {cell:?}");
        assert!(times.steps().is_empty(), "{:?}: {cell:?}", times.steps());
        assert!(times.contradicted().is_empty(), "{cell:?}");
    }
}

#[test]
fn twenty_hosts_have_bounds_of_the_width_of_their_delays() {
    let cell = RigCell { hosts: 20, delay: Delay::Pareto, ..RigCell::default() };
    let rig = Rig::new(&cell);
    let times = solve(&rig);
    assert_eq!(held(&rig, &times, 20_000, 0.0, cell.seconds * 1e9), (0, 0));
    let hz = 2.5;
    for host in 1..cell.hosts {
        let ticks = (1..200).map(|number| rig.clocks[host].tick(f64::from(number) * 0.1e9));
        let widths = ticks.map(|tick| times.at(host, tick).unwrap());
        let width = widths.map(|width| (width.hi - width.lo) as f64 / hz).sum::<f64>() / 199.0;
        let least = rig.least_delays(host, cell.seconds);
        assert!(width < 1.2 * least, "{host}: {width} ns; least delays are {least} ns");
    }
}

#[test]
fn steps_of_ticks_are_reported_and_have_no_bounds_between() {
    for (i, by_ns) in [8e3f64, -15e3, 35e3, 200e3, -200e3, 3e6, -3e6, 5e9].into_iter().enumerate() {
        let at_ns = 9.3e9 + i as f64 * 0.17e9;
        for delay in [Delay::None, Delay::Asymmetric, Delay::Pareto] {
            if delay == Delay::Pareto && by_ns.abs() < 100e3 {
                continue;
            }
            let tick_step = Some(TickStep { host: 1, at_ns, by_ns });
            let cell = RigCell { hosts: 2, delay, tick_step, ..RigCell::default() };
            let rig = Rig::new(&cell);
            let times = solve(&rig);
            let [step] = times.steps() else { panic!("{:?}: {cell:?}", times.steps()) };
            let at = i128::from(rig.clocks[0].tick(at_ns));
            let (before, after) = step.between;
            assert!(before <= at && at <= after, "{step:?}: {at}, {cell:?}");
            assert!(after - before <= 5 * 2_500_000_000, "{step:?}: {cell:?}");
            let by = by_ns as i64;
            assert!(step.by_ns.0 <= by && by <= step.by_ns.1, "{step:?}: {cell:?}");
            assert_eq!(held(&rig, &times, 2000, 0.0, 20e9).1, 0, "{cell:?}");
            assert_eq!(times.parts(1).count(), 2);
        }
    }
}

/// Steps smaller than the delays are reported if they are four times the scatter of the minimum
/// delays per second.
#[test]
fn steps_of_four_times_the_scatter_are_reported() {
    for delay in [Delay::Exponential, Delay::Pareto] {
        let (mut found, mut others, seeds) = (0, 0, 100);
        for seed in 0..seeds {
            let at_ns = 8e9 + seed as f64 * 40e6;
            let plain = RigCell { delay, seed, ..RigCell::default() };
            let sign = if seed % 2 == 0 { 4.0 } else { -4.0 };
            let by_ns = sign * Rig::new(&plain).scatter(1, at_ns).max(2_500.0);
            let tick_step = Some(TickStep { host: 1, at_ns, by_ns });
            let rig = Rig::new(&RigCell { tick_step, ..plain });
            let times = solve(&rig);
            let at = i128::from(rig.clocks[0].tick(at_ns));
            for step in times.steps() {
                if step.between.0 <= at && at <= step.between.1 { found += 1 } else { others += 1 }
            }
            assert_eq!(held(&rig, &times, 1000, 0.0, 20e9).1, 0, "{delay:?}, {seed}");
        }
        assert!(found >= seeds - 1 && others <= 1, "{delay:?}: {found}, and {others} others");
    }
}

#[test]
fn more_wander_than_stated_is_reported() {
    let cell = RigCell { seconds: 60.0, wander_ppm_per_min: 100.0, ..RigCell::default() };
    let rig = Rig::new(&cell);
    let readings = read(&rig.text);
    assert!(
        !Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap().steps().is_empty()
    );
    let model = ClockModel { wander_ppm_per_min: 100.0, ..ClockModel::default() };
    let times = Times::between_hosts(&readings, 0, &model).unwrap();
    assert!(times.steps().is_empty());
    assert_eq!(held(&rig, &times, 5000, -60e9, 120e9), (0, 0));
}

#[test]
fn a_message_one_way_is_a_bound_on_one_side() {
    let text = "ppt sync 1\nhost\t0\ta\tone\t1000000000\nhost\t1\tb\ttwo\t1000000000\n";
    let there: String = (0..50u64)
        .map(|number| {
            let at = 1_000_000_000 + number * 100_000_000;
            format!("oneway\t0\t1\t{at}\t{}\n", at + 777_000)
        })
        .collect();
    let back =
        |delay: u64| format!("oneway\t1\t0\t{}\t{}\n", 3_000_700_000u64, 3_000_000_000 + delay);
    let one =
        Times::between_hosts(&read(&format!("{text}{there}")), 0, &ClockModel::default()).unwrap();
    assert_eq!(one.at(1, 3_000_000_000), None);
    let both = Times::between_hosts(
        &read(&format!("{text}{there}{}", back(20_000))),
        0,
        &ClockModel::default(),
    );
    let at = both.unwrap().at(1, 3_000_000_000).unwrap();
    // θ is at most 777 µs, and at least 680 µs.
    assert!(at.lo <= 2_999_223_000 && at.lo > 2_999_222_000, "{at:?}");
    assert!(at.hi >= 2_999_320_000 && at.hi < 2_999_345_000, "{at:?}");
}

/// All lines through two points that contradict no point.
fn possible_lines(upper: &[(f64, f64)], lower: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let all: Vec<_> = upper.iter().chain(lower).copied().collect();
    let mut lines = Vec::new();
    for (i, a) in all.iter().enumerate() {
        for b in all[i + 1..].iter().filter(|b| b.0 != a.0) {
            let slope = (b.1 - a.1) / (b.0 - a.0);
            let at = |x: f64| a.1 + slope * (x - a.0);
            let fits = upper.iter().all(|entry| at(entry.0) <= entry.1 + 1e-3)
                && lower.iter().all(|entry| at(entry.0) >= entry.1 - 1e-3)
                && slope.abs() <= 500e-6;
            if fits {
                lines.push((at(0.0), slope));
            }
        }
    }
    lines
}

#[test]
fn bounds_without_wander_are_those_of_all_possible_lines() {
    let mut random = Random(11);
    let model = ClockModel { wander_ppm_per_min: 0.0, ..ClockModel::default() };
    for round in 0..40 {
        let (offset, slope) = (random.between(-1e6, 1e6), random.between(-300e-6, 300e-6));
        let mut text =
            "ppt sync 1\nhost\t0\ta\tone\t1000000000\nhost\t1\tb\ttwo\t1000000000\n".to_owned();
        let base = 1_000_000_000_000u64;
        // A tick of each, so that both count from the same origin as this test.
        text += &format!("oneway\t0\t1\t{base}\t{}\n", base + 30_000_000_000);
        text += &format!("oneway\t1\t0\t{base}\t{}\n", base + 30_000_000_000);
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for i in 0..40 {
            let x = random.between(1e9, 12e9).round();
            let delay = -random.part().ln() * 50e3;
            let off = offset + slope * x;
            let name = |value: f64| base + value as u64;
            if i % 2 == 0 {
                let y = (off + delay).ceil();
                upper.push((x, y));
                text += &format!("oneway\t0\t1\t{}\t{}\n", name(x), name(x + y));
            } else {
                let y = (off - delay).floor();
                lower.push((x, y));
                text += &format!("oneway\t1\t0\t{}\t{}\n", name(x + y), name(x));
            }
        }
        let lines = possible_lines(&upper, &lower);
        let times = Times::between_hosts(&read(&text), 0, &model).unwrap();
        let knots: Vec<_> = times.parts(1).flatten().copied().collect();
        let inside = |knot: &&ppt_clock::times::TickKnot| {
            knot.tick > base && knot.tick < base + 13_000_000_000
        };
        assert!(knots.iter().filter(inside).count() >= 10);
        for knot in knots.iter().filter(inside) {
            let c = (knot.tick - base) as f64;
            // Where a line reads c.
            let at = lines.iter().map(|line| (c - line.0) / (1.0 + line.1));
            let (lo, hi) =
                at.fold((f64::MAX, f64::MIN), |(lo, hi), value| (lo.min(value), hi.max(value)));
            let (lo, hi) =
                ((lo - (knot.lo - base as i128) as f64), (knot.hi - base as i128) as f64 - hi);
            let loose = 20.0;
            assert!(lo >= 0.0 && hi >= 0.0, "{round}: {knot:?} is narrower by {lo}, {hi}");
            assert!(lo < loose && hi < loose, "{round}: {knot:?} is wider by {lo}, {hi}");
        }
    }
}

#[test]
fn hosts_are_comparable_where_readings_join_them() {
    let cell = RigCell { hosts: 3, ring: false, seconds: 3.0, ..RigCell::default() };
    let rig = Rig::new(&cell);
    let more = "host\t3\tother\tboot-x\t1000\nhost\t4\tbox\tboot-0\t2500000000\n";
    let readings = read(&format!("{}{more}", rig.text));
    let times = Times::between_hosts(&readings, 1, &ClockModel::default()).unwrap();
    let tick = |host: usize| rig.clocks[host].tick(1.5e9);
    let at = times.at(2, tick(2)).unwrap();
    assert!((at.lo..=at.hi).contains(&tick(1).into()), "by way of host 0");
    assert_eq!(times.at(3, 5000), None);
    assert_eq!(times.at(9, 5000), None);
    let own = times.at(1, 7).unwrap();
    assert_eq!((own.lo, own.mid, own.hi), (7, 7, 7));
    assert_eq!(times.at(4, tick(0)), times.at(0, tick(0)), "one boot, one clock");
    assert!(times.at(4, tick(0)).is_some());
    let error = Times::between_hosts(&readings, 5, &ClockModel::default()).unwrap_err();
    assert_eq!(error, TimesError::NoHost { host: 5, hosts: 5 });
}

#[test]
fn hosts_of_one_boot_are_apart_if_messages_went_between_them() {
    let cell = RigCell { seconds: 3.0, ..RigCell::default() };
    let rig = Rig::new(&cell);
    let text = rig.text.replace("boot-1", "boot-0");
    let times = Times::between_hosts(&read(&text), 0, &ClockModel::default()).unwrap();
    assert_eq!(held(&rig, &times, 1000, 0.0, 3e9), (0, 0));
    assert!(!times.is_reference(1));
}

#[test]
fn a_host_that_lies_to_others_is_named() {
    let cell = RigCell { hosts: 5, seconds: 6.0, ..RigCell::default() };
    let rig = Rig::new(&cell);
    // Host 2 reports to host 3 a time 5 ms ahead of what it reports to others.
    let lie = |line: &str| {
        let mut fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
        if line.starts_with("probe\t2\t3") {
            for i in [5, 8] {
                fields[i] = (fields[i].parse::<u64>().unwrap() + 5_000_000).to_string();
            }
            fields[3] = (fields[3].parse::<u64>().unwrap() + 5 * 3_593_000).to_string();
        }
        fields.join("\t") + "\n"
    };
    let text: String = rig.text.lines().map(lie).collect();
    let times = Times::between_hosts(&read(&text), 0, &ClockModel::default()).unwrap();
    assert!(
        times.contradicted().contains(&2) || times.contradicted().contains(&3),
        "{:?}",
        times.contradicted()
    );
    assert!(!times.contradicted().contains(&0) && !times.contradicted().contains(&4));
    assert_eq!(held(&rig, &times, 1000, 0.0, 6e9).1, 0);
    assert!(times.at(4, rig.clocks[4].tick(3e9)).is_some());
}

/// No file content causes a panic.
#[test]
fn nonsense_is_survived() {
    let mut random = Random(5);
    for _ in 0..300 {
        let mut text = "ppt sync 1\n".to_owned();
        let big = |random: &mut Random| random.next() >> (random.next() % 64);
        for host in 0..3 {
            text += &format!(
                "host\t{host}\th{host}\tb{}\t{}\n",
                random.next() % 3,
                1 + big(&mut random) % 1_000_000_000_000
            );
        }
        for _ in 0..random.next() % 40 {
            let mut n = || big(&mut random);
            let (a, b) = (n() % 3, n());
            let (b, c, d) = (n() % 2, b, n());
            let to = (a + 1 + b) % 3;
            text += &match n() % 3 {
                0 => format!("clock\t{a}\ttick\trealtime\t{}\t{}\t{}\n", c.min(d), n(), c.max(d)),
                1 => format!("probe\t{a}\t{to}\t{c}\t{d}\t{}\t{}\t{}\t{}\n", n(), n(), n(), n()),
                _ => format!("oneway\t{a}\t{to}\t{c}\t{d}\n"),
            };
        }
        let times = Times::between_hosts(&read(&text), 0, &ClockModel::default()).unwrap();
        for _ in 0..50 {
            times.at(random.next() as usize % 4, big(&mut random));
        }
    }
}

/// True time minus the time of the rig, in ns since the epoch.
const TRUE: u64 = 1_700_000_000_000_000_000;

/// Hosts see the edges of a signal, up to 3 µs late.
fn pulses(rig: &Rig, hosts: &[usize], seconds: u64) -> String {
    let mut random = Random(8);
    let mut text = String::new();
    for second in 1..seconds {
        for &host in hosts {
            let t = second as f64 * 1e9;
            let (before, after) = (random.between(100.0, 3e3), random.between(100.0, 3e3));
            let ticks = [t - before, t + after].map(|value| rig.clocks[host].tick(value));
            let second = TRUE + second * 1_000_000_000;
            text += &format!("pulse\t{host}\t{second}\t{}\t{}\n", ticks[0], ticks[1]);
        }
    }
    text
}

#[test]
fn pulses_join_hosts_to_true_time_and_to_each_other() {
    let cell = RigCell { hosts: 3, seconds: 20.0, delay: Delay::Asymmetric, ..RigCell::default() };
    let rig = Rig::new(&cell);
    let both = format!("{}{}", rig.text, pulses(&rig, &[0, 2], 20));
    let without: String = both
        .lines()
        .filter(|line| !line.starts_with("probe"))
        .map(|line| format!("{line}\n"))
        .collect();
    let wide = |times: &Times| {
        let at = times.at(2, rig.clocks[2].tick(9.7e9)).unwrap();
        at.hi - at.lo
    };
    let alone = Times::between_hosts(&read(&rig.text), 0, &ClockModel::default()).unwrap();
    for text in [&both, &without] {
        let readings = read(text);
        let times = Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap();
        assert_eq!(held(&rig, &times, 3000, -20e9, 40e9).1, 0);
        // 3 µs on either side of two edges, instead of 240 µs.
        assert!(wide(&times) * 10 < wide(&alone), "{} {}", wide(&times), wide(&alone));
        let truth = Times::of_truth(&readings, &ClockModel::default()).unwrap();
        let mut random = Random(9);
        for _ in 0..3000 {
            let (t, host) = (random.between(1e9, 19e9), random.next() as usize % 3);
            let Some(at) = truth.at(host, rig.clocks[host].tick(t)) else {
                assert!(host == 1 && text == &without, "{host}");
                continue;
            };
            let t = i128::from(TRUE) + t as i128;
            assert!(at.lo <= t + 1 && t <= at.hi, "{host}: {at:?}, {t}");
        }
    }
    let error = Times::of_truth(&read(&rig.text), &ClockModel::default()).unwrap_err();
    assert_eq!(error, TimesError::NoTruth);
}

#[test]
fn what_others_say_counts_where_it_is_believed() {
    let cell = RigCell { hosts: 2, seconds: 10.0, ..RigCell::default() };
    let rig = Rig::new(&cell);
    // CLOCK_REALTIME of host 1 at a tick, and the true time then, stated within 5 µs.
    let mut said = String::new();
    for i in 1..40 {
        let t = f64::from(i) * 0.25e9;
        let clock = &rig.clocks[1];
        let off = i128::from(TRUE) + t as i128 - i128::from(clock.realtime(t)) + 4_000;
        said += &format!("said\t1\tchrony\t{}\t{off}\t5000\n", clock.tick(t));
    }
    let readings = read(&format!("{}{said}", rig.text));
    assert!(Times::of_truth(&readings, &ClockModel::default()).is_err());
    let model = ClockModel { trusts_reports: true, ..ClockModel::default() };
    let truth = Times::of_truth(&readings, &model).unwrap();
    for host in 0..2 {
        for i in 10..90 {
            let t = f64::from(i) * 0.1e9;
            let at = truth.at(host, rig.clocks[host].tick(t)).unwrap();
            let t = i128::from(TRUE) + t as i128;
            assert!(at.lo <= t + 1 && t <= at.hi && at.hi - at.lo < 90_000, "{host}: {at:?}, {t}");
        }
    }
}
