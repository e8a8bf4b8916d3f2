//! Traces contain everything in the captures: every frame, its time, its values, and missing frames.
//!
//! This test reads Chrome's JSON; other tools read Perfetto's format, CTF and OpenTelemetry
//! (`analysis/oracles/install`, and Debian's python3-bt2): the test names a missing one and skips it.

#[allow(dead_code, reason = "what is shared with the other tests is more than is used here")]
#[path = "../../../analysis/query/tests/all/random.rs"]
mod random;

mod chrome;
mod ctf;
mod otlp;
mod perfetto;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use ppt_capture::FileHeader;
use serde_json::{Map, Value, json};

use crate::support::{Bench, capture, golden, head, root, schema};

/// Captures that are queried together.
struct Captures {
    bench: Bench,
    names: Vec<String>,
}

impl Captures {
    fn of(captures: &[Vec<u8>]) -> Captures {
        let bench = Bench::empty();
        let names: Vec<_> = (0..captures.len()).map(|n| format!("{n}.bin")).collect();
        names.iter().zip(captures).for_each(|(name, bytes)| bench.write(name, bytes));
        Captures { bench, names }
    }

    fn golden() -> Captures {
        Captures::of(&[golden()])
    }

    fn run(&self, word: &str, more: &[&str]) -> (String, String) {
        let names = self.names.iter().map(String::as_str);
        let args: Vec<_> = [word].into_iter().chain(names).chain(more.iter().copied()).collect();
        let output = self.bench.run(&args);
        let said = String::from_utf8(output.stderr).unwrap();
        // A truncated or damaged capture is reported, and read.
        let known = |code| code == Some(0) || (code == Some(1) && said.contains("damaged"));
        assert!(known(output.status.code()), "{word} {more:?}: {said}");
        (String::from_utf8(output.stdout).unwrap(), said)
    }

    /// Rows of an answer.
    fn rows(&self, query: &str) -> Vec<Map<String, Value>> {
        let (lines, _) = self.run("sql", &[query, "--format", "jsonl"]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn number(&self, query: &str) -> i64 {
        self.rows(query)[0].values().next().unwrap().as_i64().unwrap_or(0)
    }

    fn export(&self, format: &str) -> PathBuf {
        let to = format!("trace.{format}");
        self.run("export", &["--format", format, "-o", &to]);
        self.bench.path(&to)
    }

    /// The events that another tool finds, and its number of missing frames.
    fn by_others(&self, tool: &str) -> Option<(Vec<Event>, i64)> {
        let (python, library) = match tool {
            "ctf" => (PathBuf::from("/usr/bin/python3"), "bt2"),
            _ => (root().join("target/oracles/bin/python"), "perfetto"),
        };
        let there = Command::new(&python).args(["-c", &format!("import {library}")]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {library} is not installed (analysis/oracles/install says how)");
            return None;
        }
        let trace = self.export(tool);
        let script = root().join("analysis/oracles/trace.py");
        let output = Command::new(python).arg(script).arg(tool).arg(trace).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool}: {said}");
        let (mut events, mut discarded) = (Vec::new(), 0);
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let long = |key: &str| event[key].as_i64();
            if let Some(count) = long("discarded") {
                discarded += count;
                continue;
            }
            events.push(Event {
                name: event["name"].as_str().unwrap().to_owned(),
                cat: event["cat"].as_str().unwrap().to_owned(),
                ts: long("ts").unwrap(),
                dur: long("dur"),
                args: event["args"].as_object().unwrap().clone(),
                track: event["track"].as_str().unwrap_or("").to_owned(),
                flows: flows(&event["flows"]),
            });
        }
        Some((events, discarded))
    }
}

#[derive(Debug, Clone)]
struct Event {
    name: String,
    cat: String,
    ts: i64,
    dur: Option<i64>,
    args: Map<String, Value>,
    track: String,
    /// Ids of the flows through the event.
    flows: Vec<String>,
}

fn flows(of: &Value) -> Vec<String> {
    let flow = |value: &Value| value.as_str().map(str::to_owned);
    of.as_array().into_iter().flatten().filter_map(flow).collect()
}

/// Segment, ring, sequence number.
type Id = (String, i64, i64);

fn id(of: &Map<String, Value>) -> Id {
    let number = |key: &str| of.get(key).map_or(-1, |value| number(value).unwrap());
    let seqno = if of.contains_key("ppt_seqno") { "ppt_seqno" } else { "seqno" };
    (of["segment"].as_str().unwrap().to_owned(), number("ring"), number(seqno))
}

/// An integer, which is text if JSON cannot hold it exactly.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

impl Event {
    fn is_missing(&self) -> bool {
        self.args.contains_key("cause") && self.args.contains_key("count")
    }
}

/// When the first capture began: the time for frames that have none.
const BEGAN: i64 = 1_700_000_000_000_000_000;

/// Missing frames by cause, from the names of events.
fn missing(events: &[Event]) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for event in events.iter().filter(|event| event.is_missing()) {
        let cause = event.args["cause"].as_str().unwrap().to_owned();
        *all.entry(cause).or_default() += number(&event.args["count"]).unwrap();
    }
    all
}

/// Missing frames by cause, from the captures.
fn expected_missing(captures: &Captures) -> BTreeMap<String, i64> {
    let gaps = "SELECT cause, sum(count) AS n FROM gaps GROUP BY cause";
    let dropped = "SELECT cause, sum(count) AS n FROM account WHERE count > 0 AND cause IN \
                   ('no_ring', 'nested', 'not_mapped') GROUP BY cause";
    let rows = captures.rows(gaps).into_iter().chain(captures.rows(dropped));
    rows.map(|row| (row["cause"].as_str().unwrap().to_owned(), row["n"].as_i64().unwrap()))
        .collect()
}

/// Kind, interval and time of every frame.
fn frames(captures: &Captures) -> BTreeMap<Id, (String, Option<String>, i64)> {
    let query = "SELECT segment, ring, seqno, buffer, frame, \
                 arrow_cast(coalesce(ts, drained), 'Int64') AS t FROM frames";
    let frame = |row: Map<String, Value>| {
        let time = row.get("t").and_then(Value::as_i64).unwrap_or(BEGAN).max(0);
        let text = |key: &str| row.get(key)?.as_str().map(str::to_owned);
        (id(&row), (text("buffer").unwrap(), text("frame"), time))
    };
    captures.rows(query).into_iter().map(frame).collect()
}

/// The slices of a trace are those of the captures, and every other frame is one instant.
fn check_slices(captures: &Captures, events: &[Event]) {
    let query = "SELECT segment, ring, seqno, name, buffer, arrow_cast(ts, 'Int64') AS t, dur \
                 FROM slices WHERE dur >= 0";
    let slice = |row: &Map<String, Value>| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (
            id(row),
            text("name"),
            text("buffer"),
            row["t"].as_i64().unwrap().max(0),
            row["dur"].as_i64(),
        )
    };
    let mut expected: Vec<_> = captures.rows(query).iter().map(slice).collect();
    let found = events.iter().filter(|event| event.dur.is_some());
    let found = found
        .map(|event| (id(&event.args), event.name.clone(), event.cat.clone(), event.ts, event.dur));
    let mut found: Vec<_> = found.collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let sliced: BTreeSet<Id> = expected.into_iter().map(|entry| entry.0).collect();
    let mut rest = frames(captures);
    rest.retain(|id, _| !sliced.contains(id));
    for event in events.iter().filter(|event| event.dur.is_none() && !event.is_missing()) {
        let (buffer, frame, time) = rest.remove(&id(&event.args)).expect("a frame, once");
        assert_eq!(event.ts, time, "{event:?}");
        match frame {
            Some(frame) => assert_eq!((&event.name, &event.cat), (&frame, &buffer)),
            None => assert_eq!(event.name, "unknown frame"),
        }
    }
    assert!(rest.is_empty(), "not in the trace: {rest:?}");
}

/// Slices of a track nest.
fn check_nesting(events: &[Event]) {
    let mut tracks: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events {
        if let Some(dur) = event.dur {
            tracks.entry(&event.track).or_default().push((event.ts, event.ts + dur));
        }
    }
    for (track, mut slices) in tracks {
        slices.sort_by_key(|&(begin, end)| (begin, -end));
        let mut open: Vec<(i64, i64)> = Vec::new();
        for slice in slices {
            while open.pop_if(|last| last.1 <= slice.0).is_some() {}
            assert!(
                open.last().is_none_or(|last| slice.1 <= last.1),
                "{track}: {slice:?} {open:?}"
            );
            open.push(slice);
        }
    }
}

/// All values of every frame as text, without NULLs.
fn values(captures: &Captures) -> BTreeMap<Id, BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let tables = captures.rows(
        "SELECT DISTINCT table_schema AS s, table_name AS t FROM information_schema.columns \
         WHERE column_name = 'drained' AND table_schema NOT IN ('information_schema') \
           AND table_name <> 'frames'",
    );
    for table in tables {
        let (schema, table) = (table["s"].as_str().unwrap(), table["t"].as_str().unwrap());
        let columns = captures.rows(&format!(
            "SELECT column_name AS c, data_type AS d FROM information_schema.columns \
             WHERE table_schema = '{schema}' AND table_name = '{table}'"
        ));
        let select: Vec<String> = columns
            .iter()
            .map(|column| {
                let (name, ty) = (column["c"].as_str().unwrap(), column["d"].as_str().unwrap());
                let name = format!("\"{name}\"");
                let of = match ty {
                    ty if ty.starts_with("Timestamp") => format!("arrow_cast({name}, 'Int64')"),
                    ty if ty.starts_with("Float") => format!("arrow_cast({name}, 'Float64')"),
                    ty if ty.starts_with("FixedSizeBinary") => format!("encode({name}, 'hex')"),
                    "Boolean" => format!("arrow_cast({name}, 'Int8')"),
                    _ => name.clone(),
                };
                format!("CAST({of} AS VARCHAR) AS {name}")
            })
            .collect();
        let query = format!("SELECT {} FROM \"{schema}\".\"{table}\"", select.join(", "));
        let standard =
            ["capture", "buffer", "segment", "ring", "seqno", "host", "pid", "tid", "ts"];
        for row in captures.rows(&query) {
            let fields = row.iter().filter(|entry| !standard.contains(&entry.0.as_str()));
            let fields = fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?)));
            let fields = fields.map(|(name, text)| (name, comparable(&json!(text))));
            all.insert(id(&row), fields.collect());
        }
    }
    all
}

/// A value as text; equal numbers have equal texts.
fn comparable(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => u8::from(*value).to_string(),
        other => other.to_string(),
    };
    let is_whole = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    match text.parse::<f64>() {
        Ok(number) if !is_whole || number == 0.0 => format!("{number}"),
        _ => text,
    }
}

/// Every event has the values of its frame.
fn check_values(captures: &Captures, events: &[Event], has_empty: bool) {
    let mut expected = values(captures);
    expected.values_mut().for_each(|map| map.retain(|_, value| has_empty || !value.is_empty()));
    let mut seen = BTreeSet::new();
    for event in events.iter().filter(|event| !event.is_missing() && event.name != "unknown frame")
    {
        let mut found = BTreeMap::new();
        for (name, value) in &event.args {
            if !["segment", "ring", "seqno"].contains(&name.as_str()) {
                found.insert(name.clone(), comparable(value));
            }
        }
        let id = id(&event.args);
        assert_eq!(Some(&found), expected.get(&id), "{event:?}");
        seen.insert(id);
    }
    assert_eq!(seen.len(), expected.len(), "each frame of a known kind");
}

fn all() -> impl Iterator<Item = Captures> {
    let random = (1..6).map(|seed: u64| {
        let files = (0..1 + seed % 3)
            .map(|n| random::capture(seed * 131 + n, n as u8, !seed.is_multiple_of(4)));
        Captures::of(&files.collect::<Vec<_>>())
    });
    random.chain([Captures::golden()])
}

#[test]
fn traces_are_outputs_like_others() {
    let captures = Captures::golden();
    let bench = &captures.bench;
    let fails = |args: &[&str]| bench.fails(&[&["export", "0.bin"], args].concat());
    bench.write("there", "mine");
    for format in ["perfetto", "chrome", "ctf", "otlp", "otlp-json"] {
        let of = |more: &[&str]| fails(&[&["--format", format], more].concat());
        let (said, code) = of(&["-o", "there"]);
        assert!(said.contains("there exists") && code == 1, "{format}: {said}");
        let (said, code) = of(&["--partition-by", "host", "-o", "new"]);
        assert!(said.contains("--partition-by is for tables") && code == 2, "{format}: {said}");
        let (said, code) = of(&["--frame", "pas", "-o", "new"]);
        assert!(said.contains("did you mean `pass`?") && code == 2, "{format}: {said}");
        let (said, code) = of(&["-o", "nowhere/new"]);
        assert!(code == 1 && said.contains("nowhere"), "{format}: {said}");
    }
    let (said, code) = fails(&["--format", "ctf"]);
    assert!(said.contains("CTF is a folder") && code == 2, "{said}");
    let (said, code) = fails(&["--format", "otlp"]);
    assert!(said.contains("OTLP as protobuf is a folder: name it with -o") && code == 2, "{said}");
    let (said, _) = fails(&["--format", "chrome", "-o", "0.bin", "--force"]);
    assert!(said.contains("is also the input"), "{said}");
    assert_eq!(bench.names(), ["0.bin", "there"]);
    let of_one = ["--format", "chrome", "--frame", "login"];
    let (text, said) = captures.run("export", &of_one);
    let one: Value = serde_json::from_str(&text).unwrap();
    let events = one["traceEvents"].as_array().unwrap().iter();
    let frames = events.filter(|event| event["ph"] == "i" && event["args"].get("cause").is_none());
    assert_eq!(frames.count(), 1);
    assert!(said.contains("14 of 20 frames are missing"), "{said}");
    assert_eq!(captures.number("SELECT count(*) FROM login"), 1);
}

/// Spans and chains of two threads: kind, key, mark and ns since the start of each frame.
const WHOLES: [(u8, u8, u8, u64); 12] = [
    (0, 1, 0, 10),
    (0, 2, 0, 20),
    (1, 5, 0, 25),
    (0, 1, 1, 50),
    (1, 6, 0, 52),
    (1, 5, 1, 55),
    (0, 2, 1, 60),
    (0, 3, 0, 61),
    (1, 5, 2, 70),
    (0, 9, 1, 71),
    (1, 6, 2, 80),
    (0, 3, 1, 90),
];

fn wholes() -> Captures {
    let frame = |name: &str, kind: &str, mark: &str, of: &str, more: &str| {
        format!(
            r#"{{"name":"{name}","kind":"{kind}","size":24,"fields":[{{"name":"id","type":"u8","offset":10,"key":true}},{{"name":"{mark}","type":"enum","enum":"{of}","offset":11,"{mark}":true}},{{"name":"at","type":"ns","clock":"monotonic","offset":16,"at":true,"stamp":true}}]{more}}}"#
        )
    };
    let json = format!(
        r#"{{"v":1,"buffer":"net","slots":16,"stride":24,"frames":[{},{}],"enums":[{{"name":"REdge","type":"u8","values":[["begin",0],["end",1]]}},{{"name":"EStep","type":"u8","values":[["start",0],["dsp",1],["send",2]]}}]}}"#,
        frame("request", "span", "edge", "REdge", r#","across":"process""#),
        frame("encode", "chain", "step", "EStep", ""),
    );
    let header = FileHeader {
        capture_id: [3; 16],
        boot_id: "boot".to_owned(),
        created_realtime_ns: BEGAN as u64,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    let mut frames = Vec::new();
    for (seq, (kind, id, mark, at)) in (1u64..).zip(WHOLES) {
        frames.extend(seq.to_le_bytes());
        frames.extend([kind, 0, id, mark, 0, 0, 0, 0]);
        frames.extend((1_000 + at).to_le_bytes());
    }
    let run = (head(1, 2_000), frames);
    Captures::of(&[capture(&header, &schema(&json), &[run])])
}

#[test]
fn closed_spans_have_tracks_of_their_own_and_chains_are_flows() {
    let captures = wholes();
    let expected = [("1", 10, 40), ("2", 20, 40), ("3", 61, 29)]
        .map(|(id, ts, dur)| (id.to_owned(), BEGAN + ts, Some(dur)));
    let mut traces = vec![("chrome", captures.chrome())];
    traces.extend(captures.by_others("perfetto").map(|by_other| ("perfetto", by_other.0)));
    for (format, events) in traces {
        let slices = events.iter().filter(|event| event.dur.is_some());
        let mut found: Vec<_> = slices
            .clone()
            .map(|slice| {
                assert_eq!(
                    (slice.name.as_str(), slice.cat.as_str()),
                    ("request", "net"),
                    "{format}"
                );
                (slice.args["id"].to_string(), slice.ts, slice.dur)
            })
            .collect();
        found.sort();
        assert_eq!(found, expected, "{format}");
        check_nesting(&events);
        let of_spans: BTreeSet<&String> = slices.map(|slice| &slice.track).collect();
        assert_eq!(of_spans.len(), 2, "{format}: two at the same time, and one behind them");
        let instants: Vec<_> = events.iter().filter(|event| event.dur.is_none()).collect();
        assert_eq!(instants.len(), WHOLES.len(), "{format}: each frame is there, too");
        assert!(instants.iter().all(|event| !of_spans.contains(&event.track)), "{format}");
        if format == "perfetto" {
            let mut flows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
            for event in instants {
                for flow in &event.flows {
                    let id = event.args["id"].to_string();
                    assert!(event.name == "encode" && flow != "0", "{event:?}");
                    flows.entry(flow).or_default().insert(id);
                }
            }
            let ids: BTreeSet<Vec<String>> =
                flows.into_values().map(|ids| ids.into_iter().collect()).collect();
            assert_eq!(ids, [vec!["5".to_owned()], vec!["6".to_owned()]].into());
        }
    }
    assert_eq!(captures.by_others("ctf").map_or(WHOLES.len(), |found| found.0.len()), WHOLES.len());
}

/// A point whose output another one receives: kind and hash of each frame.
const POINTS: [(u8, u64); 6] = [(0, 7), (0, 8), (1, 7), (1, 9), (1, 8), (0, 10)];

/// A capture of [`POINTS`].
fn of_points() -> Vec<u8> {
    of_points_on("", [4; 16])
}

/// A capture of [`POINTS`] on a host.
fn of_points_on(host: &str, capture_id: [u8; 16]) -> Vec<u8> {
    let frame = |name: &str, side: &str| {
        format!(
            r#"{{"name":"{name}","kind":"point","size":32,"fields":[{{"name":"id","type":"u64","offset":16,"hash":"xxh3","{side}":"message"}},{{"name":"at","type":"ns","clock":"monotonic","offset":24,"at":true,"stamp":true}}]}}"#
        )
    };
    let json = format!(
        r#"{{"v":1,"buffer":"net","slots":16,"stride":32,"frames":[{},{}],"enums":[]}}"#,
        frame("sent", "out"),
        frame("received", "in"),
    );
    let header = FileHeader {
        capture_id,
        host: host.to_owned(),
        boot_id: format!("boot{host}"),
        created_realtime_ns: BEGAN as u64,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    let mut frames = Vec::new();
    for (seq, (kind, id)) in (1u64..).zip(POINTS) {
        frames.extend(seq.to_le_bytes());
        frames.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frames.extend(id.to_le_bytes());
        frames.extend((1_000 + 10 * seq).to_le_bytes());
    }
    capture(&header, &schema(&json), &[(head(1, 2_000), frames)])
}

/// A folder with this capture as `out.bin`.
pub fn points() -> Bench {
    let bench = Bench::empty();
    bench.write("out.bin", of_points());
    bench
}
