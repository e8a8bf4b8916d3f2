//! Frames without a time are in every export, and exports of traces report their number.

use ppt_capture::FileHeader;
use serde_json::Value;

use crate::support::{Bench, capture, head, names, schema};

/// Three frames with times, two without, and one of an unknown kind.
const FRAMES: [(u8, u64); 6] = [(0, 5_000), (0, 0), (0, 5_010), (0, 0), (9, 5_015), (0, 5_020)];

fn bench(drained_mono_ns: u64) -> Bench {
    let kind = |name: &str| {
        format!(
            r#"{{"name":"{name}","kind":"plain","size":24,"fields":[
            {{"name":"at","type":"ns","clock":"monotonic","offset":16,"at":true,"stamp":true}}]}}"#
        )
    };
    let (tick, tock) = (kind("tick"), kind("tock"));
    let schema = schema(&format!(
        r#"{{"v":1,"buffer":"b","slots":16,"stride":24,"frames":[{tick},{tock}]}}"#
    ));
    let header = FileHeader {
        capture_id: [5; 16],
        boot_id: "boot".to_owned(),
        created_realtime_ns: 1_700_000_000_000_000_000,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    let mut frames = Vec::new();
    for (seq, (kind, at)) in (1u64..).zip(FRAMES) {
        frames.extend(seq.to_le_bytes());
        frames.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frames.extend(at.to_le_bytes());
    }
    let bench = Bench::empty();
    bench.write("out.bin", capture(&header, &schema, &[(head(1, drained_mono_ns), frames)]));
    bench
}

/// The messages of an export.
fn said(bench: &Bench, args: &[&str]) -> String {
    let output = bench.run(&[&["export", "out.bin", "--format"], args].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {said}");
    said
}

#[test]
fn traces_count_frames_without_a_time() {
    // The frame of an unknown kind has no time either.
    let expected = "3 frames have no time: their place in the trace is the beginning of the first \
                    capture";
    let bench = bench(0);
    for format in ["perfetto", "chrome", "ctf", "otlp", "otlp-json"] {
        let to = format!("trace.{format}");
        let text = said(&bench, &[format, "-o", &to]);
        assert!(text.contains(expected), "{format}: {text}");
    }
    let chrome: Value =
        serde_json::from_slice(&std::fs::read(bench.path("trace.chrome")).unwrap()).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "i").count(), FRAMES.len());
    let text = said(&bench, &["chrome", "--frame", "tick", "-o", "ticks.json"]);
    assert!(text.contains("2 frames have no time"), "{text}");
}

#[test]
fn a_drained_frame_has_a_time() {
    let bench = bench(9_000);
    for format in ["perfetto", "chrome", "ctf", "otlp", "otlp-json"] {
        let text = said(&bench, &[format, "-o", &format!("trace.{format}")]);
        assert!(!text.contains("no time"), "{format}: {text}");
    }
}

#[test]
fn tables_keep_frames_without_a_time() {
    let bench = bench(0);
    let csv = bench.done(&["export", "out.bin", "--format", "csv", "--frame", "tick"]);
    assert_eq!(csv.lines().count(), 1 + 5, "{csv}");
    for format in ["jsonl", "parquet", "arrow"] {
        bench.done(&["export", "out.bin", "--format", format, "-o", &format!("all.{format}")]);
        let files = names(&bench.path(&format!("all.{format}")));
        assert!(files.contains(&format!("tick.{format}")), "{files:?}");
    }
    let lines = std::fs::read_to_string(bench.path("all.jsonl/tick.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 5, "{lines}");
}
