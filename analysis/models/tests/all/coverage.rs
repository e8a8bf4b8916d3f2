//! Intervals of 95 % hold the truth in 93 to 97 % of 1,000 simulated data sets. Seeds are fixed; `--nocapture`
//! prints the figures.

use super::support::Chance;
use ppt_models::{
    Crossing, CrossingRange, Fit, FitOptions, Formula, Resampling, Resource, RunTable, Runs,
};

const SETS: u64 = 1000;

/// The share of cases in which the interval held the truth, in percent.
fn covered(what: &str, times: usize) -> f64 {
    let percent = 100.0 * times as f64 / SETS as f64;
    println!("{what}: {percent:.1} % of {SETS}");
    percent
}

fn good(what: &str, times: usize) {
    let percent = covered(what, times);
    assert!((93.0..=97.0).contains(&percent), "{what}: {percent} %");
}

fn holds(range: CrossingRange, truth: f64) -> bool {
    let load = |crossing: Crossing| match crossing {
        Crossing::At(at) | Crossing::FromTheStart(at) => at,
        Crossing::Never { .. } => f64::INFINITY,
    };
    load(range.low) <= truth && truth <= load(range.high)
}

#[test]
fn t_intervals_of_independent_rows() {
    let formula: Formula = "cpu ~ n + n^2".parse().unwrap();
    let truth = [0.02, 4e-4, 1e-6];
    let cost = |n: f64| truth[0] + truth[1] * n + truth[2] * n * n;
    let limit = 800.0;
    let (mut held, mut predicted, mut single, mut limits) = ([0; 3], 0, 0, 0);
    for set in 0..SETS {
        let mut chance = Chance::new(set);
        let n: Vec<f64> =
            (0..40).map(|index| [10.0, 50.0, 100.0, 200.0, 500.0][index % 5]).collect();
        let cpu = n.iter().map(|&n| cost(n) + 0.02 * chance.normal()).collect();
        let table = RunTable::new([("n", n), ("cpu", cpu)]).unwrap();
        let fit = Fit::new(&formula, &table, FitOptions::default()).unwrap();
        for (held, (coefficient, truth)) in held.iter_mut().zip(fit.coefficients.iter().zip(truth))
        {
            *held += usize::from(coefficient.interval.holds(truth));
        }
        let there = fit.predict(&[("n", 600.0)]).unwrap();
        predicted += usize::from(there.mean.holds(cost(600.0)));
        single += usize::from(there.single.holds(cost(600.0) + 0.02 * chance.normal()));
        let resource = Resource::from_fit("n", fit).unwrap();
        limits += usize::from(holds(resource.limit(cost(limit)).unwrap().range, limit));
    }
    for (name, held) in ["1", "n", "n^2"].iter().zip(held) {
        good(&format!("t, coefficient of {name}"), held);
    }
    good("t, mean at n = 600", predicted);
    good("t, single measurement at n = 600", single);
    good("t, limit", limits);
}

/// Correlated frames in 20 runs at 5 loads. Runs differ by more than their frames.
fn runs(set: u64, each: usize, cost: impl Fn(f64) -> f64) -> RunTable {
    let mut chance = Chance::new(set);
    let (mut n, mut cpu, mut run) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..20 {
        let load = [10.0, 50.0, 100.0, 200.0, 500.0][at % 5];
        let own = 0.01 * chance.normal();
        for noise in chance.following(each, 0.9) {
            n.push(load);
            cpu.push(cost(load) + own + 0.02 * noise);
            run.push(at.to_string());
        }
    }
    RunTable::new([("n", n), ("cpu", cpu)]).unwrap().with_runs(Runs::new(run)).unwrap()
}

#[test]
fn the_bootstrap_over_runs_of_frames_that_follow_each_other() {
    let formula: Formula = "cpu ~ n".parse().unwrap();
    let truth = [0.05, 1e-3];
    let cost = |n: f64| truth[0] + truth[1] * n;
    let options = FitOptions { level: 0.95, resampling: Resampling { count: 1000, seed: 7 } };
    let (mut held, mut by_t, mut predicted, mut limits, mut warned) = ([0; 2], 0, 0, 0, 0);
    for set in 0..SETS {
        let fit = Fit::new(&formula, &runs(set, 50, cost), options).unwrap();
        for (held, (coefficient, truth)) in held.iter_mut().zip(fit.coefficients.iter().zip(truth))
        {
            *held += usize::from(coefficient.bootstrap.unwrap().holds(truth));
        }
        by_t += usize::from(fit.coefficients[1].interval.holds(truth[1]));
        warned += usize::from(fit.coefficients[1].disagrees());
        let there = fit.predict(&[("n", 800.0)]).unwrap();
        predicted += usize::from(there.bootstrap.unwrap().holds(cost(800.0)));
        let resource = Resource::from_fit("n", fit).unwrap();
        let range = resource.limit(0.85).unwrap().bootstrap.unwrap();
        limits += usize::from(holds(range, 800.0));
    }
    good("bootstrap, constant", held[0]);
    good("bootstrap, slope", held[1]);
    good("bootstrap, mean at n = 800", predicted);
    good("bootstrap, limit", limits);
    let by_t = covered("t, slope, of the same frames", by_t);
    assert!(by_t < 70.0, "frames that follow each other are no independent witnesses: {by_t} %");
    let warned = covered("the two intervals disagree, and it is said", warned);
    assert!(warned > 95.0, "{warned} %");
}
