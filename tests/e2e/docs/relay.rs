//! One question through programs in Node.js, Java, Go and C: what the capture has is held against what the customers
//! counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::support::{Account, Bench, available, ppt, root, text};
use crate::fixtures::{java, node};

/// The hops, from the front to the service behind all others, and back.
const HOPS: [&str; 8] = [
    "front_took",
    "stock_took",
    "prices_took",
    "rates_took",
    "rates_gave",
    "prices_gave",
    "stock_gave",
    "front_gave",
];
const CUSTOMERS: u64 = 4;
const QUESTIONS: u64 = 60;
/// Questions of each customer before those that count.
const WARM_UP: u64 = 25;

fn rows(bench: &Bench, query: &str) -> Vec<Value> {
    let ran = bench.ppt(&["sql", "--format", "jsonl", "out.bin", query]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs the example as it is. Returns false if a language is not installed.
fn captured(bench: &Bench) -> bool {
    if node::headers().is_none() || java::home().is_none() {
        return false;
    }
    if !["make", "go", "bash"].into_iter().all(available) {
        return false;
    }
    let mut copy = Command::new("cp");
    copy.arg("-r")
        .args(["relay", "side_by_side.sh"].map(|name| root().join("examples").join(name)));
    assert!(copy.arg(bench.path("")).status().unwrap().success());
    // Files that a user has built in the example are not part of it.
    let _ = fs::remove_dir_all(bench.path("relay/work"));
    let mut run = bench.command("bash");
    run.args(["relay/run", "--customers", &CUSTOMERS.to_string()]);
    run.args(["--questions", &QUESTIONS.to_string()]).env_remove("MAKEFLAGS");
    run.env("PPT", ppt()).env("PPTC", env!("CARGO_BIN_EXE_pptc"));
    run.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    run.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
    let output = run.output().unwrap();
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    let answered = format!("answered {}: ", CUSTOMERS * QUESTIONS);
    assert!(stdout.contains(&answered), "{stdout}");
    assert!(stdout.contains(&format!("warm-up {}\n", CUSTOMERS * WARM_UP)), "{stdout}");
    fs::rename(bench.path("relay/work/out.bin"), bench.path("out.bin")).unwrap();
    true
}

/// The identity of each answer that customers got, and what it took in nanoseconds.
fn answers(bench: &Bench) -> HashMap<String, i64> {
    let lines = fs::read_to_string(bench.path("relay/work/answers")).unwrap();
    let answer = |line: &str| {
        let (trace, us) = line.split_once('\t').unwrap();
        (trace.to_owned(), us.parse::<i64>().unwrap() * 1000)
    };
    lines.lines().map(answer).collect()
}

#[test]
fn one_question_is_followed_through_four_languages() {
    let bench = Bench::new();
    if !captured(&bench) {
        return;
    }
    let answers = answers(&bench);
    let asked = CUSTOMERS * (QUESTIONS + WARM_UP);
    assert_eq!(answers.len() as u64, asked, "each has an identity of its own");

    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account.dropped, 0, "{account:?}");
    let hops = rows(&bench, &fs::read_to_string(bench.path("relay/hops.sql")).unwrap());
    let hops: Vec<_> = hops
        .iter()
        .map(|hop| {
            let number = |name: &str| hop[name].as_u64().unwrap();
            let points = ["src_point", "dst_point"].map(|name| hop[name].as_str().unwrap());
            (points, number("questions"), number("certain"), number("processes"))
        })
        .collect();
    let expected: Vec<_> = HOPS
        .windows(2)
        .map(|hop| {
            let processes = if hop == ["rates_took", "rates_gave"] { 1 } else { 2 };
            ([hop[0], hop[1]], asked, asked, processes)
        })
        .collect();
    assert_eq!(hops, expected);
    let processes = rows(&bench, "SELECT count(DISTINCT pid) AS n FROM points");
    assert_eq!(processes[0]["n"], 4);

    // Every path goes through all, and took no longer than its customer waited.
    let paths = "SELECT p.in_hash AS trace, w.hops, w.latency, w.ambiguous \
                 FROM paths('front_took', 'front_gave') w JOIN points p ON p.point = 'front_gave' \
                 AND p.segment = w.dst_segment AND p.ring = w.dst_ring AND p.seqno = w.dst_seqno";
    let paths = rows(&bench, paths);
    assert_eq!(paths.len() as u64, asked);
    let mut seen = HashSet::new();
    for path in &paths {
        assert_eq!((&path["hops"], &path["ambiguous"]), (&7.into(), &false.into()), "{path}");
        let trace = path["trace"].as_str().unwrap();
        let waited = answers.get(trace).unwrap_or_else(|| panic!("nobody got {trace}"));
        // Two clocks: the customer's is read in whole microseconds.
        assert!(path["latency"].as_i64().unwrap() <= waited + 50_000, "{path}: {waited}");
        seen.insert(trace);
    }
    assert_eq!(seen.len() as u64, asked);

    why_names_the_slow_service(&bench);
}

/// Each question that waited for the rates, of those that the kernel's frames explain, is followed to them.
fn why_names_the_slow_service(bench: &Bench) {
    let frame = |row: &Value| ["pid", "ring", "seqno"].map(|name| row[name].as_i64().unwrap());
    let of_trace = "SELECT in_hash AS trace, pid, ring, seqno FROM points";
    let traces: BTreeMap<[i64; 3], String> = rows(bench, of_trace)
        .iter()
        .map(|row| (frame(row), row["trace"].as_str().unwrap().to_owned()))
        .collect();
    let why = ["why", "out.bin", "--frame", "front_gave", "--slowest", "1000", "--format", "json"];
    let ran = bench.ppt(&why);
    if ran.stderr.contains("no-kernel") {
        eprintln!("skipped: the kernel's frames cannot be had here");
        return;
    }
    assert_eq!(ran.code(), 0, "{ran:?}");
    let slow: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(slow.len() as u64, CUSTOMERS * (QUESTIONS + WARM_UP));
    let mut followed = 0;
    for front in &slow {
        let mut chain = vec![front];
        while let Some(call) =
            chain.last().unwrap().get("answered_by").filter(|call| call.is_object())
        {
            assert_eq!(call["identity"], "trace");
            assert_eq!(call["service"], call["request"]["name"]);
            chain.push(&call["request"]);
        }
        // Each is of the same question, in the order of the services.
        let names: Vec<_> = chain.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let expected = HOPS[4..].iter().rev().map(|point| format!("{point}.handle"));
        assert!(expected.zip(&names).all(|(expected, name)| expected == **name), "{names:?}");
        let trace = |one: &Value| &traces[&frame(one)];
        assert!(chain.iter().all(|one| trace(one) == trace(front)), "{names:?}");
        let dur = |one: &Value| one["dur"].as_i64().unwrap();
        if chain.len() == 4 && dur(chain[3]) > 25_000_000 {
            followed += 1;
        }
    }
    // The rates are read at the first and at each hundredth question, for 30 ms: the mistake.
    let reads = 1 + CUSTOMERS * (QUESTIONS + WARM_UP) / 100;
    assert!(followed >= reads, "{followed} of {reads}");
    let waited = slow
        .iter()
        .find(|one| one["sentence"].as_str().unwrap().contains("had the same trace in rates_gave"));
    let sentence = waited.expect("one was followed")["sentence"].as_str().unwrap();
    assert!(sentence.contains("(java) had the same trace in stock_gave.handle for"), "{sentence}");
}
