//! Compares our answers with those of independent tools for the same rows.
//!
//! `analysis/oracles/install` installs them; one that is missing is named and skipped.

use std::path::PathBuf;

use ppt_query::{Encoder, Engine, ResultFormat};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::random::capture;
use crate::support::{Files, batches, number, rows, with_pushdown};

/// Many frames of several captures, and `what` of them as a file.
fn written(what: &str) -> (Files, Engine, PathBuf) {
    let captures: Vec<Vec<u8>> = (1..40).map(|n| capture(n * 77, n as u8, true)).collect();
    let files = Files::new(&captures);
    let engine = files.engine(&with_pushdown());
    // Some frames do not carry their number, which is not in heads.
    engine.set().verify().unwrap();
    let path = files.folder().join("t.parquet");
    let answer = batches(&engine, what).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut encoder = Encoder::new(file, ResultFormat::Parquet, &answer[0].schema()).unwrap();
    answer.iter().for_each(|batch| encoder.write(batch).unwrap());
    encoder.finish().unwrap();
    batches(&engine, &format!("CREATE VIEW t AS {what}")).unwrap();
    (files, engine, path)
}

#[test]
fn duckdb_answers_the_same_queries() {
    let (_files, engine, path) = written("SELECT * FROM frames");
    let queries = [
        "SELECT count(*), count(ts), count(tid), min(seqno), max(seqno), sum(seqno) FROM t",
        "SELECT buffer, frame, count(*), sum(ring) FROM t GROUP BY 1, 2 ORDER BY 1, 2 NULLS LAST",
        "SELECT capture, segment, ring, count(*), min(seqno), max(seqno) FROM t \
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        "SELECT host, pid, tid, count(*) FROM t WHERE seqno % 3 = 1 GROUP BY 1, 2, 3 \
         ORDER BY 1, 2, 3 NULLS FIRST",
        "SELECT capture, buffer, segment, ring, seqno, CASE WHEN ts IS NULL THEN 1 ELSE 0 END FROM t \
         ORDER BY ts NULLS FIRST, capture, buffer, segment, ring, seqno",
        "SELECT capture, buffer, segment, ring, seqno, CASE WHEN ts IS NULL THEN 1 ELSE 0 END FROM t \
         ORDER BY ts DESC NULLS LAST, capture, buffer, segment, ring, seqno",
        "SELECT tid, seqno, capture, segment, ring FROM t ORDER BY tid, seqno, 3, 4, 5",
        "SELECT capture, buffer, segment, ring, seqno FROM t ORDER BY capture NULLS FIRST, \
         buffer NULLS FIRST, segment NULLS FIRST, ring NULLS FIRST, seqno NULLS FIRST",
        "SELECT count(*) FROM t a JOIN t b ON a.capture = b.capture AND a.segment = b.segment \
         AND a.ring = b.ring AND a.seqno = b.seqno + 1",
    ];
    let Some(answers) = ask("duckdb", &path, &json!(queries)) else { return };
    for (query, answer) in queries.iter().zip(answers) {
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let expected: Vec<Vec<Option<String>>> = answer
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(text).collect())
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(rows(&engine, query), expected, "{query}");
    }
}

#[test]
fn readers_of_parquet_find_the_same_values() {
    let (_files, engine, path) = written("SELECT * FROM frames");
    let questions = json!([
        ["rows"],
        ["ns", "ts"],
        ["ns", "drained"],
        ["nulls", "ts"],
        ["sum", "seqno"],
        ["counts", "frame"]
    ]);
    let one = |sql: &str| Value::from(number(&engine, sql));
    let counts: Vec<Value> = rows(
        &engine,
        "SELECT frame, count(*) FROM frames GROUP BY frame ORDER BY coalesce(frame, '')",
    )
    .into_iter()
    .map(|row| {
        let count: i64 = row[1].as_ref().unwrap().parse().unwrap();
        json!([row[0].clone().unwrap_or_default(), count])
    })
    .collect();
    // Sums of times are beyond 64 bits: by halves.
    let ns = |column: &str| {
        let half = |part: &str| {
            number(
                &engine,
                &format!("SELECT sum(arrow_cast({column}, 'Int64') {part}) FROM frames"),
            )
        };
        let sum =
            i128::from(half("/ 1000000000")) * 1_000_000_000 + i128::from(half("% 1000000000"));
        Value::from(sum.to_string())
    };
    for tool in ["pyarrow", "polars", "pandas"] {
        let Some(answers) = ask(tool, &path, &questions) else { continue };
        assert_eq!(answers[0], one("SELECT count(*) FROM frames"), "{tool}");
        assert_eq!(answers[1], ns("ts"), "{tool}");
        assert_eq!(answers[2], ns("drained"), "{tool}");
        assert_eq!(answers[3], one("SELECT count(*) FROM frames WHERE ts IS NULL"), "{tool}");
        assert_eq!(answers[4], one("SELECT sum(seqno) FROM frames"), "{tool}");
        assert_eq!(answers[5], Value::Array(counts.clone()), "{tool}");
    }
}
