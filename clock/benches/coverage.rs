//! Checks bounds on generated clocks: whether they hold, their width, and the error of the
//! estimates.
//!
//! `cargo bench -p ppt-clock --bench coverage -- [STAMPS [SECONDS]]` prints a table in Markdown. It
//! compares STAMPS (1,000,000) stamps of each cell with the truth; a record lasts SECONDS (120).
//! Each row covers ten cells: host rates that are off by 0, ±35 and ±200 ppm, without and with a
//! wander of 1 ppm/min. It shows the sum of their counts, and the worst of their other figures.
//! `cargo bench -p ppt-clock --bench coverage -- steps` steps the ticks of one host in each of 400
//! records per row, by a multiple of the scatter of the minimum delays in the seconds around the
//! step. `cargo bench -p ppt-clock --bench coverage -- limit` compares the error at exponential
//! delays with the least that any estimator can have. `cargo bench -p ppt-clock --bench coverage --
//! speed` solves ten million readings.

#[path = "../tests/all/rig.rs"]
mod rig;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ppt_clock::sync::ClockReadings;
use ppt_clock::times::{ClockModel, Times};
use rig::{Delay, Random, Rig, RigCell, TickStep};

const DELAYS: [Delay; 5] =
    [Delay::None, Delay::Exponential, Delay::Pareto, Delay::Loss, Delay::Asymmetric];

#[derive(Debug, Clone, Copy, Default)]
struct CoverageRow {
    stamps: u64,
    missing: u64,
    outside: u64,
    steps: usize,
    ratio: f64,
    p99_us: f64,
    worst_us: f64,
}

fn main() {
    if std::env::args().any(|arg| arg == "speed") {
        return speed();
    }
    if std::env::args().any(|arg| arg == "steps") {
        return steps();
    }
    if std::env::args().any(|arg| arg == "limit") {
        return limit();
    }
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<f64>().ok());
    let stamps = numbers.next().unwrap_or(1e6) as u64;
    let seconds = numbers.next().unwrap_or(120.0);
    println!(
        "| delay | REALTIME steps | hosts | stamps | without bound | outside | steps found | width / least delays | p99 error, µs | worst, µs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for delay in DELAYS {
        for step_ns in [0.0, 50e3, 10e6] {
            for hosts in [2, 5, 20] {
                let cell = RigCell { delay, step_ns, hosts, seconds, ..RigCell::default() };
                let row = row(&cell, stamps);
                println!(
                    "| {delay:?} | {} µs | {hosts} | {} | {} | {} | {} | {:.3} | {:.3} | {:.1} |",
                    step_ns / 1e3,
                    row.stamps,
                    row.missing,
                    row.outside,
                    row.steps,
                    row.ratio,
                    row.p99_us,
                    row.worst_us
                );
            }
        }
    }
}

/// The worst of all cells that differ only in their rates.
fn row(cell: &RigCell, stamps: u64) -> CoverageRow {
    let rates = [0.0, 35.0, -35.0, 200.0, -200.0];
    let cells: Vec<_> = rates.into_iter().flat_map(|ppm| [(ppm, 0.0), (ppm, 1.0)]).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Vec::new();
        while let Some(&(ppm, wander)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let seed = 1000 + next.load(Ordering::Relaxed) as u64;
            let cell = RigCell { ppm, wander_ppm_per_min: wander, seed, ..cell.clone() };
            rows.push(one(&cell, stamps));
        }
        rows
    };
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    rows.into_iter().fold(CoverageRow::default(), |a, b| CoverageRow {
        stamps: a.stamps + b.stamps,
        missing: a.missing + b.missing,
        outside: a.outside + b.outside,
        steps: a.steps + b.steps,
        ratio: a.ratio.max(b.ratio),
        p99_us: a.p99_us.max(b.p99_us),
        worst_us: a.worst_us.max(b.worst_us),
    })
}

fn one(cell: &RigCell, stamps: u64) -> CoverageRow {
    let rig = Rig::new(cell);
    let mut readings = ClockReadings::default();
    readings.read(rig.text.as_bytes()).unwrap();
    let times = Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap();
    let mut random = Random(cell.seed ^ 0x5EED);
    let hz = readings.hosts()[0].tick_hz() as f64;
    let asymmetry_ns = if cell.delay == Delay::Asymmetric { 200e3 } else { 0.0 };
    let mut row = CoverageRow { stamps, steps: times.steps().len(), ..CoverageRow::default() };
    let mut errors = Vec::new();
    let (mut width, mut least) = (0.0, 0.0);
    for host in 1..cell.hosts {
        least += rig.least_delays(host, cell.seconds);
    }
    for i in 0..stamps {
        // One in eight is before the first reading or after the last one.
        let t = match i % 8 {
            0 => random.between(-0.5, 1.5) * cell.seconds * 1e9,
            _ => random.between(0.0, 1.0) * cell.seconds * 1e9,
        };
        let host = 1 + (random.next() % (cell.hosts as u64 - 1)) as usize;
        let truth = i128::from(rig.clocks[0].tick(t));
        let Some(bounds) = times.at(host, rig.clocks[host].tick(t)) else {
            row.missing += 1;
            continue;
        };
        row.outside += u64::from(truth < bounds.lo || truth > bounds.hi);
        if i % 8 != 0 {
            width += (bounds.hi - bounds.lo) as f64 * 1e9 / hz;
            let error = (bounds.mid - truth).abs() as f64 * 1e9 / hz;
            errors.push((error - asymmetry_ns / 2.0).max(0.0));
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors.get((errors.len() as f64 * part) as usize).copied();
    row.p99_us = at(0.99).unwrap_or(f64::NAN) / 1e3;
    row.worst_us = errors.last().copied().unwrap_or(f64::NAN) / 1e3;
    row.ratio = width / errors.len() as f64 / (least / (cell.hosts - 1) as f64);
    row
}

/// Detected steps, by their size in units of the scatter, and at least 10 µs.
fn steps() {
    const RECORDS: u64 = 400;
    println!(
        "| delay | scatters | median step, µs | found | another one found | stamps outside | span found, s: median | worst |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for delay in DELAYS {
        for scatters in [2.0, 4.0, 8.0] {
            let (mut found, mut others, mut outside) = (0, 0, 0);
            let (mut sizes, mut spans) = (Vec::new(), Vec::new());
            for seed in 0..RECORDS {
                let mut random = Random(seed ^ 0x57E9);
                let at_ns = random.between(8e9, 12e9);
                let plain = RigCell { delay, seed, ..RigCell::default() };
                let size = (scatters * Rig::new(&plain).scatter(1, at_ns)).max(10e3);
                let by_ns = if seed % 2 == 0 { size } else { -size };
                let tick_step = Some(TickStep { host: 1, at_ns, by_ns });
                let rig = Rig::new(&RigCell { tick_step, ..plain });
                let mut readings = ClockReadings::default();
                readings.read(rig.text.as_bytes()).unwrap();
                let times = Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap();
                let at = i128::from(rig.clocks[0].tick(at_ns));
                for step in times.steps() {
                    if step.between.0 <= at && at <= step.between.1 {
                        found += 1;
                        spans.push((step.between.1 - step.between.0) as f64 / 2.5e9);
                    } else {
                        others += 1;
                    }
                }
                for _ in 0..1000 {
                    let t = random.between(0.0, 20e9);
                    let truth = i128::from(rig.clocks[0].tick(t));
                    let bound = times.at(1, rig.clocks[1].tick(t));
                    outside +=
                        u64::from(bound.is_some_and(|bound| truth < bound.lo || truth > bound.hi));
                }
                sizes.push(size / 1e3);
            }
            let median = |all: &mut Vec<f64>| {
                all.sort_by(f64::total_cmp);
                all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
            };
            println!(
                "| {delay:?} | {scatters} | {:.0} | {found} of {RECORDS} | {others} | {outside} | {:.1} | {:.1} |",
                median(&mut sizes),
                median(&mut spans),
                spans.last().copied().unwrap_or(f64::NAN)
            );
        }
    }
}

/// The 99th percentile of the error at exponential delays, and its lower limit for any estimator.
///
/// Two truths whose difference is a bump of height d, of four parabolas with the largest curvature
/// that two hosts may have against each other (4w for two such truths), are told apart only by a
/// packet whose delay exceeds the least one by less than the bump: all other packets are as likely
/// in both truths, because what the way there gains in density, the way back loses. With r packets a
/// second each way and a mean excess of m, no such packet comes with probability exp(-r A / m),
/// where A = d^(3/2) / w^(1/2) is the area of the bump. Then an estimator can only guess, and is off
/// by d / 2 in one of two cases. At an end of the record, the bump is one parabola, highest at the
/// end, and its area is A / (3 √2).
fn limit() {
    const RECORDS: u64 = 300;
    println!("| seconds | place | p99 error, µs | limit of any estimator, µs |");
    println!("|---|---|---|---|");
    for seconds in [20.0, 60.0, 120.0, 600.0] {
        let plain =
            RigCell { delay: Delay::Exponential, seconds, ring: false, ..RigCell::default() };
        let (mut middle, mut ends) = (Vec::new(), Vec::new());
        for seed in 0..RECORDS {
            let rig = Rig::new(&RigCell { seed: 9_000 + seed, ..plain.clone() });
            let mut readings = ClockReadings::default();
            readings.read(rig.text.as_bytes()).unwrap();
            let times = Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap();
            let hz = readings.hosts()[0].tick_hz() as f64;
            let error = |t: f64| {
                let truth = i128::from(rig.clocks[0].tick(t));
                let bounds = times.at(1, rig.clocks[1].tick(t)).unwrap();
                (bounds.mid - truth).abs() as f64 * 1e6 / hz
            };
            let span = seconds * 1e9;
            middle.extend((0..200).map(|i| error(span * (0.25 + 0.5 * f64::from(i) / 200.0))));
            ends.extend([0.001, 0.002, 0.998, 0.999].map(|share| error(span * share)));
        }
        let p99 = |errors: &mut Vec<f64>| {
            errors.sort_by(f64::total_cmp);
            errors[errors.len() * 99 / 100]
        };
        // Two packets in each burst; half of what fails by chance shows in the 99th percentile.
        let packets_per_s = 2.0 * plain.rate;
        let wander_per_s = plain.wander_ppm_per_min * 1e-6 / 60.0;
        let area = (0.5f64 / 0.01).ln() * 1e-3 / packets_per_s;
        let height = |area: f64| (area * wander_per_s.sqrt()).powf(2.0 / 3.0);
        for (place, errors, limit) in [
            ("middle half", &mut middle, height(area) / 2.0),
            ("ends", &mut ends, height(3.0 * 2f64.sqrt() * area) / 2.0),
        ] {
            println!("| {seconds} | {place} | {:.1} | {:.1} |", p99(errors), limit * 1e6);
        }
    }
}

/// Ten million readings: a fifth are probes, the others are clock readings around their stamps.
fn speed() {
    let cell = RigCell {
        hosts: 20,
        delay: Delay::Exponential,
        seconds: 1350.0,
        rate: 20.0,
        ..RigCell::default()
    };
    let mut readings = ClockReadings::default();
    let rig = Rig::new(&cell);
    let start = Instant::now();
    readings.read(rig.text.as_bytes()).unwrap();
    println!("\nread {} MB in {:.2} s", rig.text.len() >> 20, start.elapsed().as_secs_f64());
    let start = Instant::now();
    let times = Times::between_hosts(&readings, 0, &ClockModel::default()).unwrap();
    let took = start.elapsed().as_secs_f64();
    println!(
        "{} probes of {} hosts solved in {took:.2} s; {:?}",
        readings.probes().len(),
        cell.hosts,
        times.unused()
    );
}
