//! Traces and metrics of a program that is captured, read by the official messages of OpenTelemetry: an export that
//! follows has the spans of one of the whole captures, each once, however often the exporter was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::follow::delivered::{MANIFEST, check, manifest, rows};
use crate::follow::group::ProcessGroup;
use crate::follow::killed::{self, Numbers, captured, dumped, kills};
use crate::support::{Bench, root};

/// How much times may differ that were told by other readings of the clocks, ns.
const NEAR: i64 = 20_000;
/// Losses of whole captures, which are not known while these grow.
const ACCOUNT: &str = "ppt.frames.";

fn export(bench: &Bench, format: &str) -> Command {
    let args = ["export", "out.bin", "--follow", "--format", format, "-o", "ex"];
    let mut command = bench.with_tmp(&args);
    command.args(["--every", "500ms", "--bytes", "1M", "--threads", "1"]);
    command.stderr(Stdio::piped());
    command
}

/// What the official messages hold; None where they are not installed. They refuse a span that comes twice.
pub fn read(folder: &Path) -> Option<Vec<Value>> {
    let python = root().join("target/oracles/bin/python");
    let import = "import opentelemetry.proto.trace.v1.trace_pb2";
    let there = Command::new(&python).args(["-c", import]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: opentelemetry-proto is not installed (analysis/oracles/install)");
        return None;
    }
    let script = root().join("analysis/oracles/otlp.py");
    let output = Command::new(python).arg("-B").arg(script).arg(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The spans by their ids; times apart from the rest, which must be equal.
fn spans(all: &[Value]) -> BTreeMap<String, (Vec<i64>, Value)> {
    let one = |value: &Value| {
        let mut value = value.clone();
        let object = value.as_object_mut().unwrap();
        let mut times = vec![object.remove("ts").unwrap().as_i64().unwrap()];
        times.push(object.remove("dur").unwrap().as_i64().unwrap());
        object["resource"].as_object_mut().unwrap().retain(|key, _| !key.starts_with(ACCOUNT));
        for (key, value) in object["args"].as_object_mut().unwrap() {
            // Numbers that JSON does not hold are texts.
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            let is_time = |number: &i64| key == "dur" || *number > 1_000_000_000_000_000_000;
            if let Some(time) = number.filter(is_time) {
                times.push(time);
                *value = Value::Null;
            }
        }
        let mut links: Vec<Value> = object["links"].as_array().unwrap().clone();
        links.sort_by_key(Value::to_string);
        object["links"] = json!(links);
        (value["id"].as_str().unwrap().to_owned(), (times, value))
    };
    let spans = all.iter().filter(|value| value.get("span").is_some());
    spans.map(one).collect()
}

/// The last value of each sum and each histogram.
fn totals(all: &[Value]) -> BTreeMap<String, (i64, Value)> {
    let mut last = BTreeMap::new();
    for value in all.iter().filter(|value| value.get("metric").is_some()) {
        if value["type"] == "gauge" {
            continue;
        }
        let key = format!("{} {}", value["metric"], value["resource"]["process.pid"]);
        let ts = value["ts"].as_i64().unwrap();
        let said = json!([value["value"], value["count"], value["sum"], value["counts"]]);
        let known = last.entry(key).or_insert((ts, said.clone()));
        if ts >= known.0 {
            *known = (ts, said);
        }
    }
    last
}

/// The files of an export that followed have the spans of an export of all captures, and no other.
fn equals_an_export_of_all(bench: &Bench) {
    let folder = bench.path("ex");
    check(&folder);
    let said = manifest(&folder);
    assert_eq!((&said["state"], &said["missing"]), (&json!("complete"), &json!([])));
    let open = &said["open"][0];
    assert_eq!((&open["file"], &open["let_go"]), (&Value::Null, &json!(0)), "{open}");
    let Some(own) = read(&folder) else { return };
    let all = bench.path("all");
    bench.done(&["export", "out.bin", "--format", "otlp", "-o", "all", "--threads", "1"]);
    for folder in ["traces", "metrics"] {
        fs::create_dir(all.join(folder)).unwrap();
        fs::rename(all.join(format!("{folder}.pb")), all.join(folder).join("1.pb")).unwrap();
    }
    let all = read(&all).unwrap();
    let (own_spans, all_spans) = (spans(&own), spans(&all));
    let told = own.iter().filter(|value| value.get("span").is_some()).count();
    assert_eq!(told, own_spans.len(), "an id comes twice");
    assert_eq!(rows(&folder)["traces"], told as u64);
    let ids =
        |of: &BTreeMap<String, (Vec<i64>, Value)>| of.keys().cloned().collect::<BTreeSet<_>>();
    let differing: Vec<_> =
        ids(&own_spans).symmetric_difference(&ids(&all_spans)).cloned().collect();
    let shown: Vec<_> =
        differing.iter().take(5).map(|id| (own_spans.get(id), all_spans.get(id))).collect();
    assert!(differing.is_empty(), "{} differ: {shown:#?}", differing.len());
    let mut others = 0;
    for (id, (times, value)) in &own_spans {
        let (expected_times, expected) = &all_spans[id];
        let is_near = times.iter().zip(expected_times).all(|(a, b)| (a - b).abs() < NEAR);
        assert!(
            is_near && times.len() == expected_times.len(),
            "{value:#?}: {times:?} {expected_times:?}"
        );
        if value != expected {
            others += 1;
            if others < 4 {
                eprintln!("{value:#?}\nis not\n{expected:#?}");
            }
        }
    }
    assert_eq!(others, 0, "of {}", own_spans.len());
    let sums = totals(&own);
    assert_eq!(sums, totals(&all));
    let query = "SELECT pid, CAST(sum(delta) AS BIGINT) AS n FROM counters GROUP BY pid";
    for row in bench.rows(query) {
        let (_, sum) = &sums[&format!("\"live.jobs\" {}", row["pid"])];
        assert_eq!(sum[0], row["n"], "{row:?}");
    }
    let points = |all: &[Value]| all.iter().filter(|value| value["type"] == "gauge").count();
    assert_eq!(points(&own), points(&all));
    eprintln!("{} spans", own_spans.len());
}

/// Each frame of a kind has one span, as `ppt dump` and `ppt info` count frames.
fn equals_the_captures(bench: &Bench, frames: &[&str]) {
    let Some(own) = read(&bench.path("ex")) else { return };
    let of = |frame: &str| {
        let is_one = |value: &&Value| {
            let args = &value["args"];
            args["ppt.frame"] == frame && args["state"].is_null()
        };
        own.iter().filter(is_one).count() as u64
    };
    for frame in frames {
        assert_eq!(of(frame), dumped(bench, frame), "{frame}");
    }
    assert_eq!(frames.iter().map(|frame| of(frame)).sum::<u64>(), captured(bench));
}

fn files(folder: &Path) -> usize {
    let names = fs::read_dir(folder.join("traces")).into_iter().flatten().flatten();
    names.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count()
}

/// How many chunks are exported.
fn chunks(folder: &Path) -> u64 {
    if !folder.join(MANIFEST).exists() {
        return 0;
    }
    let captures = manifest(folder)["captures"].take();
    captures.as_array().unwrap().iter().filter_map(|capture| capture["next_chunk"].as_u64()).sum()
}

/// Captures, kills the exporter again and again, ends the capture, and lets the exporter end.
fn survives(program: (&str, &str), args: &[&str], format: &str) -> Option<Bench> {
    let bench = Bench::empty();
    let mut capturing = killed::capture(&bench, program, args, "8s")?;
    let folder = bench.path("ex");
    let mut numbers = Numbers(13);
    let (mut in_the_middle, mut further) = (0, 0);
    for _ in 0..kills() {
        let (said, before) = (fs::read(folder.join(MANIFEST)).ok(), chunks(&folder));
        let mut exporter = ProcessGroup::spawn(&mut export(&bench, format));
        // Soon, in or behind the first range, or some ranges later.
        match numbers.below(3) {
            0 => {}
            1 => exporter.until("a range", || fs::read(folder.join(MANIFEST)).ok() != said),
            _ => exporter.until("its end", || chunks(&folder) > before),
        }
        thread::sleep(Duration::from_millis(numbers.below(800)));
        exporter.runs();
        drop(exporter);
        if folder.join(MANIFEST).exists() {
            check(&folder);
            in_the_middle += usize::from(!manifest(&folder)["planned"].is_null());
            further += usize::from(chunks(&folder) > before);
        }
    }
    eprintln!("{} kills, {in_the_middle} of them while a range was written", kills());
    assert!(further > kills() / 4, "hardly anything was written between kills");
    // Spans wait for ten seconds, and for what is around them.
    let before = chunks(&folder);
    let mut exporter = ProcessGroup::spawn(&mut export(&bench, format));
    exporter.until("spans", || files(&folder) >= 2 && chunks(&folder) > before);
    drop(exporter);
    check(&folder);
    capturing.until("the second file", || bench.path("out.000002.bin").exists());
    capturing.signal(Signal::TERM);
    capturing.wait();
    let output = export(&bench, format).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(": complete\n"), "{said}");
    equals_an_export_of_all(&bench);
    Some(bench)
}

#[test]
fn spans_and_chains_are_in_one_file_each_however_often_the_exporter_is_killed() {
    let Some(bench) = survives(("follow", "spans"), &["1000", "100000"], "otlp") else { return };
    equals_the_captures(&bench, &["request", "nested", "hop"]);
}

#[test]
fn intervals_and_metrics_are_in_one_line_each_however_often_the_exporter_is_killed() {
    let program = ("numbers", "live");
    let Some(bench) = survives(program, &["1000000", "600000"], "otlp-json") else { return };
    equals_the_captures(&bench, &["job", "request"]);
}
