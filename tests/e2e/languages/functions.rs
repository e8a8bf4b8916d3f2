//! `pptc functions`: each call of a function is a frame, and the program's own counts state how many
//! there are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fixtures::support::{Bench, available};

/// Long enough that no call has a frame `call`.
const LONG: &str = "1h";

/// A folder with the code, and the flags for the compiler.
fn prepared(compiler: &str, min: &str) -> (Bench, Vec<String>) {
    let bench = Bench::new();
    bench.pptc(&["functions", "--min", min]);
    let family = if compiler.starts_with("clang") { "clang" } else { "gcc" };
    let mut pptc = bench.command(env!("CARGO_BIN_EXE_pptc"));
    let printed = pptc.args(["functions", &format!("--cflags={family}")]).output().unwrap();
    assert!(printed.status.success());
    let flags = String::from_utf8(printed.stdout).unwrap();
    (bench, flags.split_whitespace().map(str::to_owned).collect())
}

fn build(bench: &Bench, compiler: &str, flags: &[String], args: &[&str]) {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    bench.compile(compiler, &[&flags, args].concat());
}

/// Runs a program under `ppt run` into `out.bin`. Returns the counts that it prints.
fn counts(bench: &Bench, args: &[&str]) -> BTreeMap<String, u64> {
    let ran = bench.ppt(&[&["run"], args].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let lines = ran.stdout.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect()
}

/// The buffer of the process that the capture began with, and its counters.
fn first_buffer(bench: &Bench) -> (Value, BTreeMap<String, u64>) {
    let info = bench.info("out.bin");
    let buffers = info["buffers"].as_array().unwrap();
    let first = buffers.iter().min_by_key(|buffer| buffer["pid"].as_u64()).unwrap().clone();
    assert_eq!((&first["lost"], &first["damaged"]), (&Value::from(0), &Value::from(0)), "{first}");
    let counters = first["counters"].as_array().unwrap().iter();
    let named = counters.map(|counter| {
        (counter["name"].as_str().unwrap().to_owned(), counter["value"].as_u64().unwrap())
    });
    let counters = named.collect();
    (first, counters)
}

/// The number of frames of each function of a process, by its name.
fn frames(bench: &Bench, pid: Option<u64>) -> BTreeMap<String, u64> {
    let table = bench.table("out.bin", &[]);
    let pids = pid.map(|_| table.numbers("pid"));
    let mut frames = BTreeMap::new();
    for (at, function) in table.cells("function").into_iter().enumerate() {
        if pids.as_ref().is_none_or(|pids| Some(pids[at].unsigned_abs()) == pid) {
            let name = function.split([' ', '(']).next().unwrap();
            *frames.entry(name.to_owned()).or_default() += 1;
        }
    }
    frames
}

fn frames_are_the_programs_counts(compiler: &str, level: &str) {
    if !available(compiler) {
        return;
    }
    let (bench, flags) = prepared(compiler, "1us");
    bench.copy("functions/calls.c");
    let args = ["-std=c11", level, "calls.c", "ppt_functions.c", "-o", "calls", "-lpthread"];
    build(&bench, compiler, &flags, &args);
    let mut counted = counts(&bench, &["--", "./calls", "100"]);
    let (buffer, counters) = first_buffer(&bench);
    let frames = frames(&bench, buffer["pid"].as_u64());
    let mut take = |name: &str| counted.remove(name).unwrap();
    let (deep, unwound, open) = (take("deep"), take("unwound"), take("open"));
    // jump and leave never return when all others do.
    counted.retain(|_, count| *count > 0);
    assert_eq!(frames, counted, "{compiler} {level}");
    assert_eq!(counted["leaf"], 1401);
    let sum: u64 = frames.values().sum();
    assert_eq!((counters["deep"], counters["unwound"]), (deep, unwound));
    assert_eq!((counters["unmatched"], counters["nested"]), (0, 0));
    assert_eq!(counters["begun"], sum + deep + unwound + open, "{compiler} {level}");

    // Each of the three children has the three calls of its own.
    let info = bench.info("out.bin");
    let all = info["buffers"].as_array().unwrap();
    let children: Vec<_> = all.iter().filter(|other| other["pid"] != buffer["pid"]).collect();
    assert_eq!(children.len(), 3);
    assert!(children.iter().all(|child| child["frames"] == 3), "{children:?}");
}

#[test]
fn frames_are_the_programs_counts_gcc() {
    frames_are_the_programs_counts("gcc", "-O0");
    frames_are_the_programs_counts("gcc", "-O2");
}

#[test]
fn frames_are_the_programs_counts_clang() {
    frames_are_the_programs_counts("clang", "-O0");
    frames_are_the_programs_counts("clang", "-O2");
}

/// A throw ends the calls that it passes. A library shows its own functions.
fn a_throw_ends_calls(compiler: &str) {
    if !available(compiler) {
        return;
    }
    let (bench, flags) = prepared(compiler, "1us");
    bench.copy_all(&["functions/throws.cpp", "functions/library.cpp"]);
    let code = ["-std=c++17", "-x", "c++", "ppt_functions.c"];
    let library = [&code[..], &["library.cpp", "-fPIC", "-shared", "-o", "liblibrary.so"]].concat();
    build(&bench, compiler, &flags, &library);
    let program = ["throws.cpp", "-x", "none", "liblibrary.so", "-Wl,-rpath,$ORIGIN"];
    build(&bench, compiler, &flags, &[&code[..], &program, &["-o", "throws"]].concat());
    let counted = counts(&bench, &["--", "./throws"]);
    let (_, counters) = first_buffer(&bench);
    let frames = frames(&bench, None);
    assert_eq!(frames["catcher"], counted["catcher"], "{compiler}: {frames:?}");
    assert_eq!(frames["library_call"], counted["library_call"], "{compiler}: {frames:?}");
    // gcc calls the hook also when a throw passes a function.
    let thrower = frames.get("thrower").copied().unwrap_or_default();
    let expected =
        if compiler == "g++" { (counted["thrower"], 0) } else { (0, counted["thrower"]) };
    assert_eq!((thrower, counters["unwound"]), expected, "{compiler}");
    let sum: u64 = frames.values().sum();
    assert_eq!(counters["begun"], sum + counters["unwound"], "{compiler}");
    assert_eq!((counters["deep"], counters["unmatched"]), (0, 0), "{compiler}");
}

#[test]
fn a_throw_ends_calls_gpp() {
    a_throw_ends_calls("g++");
}

#[test]
fn a_throw_ends_calls_clangpp() {
    a_throw_ends_calls("clang++");
}

#[test]
fn brief_calls_are_left_out_on_request() {
    let (bench, flags) = prepared("gcc", LONG);
    bench.copy("functions/calls.c");
    let args = ["-std=c11", "calls.c", "ppt_functions.c", "-o", "calls", "-lpthread"];
    build(&bench, "gcc", &flags, &args);
    counts(&bench, &["--", "./calls", "5"]);
    let kinds = bench.table("out.bin", &[]);
    let kinds: BTreeSet<&str> = kinds.cells("frame").into_iter().collect();
    assert_eq!(kinds, BTreeSet::from(["brief"]), "no call lasts an hour");

    counts(&bench, &["--except", "brief", "-o", "short.bin", "--", "./calls", "5"]);
    let info = bench.info("short.bin");
    let buffers = info["buffers"].as_array().unwrap();
    assert!(buffers.iter().all(|buffer| buffer["frames"] == 0), "{info}");
}

#[test]
fn without_a_limit_each_call_has_its_function_and_times() {
    let (bench, flags) = prepared("gcc", "0s");
    bench.copy("functions/calls.c");
    let args = ["-std=c11", "calls.c", "ppt_functions.c", "-o", "calls", "-lpthread"];
    build(&bench, "gcc", &flags, &args);
    counts(&bench, &["--", "./calls", "10"]);
    let table = bench.table("out.bin", &[]);
    assert!(table.cells("frame").iter().all(|&frame| frame == "call"));
    assert!(table.cells("function").contains(&"handle (calls)"));
    let (start, end) = (table.numbers("run_start"), table.numbers("run_end"));
    assert!(start.iter().zip(&end).all(|(start, end)| 0 < *start && start <= end));
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let bench = Bench::new();
    bench.write("file", "");
    let mut pptc = bench.command(env!("CARGO_BIN_EXE_pptc"));
    let refused = pptc.args(["functions", "-o", "file/under"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("pptc: cannot ") && stderr.contains("file/under"), "{stderr}");
}
