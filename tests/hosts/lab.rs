//! `ppt lab`: its arguments, the files it leaves, and the errors it reports.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Bench;

const EXPERIMENT: &str = r#"
name = "say"
repeat = 2
timeout = "30s"
host.here = { via = "local" }
matrix = { word = ["a", "b c"] }

[[phase]]
name = "say"
here = { run = ["echo", "{word}", "{host}"] }
"#;

#[test]
fn an_experiment_is_planned_run_repeated_and_compared() {
    let bench = Bench::empty();
    bench.write("exp.toml", EXPERIMENT);
    let plan = bench.done(&["lab", "plan", "exp.toml"]);
    for part in ["say: 4 cells, seed 0", "here         local", "here: run echo \"b c\" here"] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    assert_eq!(bench.names(), ["exp.toml"], "a plan runs nothing");

    bench.done(&["lab", "run", "exp.toml"]);
    bench.done(&["lab", "rerun", "say-1"]);
    assert_eq!(bench.names(), ["exp.toml", "say-1", "say-2"]);
    let said = fs::read_to_string(bench.path("say-1/word=a,r2/say.here.out")).unwrap();
    assert_eq!(said, "a here\n");
    assert_eq!(bench.done(&["lab", "diff", "say-1", "say-2"]), "nothing differs\n");

    bench.write("other.toml", EXPERIMENT.replace("\"{host}\"", "\"there\""));
    bench.done(&["lab", "run", "other.toml", "-o", "other"]);
    let differs = bench.run(&["lab", "diff", "say-1", "other"]);
    assert_eq!(differs.status.code(), Some(1));
    let differences = String::from_utf8(differs.stdout).unwrap();
    for part in [
        "set up differently: 5",
        "    a: echo a here\n    b: echo a there",
        "files of other content: 4",
    ] {
        assert!(differences.contains(part), "{part}\n{differences}");
    }
}

#[test]
fn experiments_that_cannot_run_are_refused_at_once() {
    let bench = Bench::empty();
    let cases = [
        (EXPERIMENT.replace("repeat = 2", "repeat = two"), "exp.toml:3:10", "lab-file", 2),
        (EXPERIMENT.replace("{word}", "{ward}"), "`word`?", "lab-file", 2),
        (EXPERIMENT.replace("\"echo\"", "\"no-such-program\""), "no-such-program", "no-lab", 1),
        (EXPERIMENT.replace("\"local\"", "\"ssh:-oProxyCommand=x\""), "ssh:", "lab-file", 2),
    ];
    for (text, part, name, status) in cases {
        bench.write("exp.toml", &text);
        let (said, code) = bench.fails(&["lab", "run", "exp.toml"]);
        assert!(said.contains(part) && said.contains(&format!("ppt explain {name}")), "{said}");
        assert_eq!(code, status, "{said}");
        assert_eq!(bench.names(), ["exp.toml"], "{said}");
    }
    let (said, code) = bench.fails(&["lab", "run", "no.toml"]);
    assert!(said.contains("cannot read no.toml"), "{said}");
    assert_eq!(code, 2);
    let (said, _) = bench.fails(&["lab", "host"]);
    assert!(said.contains("is started by `ppt lab run`"), "{said}");
    let (said, _) = bench.fails(&["lab", "diff", "exp.toml", "no"]);
    assert!(said.contains("is no manifest of ppt lab"), "{said}");
}

#[test]
fn failed_cells_are_reported_and_kept() {
    let bench = Bench::empty();
    let text = EXPERIMENT.replace("\"{word}\", \"{host}\"", "\"x\"")
        + "[check]\nsql = [\"SELECT true\"]\n";
    bench.write("exp.toml", text);
    let (said, code) = bench.fails(&["lab", "run", "exp.toml", "-o", "out"]);
    for part in ["the cell has no capture", "4 of 4 cells failed", "ppt explain lab-failed"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(code, 1);
    assert_eq!(fs::read_to_string(bench.path("out/word=a,r1/say.here.out")).unwrap(), "x\n");
    let (said, code) = bench.fails(&["lab", "run", "exp.toml", "-o", "out"]);
    assert!(said.contains("out exists: results are never written over others"), "{said}");
    assert_eq!(code, 2);
}

/// Ctrl-C ends the running cell: the output of its programs is kept, and no other cell runs.
#[test]
fn an_interruption_leaves_what_ran() {
    let bench = Bench::empty();
    let text = EXPERIMENT.replace(
        r#"["echo", "{word}", "{host}"]"#,
        r#"["sh", "-c", "echo begun; mkfifo f; echo > {mark}; read x < f"]"#,
    );
    let mark = bench.path("mark");
    fifo(&mark);
    bench.write("exp.toml", text.replace("{mark}", mark.to_str().unwrap()));
    let mut command = bench.command(&["lab", "run", "exp.toml", "-o", "out"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // The program reports that it runs.
    assert_eq!(fs::read(&mark).unwrap(), b"\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("phase say was interrupted"), "{stderr}");
    let manifest = fs::read_to_string(bench.path("out/MANIFEST.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["state"], "interrupted");
    let cells = manifest["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1, "{manifest}");
    let folder = bench.path("out").join(cells[0]["folder"].as_str().unwrap());
    assert_eq!(fs::read_to_string(folder.join("say.here.out")).unwrap(), "begun\n");
}

fn fifo(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn checks_know_the_parameters() {
    let bench = Bench::empty();
    let check = "[check]\nsql = [\"SELECT '{word}' = 'a' AND {repeat} > 0\"]\n";
    bench.write("exp.toml", EXPERIMENT.to_owned() + check);
    let (said, _) = bench.fails(&["lab", "run", "exp.toml", "-o", "out"]);
    assert!(said.contains("check `SELECT 'b c' = 'a' AND 2 > 0`"), "{said}");
    bench.write("exp.toml", EXPERIMENT.to_owned() + &check.replace("word", "host"));
    let (said, code) = bench.fails(&["lab", "plan", "exp.toml"]);
    assert!(said.contains("nothing fills in `{host}`") && code == 2, "{said}");
}
