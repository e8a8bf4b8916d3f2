//! Other tools find the same rows in an export as `ppt sql` in the capture.
//!
//! `analysis/oracles/install` installs them; the test names a missing one and skips it.

use serde_json::{Map, Value, json};

use crate::ask::ask;
use crate::support::Bench;

/// Rows of JSON values.
fn rows(bench: &Bench, query: &str) -> Value {
    let row = |row: Map<String, Value>| -> Value { row.into_iter().map(|entry| entry.1).collect() };
    bench.rows(query).into_iter().map(row).collect()
}

#[test]
fn an_export_to_parquet_holds_what_the_capture_holds() {
    let bench = Bench::new();
    let all = |file: &str, more: &[&str]| {
        let args = ["export", "out.bin", "--format", "parquet", "-o", file];
        bench.done(&[&args, more].concat());
    };
    all("pass.parquet", &["--frame", "pass"]);
    all("ns.parquet", &["--frame", "pass", "--time", "ns"]);
    all("hive", &["--partition-by", "host,frame"]);
    let file = bench.path("pass.parquet");
    let hive = format!("{}/hive/**/*.parquet", bench.folder().display());
    // Columns are in alphabetical order, as in JSON's objects.
    let ours = rows(
        &bench,
        "SELECT CAST(bytes AS VARCHAR) AS a, who AS b, kind AS c, name AS d, ok AS e, \
         encode(raw, 'hex') AS f, spent AS g, seqno AS h, arrow_cast(start, 'Int64') AS i, \
         arrow_cast(start, 'Int64') / 1000 AS j, arrow_cast(drained, 'Int64') AS k, segment AS l \
         FROM pass ORDER BY seqno",
    );
    let questions = json!([
        "SELECT CAST(bytes AS VARCHAR), who, kind, name, ok, lower(hex(raw)), spent, seqno, \
         start_ns, epoch_us(start), drained_ns, segment FROM t ORDER BY seqno",
        "SELECT decode(value) FROM parquet_kv_metadata('FILE') WHERE decode(key) = 'ppt.lost'"
            .replace("FILE", file.to_str().unwrap()),
        format!(
            "SELECT host, frame, count(*), sum(seqno) \
             FROM read_parquet('{hive}', hive_partitioning = true, union_by_name = true) \
             GROUP BY ALL ORDER BY ALL"
        ),
        "SELECT DISTINCT compression FROM parquet_metadata('FILE')"
            .replace("FILE", file.to_str().unwrap()),
    ]);
    if let Some(answers) = ask("duckdb", &file, &questions) {
        assert_eq!(ours.as_array().unwrap().len(), 5);
        assert_eq!(answers[0], ours);
        let lost: Value = serde_json::from_str(answers[1][0][0].as_str().unwrap()).unwrap();
        let account = json!({"captured": 6, "lost": 11, "dropped": 3, "absent": 0, "gaps": 3});
        assert_eq!(lost, account);
        let groups = rows(
            &bench,
            "SELECT host AS a, frame AS b, count(*) AS c, sum(seqno) AS d FROM frames \
             GROUP BY host, frame ORDER BY host, frame",
        );
        let expected = groups.to_string().replace("ho\\u001bst", "ho%1Bst");
        let folders = answers[2].to_string();
        // Versions of DuckDB differ in whether they decode the names of folders.
        assert!([&expected, &groups.to_string()].contains(&&folders), "{folders}: {expected}");
        assert_eq!(answers[3], json!([["ZSTD"]]));
    }
    let ns = "SELECT sum(arrow_cast(start, 'Int64') - 1700000000000000000) AS a, count(*) AS b, \
              count(start) AS c, sum(who) AS d FROM pass";
    let ns = &rows(&bench, ns)[0];
    let start = ns[0].as_i64().unwrap() as i128
        + i128::from(ns[2].as_i64().unwrap()) * 1_700_000_000_000_000_000;
    let nulls = ns[1].as_i64().unwrap() - ns[2].as_i64().unwrap();
    let questions = json!([["rows"], ["ns", "start"], ["nulls", "start"], ["sum", "who"]]);
    for tool in ["pyarrow", "polars", "pandas"] {
        let Some(answers) = ask(tool, &bench.path("ns.parquet"), &questions) else { continue };
        let expected = json!([ns[1], start.to_string(), nulls, ns[3]]);
        assert_eq!(Value::from(answers), expected, "{tool}");
    }
}
