//! SciPy and statsmodels give the same results for the same numbers.
//!
//! `analysis/oracles/install` installs them; one that is missing is named and skipped.

#[path = "../../../oracles/ask.rs"]
mod ask;
use std::io::Write;

use super::support::Chance;
use ask::ask;
use ppt_models::{
    Comparing, Comparison, ConfidenceInterval, Finding, Fit, FitOptions, Formula, MeasuredField,
    Method, Residuals, Robust, RunTable, Statistic,
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

fn near(what: &str, ours: f64, theirs: &Value, digits: f64) {
    let theirs = theirs.as_f64().unwrap_or_else(|| panic!("{what}: {theirs} is no number"));
    let far = (ours - theirs).abs();
    assert!(far <= digits * theirs.abs().max(1e-12), "{what}: {ours}, but {theirs}");
}

fn both(what: &str, ours: ConfidenceInterval, low: &Value, high: &Value, digits: f64) {
    near(&format!("{what}, low"), ours.low, low, digits);
    near(&format!("{what}, high"), ours.high, high, digits);
}

fn file(columns: &[(&str, Vec<f64>)]) -> NamedTempFile {
    let object: serde_json::Map<_, _> =
        columns.iter().map(|(name, values)| ((*name).to_owned(), json!(values))).collect();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(Value::Object(object).to_string().as_bytes()).unwrap();
    file
}

/// Loads and costs: with noise, outliers, and noise that grows with the load.
fn columns(seed: u64, rows: usize, wild: bool) -> Vec<(&'static str, Vec<f64>)> {
    let mut chance = Chance::new(seed);
    let n: Vec<f64> = (0..rows).map(|_| (1.0 + 499.0 * chance.uniform()).round()).collect();
    let m: Vec<f64> = (0..rows).map(|_| 10.0 + 3.0 * chance.normal()).collect();
    let cost = |n: f64, m: f64| 0.02 + 1e-3 * n + 2e-7 * n * n + 1e-3 * m;
    let cpu = n
        .iter()
        .zip(&m)
        .map(|(&n, &m)| {
            let noise = (0.01 + 4e-5 * n) * chance.normal();
            let off = if wild && chance.uniform() < 0.05 { 0.5 } else { 0.0 };
            cost(n, m) + noise + off
        })
        .collect();
    vec![("n", n), ("m", m), ("cpu", cpu)]
}

#[test]
fn statsmodels_fits_the_same() {
    // The formula for ppt, and for patsy.
    let formulas = [
        ("cpu ~ n", "cpu ~ n"),
        ("cpu ~ n + n^2", "cpu ~ n + I(n**2)"),
        ("cpu ~ 0 + n + m", "cpu ~ 0 + n + m"),
        ("cpu ~ n + log(n) + m", "cpu ~ n + np.log(n) + m"),
        ("cpu ~ 1 + n*log(n) + I(m^2) + n:m", "cpu ~ I(n*np.log(n)) + I(m**2) + n:m"),
        ("log(cpu + 2) ~ n", "np.log(cpu + 2) ~ n"),
        ("cpu ~ n + n^2 + n^3", "cpu ~ n + I(n**2) + I(n**3)"),
    ];
    for (seed, rows, wild) in [(1, 12, false), (2, 60, true), (3, 1000, true)] {
        let columns = columns(seed, rows, wild);
        let file = file(&columns);
        let at = json!({"n": 700.0, "m": 12.0});
        let questions: Vec<Value> = formulas.iter().map(|formula| json!([formula.1, at])).collect();
        let Some(answers) = ask("statsmodels", file.path(), &json!(questions)) else { return };
        let table = RunTable::new(columns).unwrap();
        for ((text, patsys), theirs) in formulas.iter().zip(answers) {
            let formula: Formula = text.parse().unwrap();
            let fit = Fit::new(&formula, &table, FitOptions::default()).unwrap();
            let what = format!("{text}, {rows} rows");
            for (at, ours) in fit.coefficients.iter().enumerate() {
                let theirs = &theirs["coefficients"][at];
                let what = format!("{what}, {} ({patsys})", ours.term);
                // statsmodels does not scale columns, and loses digits.
                near(&what, ours.estimate, &theirs[0], 1e-6);
                near(&what, ours.error, &theirs[1], 1e-6);
                near(&what, ours.t, &theirs[2], 1e-6);
                near(&what, ours.p, &theirs[3], 1e-4);
                both(&what, ours.interval, &theirs[4], &theirs[5], 1e-5);
            }
            near(&what, fit.r2, &theirs["r2"][0], 1e-8);
            near(&what, fit.adjusted_r2, &theirs["r2"][1], 1e-8);
            near(&what, fit.aic, &theirs["criteria"][0], 1e-8);
            near(&what, fit.bic, &theirs["criteria"][1], 1e-8);
            near(&what, fit.sigma, &theirs["sigma"], 1e-8);
            let f = fit.f.unwrap();
            near(&what, f.value, &theirs["f"][0], 1e-6);
            near(&what, f.p, &theirs["f"][1], 1e-3);
            let inputs = formula.inputs();
            let given = [("n", 700.0), ("m", 12.0)];
            let given: Vec<_> =
                given.into_iter().filter(|entry| inputs.contains(&entry.0)).collect();
            let there = fit.predict(&given).unwrap();
            let prediction = &theirs["prediction"];
            near(&what, there.value, &prediction[0], 1e-6);
            both(&what, there.mean, &prediction[1], &prediction[2], 1e-5);
            both(&what, there.single, &prediction[3], &prediction[4], 1e-5);
            let residuals = Residuals::from_fit(&fit);
            near(&what, residuals.durbin_watson.unwrap(), &theirs["durbin_watson"], 1e-8);
            if !theirs["spread"][0].is_null() {
                let spread = residuals.spread.unwrap();
                near(&what, spread.value, &theirs["spread"][0], 1e-6);
                near(&what, spread.p, &theirs["spread"][1], 1e-5);
            }
            if let Some(bend) = residuals.bend.filter(|_| !text.contains("n^3")) {
                near(&what, bend.value, &theirs["reset"][0], 1e-4);
                near(&what, bend.p, &theirs["reset"][1], 1e-3);
            }
            let decisive = residuals.findings.iter().find_map(|finding| match finding {
                Finding::Decisive { distance, .. } => Some(*distance),
                _ => None,
            });
            match decisive {
                Some(distance) => near(&what, distance, &theirs["cook"], 1e-6),
                None => assert!(theirs["cook"].as_f64().unwrap() <= 1.0, "{what}"),
            }
            let robust = Robust::from_fit(&fit).unwrap();
            if robust.method == Method::Huber {
                let first = usize::from(formula.constant);
                for (at, slope) in robust.slopes.iter().enumerate() {
                    near(&what, slope.estimate, &theirs["huber"][at + first], 1e-4);
                }
            }
        }
    }
}

#[test]
fn scipy_finds_the_same_lines() {
    for (seed, rows, wild) in [(1, 5, false), (2, 60, true), (3, 1000, true)] {
        let columns = columns(seed, rows, wild);
        let file = file(&columns);
        let questions = json!([["linregress", "n", "cpu"], ["theilslopes", "n", "cpu"]]);
        let Some(answers) = ask("scipy", file.path(), &questions) else { return };
        let table = RunTable::new(columns).unwrap();
        let fit = Fit::new(&"cpu ~ n".parse().unwrap(), &table, FitOptions::default()).unwrap();
        let line = &answers[0];
        let [constant, slope] = &fit.coefficients[..] else { panic!() };
        near("slope", slope.estimate, &line[0], 1e-9);
        near("constant", constant.estimate, &line[1], 1e-9);
        near("its error", slope.error, &line[2], 1e-9);
        near("its error", constant.error, &line[3], 1e-9);
        near("r²", fit.r2, &line[4], 1e-9);
        near("p", slope.p, &line[5], 1e-6);
        let robust = Robust::from_fit(&fit).unwrap();
        assert_eq!(robust.method, Method::TheilSen);
        near("Theil and Sen's", robust.slopes[0].estimate, &answers[1][0], 1e-12);
        both("its", robust.slopes[0].interval.unwrap(), &answers[1][1], &answers[1][2], 1e-12);
    }
}

#[test]
fn scipy_compares_the_same() {
    let mut chance = Chance::new(5);
    let mut runs = |shift: f64, count: usize| -> Vec<Vec<f64>> {
        let mut run = |own: f64| (0..40).map(|_| own + chance.normal()).collect::<Vec<_>>();
        (0..count).map(|at| run(10.0 + shift + 0.2 * (at % 3) as f64)).collect()
    };
    for (shift, counts) in [(0.0, [6, 9]), (1.0, [3, 4])] {
        let (first, second) = (runs(0.0, counts[0]), runs(shift, counts[1]));
        let mean = |runs: &[Vec<f64>]| -> Vec<f64> {
            runs.iter().map(|values| values.iter().sum::<f64>() / values.len() as f64).collect()
        };
        let columns = [
            ("a", mean(&first)),
            ("b", mean(&second)),
            ("all_a", first.concat()),
            ("all_b", second.concat()),
        ];
        let file = file(&columns);
        let questions = json!([["welch", "a", "b"], ["above", "all_a", "all_b"]]);
        let Some(answers) = ask("scipy", file.path(), &questions) else { return };
        let of = |runs: &[Vec<f64>]| MeasuredField::measure(runs, &[Statistic::Mean]).unwrap();
        let found = Comparison::between(&of(&first), &of(&second), Comparing::default()).unwrap();
        let change = &found.changes[0];
        both("Welch's", change.difference.interval, &answers[0][1], &answers[0][2], 1e-8);
        // Computed from 201 quantiles of each side.
        assert!((found.above - answers[1].as_f64().unwrap()).abs() < 0.01, "{}", found.above);
    }
}
