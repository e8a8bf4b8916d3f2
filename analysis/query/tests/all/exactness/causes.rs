//! Compares the causes found with the real ones, which a generator knows.

mod generator;

use std::collections::{BTreeSet, HashSet};

use ppt_query::Engine;
use proptest::prelude::*;

use self::generator::{CauseName, CauseSchema, CausesWorld, world};
use crate::random::Dice;
use crate::support::{Files, number, rows, with_pushdown, without_pushdown};

fn engine(world: &CausesWorld) -> (Files, Engine) {
    let files = Files::new(&world.captures);
    let engine = files.engine(&with_pushdown());
    (files, engine)
}

fn name(row: &[Option<String>]) -> CauseName {
    let cell = |at: usize| row[at].as_ref().unwrap().parse().unwrap();
    (cell(0) as u32, cell(1) as u32, cell(2))
}

/// The edges from SQL, each with whether it is certain.
fn said(engine: &Engine) -> BTreeSet<(CauseName, CauseName)> {
    let sql = "SELECT src_pid, src_ring, src_seqno, dst_pid, dst_ring, dst_seqno FROM edges \
               WHERE kind = 'hash'";
    let rows = rows(engine, sql);
    let edges: BTreeSet<_> = rows.iter().map(|row| (name(&row[..3]), name(&row[3..]))).collect();
    assert_eq!(edges.len(), rows.len(), "an edge comes once");
    edges
}

/// The edges whose two ends are both present.
fn there(world: &CausesWorld) -> BTreeSet<(CauseName, CauseName)> {
    let is_there = |entry: &CauseName| !world.lost.contains(entry);
    world.edges.iter().filter(|edge| is_there(&edge.0) && is_there(&edge.1)).copied().collect()
}

/// The ends on `side` without an edge: names, and why.
fn unmatched(engine: &Engine, side: &str) -> Vec<(CauseName, String)> {
    let sql = format!(
        "SELECT pid, ring, seqno, reason FROM unmatched WHERE side = '{side}' AND \
         NOT (point = 'done' AND type = 'm2' AND side = 'out')"
    );
    rows(engine, &sql).iter().map(|row| (name(row), row[3].clone().unwrap())).collect()
}

const UNIQUE: CauseSchema = CauseSchema {
    messages: 300,
    period: 0,
    delay: 400,
    loss: 0,
    strays: 0,
    captures: 1,
    policy: Some("all"),
};

proptest! {
    #![proptest_config(super::cases(6))]

    #[test]
    fn edges_of_unique_identities_are_what_caused_what(
        seed: u64,
        captures in 1..=2usize,
        loss in prop_oneof![Just(0u64), Just(100), Just(7)],
        strays in prop_oneof![Just(0u64), Just(5)],
    ) {
        let kind = CauseSchema { loss, strays, captures, ..UNIQUE };
        let world = world(&mut Dice::new(seed), kind);
        let (_files, engine) = engine(&world);
        let (said, there) = (said(&engine), there(&world));
        prop_assert_eq!(&said, &there, "recall is what is not lost, precision is 1");

        // The ends without an edge, and why.
        let caused: HashSet<CauseName> = there.iter().map(|edge| edge.1).collect();
        let ins: Vec<_> = unmatched(&engine, "in");
        for (name, reason) in &ins {
            prop_assert!(loss > 0 || !caused.contains(name));
            prop_assert!(reason == "none" || loss > 0);
        }
        if loss == 0 {
            prop_assert_eq!(ins.len() as u64, world.strays);
            prop_assert!(unmatched(&engine, "out").is_empty());
        }
        let count = |column: &str| number(&engine, &format!("SELECT sum({column}) FROM matching"));
        prop_assert_eq!(count("certain") + count("possible"), said.len() as i64);
        prop_assert_eq!(count("unmatched_ins"), ins.len() as i64);
        prop_assert_eq!(number(&engine, "SELECT count(*) FROM unmatched"),
            count("unmatched_ins") + count("unmatched_outs"));
        // What enters a `done` twice leaves it as it is: two rows. Everything else has one.
        let dones = number(&engine, "SELECT count(DISTINCT (pid, ring, seqno)) FROM points WHERE point = 'done'");
        let rows = number(&engine, "SELECT count(*) FROM points");
        prop_assert_eq!(rows, world.points as i64 + dones);
    }

    /// In memory, and sorted by DataFusion.
    #[test]
    fn matching_is_the_same_wherever_it_is_sorted(
        seed: u64,
        period in prop_oneof![Just(0u64), Just(200)],
        policy in prop_oneof![Just("all"), Just("nearest"), Just("fifo")],
        captures in 1..=2usize,
        loss in prop_oneof![Just(0u64), Just(9)],
    ) {
        let kind = CauseSchema { period, loss, captures, policy: Some(policy), strays: 4, ..UNIQUE };
        let world = world(&mut Dice::new(seed), kind);
        let files = Files::new(&world.captures);
        let (here, there) = (files.engine(&with_pushdown()), files.engine(&without_pushdown()));
        for sql in ["SELECT * FROM edges", "SELECT * FROM unmatched", "SELECT type, sum(ins), \
            sum(outs), sum(certain), sum(possible), sum(impossible), sum(unmatched_by_loss) FROM matching GROUP BY 1",
            "SELECT pid, seqno, side, reason FROM unmatched"]
        {
            let sorted = |engine: &Engine| {
                let mut rows = rows(engine, sql);
                rows.sort();
                rows
            };
            let found = sorted(&here);
            prop_assert!(!found.is_empty());
            prop_assert_eq!(found, sorted(&there), "{}", sql);
        }
        let plan = |engine: &Engine| format!("{:?}", rows(engine, "EXPLAIN SELECT * FROM edges"));
        prop_assert!(plan(&here).contains("in memory") && !plan(&there).contains("in memory"));
    }

    /// The page asks for 0.999 of both.
    #[test]
    fn identities_that_come_again_find_the_nearest(seed: u64) {
        let kind = CauseSchema { messages: 1000, period: 200, policy: Some("nearest"), ..UNIQUE };
        let world = world(&mut Dice::new(seed), kind);
        let (_files, engine) = engine(&world);
        let (said, there) = (said(&engine), there(&world));
        let right = said.intersection(&there).count() as f64;
        prop_assert!(right / said.len() as f64 >= 0.999, "precision {right} of {}", said.len());
        prop_assert!(right / there.len() as f64 >= 0.999, "recall {right} of {}", there.len());
    }

    #[test]
    fn paths_are_the_ways_of_messages(seed: u64, strays in prop_oneof![Just(0u64), Just(5)]) {
        let world = world(&mut Dice::new(seed), CauseSchema { strays, captures: 2, ..UNIQUE });
        let (_files, engine) = engine(&world);
        let sql = "SELECT src_pid, src_ring, src_seqno, dst_pid, dst_ring, dst_seqno, latency, hops, route, \
                   latency_lo, latency_hi FROM paths('source', 'flow.done')";
        let said = rows(&engine, sql);
        let long = |text: &Option<String>| text.as_ref().unwrap().parse::<i64>().unwrap();
        let found: BTreeSet<(CauseName, CauseName, u64)> =
            said.iter().map(|row| (name(&row[..3]), name(&row[3..6]), long(&row[6]) as u64)).collect();
        let truth: BTreeSet<_> = world.paths.iter().copied().collect();
        prop_assert_eq!(&found, &truth);
        for row in &said {
            prop_assert_eq!(row[8].as_deref(), Some("source -> relay -> worker -> done"));
            prop_assert!(long(&row[7]) == 3 && row[9] == row[6] && row[10] == row[6]);
        }
        let sum: u64 = world.paths.iter().map(|path| path.2).sum();
        let stages = "SELECT sum(time), sum(share), min(count), max(count), count(*) FROM critical_path('source', 'done')";
        let stages = &rows(&engine, stages)[0];
        prop_assert_eq!(long(&stages[0]) as u64, sum, "stages take as long as their paths, to the ns");
        prop_assert!((stages[1].as_ref().unwrap().parse::<f64>().unwrap() - 1.0).abs() < 1e-9);
        prop_assert_eq!((long(&stages[2]), long(&stages[3]), long(&stages[4])), (truth.len() as i64, truth.len() as i64, 3));
        // All paths lead from the one source of a message.
        let all = number(&engine, "SELECT count(*) FROM paths('source', 'done', 'all')");
        prop_assert_eq!(all as usize, truth.len());
        // No path leads back.
        prop_assert_eq!(number(&engine, "SELECT count(*) FROM paths('done', 'source')"), 0);
    }
}

#[test]
fn points_that_are_not_there_are_named() {
    let world = world(&mut Dice::new(1), CauseSchema { messages: 3, ..UNIQUE });
    let (_files, engine) = engine(&world);
    let said = crate::support::batches(&engine, "SELECT * FROM paths('sorce', 'done')");
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains(
            "no point is called `sorce` (did you mean `source`?); there are: done, relay"
        ),
        "{said}"
    );
    let said = crate::support::batches(&engine, "SELECT * FROM paths('source')").unwrap_err();
    assert!(said.to_string().contains("paths takes two points"), "{said}");
}
