//! Compares measurements with the truth: the clocks of one host have errors given by an equation.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use ppt_clock::sync::{ClockReadings, Probe};
use ppt_clock::times::{ClockModel, Times};
use ppt_clock::{ClockId, ClockReading};
use ppt_hosts::probe::HostClock;
use ppt_hosts::probe::theta::{ClockEquation, Shift};

use crate::relay::{More, Relay, RelayDirection};
use crate::{ProbeLines, Serving, ask, asked};

/// The number of moments at which bounds are compared.
const MOMENTS: u64 = 100_000;

/// Parses θ in the notation of PPT_TEST_CLOCK, with its origin now.
fn shift(text: &str) -> Shift {
    let theta = text.parse::<ClockEquation>().unwrap().theta;
    Shift { theta, origin: ppt_now::ticks(), hz: HostClock::default().tick_hz() }
}

/// The least and the most ticks of a host at a stamp of its kernel. `None` where its REALTIME stepped.
fn ticks(brackets: &[ClockReading], hz: f64, near: u64, stamp: u64) -> Option<(u64, u64)> {
    let at = brackets.partition_point(|bracket| bracket.a_middle() <= near);
    let around = &brackets[at.saturating_sub(3)..(at + 3).min(brackets.len())];
    let away = |reading: &ClockReading| reading.b_value.abs_diff(stamp);
    let clock_reading = around.iter().min_by_key(|reading| away(reading))?;
    let place = |reading: &ClockReading| {
        let since = stamp as i128 - i128::from(reading.b_value);
        let middle = reading.a_middle() as f64 + since as f64 * hz / 1e9;
        // The rate of REALTIME is off by 500 ppm at most; hz is nominal.
        let error = (reading.a_after - reading.a_before) as f64
            + away(reading) as f64 * hz / 1e9 * 600e-6
            + 2.0;
        (middle - error, middle + error)
    };
    let (low, high) = place(clock_reading);
    let agree = |reading: &ClockReading| place(reading).0 <= high && place(reading).1 >= low;
    around.iter().all(agree).then(|| (low as u64, high.ceil() as u64))
}

/// Compares readings with `shift`. Host 0 has the ticks of the machine.
struct TruthComparison {
    probes: u64,
    /// Probes with stamps that no bracket locates.
    stepped: u64,
    /// Packets that arrived before they left.
    impossible: u64,
}

fn compare(readings: &ClockReadings, shift: &Shift) -> TruthComparison {
    let brackets = |host| {
        let all = readings.clocks(host).iter();
        all.filter(|reading| (reading.a, reading.b) == (ClockId::Tick, ClockId::Realtime)).copied()
    };
    let (here, there): (Vec<_>, Vec<_>) = (brackets(0).collect(), brackets(1).collect());
    let hz = |host: usize| readings.hosts()[host].tick_hz() as f64;
    let mut found = TruthComparison { probes: 0, stepped: 0, impossible: 0 };
    for &Probe { from_tick, to_tick, t1, t2, t3, t4, .. } in readings.probes() {
        found.probes += 1;
        let placed = (|| {
            let left = ticks(&here, hz(0), from_tick, t1)?;
            let came = ticks(&there, hz(1), to_tick, t2)?;
            let back = ticks(&there, hz(1), to_tick, t3)?;
            Some((left, came, back, ticks(&here, hz(0), left.1, t4)?))
        })();
        let Some((left, came, back, end)) = placed else {
            found.stepped += 1;
            continue;
        };
        let is_possible = shift.ticks(left.0) <= came.1 && back.0 <= shift.ticks(end.1);
        found.impossible += u64::from(!is_possible);
    }
    found
}

/// The truth is within all bounds, and wrong equations are not.
fn holds(lines: &ProbeLines, shift: &Shift, off_ns: f64) {
    let readings = lines.readings();
    let found = compare(&readings, shift);
    assert_eq!(found.impossible, 0, "of {}", found.probes);
    // A step only affects the probes around it.
    assert!(found.stepped <= 16 * shift.theta.steps.len() as u64, "{}", found.stepped);
    for off in [off_ns, -off_ns] {
        let mut wrong = shift.clone();
        wrong.theta.offset_ns += off;
        assert!(compare(&readings, &wrong).impossible > 0, "{off} ns off, and nothing shows it");
    }
    within_bounds(&readings, shift, off_ns);
}

/// Compares the ticks of the other host, as ticks of this one, at a hundred thousand moments.
fn within_bounds(readings: &ClockReadings, shift: &Shift, off_ns: f64) {
    let wander_ppm_per_min = shift.theta.wander.max(0.01);
    let model = ClockModel { wander_ppm_per_min, ..ClockModel::default() };
    let times = Times::between_hosts(readings, 0, &model).unwrap();
    assert_eq!(times.steps(), []);
    let ticks = readings.probes().iter().map(|probe| probe.from_tick);
    let (first, last) = (ticks.clone().min().unwrap(), ticks.max().unwrap());
    let (mut bounded, mut widest, mut worst, mut sum) = (0, 0, 0, 0);
    for i in 0..MOMENTS {
        let tick = first + (last - first) / MOMENTS * i;
        let Some(bounds) = times.at(1, shift.ticks(tick)) else { continue };
        // The ticks of the other host are rounded by up to half a tick.
        let tick = i128::from(tick);
        assert!(bounds.lo <= tick + 1 && tick <= bounds.hi + 1, "{tick} {bounds:?}, {i}");
        (bounded, widest) = (bounded + 1, widest.max(bounds.hi - bounds.lo));
        (worst, sum) = (worst.max(bounds.mid.abs_diff(tick)), sum + (bounds.hi - bounds.lo));
    }
    assert_eq!(bounded, MOMENTS);
    let ns = |ticks: i128| ticks as f64 * 1e9 / shift.hz as f64;
    let widest_ns = ns(widest);
    let (mean_ns, worst_ns) = (ns(sum) / MOMENTS as f64, ns(worst as i128));
    println!(
        "bounds: mean {mean_ns:.0} ns, widest {widest_ns:.0} ns; error at most {worst_ns:.0} ns"
    );
    assert!(widest_ns < off_ns, "{widest_ns} ns");
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Runs `asks` in a namespace, joined by a cable to another one, in which a server of this clock
/// answers. Both are threads: namespaces and cable are gone with them. `None` without the right to
/// make namespaces.
fn in_namespaces<T: Send>(
    address: SocketAddr,
    clock: HostClock,
    asks: impl FnOnce(SocketAddr) -> T + Send,
) -> Option<T> {
    let asking = move || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
        ip("link set lo up")?;
        let (say, said) = channel();
        let (cable, is_there) = channel();
        let first = move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            say.send(gettid()).unwrap();
            is_there.recv().unwrap();
            for words in [
                "addr add 10.77.0.2/24 dev there",
                "addr add fd77::2/64 dev there nodad",
                "link set there up",
                "link set lo up",
            ] {
                ip(words).unwrap();
            }
        };
        thread::scope(|scope| {
            let serving = scope.spawn(|| Serving::at(address, "b", clock, first));
            let server = said.recv().unwrap();
            ip(&format!("link add here type veth peer name there netns {server}"))?;
            ip("addr add 10.77.0.1/24 dev here")?;
            ip("addr add fd77::1/64 dev here nodad")?;
            ip("link set here up")?;
            cable.send(()).unwrap();
            let serving = serving.join().unwrap();
            Ok::<_, String>(asks(serving.address))
        })
    };
    match thread::scope(|scope| scope.spawn(asking).join().unwrap()) {
        Ok(it) => Some(it),
        Err(why) => {
            eprintln!("no namespaces, so left out: {why}");
            None
        }
    }
}

#[test]
fn between_namespaces_the_truth_is_possible() {
    let shift = shift("offset=123ms,ppm=200,wander=1ppm/min,step=10ms@500ms,step=-50us@900ms");
    let clock = HostClock::shifted(shift.clone());
    // Ten minutes, as users measure, or some seconds.
    let is_long = std::env::var_os("PPT_LONG").is_some();
    let (rate, complete) = if is_long { (10.0, 12_000) } else { (100.0, 500) };
    let run = |address: SocketAddr| ask(&[asked(address)], rate, complete);
    let Some((lines, counts, _)) = in_namespaces("10.77.0.2:0".parse().unwrap(), clock, run) else {
        return;
    };
    assert_eq!((counts[0].foreign, counts[0].replayed), (0, 0), "{counts:?}");
    holds(&lines, &shift, 1e6);
}

#[test]
fn over_ipv6_the_truth_is_possible() {
    let shift = shift("offset=-2s,ppm=-35");
    let clock = HostClock::shifted(shift.clone());
    let run = |address: SocketAddr| ask(&[asked(address)], 100.0, 200);
    let Some((lines, ..)) = in_namespaces("[fd77::2]:0".parse().unwrap(), clock, run) else {
        return;
    };
    holds(&lines, &shift, 1e6);
}

/// A network that delays each packet differently, loses some, and reorders them.
#[test]
fn over_a_bad_network_the_truth_is_possible() {
    let micros = Duration::from_micros;
    for (there, back) in [
        (More::Exp(micros(1000)), More::Exp(micros(1000))),
        (More::Pareto(micros(300)), More::None),
    ] {
        let shift = shift("offset=55ms,ppm=-200,wander=3ppm/min,step=50us@700ms");
        let clock = HostClock::shifted(shift.clone());
        let serving = Serving::at(([127, 0, 0, 1], 0).into(), "b", clock, || {});
        let way = |base, more| RelayDirection { base: micros(base), more, loss: 0.15, harm: 0.05 };
        let relay = Relay::new(serving.address, way(100, there), way(300, back));
        let (lines, counts, _) = ask(&[asked(relay.address)], 100.0, 600);
        assert!(counts[0].unanswered > 0, "{counts:?}");
        holds(&lines, &shift, 50e6);
    }
}

/// One measurement of several hosts: each has its own truth.
#[test]
fn several_hosts_are_asked_at_once() {
    let shifts = ["ppm=35", "offset=1s,ppm=-35", "offset=-7ms"].map(shift);
    let serving: Vec<_> = ["b", "c", "d"]
        .into_iter()
        .zip(&shifts)
        .map(|(name, shift)| {
            let clock = HostClock::shifted(shift.clone());
            Serving::at(([127, 0, 0, 1], 0).into(), name, clock, || {})
        })
        .collect();
    let hosts: Vec<_> = serving.iter().map(|serving| asked(serving.address)).collect();
    let (lines, _, _) = ask(&hosts, 50.0, 50);
    let readings = lines.readings();
    let names: Vec<_> = readings.hosts().iter().map(|host| host.name()).collect();
    assert_eq!((names.len(), names[0]), (4, "asks"));
    for (name, shift) in ["b", "c", "d"].iter().zip(&shifts) {
        // The file of a measurement of this host alone.
        let place = names.iter().position(|text| text == name).unwrap();
        let text = String::from_utf8(lines.text.clone()).unwrap();
        let is_of = |line: &&str| {
            let words: Vec<_> = line.split('\t').collect();
            let host = |at: usize| words[at] == place.to_string();
            match words[0] {
                "host" | "clock" => words[1] == "0" || host(1),
                "probe" => host(2),
                _ => true,
            }
        };
        let one: String = text.split_inclusive('\n').filter(is_of).collect();
        holds(&ProbeLines { text: one.into_bytes(), kept: 0 }, shift, 1e6);
    }
}
