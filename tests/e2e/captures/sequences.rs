//! Random sequences of user actions and accidents with captures and tables, compared with a model
//! of the folder's required content after each step: no content is ever lost.
//!
//! A sequence has a number, which is its seed: `PPT_SEQUENCE=17 cargo test --test e2e sequences`
//! repeats one. The actions of a step are printed when it fails.
//!
//! A command that writes a file from a capture is one line of [`ONE_SHOT`]; any other action is one
//! line of [`STEPS`].

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::fixtures::steady::build;
use crate::fixtures::support::{Account, Bench, record, rounds, segments_of};

mod clocks;
mod files;
mod parts;
mod recorder;
mod sessions;
mod world;

use world::World;

/// Commands that write a file, `-o FILE [--force]`, from a capture: they write what they print
/// without `-o`.
const ONE_SHOT: [&[&str]; 6] = [
    &["dump"],
    &["dump", "--format", "jsonl"],
    &["stat", "--format", "json"],
    &["sql", "SELECT * FROM frames"],
    &["plot", "SELECT seqno FROM frames"],
    &["export", "--format", "chrome"],
];

type WorldStep = fn(&mut World);

/// The possible steps with their weights.
const STEPS: [(u32, WorldStep); 19] = [
    (6, World::attach),
    (8, World::write),
    (3, World::stop),
    (3, World::kill),
    (3, World::attach_and_kill),
    (2, World::two_at_once),
    (2, World::refused),
    (1, World::wait_in_vain),
    (2, World::run_command),
    (2, World::full_disk),
    (5, World::one_shot),
    (2, World::one_shot_killed),
    (2, World::import),
    (2, World::sync),
    (2, World::move_file),
    (2, World::delete_file),
    (3, World::accident),
    (1, World::rotate),
    (2, World::record),
];

/// Number of steps of one sequence.
const LENGTH: usize = 14;
const CAPTURES: [&str; 4] = ["a.bin", "b.bin", "c.bin", "d.bin"];
const TABLES: [&str; 2] = ["a.tsv", "b.tsv"];

#[test]
fn none_is_lost() {
    if let Some(number) = std::env::var_os("PPT_SEQUENCE") {
        let number = number.to_str().and_then(|text| text.parse().ok()).expect("a number");
        return drop(sequence(&build(&[]), number));
    }
    let (count, next) = (rounds(40, 1000), AtomicUsize::new(0));
    let source = build(&[]);
    let totals = std::thread::scope(|scope| {
        let worker = || {
            let mut total = Totals::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return total;
                }
                total.add(&sequence(&source, number as u64));
            }
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().fold(Totals::default(), |mut total, worker| {
            total.add(&worker.join().unwrap());
            total
        })
    });
    eprintln!("{totals}, {} frames", totals.captured);
    let case = format!("{count} random sequences: {totals}");
    let account = Account { captured: totals.captured, ..Account::default() };
    record("-", &case, totals.captured, account, &Value::Null, segments_of(&totals.agents));
}

/// The totals of all sequences.
#[derive(Debug, Default)]
struct Totals {
    /// Frames that were in captures when these ended, and were still there at the end.
    captured: u64,
    sessions: u64,
    kills: u64,
    accidents: u64,
    refusals: u64,
    agents: Vec<u32>,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.captured += other.captured;
        self.sessions += other.sessions;
        self.kills += other.kills;
        self.accidents += other.accidents;
        self.refusals += other.refusals;
        self.agents.extend(&other.agents);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sessions, kills, accidents, refusals, .. } = self;
        write!(f, "{sessions} captures, {kills} kills, {accidents} accidents, {refusals} refusals")
    }
}

fn sequence(source: &Bench, number: u64) -> Totals {
    let mut world = World::new(source, number);
    let weights: u32 = STEPS.iter().map(|step| step.0).sum();
    for _ in 0..LENGTH {
        let mut at = world.random.below(weights.into()) as u32;
        let step = STEPS.iter().find(|(weight, _)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        step.unwrap().1(&mut world);
        world.check();
    }
    world.end()
}
