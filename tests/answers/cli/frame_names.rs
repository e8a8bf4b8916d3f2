//! All commands with names of frames accept the same names, and suggest a name for a wrong one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::kinds::bench;
use crate::support::Bench;

/// Arguments of each command; `NAME` is the name of frames, and `ANSWER` the file that it writes.
const BY_OPTION: [(&str, &[&str]); 12] = [
    ("stat", &["stat", "out.bin", "--frame", "NAME"]),
    ("why", &["why", "out.bin", "--frame", "NAME"]),
    ("compare", &["compare", "out.bin", "--frame", "NAME", "--", "out.bin"]),
    ("export", &["export", "out.bin", "--format", "parquet", "--frame", "NAME", "-o", "ANSWER"]),
    ("export", &["export", "out.bin", "--format", "arrow", "--frame", "NAME", "-o", "ANSWER"]),
    ("export", &["export", "out.bin", "--format", "csv", "--frame", "NAME"]),
    ("export", &["export", "out.bin", "--format", "jsonl", "--frame", "NAME"]),
    ("export", &["export", "out.bin", "--format", "perfetto", "--frame", "NAME", "-o", "ANSWER"]),
    ("export", &["export", "out.bin", "--format", "chrome", "--frame", "NAME"]),
    ("export", &["export", "out.bin", "--format", "ctf", "--frame", "NAME", "-o", "ANSWER"]),
    ("export", &["export", "out.bin", "--format", "otlp", "--frame", "NAME", "-o", "ANSWER"]),
    ("export", &["export", "out.bin", "--format", "otlp-json", "--frame", "NAME"]),
];
/// Other commands with `--frame`: `dump` makes a table of the frames alone, `import` makes frames of that kind,
/// and `plot --flame` needs stacks, which this capture lacks.
const OTHERS: [&str; 3] = ["dump", "import", "plot"];

/// A plain frame, a span and a chain, and the tables that are derived from these.
const NAMES: [&str; 5] = ["job", "request", "request_spans", "encode", "encode_chains"];

/// Wrong names, and the suggestion for each.
const MISSPELT: [(&str, Option<&str>); 7] = [
    ("jobb", Some("job")),
    ("reqest", Some("request")),
    ("request_span", Some("request_spans")),
    ("encode_chain", Some("encode_chains")),
    // Names of intervals as in answers, and of tables as in SQL.
    ("job.handle", Some("job")),
    ("shop.request", Some("request")),
    ("nothing_like_it", None),
];

fn arguments<'a>(command: &[&'a str], name: &'a str, answer: &'a str) -> Vec<&'a str> {
    let word = |word: &&'a str| match *word {
        "NAME" => name,
        "ANSWER" => answer,
        word => word,
    };
    command.iter().map(word).collect()
}

/// The commands whose help names an option.
fn commands_with(bench: &Bench, option: &str) -> BTreeSet<String> {
    let help = bench.done(&["--help"]);
    let (list, _) = help.split_once("\nOptions:\n").unwrap();
    let words = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let has = |word: &&str| bench.done(&[word, "--help"]).contains(option);
    words.filter(has).map(str::to_owned).collect()
}

#[test]
fn every_command_with_a_frame_is_in_the_table() {
    let bench = Bench::empty();
    let known = BY_OPTION.map(|(command, _)| command).into_iter().chain(OTHERS);
    assert_eq!(commands_with(&bench, "--frame <NAME>"), known.map(str::to_owned).collect());
}

/// The message of a command that has no answer for these frames.
fn not_answered(command: &str, name: &str) -> Option<String> {
    match (command, name) {
        ("why", "encode" | "encode_chains") => Some(format!(
            "`{name}` has no interval of time and no span; these have: job, request\n  \
             more: ppt explain frame-without-interval\n"
        )),
        // The fields are a key, a step and a time.
        ("compare", "encode") => Some("no field in common: numbers and lengths".to_owned()),
        _ => None,
    }
}

#[test]
fn each_command_takes_frames_and_what_is_made_of_them() {
    let bench = bench();
    let mut number = 0;
    for (command, words) in BY_OPTION {
        for name in NAMES {
            number += 1;
            let answer = format!("answer{number}");
            let args = arguments(words, name, &answer);
            if let Some(expected) = not_answered(command, name) {
                let (said, code) = bench.fails(&args);
                assert!(code == 2 && said.contains(&expected), "{args:?}: {code} {said}");
                continue;
            }
            let output = bench.run(&args);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
            let wrote = bench.path(&answer).exists();
            assert!(wrote || output.stdout.len() > 100, "{args:?}: nothing was answered");
        }
    }
}

#[test]
fn each_command_says_which_frame_is_meant() {
    let bench = bench();
    for (_, words) in BY_OPTION {
        for (name, meant) in MISSPELT {
            let args = arguments(words, name, "answer");
            let (said, code) = bench.fails(&args);
            let near = meant.map_or(String::new(), |meant| format!(" (did you mean `{meant}`?)"));
            let expected = format!("there is no frame `{name}`{near}; there are: ");
            assert!(code == 2 && said.contains(&expected), "{args:?}: {code} {said}");
            assert!(said.ends_with("  more: ppt explain no-such-frame\n"), "{args:?}: {said}");
            let (_, there) = said.split_once("there are: ").unwrap();
            let there: Vec<&str> = there.lines().next().unwrap().split(", ").collect();
            // Every listed name is accepted; see above.
            assert!(NAMES.iter().all(|name| there.contains(name)), "{args:?}: {said}");
            assert!(!bench.path("answer").exists(), "{args:?}");
        }
    }
}

/// SQL names frames as tables.
#[test]
fn each_command_with_sql_takes_the_same_names() {
    let bench = bench();
    for (command, option) in [("sql", None), ("plot", None), ("fit", Some("--sql"))] {
        let run = |name: &str| {
            let query = format!("SELECT ring AS x, seqno AS y FROM {name}");
            let formula = ["y ~ 1 + x", "--sql", &query];
            let words = if option.is_some() { &formula[..] } else { &formula[2..] };
            bench.run(&[&[command, "out.bin"], words].concat())
        };
        for name in NAMES.into_iter().chain(["shop.request", "shop.request_spans"]) {
            let output = run(name);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{command} {name}: {said}");
        }
        for (name, meant) in MISSPELT.into_iter().filter(|(name, _)| !name.contains('.')) {
            let output = run(name);
            let said = String::from_utf8_lossy(&output.stderr);
            let near = meant.map_or(String::new(), |meant| format!(" (did you mean `{meant}`?)"));
            let expected = format!("there is no table `{name}`{near}; there are: ");
            let is_said = said.contains(&expected) && output.status.code() == Some(2);
            assert!(is_said, "{command} {name}: {said}");
        }
    }
}

/// The events of Chrome's JSON, without names of processes and threads.
fn events(bench: &Bench, names: &[&str]) -> Vec<Value> {
    let args = [&["export", "out.bin", "--format", "chrome"], names].concat();
    let mut trace: Value = serde_json::from_str(&bench.done(&args)).unwrap();
    let Value::Array(mut events) = trace["traceEvents"].take() else { panic!("no list") };
    events.retain(|event| event["ph"] != "M");
    events
}

#[test]
fn a_trace_of_one_name_has_its_part_of_the_whole_trace() {
    let bench = bench();
    let whole = events(&bench, &[]);
    let count = |query: &str| {
        let rows = bench.rows(query);
        usize::try_from(rows[0]["n"].as_u64().unwrap()).unwrap()
    };
    let spans = count("SELECT count(*) AS n FROM request_spans WHERE state = 'closed'");
    let ends = count("SELECT count(*) AS n FROM request");
    let steps = count("SELECT count(*) AS n FROM encode");
    let states = count("SELECT count(*) AS n FROM thread_states");
    let calls = count("SELECT count(*) AS n FROM syscall_enter")
        + count("SELECT count(*) AS n FROM syscall_exit");
    assert!(spans > 0 && states > 0 && calls > 0);
    let named = |name: &str| events(&bench, &["--frame", name]);
    let of_phase = |events: &[Value], phases: &[&str]| {
        events.iter().filter(|event| phases.iter().any(|phase| event["ph"] == **phase)).count()
    };
    let slices = ["X", "b"];
    // A span is one slice, and its frames are instants.
    let alone = named("request_spans");
    assert_eq!((of_phase(&alone, &slices), of_phase(&alone, &["i"])), (spans, 0));
    let with_frames = named("request");
    let seen = (of_phase(&with_frames, &slices), of_phase(&with_frames, &["i"]));
    assert_eq!(seen, (spans, ends));
    // A chain is named like its steps.
    assert_eq!(named("encode_chains"), named("encode"));
    assert_eq!(of_phase(&named("encode"), &["i"]), steps);
    let curves = of_phase(&whole, &["C"]);
    let told = [named("counters"), named("histograms")];
    assert!(told.iter().all(|events| of_phase(events, &["C"]) == events.len()));
    assert_eq!(told.iter().map(Vec::len).sum::<usize>(), curves);
    assert_eq!(of_phase(&named("thread_states"), &slices), states);
    assert_eq!(of_phase(&named("syscalls"), &["i"]), calls);
}
