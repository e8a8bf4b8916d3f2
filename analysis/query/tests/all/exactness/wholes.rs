//! Compares spans and chains of random captures with a model that looks at all pairs of frames.

mod generator;
mod model;

use std::collections::BTreeSet;

use ppt_query::summary::{SummaryRequest, SummaryValues};
use ppt_query::{Encoder, Engine, ResultFormat, RowUnit};
use proptest::prelude::*;
use serde_json::json;

use self::generator::{WholeSchema, world};
use self::model::{SPANS, chains, spans};
use crate::ask::ask;
use crate::random::Dice;
use crate::support::{
    Files, Row, batches, explained, number, rows, runtime, sorted, with_pushdown, without_pushdown,
};

/// What `ppt stat` says of a table is what SQL says.
fn said(
    engine: &Engine,
    table: &str,
    (unit, length): (RowUnit, &str),
) -> Result<(), TestCaseError> {
    let length = length.trim_matches('"');
    let whole = SummaryRequest { spans_and_chains: true, ..SummaryRequest::default() };
    let one = SummaryRequest { frame: Some(table.to_owned()), ..SummaryRequest::default() };
    // All of them, once.
    let asks = if unit == RowUnit::Chain { vec![whole, one] } else { vec![one] };
    for ask in asks {
        let all = runtime().block_on(engine.summary(&ask)).unwrap();
        let of = all.iter().find(|summary| summary.frame == table).unwrap();
        prop_assert_eq!(of.unit, unit);
        let told = of.groups.first();
        let threads = "SELECT count(*) FROM (SELECT DISTINCT host, pid, tid FROM";
        let count = |sql: &str| number(engine, sql) as u64;
        prop_assert_eq!(
            told.map_or(0, |summary| summary.count),
            count(&format!("SELECT count(*) FROM {table}"))
        );
        let Some(told) = told else { continue };
        prop_assert_eq!(told.threads, count(&format!("{threads} {table})")));
        let field = |name: &str| told.fields.iter().find(|field| field.name == name).unwrap();
        let SummaryValues::Numbers { summary, .. } = &field(length).values else { unreachable!() };
        let known = format!("SELECT count(\"{length}\") FROM {table}");
        prop_assert_eq!(summary.count, count(&known));
        let SummaryValues::Words { counts, .. } = &field("state").values else { unreachable!() };
        for (word, times) in counts {
            let rows = format!("SELECT count(*) FROM {table} WHERE state = '{word}'");
            prop_assert_eq!(*times, count(&rows));
        }
        // Where an end lies is no number to summarise.
        prop_assert!(told.fields.iter().all(|field| field.name != "end_seqno"));
    }
    Ok(())
}

proptest! {
    #![proptest_config(super::cases(16))]

    #[test]
    fn wholes_are_what_looking_at_all_pairs_finds(
        seed in any::<u64>(),
        loss in 0..3,
        boots in 1u8..3,
    ) {
        let kind = WholeSchema { gaps: loss == 1, untimed: loss == 2, stated: true, boots, frames: 220 };
        let world = world(&mut Dice::new(seed), kind);
        let files = Files::new(&world.captures);
        for options in [with_pushdown(), without_pushdown()] {
            let engine = files.engine(&options);
            for (kind, name, fifo) in SPANS {
                // A key that is called so keeps its name.
                let (ts, key, dur) = match name {
                    "retry" => ("ppt_ts", "id", "dur"),
                    "visit" => ("ts", "\"Dur\"", "ppt_dur"),
                    _ => ("ts", "id", "dur"),
                };
                let sql = format!(
                    "SELECT capture, segment, ring, seqno, pid, {ts}, {key}, {dur}, end_segment, \
                     end_ring, end_seqno, end_tid, end_pid, begin_value, begin_at, end_value, \
                     end_at, state FROM {name}_spans"
                );
                if name == "trip" && world.boots.len() > 1 {
                    let there: BTreeSet<u8> =
                        world.written.iter().filter(|frame| !frame.lost).map(|frame| frame.boot).collect();
                    if there.len() > 1 {
                        let error = batches(&engine, &sql).unwrap_err();
                        prop_assert_eq!(error.code(), "clocks-not-comparable");
                        continue;
                    }
                }
                prop_assert_eq!(sorted(&engine, &sql), spans(&world, kind, fifo), "{}", name);
                let of = |what: &str| number(&engine, &format!("SELECT count(*) FROM {what}"));
                let closed = of(&format!("{name}_spans WHERE state = 'closed'"));
                let all = of(&format!("{name}_spans"));
                prop_assert_eq!(all + closed, of(&format!("net.{name}")));
                said(&engine, &format!("{name}_spans"), (RowUnit::Span, dur))?;
                let slices = sorted(&engine, &format!(
                    "SELECT segment, ring, seqno, dur, self, depth, parent_seqno, pid, tid \
                     FROM slices WHERE name = '{name}'"
                ));
                let expected = sorted(&engine, &format!(
                    "SELECT segment, ring, seqno, {dur} AS a, {dur} AS b, 0, CAST(NULL AS BIGINT), pid, tid \
                     FROM {name}_spans WHERE state = 'closed'"
                ));
                prop_assert_eq!(slices, expected);
                let of_process = format!("SELECT * FROM {name}_spans WHERE pid = 41");
                let ordered = sorted(&engine, &of_process).len() as i64;
                prop_assert_eq!(ordered, of(&format!("{name}_spans WHERE coalesce(pid, 0) = 41")));
            }
            let sql = "SELECT capture, segment, ring, seqno, ts, id, total, start_ts, dsp_ts, \
                       send_ts, start_to_dsp, dsp_to_send, state FROM encode_chains";
            prop_assert_eq!(sorted(&engine, sql), chains(&world));
            said(&engine, "encode_chains", (RowUnit::Chain, "total"))?;
            let sums = "SELECT count(*) FROM encode_chains WHERE state = 'complete' \
                        AND start_to_dsp + dsp_to_send IS DISTINCT FROM total";
            prop_assert_eq!(number(&engine, sums), 0);
        }
    }

    /// Where heads say no times, bounds are wider, and never too narrow: whatever lost its other half
    /// is `lost`.
    #[test]
    fn what_was_lost_is_never_said_to_be_open(seed in any::<u64>()) {
        let kind = WholeSchema { gaps: true, untimed: false, stated: false, boots: 1, frames: 220 };
        let mut world = world(&mut Dice::new(seed), kind);
        let files = Files::new(&world.captures);
        let engine = files.engine(&with_pushdown());
        let sql = "SELECT capture, segment, ring, seqno, state FROM visit_spans";
        let told = rows(&engine, sql);
        for hole in &mut world.holes {
            // At least here.
            hole.times = (hole.times.0 + 1, hole.times.1 - 1);
        }
        let expected = spans(&world, 2, false);
        prop_assert_eq!(told.len(), expected.len());
        for row in &expected {
            let found = told.iter().find(|row_told| row_told[..4] == row[..4]).unwrap();
            let (found, least) = (found[4].as_deref().unwrap(), row.last().unwrap().as_deref());
            let fits = Some(found) == least || found == "lost" && least != Some("closed");
            prop_assert!(fits, "{} {:?}", found, row);
        }
    }
}

#[test]
fn tables_of_wholes_say_what_they_read() {
    let kind = WholeSchema { gaps: true, untimed: false, stated: true, boots: 1, frames: 220 };
    let world = world(&mut Dice::new(11), kind);
    let files = Files::new(&world.captures);
    let engine = files.engine(&with_pushdown());
    let names: Vec<String> = engine.tables().into_iter().map(|table| table.0).collect();
    for name in ["request_spans", "net.request_spans", "encode_chains", "net.trip_spans"] {
        assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
    let frames = engine.frames(None).unwrap();
    assert_eq!(frames.len(), 5, "what is made of frames is no kind of frames");
    let plan = explained(&engine, "SELECT count(*) FROM request_spans WHERE pid = 40");
    assert!(plan.contains("CapturePass: spans: begins and ends of each key of request"), "{plan}");
    assert!(plan.contains("bounds=[pid=40..=40]"), "{plan}");
    let plan = explained(&engine, "SELECT * FROM visit_spans WHERE pid = 40");
    assert!(!plan.contains("bounds="), "a span of a host may end in another process: {plan}");
    let columns = |sql: &str| {
        let frame = runtime().block_on(engine.sql(sql)).unwrap();
        let fields = frame.schema().fields().iter().map(|field| field.name().clone());
        fields.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        columns("SELECT * FROM retry_spans"),
        "capture buffer segment ring seqno host pid tid ppt_ts drained id ts dur end_segment \
         end_ring end_seqno end_tid end_pid begin_value begin_at end_value end_at state"
    );
    assert_eq!(
        columns("SELECT * FROM encode_chains"),
        "capture buffer segment ring seqno host pid tid ts drained id total start_ts dsp_ts \
         send_ts start_to_dsp dsp_to_send state"
    );
}

/// DuckDB pairs the same frames, by sums over windows: how many spans of a key are open after each
/// frame says which end meets which begin.
#[test]
fn duckdb_pairs_the_same_frames() {
    let key = "pid, id";
    let order = "ORDER BY ns, ring, seqno, segment, capture";
    let heights = format!(
        "WITH sums AS (SELECT *, sum(CASE edge WHEN 'begin' THEN 1 ELSE -1 END) \
                       OVER (PARTITION BY {key} {order}) AS s FROM t), \
              open AS (SELECT *, s - least(0, min(s) OVER (PARTITION BY {key} {order})) AS h \
                       FROM sums), \
              told AS (SELECT *, edge = 'end' AND coalesce(lag(h) OVER (PARTITION BY {key} {order}), \
                       0) = 0 AS orphan FROM open)"
    );
    let answer = "count(*), sum(ns - begun), sum(seqno * begin_seqno)";
    let latest = format!(
        "{heights}, pairs AS (SELECT *, lag(ns) OVER w AS begun, lag(seqno) OVER w AS begin_seqno \
         FROM told WHERE NOT orphan \
         WINDOW w AS (PARTITION BY {key}, CASE edge WHEN 'begin' THEN h ELSE h + 1 END {order})) \
         SELECT {answer} FROM pairs WHERE edge = 'end'"
    );
    let earliest = format!(
        "{heights}, nth AS (SELECT *, row_number() OVER (PARTITION BY {key}, edge {order}) AS n \
         FROM told WHERE NOT orphan), \
         pairs AS (SELECT e.*, b.ns AS begun, b.seqno AS begin_seqno FROM nth e JOIN nth b \
         ON e.pid = b.pid AND e.id = b.id AND e.n = b.n AND e.edge = 'end' AND b.edge = 'begin') \
         SELECT {answer} FROM pairs"
    );
    let mut closed = 0;
    for seed in 0..6 {
        let kind =
            WholeSchema { gaps: false, untimed: false, stated: true, boots: 1, frames: 3000 };
        let world = world(&mut Dice::new(seed * 7 + 1), kind);
        let files = Files::new(&world.captures);
        let engine = files.engine(&with_pushdown());
        for (name, id, query) in
            [("request", "id", &latest), ("retry", "concat(id, ts)", &earliest)]
        {
            let ts = if name == "retry" { "ppt_ts" } else { "ts" };
            let rows_of = format!(
                "SELECT capture, segment, ring, seqno, pid, arrow_cast({ts}, 'Int64') AS ns, \
                 {id} AS id, arrow_cast(edge, 'Utf8') AS edge FROM net.{name}"
            );
            let frames = batches(&engine, &rows_of).unwrap();
            let Some(first) = frames.first() else { continue };
            let path = files.folder().join(format!("{name}.parquet"));
            let file = std::fs::File::create(&path).unwrap();
            let mut encoder = Encoder::new(file, ResultFormat::Parquet, &first.schema()).unwrap();
            frames.iter().for_each(|batch| encoder.write(batch).unwrap());
            encoder.finish().unwrap();
            let Some(answers) = ask("duckdb", &path, &json!([query])) else { return };
            let ours = rows(
                &engine,
                &format!(
                    "SELECT count(*), sum(dur), sum(seqno * end_seqno) FROM {name}_spans \
                     WHERE state = 'closed'"
                ),
            );
            let text = |value: &serde_json::Value| match value {
                serde_json::Value::Null => None,
                serde_json::Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            let theirs: Vec<Row> = answers[0]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row.as_array().unwrap().iter().map(text).collect())
                .collect();
            assert_eq!(ours, theirs, "{name} {seed}");
            closed += ours[0][0].as_ref().unwrap().parse::<u32>().unwrap();
        }
    }
    assert!(closed > 300, "{closed}");
}
