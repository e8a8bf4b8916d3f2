//! Exports contain the same spans, chains, counters, histograms and states of threads as `ppt sql`.
//! Other tools read them (`analysis/oracles/install`, and Debian's python3-bt2); the test names a
//! missing one and skips it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::ask::ask;
use crate::every;
use crate::support::{Bench, names, root};

pub fn bench() -> Bench {
    let bench = Bench::empty();
    bench.write("out.bin", every::write("").0);
    bench
}

/// Rows of JSON values, with columns in alphabetical order.
fn rows(bench: &Bench, query: &str) -> Value {
    let row = |row: Map<String, Value>| -> Value { row.into_iter().map(|entry| entry.1).collect() };
    bench.rows(query).into_iter().map(row).collect()
}

#[test]
fn tables_hold_what_is_told_beside_frames() {
    let bench = bench();
    bench.done(&["export", "out.bin", "--format", "parquet", "-o", "all"]);
    let there = names(&bench.path("all"));
    // A query for each table that both understand.
    let all = [
        ("counters", "name AS a, sum(delta) AS b, max(value) AS c, count(*) AS d"),
        ("histograms", "name AS a, sum(count) AS b, sum(lo) AS c, sum(hi) AS d"),
        ("request_spans", "state AS a, count(*) AS b, sum(dur) AS c, sum(end_bytes) AS d"),
        ("encode_chains", "state AS a, count(*) AS b, sum(total) AS c, sum(start_to_dsp) AS d"),
        ("thread_states", "state AS a, count(*) AS b, sum(dur) AS c, count(blocked_in) AS d"),
        ("syscalls", "name AS a, count(*) AS b, sum(dur) AS c, sum(result) AS d"),
        ("faults", "kind AS a, count(*) AS b, 0 AS c, 0 AS d"),
    ];
    for (table, select) in all {
        let file = format!("{table}.parquet");
        assert!(there.contains(&file), "{file} of {there:?}");
        let file = bench.path("all").join(file);
        let ours = rows(&bench, &format!("SELECT {select} FROM {table} GROUP BY a ORDER BY a"));
        assert!(table == "faults" || !ours.as_array().unwrap().is_empty(), "{table}");
        let texts = |rows: &Value| rows.to_string().replace('"', "").replace(".0", "");
        let question = json!([format!("SELECT {select} FROM t GROUP BY 1 ORDER BY 1")]);
        if let Some(answers) = ask("duckdb", &file, &question) {
            assert_eq!(texts(&answers[0]), texts(&ours), "{table}");
        }
        let count = &rows(&bench, &format!("SELECT count(*) FROM {table}"))[0][0];
        if let Some(answers) = ask("pyarrow", &file, &json!([["rows"]])) {
            assert_eq!(&answers[0], count, "{table}");
        }
    }
    // One table is a file, by its name; partitions contain the tables that have the columns.
    let csv = bench.done(&["export", "out.bin", "--format", "csv", "--frame", "counters"]);
    assert!(csv.starts_with("capture,buffer,segment,ring,host,pid,tid,name,ts,value,delta,unit"));
    let by = ["export", "out.bin", "--format", "jsonl", "--partition-by", "ring", "-o", "hive"];
    bench.done(&by);
    let of_ring = names(&bench.path("hive").join("ring=0"));
    assert!(of_ring.contains(&"counters.jsonl".to_owned()), "{of_ring:?}");
    assert!(!of_ring.contains(&"thread_states.jsonl".to_owned()), "{of_ring:?}");
    let wrong = ["export", "out.bin", "--format", "csv", "--frame", "counter"];
    let (said, code) = bench.fails(&wrong);
    assert!(code == 2 && said.contains("did you mean `counters`?"), "{said}");
}

/// The findings of a tool in a trace: one JSON value per line.
fn found(bench: &Bench, format: &str) -> Option<Vec<Value>> {
    let to = format!("trace.{format}");
    bench.done(&["export", "out.bin", "--format", format, "-o", &to]);
    let (python, library) = match format {
        "ctf" => (PathBuf::from("/usr/bin/python3"), "bt2"),
        _ => (root().join("target/oracles/bin/python"), "perfetto"),
    };
    let there = Command::new(&python).args(["-c", &format!("import {library}")]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {library} is not installed (analysis/oracles/install says how)");
        return None;
    }
    let script = root().join("analysis/oracles/trace.py");
    let output =
        Command::new(python).arg(script).arg(format).arg(bench.path(&to)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{format}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Integers that JSON cannot hold exactly become strings.
fn number(value: &Value) -> Value {
    value
        .as_str()
        .and_then(|text| text.parse::<i64>().ok())
        .map_or_else(|| value.clone(), Value::from)
}

#[test]
fn babeltrace_finds_counters_and_histograms() {
    let bench = bench();
    let Some(events) = found(&bench, "ctf") else { return };
    let of = |name: &str, fields: &[&str]| -> Value {
        let its = events.iter().filter(|event| event["name"] == name);
        let row = |value: &Value| -> Value {
            let field = |field: &&str| number(value["args"].get(*field).unwrap_or(&Value::Null));
            [number(&value["ts"])].into_iter().chain(fields.iter().map(field)).collect()
        };
        its.map(row).collect()
    };
    for name in ["bytes_in", "inflight"] {
        let query = format!(
            "SELECT arrow_cast(ts, 'Int64') AS a, value AS b FROM counters WHERE name = '{name}' ORDER BY ts"
        );
        let ours = rows(&bench, &query);
        assert_eq!(ours.as_array().unwrap().len(), 5);
        assert_eq!(of(&format!("shop:{name}"), &["value"]), ours, "{name}");
    }
    for name in ["handling", "queue"] {
        let query = format!(
            "SELECT arrow_cast(ts, 'Int64') AS a, lo AS b, hi AS c, count AS d, sum AS e \
             FROM histograms WHERE name = '{name}' ORDER BY ts, lo NULLS FIRST"
        );
        let ours = rows(&bench, &query);
        assert!(ours.as_array().unwrap().len() >= 5);
        assert_eq!(of(&format!("shop:{name}"), &["lo", "hi", "count", "sum"]), ours, "{name}");
    }
}

#[test]
fn viewers_have_curves_of_counters_and_histograms() {
    let bench = bench();
    let chrome = bench.done(&["export", "out.bin", "--format", "chrome"]);
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    let chrome =
        chrome["traceEvents"].as_array().unwrap().iter().filter(|value| value["ph"] == "C");
    let chrome: Vec<_> = chrome.collect();
    let perfetto = found(&bench, "perfetto");
    // The increase in a second: 4 values of some ns, one of about 1 ms; 10 in a bucket.
    let bucket = |name: &str, order: &str| {
        let query = format!(
            "SELECT hi - 1 AS a FROM histograms WHERE name = '{name}' ORDER BY lo {order} LIMIT 1"
        );
        rows(&bench, &query)[0][0].as_i64().unwrap()
    };
    let all = [
        ("shop.bytes_in", "B", vec![1_000, 2_000, 3_000, 4_000, 5_000]),
        ("shop.inflight", "", vec![1, 2, 3, 2, 1]),
        ("shop.handling.count", "", vec![5, 10, 15, 20, 25]),
        ("shop.handling.p50", "ns", vec![bucket("handling", "ASC"); 5]),
        ("shop.handling.p99", "ns", vec![bucket("handling", "DESC"); 5]),
        ("shop.queue.count", "", vec![10, 20, 30, 40, 50]),
        ("shop.queue.p99", "", vec![bucket("queue", "DESC"); 5]),
    ];
    for (name, unit, expected) in all {
        let values = chrome.iter().filter(|value| value["name"] == name);
        let value = |value: &&Value| value["args"].as_object()?.values().next()?.as_f64();
        let told: Vec<_> = values.filter_map(value).map(|value| value as i64).collect();
        assert_eq!(told, expected, "Chrome: {name}");
        let Some(events) = &perfetto else { continue };
        let values: Vec<_> = events.iter().filter(|event| event["counter"] == name).collect();
        let told: Vec<_> = values.iter().filter_map(|value| value["value"].as_i64()).collect();
        assert_eq!(told, expected, "Perfetto: {name}");
        assert!(values.iter().all(|value| value["unit"] == unit), "{name}");
    }
}

/// The tail of the spans, by `ppt sql`: those longer than the 99th percentile by rank, and the time of
/// their threads in each state.
fn tail(bench: &Bench) -> (i64, i64, i64) {
    let lengths = bench.rows("SELECT dur FROM request_spans WHERE dur >= 0 ORDER BY dur");
    let lengths: Vec<i64> = lengths.iter().map(|row| row["dur"].as_i64().unwrap()).collect();
    let p99 = lengths[(0.99 * lengths.len() as f64).ceil() as usize - 1];
    let ran = bench.rows(&format!(
        "SELECT coalesce(sum(least(CAST(r.ts AS BIGINT) + r.dur, CAST(s.ts AS BIGINT) + s.dur) \
             - greatest(CAST(r.ts AS BIGINT), CAST(s.ts AS BIGINT))), 0) AS ns \
         FROM request_spans r JOIN thread_states s ON r.pid = s.pid AND r.tid = s.tid \
         WHERE r.dur > {p99} AND s.state = 'running' \
             AND CAST(s.ts AS BIGINT) < CAST(r.ts AS BIGINT) + r.dur \
             AND CAST(r.ts AS BIGINT) < CAST(s.ts AS BIGINT) + s.dur"
    ));
    let all = lengths.iter().filter(|&&dur| dur > p99).sum();
    (p99, all, ran[0]["ns"].as_i64().unwrap())
}

#[test]
fn why_names_the_request_and_sums_up_the_slowest() {
    let bench = bench();
    // The name of the frame selects its spans, like the name of their table.
    let by_frame = bench.json(&["why", "out.bin", "--frame", "request", "--format", "json"]);
    let by_spans = bench.json(&["why", "out.bin", "--frame", "request_spans", "--format", "json"]);
    assert_eq!(by_frame, by_spans);
    let slow = by_spans.as_array().unwrap();
    assert_eq!(slow.len(), 20);
    let keys = bench.rows("SELECT id, dur, seqno, ring, begin_verb FROM request_spans");
    for request in slow {
        let named = keys.iter().find(|row| {
            (&row["seqno"], &row["ring"], &row["dur"])
                == (&request["seqno"], &request["ring"], &request["dur"])
        });
        let named = named.unwrap_or_else(|| panic!("no span of {request}"));
        assert_eq!(request["request"]["id"], named["id"].to_string(), "{request}");
        assert_eq!(request["request"]["verb"], named["begin_verb"], "{request}");
        // The first interval with the same sentence.
        let first = &slow[request["alike"].as_u64().unwrap() as usize - 1];
        assert_eq!(first["alike"], request["alike"]);
    }
    let shown = ["why", "out.bin", "--frame", "request_spans", "--show", "bytes", "--slowest", "1"];
    let table = bench.done(&[&shown[..], &["--format", "csv"]].concat());
    assert!(table.contains("bytes="), "{table}");
    let wrong = ["why", "out.bin", "--frame", "request_spans", "--show", "byte"];
    let (said, code) = bench.fails(&wrong);
    assert!(code == 2 && said.contains("did you mean `bytes`?"), "{code}: {said}");
    let (said, code) = bench.fails(&["why", "out.bin", "--frame", "request_span"]);
    assert!(code == 2 && said.contains("did you mean `request_spans`?"), "{code}: {said}");

    let summary = ["why", "out.bin", "--frame", "request_spans", "--summary"];
    let tails = bench.json(&[&summary[..], &["--format", "json"]].concat());
    let [told] = &tails.as_array().unwrap()[..] else { panic!("{tails}") };
    let (p99, all, ran) = tail(&bench);
    assert_eq!((&told["p99"], &told["ns"]), (&json!(p99), &json!(all)), "{told:#}");
    let causes = told["causes"].as_array().unwrap();
    let ns = |cause: &Value| cause["ns"].as_i64().unwrap();
    assert_eq!(causes.iter().map(ns).sum::<i64>(), all);
    let is_running = |cause: &&Value| cause["cause"].as_str().unwrap().starts_with("running");
    let running: Vec<&Value> = causes.iter().filter(is_running).collect();
    // Almost all of the time was in jobs, which are within the spans.
    assert_eq!(running[0]["cause"], "running in job.handle", "{told:#}");
    assert!(ran > 0 && running.into_iter().map(ns).sum::<i64>() == ran, "{ran} ns: {told:#}");
    let table = bench.done(&[&summary[..], &["--format", "csv"]].concat());
    assert_eq!(table.lines().count(), 1 + causes.len());

    // The text has the summary first, then each reason once.
    let text = bench.done(&["why", "out.bin", "--frame", "request_spans", "--format", "text"]);
    let heading = text.lines().next().unwrap();
    let expected = format!("of {} request took longer than p99", told["all"]);
    assert!(heading.contains(&expected) && heading.ends_with("went to:"), "{heading}");
    for request in slow {
        let sentence = format!("  {}", request["sentence"].as_str().unwrap());
        let is_first = &slow[request["alike"].as_u64().unwrap() as usize - 1] == request;
        assert!(!is_first || text.lines().any(|line| line == sentence), "{sentence}\n{text}");
        let label = format!("id={}", request["request"]["id"].as_str().unwrap());
        assert!(text.contains(&label), "{label}\n{text}");
    }
}

/// Each wake-up and the next time that its thread got a CPU, from the kernel's frames.
const WOKEN: &str = "SELECT w.seqno AS a, min(i.seqno) AS b, w.waker AS c, w.thread AS d, \
     min(CAST(i.ts AS BIGINT)) - CAST(w.ts AS BIGINT) AS e \
     FROM kernel.wakeup w JOIN kernel.switch_in i ON i.thread = w.thread AND i.seqno > w.seqno \
     WHERE w.by = 'THREAD' GROUP BY w.seqno, w.waker, w.thread, w.ts ORDER BY a";

#[test]
fn wake_ups_are_edges_between_threads() {
    let bench = bench();
    let edges = "SELECT src_seqno AS a, dst_seqno AS b, src_tid AS c, dst_tid AS d, latency AS e \
                 FROM edges WHERE kind = 'wake' ORDER BY a";
    let ours = rows(&bench, edges);
    assert_eq!(ours.as_array().unwrap().len(), 400);
    assert_eq!(ours, rows(&bench, WOKEN));
    let frames = "SELECT count(*) AS n FROM edges e \
                  JOIN frames s ON s.segment = e.src_segment AND s.ring = e.src_ring AND s.seqno = e.src_seqno \
                  JOIN frames d ON d.segment = e.dst_segment AND d.ring = e.dst_ring AND d.seqno = e.dst_seqno \
                  WHERE e.kind = 'wake' AND s.buffer = e.src_buffer AND s.frame = e.src_point \
                  AND s.pid = e.src_pid AND s.capture = e.src_capture AND d.frame = e.dst_point";
    assert_eq!(rows(&bench, frames)[0][0], 400, "both ends name frames");
    // Other kinds of edges are unchanged.
    let others = rows(&bench, "SELECT DISTINCT kind AS a FROM edges ORDER BY a");
    assert_eq!(others, json!([["chain"], ["span"], ["wake"]]));
    let graph = bench.json(&["graph", "out.bin", "--format", "json"]);
    let told = graph["wakes"].as_array().unwrap();
    let of = |wakes: &Value| [&wakes["waker"], &wakes["woken"], &wakes["count"]].map(Value::as_i64);
    let mut pairs: Vec<_> = told.iter().map(of).collect();
    pairs.sort();
    assert_eq!(pairs, [[Some(100), Some(101), Some(200)], [Some(101), Some(100), Some(200)]]);
    assert_eq!(told[0]["p50"], 50_000.0);
    let text = bench.done(&["graph", "out.bin", "--format", "text"]);
    assert!(text.contains("who woke whom"), "{text}");
    let kinds: Vec<_> =
        graph["edges"].as_array().unwrap().iter().map(|edge| &edge["kind"]).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| **kind != "wake"), "{kinds:?}");
}
