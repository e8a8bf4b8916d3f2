//! Checks what threads did against the truth and against DuckDB.

use std::collections::HashMap;

use ppt_query::{Encoder, ResultFormat};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::kernel::world::{KernelWorld, REAL};
use crate::random::Dice;
use crate::support::{Files, Row, batches, number, rows, sorted, with_pushdown, without_pushdown};

fn long(cell: &Option<String>) -> i64 {
    cell.as_ref().unwrap().parse().unwrap()
}

const STATES: &str = "SELECT tid, ts, dur, state, blocked_in, waker FROM thread_states \
                      ORDER BY tid, ts";

/// Checks that each ns of the table is true or unknown, and is there only once. Returns how many are known.
fn check(world: &KernelWorld, said: &[Row], what: &str) -> usize {
    let mut known = 0;
    let mut until: HashMap<i64, i64> = HashMap::new();
    for row in said {
        let (tid, ts, dur) = (long(&row[0]), long(&row[1]) - REAL as i64, long(&row[2]));
        let until = until.entry(tid).or_insert(ts);
        assert!(*until <= ts && dur > 0, "{what}: {row:?}, said until {until}");
        *until = ts + dur;
        let state = row[3].as_deref().unwrap();
        if state == "unknown" {
            continue;
        }
        let (begin, truth) = &world.truth[&tid];
        for ns in ts..ts + dur {
            // A thread whose end is lost counts as present.
            let Some(truth) = truth.get((ns - begin) as usize) else { continue };
            known += 1;
            // A fault may have begun before what it records.
            let call = row[4].as_deref().filter(|row| *row != "page_fault" || truth.1.is_some());
            assert_eq!(state, truth.0, "{what}: {tid} at {ns}");
            assert!(
                call.is_none() || call == truth.1,
                "{what}: {tid} at {ns} in {call:?}: {truth:?}"
            );
            let waker = row[5].as_ref().map(|row| row.parse().unwrap());
            assert!(
                waker.is_none() || waker == truth.2,
                "{what}: {tid} at {ns}: {row:?}, {truth:?}"
            );
        }
    }
    known
}

#[test]
fn each_ns_of_a_thread_is_what_it_was() {
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let world = KernelWorld::new(&mut dice, 6);
        let total: usize = world.truth.values().map(|entry| entry.1.len()).sum();
        let files = Files::new(&world.captures(&mut dice, 1 + seed as usize % 4, false, false));
        for options in [with_pushdown(), without_pushdown()] {
            let engine = files.engine(&options);
            let said = rows(&engine, STATES);
            assert_eq!(check(&world, &said, &format!("seed {seed}")), total);
            assert!(said.iter().all(|row| row[3].as_deref() != Some("unknown")));
            let lengths = world.truth.iter().map(|(tid, entry)| (*tid, entry.1.len() as i64));
            let sums =
                rows(&engine, "SELECT tid, sum(dur) FROM thread_states GROUP BY 1 ORDER BY 1");
            let sums = sums.iter().map(|sum| (long(&sum[0]), long(&sum[1])));
            assert!(sums.eq(lengths));
            // The result for one thread alone is the same.
            let alone = "SELECT count(*), sum(dur) FROM thread_states WHERE tid = 102 AND pid = 9";
            let of = said.iter().filter(|texts| texts[0].as_deref() == Some("102"));
            let of = (of.clone().count() as i64, of.map(|texts| long(&texts[2])).sum::<i64>());
            let found = rows(&engine, alone);
            assert_eq!((long(&found[0][0]), long(&found[0][1])), of);
            assert_eq!(number(&engine, "SELECT count(*) FROM thread_states WHERE tid = 7"), 0);
        }
        let engine = files.engine(&with_pushdown());
        let mut calls: Vec<Row> = world
            .calls
            .iter()
            .map(|&(tid, ts, end, name)| {
                let text = |number: i64| Some(number.to_string());
                let (dur, result) = (end.map(|end| end - ts), end);
                let ts = ts + REAL as i64;
                vec![
                    text(tid),
                    text(ts),
                    dur.and_then(text),
                    Some(name.into()),
                    result.and_then(text),
                ]
            })
            .collect();
        calls.sort();
        let found = sorted(&engine, "SELECT tid, ts, dur, name, result FROM syscalls");
        assert_eq!(found, calls, "seed {seed}");
        let found = rows(&engine, "SELECT tid, ts, kind, address FROM faults ORDER BY ts, tid");
        let mut faults = world.faults.clone();
        faults.sort_by_key(|fault| (fault.1, fault.0));
        let found: Vec<_> = found
            .iter()
            .map(|texts| {
                assert_eq!(
                    (texts[2].as_deref(), texts[3].as_deref()),
                    (Some("MINOR"), Some("4096"))
                );
                (long(&texts[0]), long(&texts[1]) - REAL as i64)
            })
            .collect();
        assert_eq!(found, faults, "seed {seed}");
    }
}

#[test]
fn what_is_lost_is_unknown_and_never_wrong() {
    let (mut known, mut total) = (0, 0);
    for seed in 0..48 {
        let mut dice = Dice::new(1000 + seed);
        let mut world = KernelWorld::new(&mut dice, 6);
        // Frames that say what the kernel lost are not among what is lost later: they say since when.
        let (kernel, drain, part) =
            [(true, false, false), (false, true, false), (false, false, true), (false, true, true)]
                [seed as usize % 4];
        if kernel {
            (0..1 + dice.below(6)).for_each(|_| world.kernel_loses(&mut dice));
        }
        let captures = world.captures(&mut dice, if part { 4 } else { 1 }, part, drain);
        let files = Files::new(&captures);
        let engine = files.engine(&with_pushdown());
        let what = format!("seed {seed}: kernel {kernel}, drain {drain}, part {part}");
        known += check(&world, &rows(&engine, STATES), &what);
        total += world.truth.values().map(|entry| entry.1.len()).sum::<usize>();
        // No call has a length that it did not have.
        let lengths: HashMap<(i64, i64), i64> = world
            .calls
            .iter()
            .filter_map(|call| Some(((call.0, call.1), call.2? - call.1)))
            .collect();
        for row in rows(&engine, "SELECT tid, ts, dur, name FROM syscalls WHERE dur IS NOT NULL") {
            let begin = (long(&row[0]), long(&row[1]) - REAL as i64);
            assert_eq!(lengths[&begin], long(&row[2]), "{what}: {row:?}");
        }
    }
    assert!(known * 4 > total && known * 100 < total * 99, "{known} of {total}");
}

#[test]
fn a_copy_of_a_capture_adds_nothing() {
    let mut dice = Dice::new(77);
    let world = KernelWorld::new(&mut dice, 4);
    let one = world.captures(&mut dice, 1, false, false).remove(0);
    let again = world.captures(&mut dice, 3, false, false);
    let alone = Files::new(std::slice::from_ref(&one));
    // The same session, as a file and as a series: their ids differ.
    let both = Files::new(&[one, again[1].clone()]);
    let (alone, both) = (alone.engine(&with_pushdown()), both.engine(&with_pushdown()));
    assert_eq!(rows(&alone, STATES), rows(&both, STATES));
}

/// Compares with DuckDB's result from the frames alone.
#[test]
fn duckdb_finds_the_same_in_the_frames() {
    let mut dice = Dice::new(3);
    let world = KernelWorld::new(&mut dice, 8);
    let files = Files::new(&world.captures(&mut dice, 1, false, false));
    let engine = files.engine(&with_pushdown());
    let frames = "SELECT seqno, ts, thread, 'in' AS what, NULL AS n, NULL AS call FROM kernel.switch_in \
        UNION ALL SELECT seqno, ts, thread, 'out', CAST(preempted AS INT), NULL FROM kernel.switch_out \
        UNION ALL SELECT seqno, ts, thread, 'wake', waker, NULL FROM kernel.wakeup \
        UNION ALL SELECT seqno, ts, thread, 'start', parent, NULL FROM kernel.thread_start \
        UNION ALL SELECT seqno, ts, thread, 'end', NULL, NULL FROM kernel.thread_end \
        UNION ALL SELECT seqno, ts, thread, 'enter', NULL, CAST(call AS VARCHAR) FROM kernel.syscall_enter \
        UNION ALL SELECT seqno, ts, thread, 'exit', NULL, CAST(call AS VARCHAR) FROM kernel.syscall_exit";
    let answer = batches(&engine, frames).unwrap();
    let path = files.folder().join("t.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut encoder = Encoder::new(file, ResultFormat::Parquet, &answer[0].schema()).unwrap();
    answer.iter().for_each(|batch| encoder.write(batch).unwrap());
    encoder.finish().unwrap();
    let question = "WITH calls AS (SELECT *, last_value(CASE WHEN what = 'enter' THEN call WHEN \
            what = 'exit' THEN '' END IGNORE NULLS) OVER (PARTITION BY thread ORDER BY seqno) AS inside \
            FROM t), \
        turns AS (SELECT *, lead(epoch_ns(ts)) OVER (PARTITION BY thread ORDER BY seqno) AS until \
            FROM calls WHERE what NOT IN ('enter', 'exit')), \
        said AS (SELECT thread, until - epoch_ns(ts) AS ns, CASE what WHEN 'in' THEN 'running' WHEN 'out' THEN \
            CASE n WHEN 1 THEN 'runnable' ELSE 'blocked' END ELSE 'runnable' END AS state, \
            CASE WHEN what = 'out' AND n = 0 THEN nullif(inside, '') END AS blocked_in \
            FROM turns WHERE what <> 'end') \
        SELECT thread, state, blocked_in, count(*), sum(ns) FROM said GROUP BY ALL \
        ORDER BY 1, 2, 3 NULLS FIRST";
    let ours = "SELECT tid, state, nullif(blocked_in, 'page_fault') AS blocked_in, count(*), sum(dur) \
                FROM thread_states GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 NULLS FIRST";
    let Some(answers) = ask("duckdb", &path, &json!([question])) else { return };
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let row = |row: &Value| row.as_array().unwrap().iter().map(text).collect();
    let theirs: Vec<Row> = answers[0].as_array().unwrap().iter().map(row).collect();
    let ours = rows(&engine, ours);
    assert!(ours.len() > 20, "{ours:?}");
    assert_eq!(ours, theirs);
}
