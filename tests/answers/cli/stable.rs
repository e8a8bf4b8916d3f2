//! Names that stay the same in all versions: tables, columns and keys of JSON.

#[path = "../../stable/hold.rs"]
mod list;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use list::{hold, keys};

use crate::cli::{kinds, models, traces, whatif};
use crate::support::{Bench, root};

/// The answer to `\d` and similar lines.
fn described(bench: &Bench, words: &str) -> String {
    let mut command = bench.command(&["sql", "out.bin"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tables_and_columns_stay() {
    let bench = kinds::bench();
    let tables = described(&bench, "\\d\n");
    let tables = tables.lines().filter_map(|line| line.split_once(" (").map(|entry| entry.0));
    let mut there = BTreeSet::new();
    for table in tables {
        for line in described(&bench, &format!("\\d {table}\n")).lines() {
            let (column, ty) = line.trim().split_once(' ').unwrap();
            there.insert(format!("{table}.{column}: {}", ty.trim()));
        }
    }
    assert!(there.contains("account.count: Int64"), "{there:?}");
    assert!(there.contains("request_spans.dur: Int64 [ns]"), "{there:?}");
    hold(&root(), "tables.txt", &there);
}

#[test]
fn keys_of_json_stay() {
    // The keys of these objects are names from a capture.
    let maps = ["by", "values", "request", "speed"];
    let mut there = BTreeSet::new();
    let mut ask = |bench: &Bench, args: &[&str]| {
        let answer = bench.json(&[args, &["--format", "json"]].concat());
        keys(args[0], &answer, &maps, &mut there);
    };
    let all = kinds::bench();
    ask(&all, &["stat", "out.bin"]);
    ask(&all, &["stat", "out.bin", "--by", "tid", "--every", "1s"]);
    ask(&all, &["why", "out.bin", "--frame", "request_spans"]);
    ask(&all, &["why", "out.bin", "--frame", "request_spans", "--summary"]);
    ask(&all, &["graph", "out.bin"]);
    let points = traces::points();
    ask(&points, &["graph", "out.bin"]);
    ask(&points, &["graph", "out.bin", "--from", "sent", "--to", "received"]);
    ask(&whatif::bench(), &["whatif", "out.bin", "--speed", "handle=2x"]);
    let runs = models::bench();
    let select = models::SELECT;
    let fit = ["fit", "load*.bin", "cost ~ n", "--sql", select, "--at", "n=800", "--limit", "0.9"];
    ask(&runs, &fit);
    let component = format!(
        "[[resource.component]]\nname = \"in\"\nsql = \"{select}\"\nformula = \"cost ~ n\"\n"
    );
    let model = format!("load = \"n\"\n[[resource]]\nname = \"cpu\"\nlimit = 1.8\n{component}");
    runs.write("model.toml", model);
    ask(&runs, &["model", "model.toml", "load*.bin", "--at", "300"]);
    assert!(there.contains("stat[].p99: number"), "{there:#?}");
    assert!(there.contains("graph.slowest[].hops[].ns: number"), "{there:#?}");
    assert!(there.contains("fit.verdict: string"), "{there:#?}");
    hold(&root(), "json.txt", &there);
}
