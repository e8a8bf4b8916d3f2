//! Comparisons of generated runs with known differences.

use std::collections::BTreeMap;

use ppt_models::{
    Baseline, Comparing, Comparison, Direction, Entry, Gate, GateResult, MeasuredField, NoRatio,
    Repetition, Resampling, Statistic,
};

use super::support::Chance;

/// Runs of 200 correlated frames; runs differ by 1 %.
fn side(chance: &mut Chance, count: usize, times: f64) -> Vec<Vec<f64>> {
    let run = |chance: &mut Chance| {
        let own = 1.0 + 0.01 * chance.normal();
        let frames = chance.following(200, 0.5);
        frames.into_iter().map(|frame| 1000.0 * times * own * (0.1 * frame).exp()).collect()
    };
    (0..count).map(|_| run(chance)).collect()
}

fn compared(first: &[Vec<f64>], second: &[Vec<f64>], options: Comparing) -> Comparison {
    let of = |runs: &[Vec<f64>]| MeasuredField::measure(runs, &Statistic::USUAL).unwrap();
    Comparison::between(&of(first), &of(second), options).unwrap()
}

fn quick(family: usize) -> Comparing {
    Comparing { family, resampling: Resampling { count: 1000, seed: 1 }, ..Comparing::default() }
}

#[test]
fn five_percent_are_found_and_nothing_is_silent() {
    let gate: Gate = "handle median > 1x".parse().unwrap();
    let strict: Gate = "handle median > 2%".parse().unwrap();
    let (mut found, mut beyond, mut alarms, mut above, mut wrong) = (0, 0, 0, 0, 0);
    for seed in 0..100 {
        let mut chance = Chance::new(seed);
        let [one, same, slower] = [1.0, 1.0, 1.05].map(|value| side(&mut chance, 10, value));
        let slower = compared(&one, &slower, quick(3));
        found += u32::from(gate.judge(&slower.changes[1]) == Ok(GateResult::TooMuch));
        beyond += u32::from(strict.judge(&slower.changes[1]) == Ok(GateResult::TooMuch));
        let same = compared(&one, &same, quick(3));
        alarms += u32::from(gate.judge(&same.changes[1]) == Ok(GateResult::TooMuch));
        above += u32::from(strict.judge(&same.changes[1]) == Ok(GateResult::TooMuch));
        let shown =
            |direction: Direction| matches!(direction, Direction::Higher | Direction::Lower);
        wrong += u32::from(same.changes.iter().any(|change| shown(change.direction)));
    }
    println!(
        "5 % found in {found} of 100, as more than 2 % in {beyond}; itself: {alarms} alarms, \
         {above} of more than 2 %, {wrong} with any of three changes shown"
    );
    assert!(found >= 99 && beyond >= 80, "{found} {beyond}");
    assert!(alarms <= 3 && above == 0 && wrong <= 9, "{alarms} {above} {wrong}");
}

/// 1,000 sets with `PPT_LONG=1`.
#[test]
fn the_interval_of_a_ratio_holds_the_truth() {
    let sets = if std::env::var_os("PPT_LONG").is_some() { 1000 } else { 300 };
    for count in [3, 5, 20] {
        let (mut held, mut drawn) = (0, 0);
        for seed in 0..sets {
            let mut chance = Chance::new(seed);
            let (one, other) = (side(&mut chance, count, 1.0), side(&mut chance, count, 1.2));
            let found = compared(&one, &other, quick(1));
            let ratio = found.changes[0].ratio.unwrap();
            held += usize::from(ratio.interval.holds(1.2));
            drawn += usize::from(ratio.bootstrap.is_some_and(|bootstrap| bootstrap.holds(1.2)));
            assert_eq!(ratio.bootstrap.is_some(), count >= 5);
        }
        let percent = |times: usize| 100.0 * times as f64 / sets as f64;
        println!("{count} runs a side: Welch {} %, bootstrap {} %", percent(held), percent(drawn));
        // Two percent for 1,000 sets, and more for fewer.
        let margin = 2.0 * (1000.0 / sets as f64).sqrt();
        let is_near = |percent: f64| (percent - 95.0).abs() <= margin;
        // With three runs, Welch's intervals are known to be too wide.
        let is_wide = count == 3 && (95.0..=98.5).contains(&percent(held));
        assert!(is_near(percent(held)) || is_wide, "{count}: {held}");
        assert!(count < 5 || is_near(percent(drawn)), "{count}: {drawn}");
    }
}

#[test]
fn verdicts_in_words() {
    let runs = |times: f64| -> Vec<Vec<f64>> {
        let frame = |run: usize, at: usize| times * (100.0 + ((at * 7 + run * 3) % 11) as f64);
        (0..8).map(|run| (0..110).map(|at| frame(run, at)).collect()).collect()
    };
    let changes = |one: f64, other: f64| {
        let found = compared(&runs(one), &runs(other), Comparing::default());
        found.changes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        changes(1.0, 1.0),
        ["mean is the same to 0.0 %", "p50 is the same to 0.0 %", "p99 is the same to 0.0 %"]
    );
    assert_eq!(changes(1.0, 1.1)[0], "mean is 10.0 % higher (+10.0 to +10.0 %)");
    assert_eq!(changes(1.0, 0.8)[2], "p99 is 20.0 % lower (-20.0 to -20.0 %)");
    let mut chance = Chance::new(1);
    let vague = compared(&side(&mut chance, 2, 1.0), &side(&mut chance, 2, 1.01), quick(1));
    assert_eq!(vague.changes[0].direction, Direction::Unclear, "{vague:?}");
    assert!(vague.changes[0].to_string().ends_with("not shown"), "{vague:?}");
    assert!(!vague.one_run());
}

#[test]
fn one_run_a_side_is_told() {
    let mut chance = Chance::new(3);
    let (one, other) = (side(&mut chance, 1, 1.0), side(&mut chance, 1, 1.5));
    let found = compared(&one, &other, quick(1));
    assert!(found.one_run());
    assert_eq!(found.units, [(Repetition::Part, 10), (Repetition::Part, 10)]);
    assert_eq!(found.changes[0].direction, Direction::Higher);
    assert!(found.above > 0.9, "{}", found.above);
    let mixed = compared(&one, &side(&mut chance, 5, 1.0), quick(1));
    assert!(mixed.one_run());
}

#[test]
fn gates_of_ratios_and_of_differences() {
    let mut chance = Chance::new(4);
    let found = compared(&side(&mut chance, 10, 1.0), &side(&mut chance, 10, 1.1), quick(1));
    let judged = |gate: &str| {
        let gate: Gate = gate.parse().unwrap();
        let change =
            found.changes.iter().find(|change| change.statistic == gate.statistic).unwrap();
        gate.judge(change)
    };
    assert_eq!(judged("mean(x) > 1.05x"), Ok(GateResult::TooMuch));
    assert_eq!(judged("mean(x) > 50%"), Ok(GateResult::Fine));
    assert_eq!(judged("mean(x) > 10%"), Ok(GateResult::Unclear));
    assert_eq!(judged("mean(x) < 5%"), Ok(GateResult::Fine));
    assert_eq!(judged("mean(x) > 20ns"), Ok(GateResult::TooMuch));
    assert_eq!(judged("mean(x) > 1us"), Ok(GateResult::Fine));
    let around_0: Vec<Vec<f64>> =
        (0..6).map(|run| (0..9).map(|at| f64::from(at - 5 + run % 3)).collect()).collect();
    let none = compared(&around_0, &around_0, quick(1));
    assert_eq!(none.changes[0].ratio, None);
    let gate: Gate = "mean(x) > 5%".parse().unwrap();
    assert_eq!(gate.judge(&none.changes[0]), Err(NoRatio(Statistic::Mean)));
}

#[test]
fn a_baseline_is_as_good_as_its_runs() {
    let mut chance = Chance::new(6);
    let (one, other) = (side(&mut chance, 6, 1.0), side(&mut chance, 6, 1.1));
    let measured = MeasuredField::measure(&one, &Statistic::USUAL).unwrap();
    let by = BTreeMap::from([("kind".to_owned(), "LOGIN".to_owned())]);
    let entry = Entry { field: "dve.job.handle".to_owned(), by: by.clone(), measured };
    let text = Baseline::new(vec![entry]).to_json();
    let read = Baseline::from_json(&text).unwrap();
    let second = MeasuredField::measure(&other, &Statistic::USUAL).unwrap();
    let saved = read.find("dve.job.handle", &by).unwrap();
    let found = Comparison::between(saved, &second, quick(1)).unwrap();
    assert_eq!(found, compared(&one, &other, quick(1)));
    assert_eq!(read.find("dve.job.handle", &BTreeMap::new()), None);
    let p95 = MeasuredField::measure(&other, &[Statistic::Quantile(95_000)]).unwrap();
    let error = Comparison::between(saved, &p95, quick(1)).unwrap_err().to_string();
    assert_eq!(error, "p95 was not saved; there are: mean, p50, p99");
}

#[test]
fn a_damaged_baseline_is_refused() {
    let measured =
        MeasuredField::measure(&[vec![1.0, 2.0], vec![2.0, 3.0]], &Statistic::USUAL).unwrap();
    let entry = Entry { field: "x".to_owned(), by: BTreeMap::new(), measured };
    let good = Baseline::new(vec![entry]).to_json();
    assert!(Baseline::from_json(&good).is_ok());
    let message = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        Baseline::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert!(
        message("\"version\": 1", "\"version\": 2").ends_with("version 2 is unknown, 1 is known")
    );
    assert!(message("\"mean\"", "\"avg\"").contains("there is no statistic `avg`"));
    assert!(message("\"units\": [", "\"units\": [7.0,").contains("different numbers of units"));
    assert!(message("\"spread\": [", "\"spread\": [9.0,").contains("quantiles are not in order"));
    assert!(message("\"field\"", "\"fiel\"").contains("unknown field"));
    assert!(Baseline::from_json(&good[..good.len() / 2]).is_err());
}
