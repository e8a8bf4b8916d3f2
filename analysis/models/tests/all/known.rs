//! Fits, verdicts and limits of numbers with known truth.

use super::support::Chance;
use ppt_models::{
    Component, Crossing, Finding, Fit, FitError, FitOptions, Formula, FormulaVerdict, Judgement,
    NoBootstrap, PredictError, Reason, Residuals, Resource, ResourceError, Robust, RunTable, Runs,
    TableError,
};

const LOADS: [f64; 5] = [10.0, 50.0, 100.0, 200.0, 500.0];

/// Twenty runs, each of `each` frames at one load; `cost` returns the cost of a frame.
fn runs(seed: u64, each: usize, mut cost: impl FnMut(f64, &mut Chance) -> f64) -> RunTable {
    let mut chance = Chance::new(seed);
    let (mut n, mut cpu, mut run) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..20 {
        for _ in 0..each {
            n.push(LOADS[at % 5]);
            cpu.push(cost(LOADS[at % 5], &mut chance));
            run.push(at.to_string());
        }
    }
    RunTable::new([("n", n), ("cpu", cpu)]).unwrap().with_runs(Runs::new(run)).unwrap()
}

fn fit(formula: &str, table: &RunTable) -> Fit {
    let formula: Formula = formula.parse().unwrap();
    Fit::new(&formula, table, FitOptions::default()).unwrap()
}

fn refused(formula: &str, table: &RunTable) -> FitError {
    let formula: Formula = formula.parse().unwrap();
    Fit::new(&formula, table, FitOptions::default()).unwrap_err()
}

#[test]
fn the_stated_formula_is_confirmed_and_others_are_not() {
    let line = |n: f64, chance: &mut Chance| 0.05 + 1e-3 * n + 0.01 * chance.normal();
    let curve = |n: f64, chance: &mut Chance| 0.05 + 3e-6 * n * n + 0.01 * chance.normal();
    let line = runs(1, 20, line);
    let curve = runs(2, 20, curve);
    let judged = |formula: &str, table: &RunTable| Judgement::from_fit(&fit(formula, table));
    assert_eq!(judged("cpu ~ n", &line).verdict, FormulaVerdict::Confirmed);
    assert_eq!(judged("cpu ~ n^2", &curve).verdict, FormulaVerdict::Confirmed);
    let too_little = judged("cpu ~ n", &curve);
    assert_eq!(too_little.verdict, FormulaVerdict::Refuted);
    let Reason::Missing { term, moves } = &too_little.reasons[0] else { panic!("{too_little:?}") };
    assert!(term.contains('n') && *moves > 0.05, "{term} {moves}");
    // A superfluous term: refuted if it is surely small, otherwise undecided.
    let too_much = judged("cpu ~ n + n^2", &line);
    assert_ne!(too_much.verdict, FormulaVerdict::Confirmed, "{too_much:?}");
    let seen = Reason::Seen { term: "n".to_owned() };
    assert!(too_much.reasons.contains(&seen), "{too_much:?}");
    let flat = runs(3, 20, |_, chance| 0.5 + 0.01 * chance.normal());
    let nothing = judged("cpu ~ n", &flat);
    assert_eq!(nothing.verdict, FormulaVerdict::Refuted);
    assert!(matches!(&nothing.reasons[0], Reason::Nothing { term, .. } if term == "n"));
}

#[test]
fn a_verdict_is_rarely_wrong() {
    let (mut confirmed, mut refuted) = (0, 0);
    for seed in 0..100 {
        let line = runs(seed, 3, |n, chance| 0.05 + 1e-3 * n + 0.02 * chance.normal());
        confirmed += u32::from(
            Judgement::from_fit(&fit("cpu ~ n", &line)).verdict == FormulaVerdict::Confirmed,
        );
        let curve = runs(seed, 3, |n, chance| 0.05 + 2e-6 * n * n + 0.02 * chance.normal());
        refuted += u32::from(
            Judgement::from_fit(&fit("cpu ~ n", &curve)).verdict == FormulaVerdict::Refuted,
        );
    }
    println!("of 100 lines {confirmed} confirmed, of 100 curves {refuted} refuted");
    assert!(confirmed >= 95 && refuted >= 88, "{confirmed} {refuted}");
}

#[test]
fn two_loads_cannot_tell_a_line_from_a_curve() {
    let n: Vec<f64> = (0..20).map(|number| if number % 2 == 0 { 10.0 } else { 100.0 }).collect();
    let mut chance = Chance::new(1);
    let cpu = n.iter().map(|n| n * 1e-3 + 0.001 * chance.normal()).collect();
    let table = RunTable::new([("n", n), ("cpu", cpu)]).unwrap();
    let judged = Judgement::from_fit(&fit("cpu ~ n", &table));
    assert_eq!(judged.verdict, FormulaVerdict::Undecided);
    assert_eq!(judged.reasons[0], Reason::FewLevels { levels: 2, needed: 3 });
}

#[test]
fn residuals_have_findings_in_words() {
    let findings =
        |table: &RunTable, formula: &str| Residuals::from_fit(&fit(formula, table)).findings;
    let has = |all: &[Finding], what: &str| {
        assert!(all.iter().any(|finding| finding.to_string().contains(what)), "{what}: {all:?}");
    };
    let clean = runs(1, 20, |n, chance| 0.05 + 1e-3 * n + 0.01 * chance.normal());
    assert_eq!(findings(&clean, "cpu ~ n"), []);
    let mut wrong = 0;
    for seed in 0..300 {
        let each = 1 + seed as usize % 50;
        let clean = runs(seed, each, |n, chance| 0.05 + 1e-3 * n + 0.01 * chance.normal());
        wrong += findings(&clean, "cpu ~ n").len();
    }
    println!("of 300 clean sets {wrong} had findings");
    assert!(wrong <= 12, "three tests, each wrong once in a hundred: {wrong} of 300");
    let bent = runs(2, 20, |n, chance| 3e-6 * n * n + 0.01 * chance.normal());
    has(&findings(&bent, "cpu ~ n"), "residuals bend: a term is missing");
    let fan = runs(3, 20, |n, chance| 1e-3 * n + 1e-4 * n * chance.normal());
    has(&findings(&fan, "cpu ~ n"), "the spread grows with the fitted value");
    let mut last = 0.0;
    let following = runs(4, 50, move |n, chance| {
        last = 0.8 * last + 0.01 * chance.normal();
        1e-3 * n + last
    });
    has(
        &findings(&following, "cpu ~ n"),
        "rows are not independent, and t intervals are too narrow",
    );
    let two = runs(5, 50, |n, chance| {
        let slow = if chance.uniform() < 0.4 { 0.2 } else { 0.0 };
        1e-3 * n + slow + 0.01 * chance.normal()
    });
    has(&findings(&two, "cpu ~ n"), "several modes");
    let mut table =
        vec![("n", vec![1.0, 2.0, 3.0, 4.0, 100.0]), ("cpu", vec![1.0, 2.1, 2.9, 4.2, 7.0])];
    has(
        &findings(&RunTable::new(table.clone()).unwrap(), "cpu ~ n"),
        "the row of n = 100 decides the fit",
    );
    table[0].1 = vec![101.0, 102.0, 103.0, 104.0, 0.0];
    has(
        &findings(&RunTable::new(table.clone()).unwrap(), "cpu ~ n"),
        "the row of n = 0 decides the fit",
    );
    table[0].1 = vec![1.0, 2.0, 3.0, 4.0, 100.0];
    table[1].1 = vec![2.0, 4.0, 6.0, 8.0, 200.0];
    assert_eq!(findings(&RunTable::new(table).unwrap(), "cpu ~ n"), [], "rounding is no pattern");
}

#[test]
fn the_two_intervals_disagree_where_frames_follow_each_other() {
    let mut chance = Chance::new(9);
    let mut own = [0.0; 20];
    own.iter_mut().for_each(|value| *value = 0.05 * chance.normal());
    let mut frame = 0;
    let table = runs(1, 200, move |n, chance| {
        frame += 1;
        1e-3 * n + own[(frame - 1) / 200] + 0.01 * chance.normal()
    });
    let fit = fit("cpu ~ n", &table);
    let slope = &fit.coefficients[1];
    assert!(slope.disagrees());
    assert!(slope.bootstrap.unwrap().width() > 3.0 * slope.interval.width());
    assert_eq!(slope.believed(), slope.bootstrap.unwrap());
    let independent = runs(2, 200, |n, chance| 1e-3 * n + 0.01 * chance.normal());
    assert!(!self::fit("cpu ~ n", &independent).coefficients[1].disagrees());
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let table = runs(1, 5, |n, chance| 1e-3 * n + 0.01 * chance.normal());
    let interval = |seed| {
        let mut options = FitOptions::default();
        options.resampling.seed = seed;
        let fit = Fit::new(&"cpu ~ n".parse().unwrap(), &table, options).unwrap();
        fit.coefficients[1].bootstrap.unwrap()
    };
    assert_eq!(interval(3), interval(3));
    assert_ne!(interval(3), interval(4));
    // Another generator, or another order of drawing, would change published results.
    let known = interval(1);
    assert_eq!(format!("{:.6e} {:.6e}", known.low, known.high), "9.968118e-4 1.021224e-3");
}

#[test]
fn too_few_runs_have_no_bootstrap() {
    let runs = |of: &[usize]| {
        let n: Vec<f64> = (0..30).map(|index| LOADS[index % 5]).collect();
        let mut chance = Chance::new(1);
        let cpu = n.iter().map(|n| n + chance.normal()).collect();
        let names = (0..30).map(|index| of[index % of.len()].to_string());
        let table = RunTable::new([("n", n), ("cpu", cpu)]).unwrap();
        fit("cpu ~ n", &table.with_runs(Runs::new(names)).unwrap()).bootstrap.map(|_| ())
    };
    assert_eq!(runs(&[1]), Err(NoBootstrap::TooFew { runs: 1, least: 6 }));
    assert_eq!(runs(&[1, 2, 3, 4, 5]), Err(NoBootstrap::TooFew { runs: 5, least: 6 }));
    assert_eq!(runs(&[1, 2, 3, 4, 5, 6]), Ok(()));
    // A single run has another load: a third of the resamples lack it.
    let n: Vec<f64> = (0..20).map(|number| if number < 19 { 10.0 } else { 50.0 }).collect();
    let cpu: Vec<f64> = (0..20).map(|number| f64::from(number % 7)).collect();
    let table = RunTable::new([("n", n), ("cpu", cpu)]).unwrap();
    let table = table.with_runs(Runs::new((0..20).map(|number| number.to_string()))).unwrap();
    let Err(NoBootstrap::Alike { failed, of }) = fit("cpu ~ n", &table).bootstrap else { panic!() };
    assert!((of / 4..of / 2).contains(&failed), "{failed} of {of}");
}

#[test]
fn a_limit_within_beyond_and_never() {
    let of = |formula: &str, cost: fn(f64) -> f64| {
        let table = runs(1, 5, |n, chance| cost(n) + 0.002 * chance.normal());
        Resource::from_fit("n", fit(formula, &table)).unwrap()
    };
    let line = of("cpu ~ n", |n| 0.05 + 1e-3 * n);
    let limit = line.limit(0.9).unwrap();
    let range = limit.believed();
    let (Crossing::At(at), Crossing::At(low), Crossing::At(high)) =
        (limit.crossing, range.low, range.high)
    else {
        panic!("{limit:?}")
    };
    assert!((at - 850.0).abs() < 20.0 && low < at && at < high, "{low} {at} {high}");
    assert!(limit.at_limit.beyond.is_some(), "850 users were not measured");
    assert!((limit.at_limit.value - 0.9).abs() < 1e-9);
    assert!(line.limit(0.3).unwrap().at_limit.beyond.is_none());
    assert_eq!(line.limit(0.01).unwrap().crossing, Crossing::FromTheStart(10.0));
    let flat = of("cpu ~ n", |n| 0.9 - 1e-3 * n);
    let never = flat.limit(1.5).unwrap();
    assert_eq!(never.crossing, Crossing::Never { searched: 500_000.0 });
    assert_eq!(never.crossing.to_string(), "never (looked for up to 500000)");
    assert!(matches!(flat.limit(f64::NAN), Err(PredictError::Bound { .. })));
}

#[test]
fn a_slope_that_may_be_none_has_a_limit_without_an_end() {
    let table = runs(11, 1, |n, chance| 0.5 + 2e-5 * n + 0.02 * chance.normal());
    let limit = Resource::from_fit("n", fit("cpu ~ n", &table)).unwrap().limit(0.9).unwrap();
    assert!(matches!(limit.range.low, Crossing::At(_)), "{limit:?}");
    assert!(matches!(limit.range.high, Crossing::Never { .. }), "{limit:?}");
}

#[test]
fn whose_uncertainty_dominates() {
    let part = |name: &str, noise: f64, seed: u64| {
        let table = runs(seed, 5, |n, chance| 1e-4 * n + noise * chance.normal());
        Component { name: name.to_owned(), fit: fit("cpu ~ n", &table) }
    };
    let parts =
        vec![part("input", 0.001, 1), part("simulation", 0.02, 2), part("output", 0.001, 3)];
    let cpu = Resource::new("n", parts).unwrap();
    for total in [cpu.predict(1000.0).unwrap(), cpu.limit(0.9).unwrap().at_limit] {
        assert_eq!(total.dominant().unwrap().name, "simulation");
        assert!(total.dominant().unwrap().uncertainty > 0.9, "{total:?}");
        let sum: f64 = total.parts.iter().map(|part| part.uncertainty).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{total:?}");
        let values: f64 = total.parts.iter().map(|part| part.value).sum();
        assert!((values - total.value).abs() < 1e-12);
        assert!(total.bootstrap.is_some());
    }
}

#[test]
fn what_components_have_in_common_stays_together() {
    // In each run, the second costs less by as much as the first costs more: the sum is certain.
    let mut chance = Chance::new(4);
    let (mut n, mut one, mut other, mut run) = (vec![], vec![], vec![], vec![]);
    for at in 0..20 {
        let shift = 0.05 * chance.normal();
        n.push(LOADS[at % 5]);
        one.push(1e-3 * LOADS[at % 5] + shift);
        other.push(1e-3 * LOADS[at % 5] - shift + 0.001 * chance.normal());
        run.push(at.to_string());
    }
    let part = |name: &str, cpu: &[f64]| {
        let table = RunTable::new([("n", n.clone()), ("cpu", cpu.to_vec())]).unwrap();
        let table = table.with_runs(Runs::new(&run)).unwrap();
        Component { name: name.to_owned(), fit: fit("cpu ~ n", &table) }
    };
    let cpu = Resource::new("n", vec![part("one", &one), part("other", &other)]).unwrap();
    let total = cpu.predict(300.0).unwrap();
    let (t, bootstrap) = (total.mean.width(), total.bootstrap.unwrap().width());
    assert!(bootstrap < t / 10.0, "{bootstrap} {t}");
}

#[test]
fn a_resource_knows_its_load_alone() {
    let table = RunTable::new([
        ("n", LOADS.to_vec()),
        ("m", vec![3.0, 1.0, 4.0, 1.0, 5.0]),
        ("cpu", vec![1.0, 2.0, 3.5, 6.0, 14.0]),
    ]);
    let table = table.unwrap();
    let of = |formula: &str| Resource::from_fit("n", fit(formula, &table)).map(|_| ()).unwrap_err();
    assert_eq!(
        of("cpu ~ n + m").to_string(),
        "the formula of `cpu` has `m`: a model knows `n` alone"
    );
    assert_eq!(of("cpu ~ 1").to_string(), "no formula has `n`: nothing grows with it");
    assert_eq!(Resource::new("n", vec![]).unwrap_err(), ResourceError::Empty);
}

#[test]
fn what_cannot_be_fitted_is_told() {
    let table = RunTable::new([
        ("n", vec![1.0, 2.0, 3.0, 4.0, 5.0]),
        ("twice", vec![2.0, 4.0, 6.0, 8.0, 10.0]),
        ("same", vec![7.0; 5]),
        ("hole", vec![1.0, f64::NAN, 3.0, 4.0, f64::NAN]),
        ("zero", vec![3.0, 2.0, 1.0, 0.0, 5.0]),
        ("cpu", vec![1.0, 2.0, 4.0, 3.0, 6.0]),
    ]);
    let table = table.unwrap();
    let message = |formula: &str| {
        let error = refused(formula, &table);
        match error.span() {
            None => error.to_string(),
            Some(span) => format!("{error}\n{}", ppt_models::carets(formula, &span)),
        }
    };
    assert_eq!(
        message("cpu ~ n + sme"),
        "there is no column `sme` (did you mean `same`?); there are: n, twice, same, hole, zero, cpu\n\
         cpu ~ n + sme\n          ^^^"
    );
    assert_eq!(
        message("cpu ~ n + twice"),
        "`twice` follows from `n`: no data can tell them apart, so leave one out\n\
         cpu ~ n + twice\n          ^^^^^"
    );
    assert_eq!(
        message("cpu ~ n + I(2*n + 3)"),
        "`(2*n + 3)` follows from `1`, `n`: no data can tell them apart, so leave one out\n\
         cpu ~ n + I(2*n + 3)\n          ^^^^^^^^^^"
    );
    assert_eq!(
        message("cpu ~ n + same"),
        "`same` is 7 in every row: its effect cannot be determined\ncpu ~ n + same\n          ^^^^"
    );
    assert_eq!(
        message("same ~ n"),
        "`same` is 7 in every row: there is nothing to explain\nsame ~ n\n^^^^"
    );
    assert_eq!(
        message("cpu ~ hole"),
        "`hole` is NaN in row 2: 2 of 5 rows have no number there\ncpu ~ hole\n      ^^^^"
    );
    assert_eq!(
        message("cpu ~ n + log(zero)"),
        "`log(zero)` is -inf in row 4: 1 of 5 rows have no number there\n\
         cpu ~ n + log(zero)\n          ^^^^^^^^^"
    );
    assert_eq!(
        message("cpu ~ n + n^2 + n^3 + n^4"),
        "5 points are too few for 5 coefficients (1, n, n^2, n^3, n^4): 6 are the least"
    );
    let huge =
        RunTable::new([("n", vec![1.0, 2.0, 3.0]), ("cpu", vec![1e300, -1e300, 1e300])]).unwrap();
    assert_eq!(refused("cpu ~ n", &huge), FitError::TooLarge);
    let none = RunTable::new::<&str>([]).unwrap();
    assert!(matches!(refused("cpu ~ n", &none), FitError::NoColumn { .. }));
    let level = FitOptions { level: 1.0, ..FitOptions::default() };
    let found = Fit::new(&"cpu ~ n".parse().unwrap(), &table, level).unwrap_err();
    assert_eq!(found.to_string(), "a level of 1 is not between 0 and 1");
}

#[test]
fn tables_that_are_none() {
    let twice = RunTable::new([("n", vec![1.0]), ("n", vec![2.0])]).unwrap_err();
    assert_eq!(twice, TableError::Twice { column: "n".to_owned() });
    let short = RunTable::new([("n", vec![1.0, 2.0]), ("cpu", vec![2.0])]).unwrap_err();
    assert_eq!(short.to_string(), "column `cpu` has 1 rows, the others have 2");
    let table = RunTable::new([("n", vec![1.0, 2.0])]).unwrap();
    assert!(table.with_runs(Runs::new(["a"])).is_err());
}

#[test]
fn a_point_needs_what_the_formula_has() {
    let table =
        RunTable::new([("n", LOADS.to_vec()), ("cpu", vec![1.0, 2.0, 3.5, 6.0, 14.0])]).unwrap();
    let fit = fit("cpu ~ log(n)", &table);
    let message = |at: &[(&str, f64)]| fit.predict(at).unwrap_err().to_string();
    assert_eq!(message(&[]), "the formula needs a value of `n`");
    assert_eq!(
        message(&[("n", 1.0), ("N", 1.0)]),
        "the formula has no `N` (did you mean `n`?); it has: n"
    );
    assert_eq!(message(&[("n", 0.0)]), "`log(n)` has no value at n = 0");
    let there = fit.predict(&[("n", 1000.0)]).unwrap();
    assert_eq!((there.beyond[0].at, there.beyond[0].measured.high), (1000.0, 500.0));
    assert!(there.single.width() > there.mean.width() && there.bootstrap.is_none());
    assert!(fit.predict(&[("n", 300.0)]).unwrap().beyond.is_empty());
}

#[test]
fn a_wild_row_moves_least_squares_and_not_the_robust_slope() {
    let n: Vec<f64> = (1..=40).map(f64::from).collect();
    let mut cpu: Vec<f64> = n.iter().map(|n| 2.0 * n + (n * 7.0) % 3.0).collect();
    cpu[39] += 1000.0;
    let table = RunTable::new([("n", n), ("cpu", cpu)]).unwrap();
    let line = fit("cpu ~ n", &table);
    assert!(line.coefficients[1].estimate > 4.0);
    assert!((Robust::from_fit(&line).unwrap().slopes[0].estimate - 2.0).abs() < 0.05);
    let curve = Robust::from_fit(&fit("cpu ~ n + sqrt(n)", &table)).unwrap();
    assert!((curve.slopes[0].estimate - 2.0).abs() < 0.2, "{curve:?}");
}

/// NIST's Wampler1: a polynomial of degree 5 whose coefficients are all 1, of which a careless method finds one
/// or two digits.
#[test]
fn a_hard_polynomial() {
    let x: Vec<f64> = (0..21).map(f64::from).collect();
    let y = x.iter().map(|x| (0..6).map(|number| x.powi(number)).sum()).collect();
    let table = RunTable::new([("x", x), ("y", y)]).unwrap();
    let fit = fit("y ~ x + x^2 + x^3 + x^4 + x^5", &table);
    for coefficient in &fit.coefficients {
        assert!(
            (coefficient.estimate - 1.0).abs() < 1e-7,
            "{}: {}",
            coefficient.term,
            coefficient.estimate
        );
    }
    assert!(1.0 - fit.r2 < 1e-15);
}
