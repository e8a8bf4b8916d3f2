//! Exports for OpenTelemetry, read by its official messages (`analysis/oracles/install`): the protobuf and
//! the JSON hold equal messages, and these hold what the captures hold.

use std::fs;

use super::*;

impl Captures {
    /// What the official messages hold of both exports, a value a span or a point; None where they are
    /// not installed.
    fn otlp(&self, more: &[&str]) -> Option<Vec<Value>> {
        let python = root().join("target/oracles/bin/python");
        let import = "import opentelemetry.proto.trace.v1.trace_pb2";
        let there = Command::new(&python).args(["-c", import]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            eprintln!(
                "skipped: opentelemetry-proto is not installed (analysis/oracles/install says how)"
            );
            return None;
        }
        let both = [("otlp", "spans"), ("otlp-json", "spans.jsonl")].map(|(format, to)| {
            self.run("export", &[&["--format", format, "-o", to], more].concat());
            self.bench.path(to)
        });
        let script = root().join("analysis/oracles/otlp.py");
        let output = Command::new(python).arg("-B").arg(script).args(&both).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        fs::remove_dir_all(&both[0]).unwrap();
        fs::remove_file(&both[1]).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn spans(&self, more: &[&str]) -> Option<Vec<OtlpSpan>> {
        let all = self.otlp(more)?.into_iter().filter(|value| value.get("span").is_some());
        Some(all.map(|value| OtlpSpan::of(&value)).collect())
    }
}

#[derive(Debug, Clone)]
struct OtlpSpan {
    name: String,
    trace: String,
    id: String,
    parent: String,
    ts: i64,
    dur: i64,
    args: Map<String, Value>,
    /// Trace, span, and what the link says.
    links: Vec<(String, String, Value)>,
    resource: Value,
}

impl OtlpSpan {
    fn of(value: &Value) -> OtlpSpan {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let link = |link: &Value| (text(&link[0]), text(&link[1]), link[2].clone());
        OtlpSpan {
            name: text(&value["span"]),
            trace: text(&value["trace"]),
            id: text(&value["id"]),
            parent: text(&value["parent"]),
            ts: value["ts"].as_i64().unwrap(),
            dur: value["dur"].as_i64().unwrap(),
            args: value["args"].as_object().unwrap().clone(),
            links: value["links"].as_array().unwrap().iter().map(link).collect(),
            resource: value["resource"].clone(),
        }
    }
}

/// A span as an event of the other formats.
fn event(span: &OtlpSpan) -> Event {
    let mut args = span.args.clone();
    let mut take = |key: &str| args.remove(key);
    let is_slice = take("ppt.interval").is_some();
    let cat = take("ppt.buffer").map_or(String::new(), |value| value.as_str().unwrap().to_owned());
    for key in ["ppt.frame", "thread.id", "thread.name"] {
        take(key);
    }
    for key in ["segment", "ring", "seqno"] {
        if let Some(value) = args.remove(&format!("ppt.{key}")) {
            // A field may have the name.
            let key = if key == "seqno" && args.contains_key(key) { "ppt_seqno" } else { key };
            args.insert(key.to_owned(), value);
        }
    }
    Event {
        name: span.name.clone(),
        cat,
        ts: span.ts,
        dur: is_slice.then_some(span.dur),
        args,
        track: String::new(),
        flows: Vec::new(),
    }
}

#[test]
fn the_official_messages_find_what_the_captures_hold() {
    let mut slices = 0;
    for captures in all() {
        let Some(spans) = captures.spans(&[]) else { return };
        let events: Vec<Event> = spans.iter().map(event).collect();
        check_slices(&captures, &events);
        check_values(&captures, &events, true);
        assert_eq!(missing(&events), expected_missing(&captures));
        let lengths: i64 = events.iter().filter_map(|event| event.dur).sum();
        assert_eq!(lengths, captures.number("SELECT sum(dur) FROM slices WHERE dur >= 0"));
        slices += events.iter().filter(|event| event.dur.is_some()).count();
        for loss in events.iter().zip(&spans).filter(|(event, _)| event.is_missing()) {
            let cause = loss.0.args["cause"].as_str().unwrap();
            let is_loss = !["unattended", "left_out", "absent"].contains(&cause);
            assert_eq!(loss.1.name == "lost", is_loss, "{cause}");
        }
        // A child has a parent of its thread that is around it.
        let known: BTreeMap<&str, &OtlpSpan> =
            spans.iter().map(|span| (span.id.as_str(), span)).collect();
        for span in spans.iter().filter(|span| !span.parent.is_empty() && span.name != "lost") {
            let parent = known[span.parent.as_str()];
            if span.args.get("thread.id") == parent.args.get("thread.id") {
                assert!(parent.ts <= span.ts, "{span:?} {parent:?}");
            }
        }
    }
    assert!(slices > 10, "{slices}");
}

#[test]
fn resources_say_what_was_lost() {
    let captures = Captures::golden();
    let Some(spans) = captures.spans(&[]) else { return };
    let of =
        |causes: &str| captures.number(&format!("SELECT sum(count) FROM account WHERE {causes}"));
    let dropped = "cause IN ('no_ring', 'nested', 'not_mapped')";
    let expected = [
        ("captured", of("cause = 'captured'")),
        ("dropped", of(dropped)),
        (
            "lost",
            of(&format!(
                "cause NOT IN ('captured', 'left_out', 'absent', 'unattended') AND NOT {dropped}"
            )),
        ),
    ];
    let resources: BTreeSet<String> = spans.iter().map(|span| span.resource.to_string()).collect();
    let resources: Vec<Value> =
        resources.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let sum = |key: &str| -> i64 {
        resources
            .iter()
            .filter_map(|resource| resource[&format!("ppt.frames.{key}")].as_i64())
            .sum()
    };
    for (key, count) in expected {
        assert_eq!(sum(key), count, "{key}");
    }
    assert_eq!(sum("written"), expected.iter().map(|it| it.1).sum::<i64>());
    assert!(sum("lost") + sum("dropped") > 0);
    let service = resources[0]["service.name"].as_str().unwrap();
    assert_eq!(resources[0]["process.executable.name"], service);
    assert!(resources[0]["process.pid"].is_i64() && resources[0]["host.name"].is_string());
}

#[test]
fn spans_are_around_their_ends_and_chains_follow_their_steps() {
    let captures = wholes();
    let Some(spans) = captures.spans(&[]) else { return };
    assert_eq!(spans.len(), WHOLES.len() + 3, "each frame, and each closed span");
    let at = |name: &str, id: u64| {
        let of = spans.iter().filter(move |span| span.name == name && span.args["id"] == id);
        of.collect::<Vec<_>>()
    };
    for (id, ts, dur) in [(1, 10, 40), (2, 20, 40), (3, 61, 29)] {
        let of = at("request", id);
        let (whole, ends): (Vec<_>, Vec<_>) = of.into_iter().partition(|span| span.dur > 0);
        assert_eq!((whole.len(), ends.len()), (1, 2), "{id}");
        assert_eq!((whole[0].ts, whole[0].dur), (BEGAN + ts, dur));
        assert!(whole[0].parent.is_empty());
        for end in ends {
            assert_eq!((&end.trace, &end.parent), (&whole[0].trace, &whole[0].id), "{end:?}");
        }
    }
    assert!(at("request", 9)[0].parent.is_empty(), "nobody knows its begin");
    for (id, steps) in [(5, 3), (6, 2)] {
        let of = at("encode", id);
        assert_eq!(of.len(), steps);
        assert!(of[0].parent.is_empty() && of.iter().all(|step| step.trace == of[0].trace));
        for pair in of.windows(2) {
            assert_eq!(pair[1].parent, pair[0].id, "{pair:?}");
        }
    }
    let traces: BTreeSet<&String> = spans.iter().map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 3 + 1 + 2);
    // The spans alone are there without their ends.
    let alone = captures.spans(&["--frame", "request_spans"]).unwrap();
    assert_eq!(alone.len(), 3);
    assert!(
        alone.iter().all(|span| spans.iter().any(|it| it.id == span.id && it.trace == span.trace))
    );
}

#[test]
fn what_enters_a_point_is_the_child_of_what_left_one() {
    let captures = Captures::of(&[of_points()]);
    let Some(spans) = captures.spans(&[]) else { return };
    let of = |name: &str, id: u64| {
        spans.iter().find(|span| span.name == name && span.args["id"] == id).unwrap()
    };
    for id in [7, 8] {
        let (sent, received) = (of("sent", id), of("received", id));
        assert_eq!((&received.trace, &received.parent), (&sent.trace, &sent.id));
    }
    assert!(of("received", 9).parent.is_empty() && spans.iter().all(|it| it.links.is_empty()));
    // Where its cause is not exported, nothing leads there.
    let alone = captures.spans(&["--frame", "received"]).unwrap();
    assert!(alone.len() == 3 && alone.iter().all(|span| span.parent.is_empty()));
}

#[test]
fn hosts_that_cannot_be_compared_have_spans_without_links() {
    let captures = Captures::of(&[of_points_on("left", [1; 16]), of_points_on("right", [2; 16])]);
    let (text, said) = captures.run("export", &["--format", "otlp-json"]);
    assert!(said.contains("spans have no links to their causes: "), "{said}");
    assert!(!text.contains("parentSpanId") && text.contains("spanId"), "{text}");
    let (_, said) = Captures::of(&[of_points()]).run("export", &["--format", "otlp-json"]);
    assert!(!said.contains("links"), "{said}");
    let Some(spans) = captures.spans(&[]) else { return };
    assert_eq!(spans.len(), 2 * POINTS.len());
    let hosts: BTreeSet<&str> =
        spans.iter().filter_map(|span| span.resource["host.name"].as_str()).collect();
    assert_eq!(hosts, ["left", "right"].into());
}

/// A slice in which a message is taken that was sent in another one, and an identity of 16 bytes.
fn messages() -> Captures {
    let text = "emit C; buffer net; option time ns monotonic;\n\
                frame work { interval time handle; u32 number; }\n\
                frame sent @point { hash id @raw @out(message); time when @at; }\n\
                frame taken @point { hash id @raw @in(message); time when @at; }\n\
                frame body @point { hash128 it @raw @in(body); time when @at; }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "net.frame").unwrap().schema;
    let frame = |kind: usize, seqno: u64, fields: &[(&str, &[u8])]| {
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&seqno.to_le_bytes());
        bytes[8] = kind as u8;
        for (name, value) in fields {
            let fields = &schema.frames[kind].fields;
            let field = fields.iter().find(|field| field.name == *name);
            let at = field.unwrap_or_else(|| panic!("{name}: {fields:?}")).offset as usize;
            bytes[at..][..value.len()].copy_from_slice(value);
        }
        bytes
    };
    let time = |ns: u64| (1_000 + ns).to_le_bytes();
    let work = |seqno, from: u64, to: u64| {
        frame(0, seqno, &[("handle_start", &time(from)), ("handle_end", &time(to))])
    };
    let one = |kind, seqno, id: u64, at: u64| {
        frame(kind, seqno, &[("id", &id.to_le_bytes()), ("when", &time(at))])
    };
    let body: Vec<u8> = (1..=16).collect();
    let frames = [
        one(1, 1, 77, 20),
        one(1, 2, 78, 22),
        work(3, 10, 30),
        one(2, 4, 77, 50),
        work(5, 40, 60),
        one(2, 6, 78, 70),
        frame(3, 7, &[("it", &body), ("when", &time(80))]),
    ];
    let header = FileHeader {
        created_realtime_ns: BEGAN as u64,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    Captures::of(&[capture(&header, &schema, &[(head(1, 2_000), frames.concat())])])
}

#[test]
fn an_effect_within_a_slice_is_linked_to_its_cause() {
    let captures = messages();
    let edges = captures.rows("SELECT src_ts, dst_ts, certainty FROM edges");
    let points = captures.rows("SELECT * FROM points");
    let certain = edges.iter().filter(|edge| edge["certainty"] == "certain").count();
    assert_eq!(certain, 2, "{edges:?} {points:?}");
    let Some(spans) = captures.spans(&[]) else { return };
    let of = |name: &str, ts: i64| {
        let found = spans.iter().find(|span| span.name == name && span.ts == BEGAN + ts);
        found.unwrap_or_else(|| panic!("{name} {ts}: {spans:?}"))
    };
    let (from, to) = (of("work.handle", 10), of("work.handle", 40));
    assert!(from.parent.is_empty() && to.parent.is_empty() && from.trace != to.trace);
    let (sent, taken) = (of("sent", 20), of("taken", 50));
    assert_eq!((&sent.trace, &sent.parent), (&from.trace, &from.id));
    assert_eq!((&taken.trace, &taken.parent), (&to.trace, &to.id));
    let [(trace, id, said)] = &taken.links[..] else { panic!("{taken:?}") };
    assert_eq!((trace, id), (&sent.trace, &sent.id));
    assert_eq!(
        (&said["ppt.edge.kind"], &said["ppt.edge.type"]),
        (&json!("hash"), &json!("message"))
    );
    // In no slice, it is the child of its cause.
    let (other, child) = (of("sent", 22), of("taken", 70));
    assert_eq!((&child.trace, &child.parent), (&other.trace, &other.id));
    assert_eq!(of("body", 80).trace, "0102030405060708090a0b0c0d0e0f10", "as it is");
}

#[test]
fn metrics_hold_counters_and_histograms() {
    let bench = crate::cli::kinds::bench();
    let captures = Captures { bench, names: vec!["out.bin".to_owned()] };
    let Some(all) = captures.otlp(&[]) else { return };
    let of = |name: &str| -> Vec<&Value> {
        all.iter().filter(|value| value["metric"] == name).collect()
    };
    let sums = [
        ("bytes_in", "B", true, [1_000, 2_000, 3_000, 4_000, 5_000]),
        ("inflight", "", false, [1, 2, 3, 2, 1]),
    ];
    for (name, unit, is_monotonic, expected) in sums {
        let points = of(&format!("shop.{name}"));
        let values: Vec<i64> =
            points.iter().map(|point| point["value"].as_i64().unwrap()).collect();
        assert_eq!(values, expected, "{name}");
        for point in points {
            assert_eq!((&point["unit"], &point["type"]), (&json!(unit), &json!("sum")), "{name}");
            assert_eq!(point["monotonic"], is_monotonic, "{name}");
        }
    }
    for (name, unit, expected) in
        [("handling", "ns", [5, 10, 15, 20, 25]), ("queue", "", [10, 20, 30, 40, 50])]
    {
        let points = of(&format!("shop.{name}"));
        let counts: Vec<i64> =
            points.iter().map(|point| point["count"].as_i64().unwrap()).collect();
        assert_eq!(counts, expected, "{name}");
        assert!(points.iter().all(|it| it["type"] == "histogram" && it["unit"] == unit), "{name}");
        // The last reading has each bucket of the captures, by its greatest value.
        let rows = captures.rows(&format!(
            "SELECT lo, hi, sum(count) AS n, sum(sum) AS s FROM histograms WHERE name = '{name}' \
             AND ts = (SELECT max(ts) FROM histograms WHERE name = '{name}') GROUP BY lo, hi ORDER BY lo"
        ));
        let last = points.last().unwrap();
        let bounds: Vec<f64> = serde_json::from_value(last["bounds"].clone()).unwrap();
        let told: Vec<i64> = serde_json::from_value(last["counts"].clone()).unwrap();
        assert_eq!(
            told.iter().sum::<i64>(),
            rows.iter().map(|it| it["n"].as_i64().unwrap()).sum::<i64>()
        );
        for row in &rows {
            let at =
                bounds.iter().position(|&value| value == (row["hi"].as_i64().unwrap() - 1) as f64);
            let at = at.unwrap_or_else(|| panic!("{row:?}: {bounds:?}"));
            assert_eq!(told[at], row["n"].as_i64().unwrap(), "{name}");
            assert_eq!(bounds[at - 1], (row["lo"].as_i64().unwrap() - 1) as f64, "{name}");
        }
        assert_eq!(last["sum"].as_f64(), rows[0]["s"].as_f64(), "{name}");
    }
    // States of threads are spans, and `--frame` chooses.
    let states = all.iter().filter(|value| value["args"]["ppt.frame"] == "thread_states").count();
    assert_eq!(states as i64, captures.number("SELECT count(*) FROM thread_states"));
    let chosen = captures.otlp(&["--frame", "counters"]).unwrap();
    let is_counter = |value: &Value| value["type"] == "sum" || value["args"].get("cause").is_some();
    assert!(chosen.iter().all(is_counter) && chosen.iter().any(|it| it["type"] == "sum"));
}
