//! The names of threads, in SQL, in traces and on the page.

use ppt_capture::{
    CaptureWriter, End, EndReason, FileHeader, FramesHead, Process, Segment, Source, ThreadName,
    ThreadNames,
};
use serde_json::{Value, json};

use crate::support::{Bench, schema};

const JSON: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[
    {"name":"beat","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]}]}"#;

/// Two threads of one process: 77, which was renamed, and 78, whose name looks like markup. Thread 79
/// has no name.
fn bench() -> Bench {
    let header = FileHeader {
        capture_id: [1; 16],
        host: "h".into(),
        created_realtime_ns: 1_000_000,
        created_mono_ns: 1000,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let schema = schema(JSON);
    let source = Source {
        schema_json: JSON.into(),
        schema_hash: schema.hash(),
        buffer: "b".into(),
        process: Process { pid: 7, start_time: 3, exe: "/bin/prog".into(), ..Process::default() },
        segments: vec![Segment { nonce: 7, rings: 3, slots: 16, stride: 16 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let named = |tid, mono_ns, text: &[u8]| {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text);
        ThreadName { tid, mono_ns, name }
    };
    let names = vec![named(77, 1500, b"young"), named(78, 1500, b"</script>\x1b\xff")];
    writer.thread_names(&ThreadNames { source: 0, is_base: false, names }).unwrap();
    for (ring, tid) in [(0, 77), (1, 78), (2, 79)] {
        let head = FramesHead {
            nonce: 7,
            ring,
            tid,
            first_seq: 1,
            count: 1,
            stride: 16,
            drained_mono_ns: 2000,
            ..FramesHead::default()
        };
        let frame = [1u64.to_le_bytes(), [0, 0, 0, 0, 5, 0, 0, 0]].concat();
        writer.frames(&head, &frame).unwrap();
    }
    let names = vec![named(77, 3000, b"old")];
    writer.thread_names(&ThreadNames { source: 0, is_base: false, names }).unwrap();
    let end = End::new(EndReason::Stopped, 1_009_000, 10_000);
    let bench = Bench::empty();
    bench.write("out.bin", writer.end(&end).unwrap());
    bench
}

#[test]
fn the_documented_join_adds_the_last_name() {
    let bench = bench();
    let rows = bench.rows(
        "SELECT f.tid, t.name FROM beat AS f LEFT JOIN threads AS t ON t.capture = f.capture AND \
         t.pid = f.pid AND t.tid = f.tid AND t.ts_end IS NULL ORDER BY f.tid",
    );
    let rows: Vec<Value> = rows.into_iter().map(|row| json!([row["tid"], row["name"]])).collect();
    let hostile = "</script>\u{1b}\u{fffd}";
    assert_eq!(rows, [json!([77, "old"]), json!([78, hostile]), json!([79, null])]);
    let all = bench.rows("SELECT name, ts_end IS NULL AS is_last FROM threads ORDER BY tid, ts");
    let all: Vec<Value> = all.into_iter().map(|row| json!([row["name"], row["is_last"]])).collect();
    assert_eq!(all, [json!(["young", false]), json!(["old", true]), json!([hostile, true])]);
}

#[test]
fn traces_have_the_names() {
    let bench = bench();
    bench.done(&["export", "out.bin", "--format", "chrome", "-o", "trace.json"]);
    let text = std::fs::read_to_string(bench.path("trace.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named: Vec<_> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (event["tid"].as_i64().unwrap(), event["args"]["name"].as_str().unwrap()))
        .collect();
    for expected in [(77, "old"), (78, "</script>\u{1b}\u{fffd}"), (79, "thread 79")] {
        assert!(named.contains(&expected), "{expected:?}: {named:?}");
    }
    bench.done(&["export", "out.bin", "--format", "perfetto", "-o", "trace.pftrace"]);
    let trace = std::fs::read(bench.path("trace.pftrace")).unwrap();
    // A thread's descriptor: its pid, its number, its name.
    let descriptor = |tid: u8, name: &str| {
        let mut bytes = vec![0x08, 7, 0x10, tid];
        if !name.is_empty() {
            bytes.extend([0x2a, name.len() as u8]);
            bytes.extend(name.as_bytes());
        }
        bytes
    };
    for bytes in
        [descriptor(77, "old"), descriptor(78, "</script>\u{1b}\u{fffd}"), descriptor(79, "")]
    {
        assert!(trace.windows(bytes.len()).any(|part| part == bytes), "{bytes:?}");
    }
}

#[test]
fn the_page_has_the_names() {
    let bench = bench();
    bench.done(&["report", "out.bin", "-o", "page.html"]);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("<td>77 (old)<td>"), "the table of threads");
    assert!(page.contains(r#""name":"old""#), "what the script draws");
    assert!(!page.contains("</script>\\u001b") && !page.contains("</script>\u{1b}"), "no markup");
}
