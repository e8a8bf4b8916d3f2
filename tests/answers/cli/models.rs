//! `ppt fit`, `ppt model` and `ppt compare` on numbers with known truth.

use std::fs;
use std::process::{Command, Stdio};

use ppt_capture::FileHeader;
use ppt_capture::frame_dsl::schema::Schema;
use serde_json::Value;

use crate::support::{self, Bench, head, root, schema};

const SCHEMA: &str = r#"{"v":1,"buffer":"dve","slots":64,"stride":40,"frames":[{"name":"job",
    "kind":"plain","size":40,"fields":[
    {"name":"users","type":"i32","offset":8},{"name":"kind","type":"i32","offset":12},
    {"name":"cost","type":"f64","offset":16},
    {"name":"took_start","type":"ns","clock":"thread_cpu","offset":24,
        "interval":{"name":"took","edge":"start"}},
    {"name":"took_end","type":"ns","clock":"thread_cpu","offset":32,
        "interval":{"name":"took","edge":"end"}}]}]}"#;

/// Noise that differs between runs, but is the same for the same seed.
fn noise(seed: u64, at: u64) -> f64 {
    let mut bits =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xd1b5_4a32_d192_ed03);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((bits ^ (bits >> 32)) as u32) as f64 / f64::from(u32::MAX) - 0.5
}

/// A capture of one thread's frames.
fn frames(run: u8, schema: &Schema, frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let header = FileHeader { capture_id: [run; 16], ..FileHeader::default() };
    support::capture(&header, schema, &[(head(1, 1), frames.flatten().collect())])
}

/// A run: 200 frames of `users`, each of which costs 0.1, and 0.001 per user, multiplied by `times`.
fn capture(run: u8, users: i32, times: f64) -> Vec<u8> {
    let own = 1.0 + 0.01 * noise(u64::from(run), 0);
    let frame = |at: u64| {
        let cost = 0.1 + 0.001 * f64::from(users) + 0.02 * noise(u64::from(run), at);
        let fields = [users.to_le_bytes(), (at as i32 % 2).to_le_bytes()].concat();
        let cost = times * own * cost;
        let (began, ended) = (1000 * at, 1000 * at + (100.0 * cost) as u64);
        let words = [cost.to_bits(), began, ended].map(u64::to_le_bytes);
        [at.to_le_bytes().to_vec(), fields, words.concat()].concat()
    };
    frames(run, &schema(SCHEMA), (1..=200).map(frame))
}

/// Ten runs of two loads each of five, six runs before and six after a slowdown of 5 %.
pub fn bench() -> Bench {
    let bench = Bench::empty();
    let write = |name: String, run, users, times| bench.write(&name, capture(run, users, times));
    for run in 0..10u8 {
        let users = [10, 50, 100, 200, 500][usize::from(run) % 5];
        write(format!("load{run}.bin"), run, users, 1.0);
    }
    for run in 0..6u8 {
        write(format!("before{run}.bin"), 20 + run, 100, 1.0);
        write(format!("same{run}.bin"), 40 + run, 100, 1.0);
        write(format!("after{run}.bin"), 60 + run, 100, 1.05);
    }
    bench
}

pub const SELECT: &str = "SELECT capture, users AS n, cost FROM job";

#[test]
fn a_line_is_found_confirmed_and_followed_to_its_limit() {
    let bench = bench();
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
    let bench = bench();
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
    bench.write("model.toml", model);
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
    bench.done(&["model", "model.toml", "load*.bin", "--svg", "model.svg"]);
    let svg = fs::read_to_string(bench.path("model.svg")).unwrap();
    // The resource, and two components of 2,000 rows with their residuals.
    assert_eq!(svg.matches("<polygon").count(), 3, "intervals");
    assert_eq!(svg.matches("h0").count(), 2 * 2 * 2_000, "points and residuals");
    assert_eq!(svg.matches("stroke-dasharray").count(), 3, "the bound, and where nothing is left");
    let (said, code) = bench.fails(&["model", "model.toml", "load*.bin", "--svg", "model.svg"]);
    assert!(said.contains("model.svg") && said.contains("exists") && code == 1, "{said}");
    bench.write("bad.toml", "load = \"n\"\n[[resource]]\nname = \"cpu\"\n");
    let (said, code) = bench.fails(&["model", "bad.toml", "load*.bin"]);
    assert!(said.contains("bad.toml: line 3: `cpu` has no component") && code == 2, "{said}");
}

#[test]
fn five_percent_fail_a_gate_and_nothing_passes() {
    let bench = bench();
    let gate = ["--fail-if", "job.cost median > 2%"];
    let fast = [&["compare", "before*.bin", "--", "same*.bin"][..]].concat();
    let text = bench.done(&[&["compare"], &gate[..], &fast[1..]].concat());
    assert!(text.contains("dve.job.cost   6 runs against 6 runs\n"), "{text}");
    // An interval is compared, but not its begin and end.
    let names = text.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = names.filter_map(|name| name.split(' ').next()).collect();
    let expected = ["dve.job.users", "dve.job.kind", "dve.job.cost", "dve.job.took"];
    assert_eq!(names, expected, "{text}");
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
fn answers_do_not_depend_on_the_order_of_rows() {
    let bench = bench();
    let fit = |order: &str| {
        let sql = "SELECT capture, avg(users) AS n, avg(cost) AS cost FROM job GROUP BY capture";
        let sql = format!("{sql} ORDER BY capture {order}");
        let json = bench.json(&["fit", "load*.bin", "cost ~ n", "--sql", &sql, "--format", "json"]);
        let round = |value: &Value| format!("{:.9}", value.as_f64().unwrap());
        json["coefficients"][1]["bootstrap"].as_array().unwrap().iter().map(round).collect()
    };
    let one: Vec<String> = fit("ASC");
    assert_eq!(one, fit("DESC"));
}

#[test]
fn a_side_without_frames_passes_no_gate_and_replaces_no_baseline() {
    let bench = bench();
    let header = FileHeader { capture_id: [99; 16], ..FileHeader::default() };
    bench.write("none.bin", support::capture(&header, &schema(SCHEMA), &[]));
    let gate = ["--fail-if", "cost mean > 0%"];
    let compare = |words: &[&str]| bench.fails(&[&["compare"], &gate[..], words].concat());
    for sides in [["none.bin", "--", "after0.bin"], ["after0.bin", "--", "none.bin"]] {
        let (said, code) = compare(&sides);
        assert!(said.contains("there are no values; and 3 more") && code == 3, "{said}");
    }
    let (said, code) = compare(&["--save", "empty.json", "none.bin"]);
    assert!(said.contains("no field") && code == 2, "{said}");
    bench.done(&["compare", "--save", "base.json", "before*.bin"]);
    let base = fs::read(bench.path("base.json")).unwrap();
    let update = ["--baseline", "base.json", "--save", "base.json", "--force"];
    let (said, code) = compare(&[&update[..], &["none.bin"]].concat());
    assert!(said.contains("nothing can be compared: ") && code == 3, "{said}");
    let (said, code) = compare(&[&update[..], &["same*.bin"]].concat());
    assert!(said.contains("is also the input") && code == 1, "{said}");
    assert_eq!(fs::read(bench.path("base.json")).unwrap(), base);
    // Measurements that a gate refuses are not saved as a baseline.
    let next = ["--baseline", "base.json", "--save", "next.json"];
    let (said, code) = compare(&[&next[..], &["after*.bin"]].concat());
    assert!(said.contains("a gate failed, so nothing is saved") && code == 1, "{said}");
    assert!(!bench.path("next.json").exists());
    let (said, code) =
        bench.fails(&["compare", "--fail-if", "zz p99 > 0%", "--save", "z.json", "before0.bin"]);
    assert!(said.contains("there is no field `zz`") && code == 2, "{said}");
    let (said, code) =
        compare(&["--save", "o.json", "-o", "o.json", "before0.bin", "--", "after0.bin"]);
    assert!(said.contains("--save and -o name the same file") && code == 2, "{said}");
}

#[test]
fn what_has_no_end_is_not_read_to_it() {
    let bench = bench();
    for words in [
        &["model", "/dev/zero", "load0.bin"][..],
        &["sql", "-f", "/dev/zero", "load0.bin"],
        &["compare", "--baseline", "/dev/zero", "load0.bin"],
        &["stat", "/dev/zero"],
    ] {
        let (said, code) = bench.fails(words);
        assert!(said.contains("/dev/zero") && code == 1, "{words:?}: {said}");
    }
    bench.write("q.sql", "SELECT 1");
    let (said, code) = bench.fails(&["sql", "-f", "q.sql", "-o", "q.sql", "--force", "load0.bin"]);
    assert!(said.contains("is also the input") && code == 1, "{said}");
    assert_eq!(fs::read_to_string(bench.path("q.sql")).unwrap(), "SELECT 1");
}

#[test]
fn groups_of_one_side_are_named() {
    let bench = bench();
    let by = ["compare", "--by", "kind", "before0.bin", "--"];
    let one = schema(SCHEMA);
    let even = |at: u64| {
        let fields = [100i32.to_le_bytes(), 0i32.to_le_bytes()].concat();
        let words = [0.2f64.to_bits(), 1000 * at, 1000 * at + 20].map(u64::to_le_bytes);
        [at.to_le_bytes().to_vec(), fields, words.concat()].concat()
    };
    bench.write("even.bin", frames(98, &one, (1..=200).map(even)));
    let output = bench.run(&[&by[..], &["even.bin"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("on the first side alone, so not compared: ") && said.contains("kind=1"),
        "{said}"
    );
}

#[test]
fn one_run_a_side_is_said() {
    let bench = bench();
    let output = bench.run(&["compare", "before0.bin", "--", "after0.bin"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a side has one run: the variation between runs is unknown"), "{said}");
}

#[test]
fn what_is_asked_wrongly_is_shown() {
    let bench = bench();
    let fit = |formula: &str, sql: &str| bench.fails(&["fit", "load*.bin", formula, "--sql", sql]);
    let (said, code) = fit("cost ~ n +", SELECT);
    assert!(said.contains("expected a term, found the end\ncost ~ n +\n          ^"), "{said}");
    assert!(said.contains("more: ppt explain formula") && code == 2, "{said}");
    let (said, code) =
        bench.fails(&["fit", "load0.bin", "cost ~ n", "--sql", SELECT, "--svg", "-"]);
    assert!(said.contains("--svg and -o name the same file") && code == 2, "{said}");
    let (said, code) = fit("cost ~ m", SELECT);
    assert!(said.contains("there is no column `m`") && code == 2, "{said}");
    let (said, code) = fit("cost ~ n", "SELECT users AS n, cost FROM job WHERE users = 10");
    assert!(said.contains("`n` is 10 in every row") && code == 1, "{said}");
    let odd = |value: &str| {
        let case = format!("CASE WHEN kind = 0 THEN {value} ELSE cost END");
        fit("cost ~ n", &format!("SELECT capture, users AS n, {case} AS cost, NULL AS no FROM job"))
    };
    let (said, code) = odd("NULL");
    assert!(said.contains("1,000 of 2,000 rows have NULL for a number and are left out"), "{said}");
    assert_eq!(code, 0);
    let (said, code) = odd("CAST('NaN' AS DOUBLE)");
    assert!(said.contains("`cost` is NaN in row") && code == 1, "{said}");
    let (said, code) = fit("cost ~ n", "CREATE VIEW x AS SELECT 1");
    assert!(said.contains("only a SELECT is answered here") && code == 2, "{said}");
    let late = ["compare", "before*.bin", "--", "same*.bin", "--fail-if", "cost p99 > 1x"];
    let (said, code) = bench.fails(&late);
    assert!(said.contains("put --fail-if before it") && code == 2, "{said}");
    let (said, code) = bench.fails(&["compare", "before0.bin"]);
    assert!(said.contains("name two sets of captures") && code == 2, "{said}");
    let (said, code) =
        bench.fails(&["compare", "--fail-if", "cots p99 > 1x", "before*.bin", "--", "same*.bin"]);
    assert!(said.contains("there is no field `cots`") && code == 2, "{said}");
}

/// A run of `examples/dve/costs.frame`: twenty steps of `users`.
fn steps(run: u8, users: u64) -> Vec<u8> {
    let source = fs::read(root().join("examples/dve/costs.frame")).unwrap();
    let schema = ppt_capture::frame_dsl::compile(&source, "costs.frame").unwrap().schema;
    let n = users as f64;
    let frame = |at: u64| {
        let own = 1.0 + 0.05 * noise(u64::from(run), 0) + 0.02 * noise(u64::from(run), at);
        let of = |cost: f64| (own * cost) as u64;
        let (input, simulation) = (of(2e3 * n + 1e5), of(1e3 * n + 26.0 * n * n));
        let output = of(4e3 * n + 9.0 * n * n);
        let began = 1_000_000_000 + at * 50_000_000;
        let (received, simulated) = (began + input, began + input + simulation);
        let value = |name: &str| match name {
            "users" | "packets_out" => users,
            "pairs" => of(0.09 * n * n),
            "packets_in" => of(0.32 * n),
            "bytes_in" => of(6.4 * n),
            "bytes_out" => of(310.0 * n * (1.0 - (-n / 70.0).exp())),
            "queued" => of(0.4 * n * n),
            "memory" => u64::from(at == 5) * of(140_000.0 + 80.0 * n),
            "input_start" | "period_start" => began,
            "input_end" | "simulation_start" => received,
            "simulation_end" | "output_start" => simulated,
            "output_end" => simulated + output,
            "period_end" => simulated + output + 32_000_000,
            other => panic!("{other}"),
        };
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&at.to_le_bytes());
        for field in &schema.frames[0].fields {
            let wide = field.interval.is_some() || field.name == "memory";
            let (place, size) = (field.offset as usize, if wide { 8 } else { 4 });
            bytes[place..place + size].copy_from_slice(&value(&field.name).to_le_bytes()[..size]);
        }
        bytes
    };
    frames(run, &schema, (1..=20).map(frame))
}

/// The commands of `docs/models.md`, as typed, on captures with the names of the page.
#[test]
fn the_page_has_commands_that_can_be_typed() {
    let bench = Bench::empty();
    let path = |name: &str| bench.path(name);
    for load in ["load", "837", "600", "1000"] {
        fs::create_dir_all(path("work").join(load)).unwrap();
    }
    for run in 0..20u8 {
        let users = [10, 50, 100, 200, 500][usize::from(run) % 5];
        bench.write(&format!("work/load/{users}-{run}.bin"), steps(run, users));
    }
    for (run, users) in [(30, 837), (31, 837), (32, 837), (33, 600), (34, 1000)] {
        bench.write(&format!("work/{users}/{users}-{run}.bin"), steps(run, users));
    }
    fs::copy(root().join("examples/dve/model.toml"), path("model.toml")).unwrap();
    fs::create_dir(path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ppt"), path("bin/ppt")).unwrap();
    let page = fs::read_to_string(root().join("docs/models.md")).unwrap();
    let (mut block, mut asked) = (None::<String>, 0);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(text), "```") => {
                if text.starts_with("ppt ") {
                    let mut shell = Command::new("sh");
                    shell.args(["-ec", text.as_str()]).current_dir(bench.folder());
                    let before = std::env::var("PATH").unwrap();
                    shell.env("PATH", format!("{}:{before}", path("bin").display()));
                    let output = shell.stdin(Stdio::null()).output().unwrap();
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{text}: {said}");
                    assert!(!output.stdout.is_empty(), "{text}");
                    asked += 1;
                }
                block = None;
            }
            (Some(text), line) => *text += &format!("{line}\n"),
            (None, _) => {}
        }
    }
    assert!(asked >= 5, "{asked}");
}
