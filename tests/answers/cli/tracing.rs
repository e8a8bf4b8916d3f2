//! The output of the crate `ppt-tracing`, by the names in the program: views of its spans and events.

use std::fs;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, Source};
use serde_json::json;

use crate::support::{Bench, root, source};

/// The schema of a buffer of `ppt-tracing`.
fn of_file(name: &str) -> Schema {
    let text = fs::read(root().join("sources/tracing").join(name)).unwrap();
    ppt_frame_dsl::compile(&text, name).unwrap().schema
}

/// A frame with these fields; the others are 0.
fn row(schema: &Schema, seq: u64, frame: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let number = schema.frames.iter().position(|known| known.name == frame).unwrap();
    let mut bytes = vec![0; schema.stride as usize];
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    if schema.frames.len() > 1 {
        bytes[8..10].copy_from_slice(&(number as u16).to_le_bytes());
    }
    for (name, value) in fields {
        let all = &schema.frames[number].fields;
        let field = all.iter().find(|field| field.name == *name).unwrap();
        bytes[field.offset as usize..][..value.len()].copy_from_slice(value);
    }
    bytes
}

fn types(numbers: [(u8, u8); 6]) -> [u8; 6] {
    numbers.map(|(position, number)| position << 3 | number)
}

/// A span with a record and an event in it, and an event at an unknown callsite. The callsites are
/// described twice, as in two sessions.
fn capture() -> Vec<u8> {
    let (tracing, callsites) = (of_file("tracing.frame"), of_file("callsites.frame"));
    let (request, served, unknown) =
        (11u64.to_le_bytes(), 12u64.to_le_bytes(), 13u64.to_le_bytes());
    let id = 5u64.to_le_bytes();
    let numbers = types([(0, 1), (2, 2), (3, 4), (0, 0), (1, 3), (0, 0)]);
    let minus = (-7i64).to_le_bytes();
    let (one, half) = (1i64.to_le_bytes(), 0.5f64.to_le_bytes());
    let all: [(&str, &[u8]); 6] =
        [("types", &numbers), ("a", &[9]), ("b", &minus), ("c", &one), ("d", &one), ("x", &half)];
    let status = types([(2, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]);
    let with = |fields: &[(&'static str, &'static [u8])], ids: &[(&'static str, &[u8; 8])]| {
        let ids = ids.iter().map(|(name, id)| (*name, id.to_vec()));
        fields.iter().map(|(name, value)| (*name, value.to_vec())).chain(ids).collect::<Vec<_>>()
    };
    let rows = [
        (
            "task",
            with(&[("edge", &[0]), ("name", b"request")], &[("id", &id), ("callsite", &request)]),
        ),
        ("recorded", with(&[("a", &[200])], &[("id", &id), ("callsite", &request)])),
        (
            "event",
            with(&[("level", &[3]), ("text", b"served")], &[("task", &id), ("callsite", &served)]),
        ),
        ("event", with(&[("level", &[2])], &[("callsite", &unknown)])),
        ("task", with(&[("edge", &[1])], &[("id", &id)])),
    ];
    let frames = (1u64..).zip(rows).flat_map(|(seq, (frame, fields))| {
        let mut fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (*name, value.as_slice())).collect();
        match frame {
            "recorded" => fields.push(("types", &status)),
            _ if fields[0].1 != [1] => fields.extend(all),
            _ => {}
        }
        row(&tracing, seq, frame, &fields)
    });
    let frames: Vec<u8> = frames.collect();

    let names = "n,share,status,ok";
    let described = [(request, "a.rs", 10u8), (served, "b.rs", 20)];
    let sites =
        (1u64..).zip(described.into_iter().chain(described)).flat_map(|(seq, (id, file, line))| {
            let fields: [(&str, &[u8]); 4] = [
                ("id", &id),
                ("file", file.as_bytes()),
                ("line", &[line]),
                ("fields", names.as_bytes()),
            ];
            row(&callsites, seq, "callsite", &fields)
        });
    let sites: Vec<u8> = sites.collect();

    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    for (number, (schema, frames)) in (0u16..).zip([(&tracing, frames), (&callsites, sites)]) {
        let nonce = 7 + u64::from(number);
        let (slots, stride) = (schema.slots, schema.stride);
        let segments = vec![Segment { nonce, rings: 1, slots, stride }];
        writer.source(number, &Source { segments, ..source(schema) }).unwrap();
        let count = frames.len() as u32 / stride;
        let head = FramesHead {
            source: number,
            nonce,
            tid: 77,
            stride,
            count,
            first_seq: 1,
            drained_mono_ns: 9,
            ..FramesHead::default()
        };
        writer.frames(&head, &frames).unwrap();
    }
    let end = End::new(EndReason::Stopped, 9, 9);
    writer.end(&end).unwrap()
}

#[test]
fn spans_and_events_have_the_names_of_the_program() {
    let bench = Bench::empty();
    bench.write("out.bin", capture());
    let fields = "n=9 status=-7 ok=true share=0.5";
    let rows =
        bench.rows("SELECT level, text, fields, file, line FROM tracing_events ORDER BY seqno");
    let rows: Vec<_> = rows.into_iter().map(serde_json::Value::Object).collect();
    let wanted = [
        json!({"level": "INFO", "text": "served", "fields": fields, "file": "b.rs", "line": 20}),
        json!({"level": "WARN", "text": "", "fields": "#0=9 #2=-7 #3=true #1=0.5"}),
    ];
    for (row, wanted) in rows.iter().zip(&wanted) {
        for (name, value) in wanted.as_object().unwrap() {
            assert_eq!(&row[name], value, "{name} of {row}");
        }
        assert!(wanted.get("file").is_some() || row.get("file").is_none_or(|file| file.is_null()));
    }
    assert_eq!(rows.len(), wanted.len(), "a callsite that is described twice doubles no row");

    // Without readings of clocks, ticks have no times, and the end has no begin.
    let spans = bench.rows(
        "SELECT begin_name, fields, file, line FROM tracing_spans WHERE begin_name = 'request'",
    );
    let [span] = &spans[..] else { panic!("one span: {spans:?}") };
    assert_eq!(span["begin_name"], "request");
    assert_eq!((&span["fields"], &span["file"]), (&json!(fields), &json!("a.rs")));

    let recorded = "SELECT field_of(fields, 'status') AS status, field_of(fields, 'stat') AS none, \
                    line FROM tracing_recorded";
    let recorded = bench.rows(recorded);
    assert_eq!(recorded[0]["status"], "200");
    assert!(recorded[0].get("none").is_none_or(|none| none.is_null()));
    assert_eq!(recorded[0]["line"], 10);
}

/// Frames with these names from other programs are shown unchanged.
#[test]
fn frames_of_others_are_left_alone() {
    let bench = Bench::empty();
    let text = "emit C; buffer tracing; frame event { int a; }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "own.frame").unwrap().schema;
    let frames = row(&schema, 1, "event", &[("a", &[5])]);
    let run = (crate::support::head(1, 9), frames);
    bench.write("out.bin", crate::support::capture(&FileHeader::default(), &schema, &[run]));
    assert_eq!(bench.rows("SELECT a FROM event")[0]["a"], 5);
    let (said, code) = bench.fails(&["sql", "out.bin", "SELECT * FROM tracing_events"]);
    assert!(code != 0 && said.contains("tracing_events"), "{said}");
}
