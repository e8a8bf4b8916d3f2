//! The numbers of `ppt whatif --live`, computed again from the tables of `ppt dump`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::docs::stable::list;
use crate::fixtures::support::{Bench, root};

/// A round of an experiment. Times are ns since the epoch.
#[derive(Debug)]
pub struct Round {
    pub start: i64,
    pub end: i64,
    pub permutation: i64,
    pub speed: f64,
    pub slowed: String,
}

pub fn rounds(bench: &Bench) -> Vec<Round> {
    let table = bench.table("out.bin", &["--frame", "round", "--time", "ns"]);
    let (starts, ends) = (table.numbers("round_start"), table.numbers("round_end"));
    let (permutations, speeds) = (table.numbers("permutation"), table.cells("speed"));
    let slowed = table.cells("slowed");
    let round = |at: usize| Round {
        start: starts[at],
        end: ends[at],
        permutation: permutations[at],
        speed: speeds[at].parse().unwrap(),
        slowed: slowed[at].to_owned(),
    };
    (0..starts.len()).map(round).collect()
}

/// The begins and ends of an interval; the first may have begun before ppt came.
pub fn lengths(bench: &Bench, frame: &str, interval: &str) -> Vec<(i64, i64)> {
    let table = bench.table("out.bin", &["--frame", frame, "--time", "ns"]);
    let half = |edge: &str| table.numbers_or_0(&format!("{interval}_{edge}"));
    half("start").into_iter().zip(half("end")).filter(|it| it.0 > 0 && it.1 > 0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which a share of the others lies.
fn at(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len() - 1) as f64;
    let (low, part) = (place as usize, place.fract());
    sorted[low] + (sorted[(low + 1).min(sorted.len() - 1)] - sorted[low]) * part
}

/// The times without the pauses of CPUs: t − G(t), of the frames `virtual_clock`. Without any, times are as they are.
pub fn virtual_time(bench: &Bench) -> impl Fn(i64) -> i64 {
    let ran = bench.ppt(&["dump", "out.bin", "--frame", "virtual_clock", "--time", "ns"]);
    let points: Vec<(i64, i64, f64)> = if ran.code() == 0 {
        let table = bench.table("out.bin", &["--frame", "virtual_clock", "--time", "ns"]);
        let rates = table.cells("rate").into_iter().map(|rate| rate.parse().unwrap());
        let sums = table.numbers("at").into_iter().zip(table.numbers("paused"));
        sums.zip(rates).map(|((at, paused), rate)| (at, paused, rate)).collect()
    } else {
        Vec::new()
    };
    assert!(points.is_sorted_by_key(|point| point.0) && points.is_sorted_by_key(|point| point.1));
    move |time| {
        let before = points.iter().rev().find(|point| point.0 <= time);
        let grown = |&(at, paused, rate): &(i64, i64, f64)| {
            paused + ((time - at) as f64 * rate).round() as i64
        };
        time - before.map_or(0, grown)
    }
}

/// The begins and ends of spans of a frame with a key `id`, in the order of ends.
pub fn spans(bench: &Bench, frame: &str) -> Vec<(i64, i64)> {
    let table = bench.table("out.bin", &["--frame", frame, "--time", "ns"]);
    let (times, ids, edges) = (table.numbers("at"), table.numbers("id"), table.cells("edge"));
    let mut begun = std::collections::BTreeMap::new();
    let mut spans = Vec::new();
    for ((time, id), edge) in times.into_iter().zip(ids).zip(edges) {
        if edge == "begin" {
            begun.insert(id, time);
        } else if let Some(begin) = begun.remove(&id) {
            spans.push((begin, time));
        }
    }
    spans
}

#[track_caller]
fn equal(what: &str, said: &Value, computed: f64) {
    let said = said.as_f64().unwrap_or_else(|| panic!("{what} is no number: {said}"));
    let scale = said.abs().max(computed.abs()).max(1e-9);
    assert!((said - computed).abs() <= 1e-9 * scale, "{what}: {said}, computed {computed}");
}

/// Checks that each number of the answers about an interval is that of the dump.
pub fn hold(bench: &Bench, (frame, interval): (&str, &str), answers: &[Value]) {
    hold_lengths(bench, lengths(bench, frame, interval), "slowed", answers);
}

/// The same, about a span, while CPUs paused.
pub fn hold_paused(bench: &Bench, frame: &str, answers: &[Value]) {
    let at = virtual_time(bench);
    let spans = spans(bench, frame).into_iter().map(|(begin, end)| (at(begin), at(end)));
    hold_lengths(bench, spans.collect(), "paused", answers);
}

fn hold_lengths(bench: &Bench, lengths: Vec<(i64, i64)>, how: &str, answers: &[Value]) {
    let at_virtual = virtual_time(bench);
    let rounds: Vec<Round> = rounds(bench)
        .into_iter()
        .map(|round| Round { start: at_virtual(round.start), end: at_virtual(round.end), ..round })
        .collect();
    let whole = |permutation: i64| {
        let count = |of: i64| rounds.iter().filter(|round| round.permutation == of).count();
        permutation > 0 && count(permutation) == count(1)
    };
    let rounds_of = |slowed: &str, speed: f64| -> Vec<&Round> {
        let is_it = |round: &&Round| {
            round.slowed == slowed && (round.speed - speed).abs() < 1e-6 && whole(round.permutation)
        };
        let mut found: Vec<_> = rounds.iter().filter(is_it).collect();
        found.sort_by_key(|round| round.start);
        found
    };
    let bases = rounds_of("", 1.0);
    // 100 ms, or three times the 95th percentile of what ended in a baseline.
    let ended = bases.iter().flat_map(|round| {
        let ended = lengths.iter().filter(|it| it.1 >= round.start && it.1 < round.end);
        ended.map(|it| (it.1 - it.0) as f64)
    });
    let dropped = (3.0 * at(&ended.collect::<Vec<_>>(), 0.95)).max(100e6) as i64;
    let inside = |rounds: &[&Round]| -> Vec<f64> {
        let inside = rounds.iter().flat_map(|round| {
            let start = round.start + dropped;
            lengths.iter().filter(move |it| it.0 >= start && it.1 <= round.end)
        });
        inside.map(|it| (it.1 - it.0) as f64).collect()
    };
    let base = inside(&bases);
    let (first, second): (Vec<&Round>, Vec<&Round>) = (
        bases.iter().step_by(2).copied().collect(),
        bases.iter().skip(1).step_by(2).copied().collect(),
    );
    let aa = mean(&inside(&second)) / mean(&inside(&first)) - 1.0;
    let untouched: Vec<&Round> = rounds.iter().filter(|round| round.permutation == 0).collect();
    for answer in answers {
        let (slowed, speed) = answer["speed"].as_object().unwrap().iter().next().unwrap();
        let arm = rounds_of(slowed, speed.as_f64().unwrap());
        let values = inside(&arm);
        let (was, predicted) = (&answer["was"], &answer["predicted"]);
        for (said, values) in [(was, &base), (predicted, &values)] {
            equal("n", &said["n"], values.len() as f64);
            equal("mean", &said["mean"], mean(values));
            for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                equal(name, &said[name], at(values, share));
            }
        }
        equal("base_mean", &answer["base_mean"], mean(&base));
        equal("untouched_mean", &answer["untouched_mean"], mean(&inside(&untouched)));
        equal("rounds", &answer["rounds"], arm.len() as f64);
        equal("aa", &answer["aa"], aa);
        equal("gain", &answer["gain"], 1.0 - mean(&values) / mean(&base));
        assert_eq!(answer["how"], how);
        // The permutations, drawn again with other dice: both intervals are samples of the same.
        let drawn = drawn(arm.len(), |draw| {
            let arms: Vec<&Round> = draw.iter().map(|&at| arm[at]).collect();
            let bases: Vec<&Round> =
                draw.iter().flat_map(|&at| [bases[2 * at], bases[2 * at + 1]]).collect();
            (mean(&inside(&arms)), 1.0 - mean(&inside(&arms)) / mean(&inside(&bases)))
        });
        let wider = (arm.len() as f64 / (arm.len() as f64 - 1.0)).sqrt();
        let around = [(predicted, "mean", mean(&values)), (answer, "gain", 0.0)];
        for (which, (said, name, _)) in around.into_iter().enumerate() {
            let of: Vec<f64> =
                drawn.iter().map(|pair| if which == 0 { pair.0 } else { pair.1 }).collect();
            let middle = said[name].as_f64().unwrap();
            let (low, high) = (at(&of, 0.025), at(&of, 0.975));
            let (low, high) = (middle + (low - middle) * wider, middle + (high - middle) * wider);
            for (edge, computed) in [("lo", low), ("hi", high)] {
                let told = said[format!("{name}_{edge}")].as_f64().unwrap();
                let off = (told - computed).abs() / (high - low);
                assert!(off < 0.25, "{name}_{edge}: {told}, drawn {computed} of {low} to {high}");
            }
        }
    }
}

/// Checks that keys and columns keep their names.
pub fn stay(bench: &Bench, answers: &[Value]) {
    let mut there = BTreeSet::new();
    list::keys("whatif --live", &answers.to_vec().into(), &["speed"], &mut there);
    let ran = bench.ppt(&["whatif", "out.bin", "--format", "tsv"]);
    let columns = ran.stdout.lines().next().unwrap_or_default().split('\t');
    there.extend(columns.map(|column| format!("whatif --live column {column}")));
    list::hold(root(), "whatif-live.txt", &there);
}

/// What comes of permutations that are drawn again.
fn drawn<T>(count: usize, of: impl Fn(&[usize]) -> T) -> Vec<T> {
    let mut state = 0x853c_49e6_748f_ea9bu64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % count
    };
    (0..400).map(|_| of(&(0..count).map(|_| next()).collect::<Vec<_>>())).collect()
}
