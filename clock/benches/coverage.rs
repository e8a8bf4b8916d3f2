//! Whether bounds hold, how wide they are, and what estimates are wrong by: over generated clocks.
//!
//! `cargo bench -p ppt-clock --bench coverage -- [STAMPS [SECONDS]]` prints a table in Markdown. It
//! compares STAMPS (1,000,000) stamps of each cell with the truth; a record takes SECONDS (120).
//! Each row is of ten cells: host rates that are off by 0, ±35 and ±200 ppm, without and with a
//! wander of 1 ppm/min. It shows the sum of their counts, and the worst of their other figures.
//! `cargo bench -p ppt-clock --bench coverage -- speed` solves ten million readings.

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ppt_clock::sync::Readings;
use ppt_clock::times::{Model, Times};
use rig::{Cell, Delay, Random, Rig};

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    stamps: u64,
    missing: u64,
    outside: u64,
    steps: usize,
    ratio: f64,
    p99_us: f64,
    worst_us: f64,
}

fn main() {
    if std::env::args().any(|it| it == "speed") {
        return speed();
    }
    let mut numbers = std::env::args().skip(1).filter_map(|it| it.parse::<f64>().ok());
    let stamps = numbers.next().unwrap_or(1e6) as u64;
    let seconds = numbers.next().unwrap_or(120.0);
    println!(
        "| delay | REALTIME steps | hosts | stamps | without bound | outside | steps told | width / least delays | p99 error, µs | worst, µs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let delays = [Delay::None, Delay::Exponential, Delay::Pareto, Delay::Loss, Delay::Asymmetric];
    for delay in delays {
        for step_ns in [0.0, 50e3, 10e6] {
            for hosts in [2, 5, 20] {
                let cell = Cell { delay, step_ns, hosts, seconds, ..Cell::default() };
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

/// The worst of all cells with other rates.
fn row(cell: &Cell, stamps: u64) -> Row {
    let rates = [0.0, 35.0, -35.0, 200.0, -200.0];
    let cells: Vec<_> = rates.into_iter().flat_map(|ppm| [(ppm, 0.0), (ppm, 1.0)]).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Vec::new();
        while let Some(&(ppm, wander)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let seed = 1000 + next.load(Ordering::Relaxed) as u64;
            let cell = Cell { ppm, wander_ppm_per_min: wander, seed, ..cell.clone() };
            rows.push(one(&cell, stamps));
        }
        rows
    };
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    rows.into_iter().fold(Row::default(), |a, b| Row {
        stamps: a.stamps + b.stamps,
        missing: a.missing + b.missing,
        outside: a.outside + b.outside,
        steps: a.steps + b.steps,
        ratio: a.ratio.max(b.ratio),
        p99_us: a.p99_us.max(b.p99_us),
        worst_us: a.worst_us.max(b.worst_us),
    })
}

fn one(cell: &Cell, stamps: u64) -> Row {
    let rig = Rig::new(cell);
    let mut readings = Readings::default();
    readings.read(rig.text.as_bytes()).unwrap();
    let times = Times::of(&readings, 0, &Model::default()).unwrap();
    let mut random = Random(cell.seed ^ 0x5EED);
    let hz = readings.hosts()[0].tick_hz() as f64;
    let asymmetry_ns = if cell.delay == Delay::Asymmetric { 200e3 } else { 0.0 };
    let mut row = Row { stamps, steps: times.steps().len(), ..Row::default() };
    let mut errors = Vec::new();
    let (mut width, mut least) = (0.0, 0.0);
    for host in 1..cell.hosts {
        least += rig.least_delays(host, cell.seconds);
    }
    for i in 0..stamps {
        // One of eight is before the first reading, or after the last one.
        let t = match i % 8 {
            0 => random.between(-0.5, 1.5) * cell.seconds * 1e9,
            _ => random.between(0.0, 1.0) * cell.seconds * 1e9,
        };
        let host = 1 + (random.next() % (cell.hosts as u64 - 1)) as usize;
        let truth = i128::from(rig.clocks[0].tick(t));
        let Some(it) = times.at(host, rig.clocks[host].tick(t)) else {
            row.missing += 1;
            continue;
        };
        row.outside += u64::from(truth < it.lo || truth > it.hi);
        if i % 8 != 0 {
            width += (it.hi - it.lo) as f64 * 1e9 / hz;
            let error = (it.mid - truth).abs() as f64 * 1e9 / hz;
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

/// Ten million readings: a fifth of them are probes, the others stand around their stamps.
fn speed() {
    let cell = Cell {
        hosts: 20,
        delay: Delay::Exponential,
        seconds: 1350.0,
        rate: 20.0,
        ..Cell::default()
    };
    let mut readings = Readings::default();
    let rig = Rig::new(&cell);
    let start = Instant::now();
    readings.read(rig.text.as_bytes()).unwrap();
    println!("\nread {} MB in {:.2} s", rig.text.len() >> 20, start.elapsed().as_secs_f64());
    let start = Instant::now();
    let times = Times::of(&readings, 0, &Model::default()).unwrap();
    let took = start.elapsed().as_secs_f64();
    println!(
        "{} probes of {} hosts solved in {took:.2} s; {:?}",
        readings.probes().len(),
        cell.hosts,
        times.unused()
    );
}
