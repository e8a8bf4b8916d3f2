//! `ppt fit`, `ppt model` and `ppt compare`, of numbers whose truth is known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, Source};
use serde_json::Value;

const SCHEMA: &str = r#"{"v":1,"buffer":"dve","slots":64,"stride":24,"frames":[{"name":"job",
    "kind":"plain","size":24,"fields":[
    {"name":"users","type":"i32","offset":8},{"name":"kind","type":"i32","offset":12},
    {"name":"cost","type":"f64","offset":16}]}]}"#;

/// Frames that no other run has: always the same for the same seed.
fn noise(seed: u64, at: u64) -> f64 {
    let mut bits =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xd1b5_4a32_d192_ed03);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((bits ^ (bits >> 32)) as u32) as f64 / f64::from(u32::MAX) - 0.5
}

/// A run: 200 frames of `users`, each of which costs 0.1 and 0.001 a user, `times` over.
fn capture(path: &Path, run: u8, users: i32, times: f64) {
    let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
    let header = FileHeader { capture_id: [run; 16], ..FileHeader::default() };
    let mut writer = CaptureWriter::create(fs::File::create(path).unwrap(), &header).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots: 64, stride: 24 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let own = 1.0 + 0.01 * noise(u64::from(run), 0);
    let frame = |at: u64| {
        let cost = 0.1 + 0.001 * f64::from(users) + 0.02 * noise(u64::from(run), at);
        let fields = [users.to_le_bytes(), (at as i32 % 2).to_le_bytes()].concat();
        [at.to_le_bytes().to_vec(), fields, (times * own * cost).to_le_bytes().to_vec()].concat()
    };
    let frames: Vec<u8> = (1..=200).flat_map(frame).collect();
    let head = FramesHead {
        nonce: 7,
        tid: 77,
        first_seq: 1,
        count: 200,
        stride: 24,
        drained_mono_ns: 1,
        ..FramesHead::default()
    };
    writer.frames(&head, &frames).unwrap();
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: Vec::new(),
        drops: Vec::new(),
        realtime_ns: 9,
        mono_ns: 9,
    };
    writer.finish(&end).unwrap();
}

struct Bench(tempfile::TempDir);

impl Bench {
    /// Ten runs of two loads each of five, six runs before and six after a slowdown of 5 %.
    fn new() -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        for run in 0..10u8 {
            let users = [10, 50, 100, 200, 500][usize::from(run) % 5];
            capture(&bench.path(&format!("load{run}.bin")), run, users, 1.0);
        }
        for run in 0..6u8 {
            capture(&bench.path(&format!("before{run}.bin")), 20 + run, 100, 1.0);
            capture(&bench.path(&format!("same{run}.bin")), 40 + run, 100, 1.0);
            capture(&bench.path(&format!("after{run}.bin")), 60 + run, 100, 1.05);
        }
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn ask(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ppt-analysis"))
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }

    fn fails(&self, args: &[&str]) -> (String, i32) {
        let output = self.ask(args);
        (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
    }
}

const SELECT: &str = "SELECT capture, users AS n, cost FROM job";

#[test]
fn a_line_is_found_confirmed_and_followed_to_its_limit() {
    let bench = Bench::new();
    let args = ["fit", "load*.bin", "cost ~ n", "--sql", SELECT, "--at", "n=800", "--limit", "0.9"];
    let text = bench.done(&args);
    assert!(text.starts_with("cost ~ 1 + n   2,000 rows, 10 runs\n"), "{text}");
    assert!(text.contains("\n  confirmed\n    `n` is seen"), "{text}");
    assert!(text.contains("n was measured from 10 to 500 only"), "{text}");
    let json = bench.json(&[&args[..], &["--format", "json"]].concat());
    let near = |value: &Value, truth: f64, by: f64| {
        assert!((value.as_f64().unwrap() / truth - 1.0).abs() < by, "{value}, not {truth}: {json}");
    };
    near(&json["coefficients"][0]["estimate"], 0.1, 0.1);
    near(&json["coefficients"][1]["estimate"], 0.001, 0.02);
    near(&json["prediction"]["value"], 0.9, 0.02);
    near(&json["limit"]["at"], 800.0, 0.03);
    assert_eq!((&json["runs"], &json["verdict"]), (&10.into(), &"confirmed".into()));
    assert_eq!(json["prediction"]["beyond"], true);
}

#[test]
fn a_model_adds_components_up() {
    let bench = Bench::new();
    let component = |name: &str, formula: &str| {
        format!(
            "[[resource.component]]\nname = \"{name}\"\nsql = \"{SELECT}\"\nformula = \"{formula}\"\n"
        )
    };
    let model = format!(
        "load = \"n\"\n[[resource]]\nname = \"cpu\"\nlimit = 1.8\n{}{}",
        component("input", "cost ~ n"),
        component("output", "cost ~ n"),
    );
    fs::write(bench.path("model.toml"), model).unwrap();
    let json = bench.json(&["model", "model.toml", "load*.bin", "--at", "300", "--format", "json"]);
    let cpu = &json["resources"][0];
    let value = cpu["prediction"]["value"].as_f64().unwrap();
    assert!((value / 0.8 - 1.0).abs() < 0.02, "{json}");
    let at = cpu["limit"]["at"].as_f64().unwrap();
    assert!((at / 800.0 - 1.0).abs() < 0.03, "{json}");
    let text = bench.done(&["model", "model.toml", "load*.bin", "--at", "300"]);
    assert!(
        text.contains("model output more finely next") || text.contains("model input"),
        "{text}"
    );
    fs::write(bench.path("bad.toml"), "load = \"n\"\n[[resource]]\nname = \"cpu\"\n").unwrap();
    let (said, code) = bench.fails(&["model", "bad.toml", "load*.bin"]);
    assert!(said.contains("bad.toml: line 3: `cpu` has no component") && code == 2, "{said}");
}

#[test]
fn five_percent_fail_a_gate_and_nothing_passes() {
    let bench = Bench::new();
    let gate = ["--fail-if", "job.cost median > 2%"];
    let fast = [&["compare", "before*.bin", "--", "same*.bin"][..]].concat();
    let text = bench.done(&[&["compare"], &gate[..], &fast[1..]].concat());
    assert!(text.contains("dve.job.cost   6 runs against 6 runs\n"), "{text}");
    let slow = [&["compare"], &gate[..], &["before*.bin", "--", "after*.bin"]].concat();
    let (said, code) = bench.fails(&slow);
    assert!(said.contains("dve.job.cost: p50 is ") && said.contains(" % higher ("), "{said}");
    assert!(said.contains("more: ppt explain gate-failed") && code == 1, "{said}");
    bench.done(&["compare", "before*.bin", "--save", "base.json"]);
    let (_, code) = bench
        .fails(&[&["compare"], &gate[..], &["after*.bin", "--baseline", "base.json"]].concat());
    assert_eq!(code, 1);
    bench.done(&[&["compare"], &gate[..], &["same*.bin", "--baseline", "base.json"]].concat());
}

#[test]
fn one_run_a_side_is_said() {
    let bench = Bench::new();
    let output = bench.ask(&["compare", "before0.bin", "--", "after0.bin"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a side has one run: nothing says how runs differ"), "{said}");
}

#[test]
fn what_is_asked_wrongly_is_shown() {
    let bench = Bench::new();
    let fit = |formula: &str, sql: &str| bench.fails(&["fit", "load*.bin", formula, "--sql", sql]);
    let (said, code) = fit("cost ~ n +", SELECT);
    assert!(said.contains("expected a term, found the end\ncost ~ n +\n          ^"), "{said}");
    assert!(said.contains("more: ppt explain formula") && code == 2, "{said}");
    let (said, code) = fit("cost ~ m", SELECT);
    assert!(said.contains("there is no column `m`") && code == 2, "{said}");
    let (said, code) = fit("cost ~ n", "SELECT users AS n, cost FROM job WHERE users = 10");
    assert!(said.contains("`n` is 10 in every row") && code == 1, "{said}");
    let (said, code) = fit("cost ~ n", "CREATE VIEW x AS SELECT 1");
    assert!(said.contains("only a SELECT is answered here") && code == 2, "{said}");
    let (said, code) = bench.fails(&["compare", "before0.bin"]);
    assert!(said.contains("name two sets of captures") && code == 2, "{said}");
    let (said, code) =
        bench.fails(&["compare", "--fail-if", "cots p99 > 1x", "before*.bin", "--", "same*.bin"]);
    assert!(said.contains("there is no field `cots`") && code == 2, "{said}");
}
