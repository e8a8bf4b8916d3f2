//! Every type, from one thread and from eight, in C, C++, Python, Java, Node and Go (Rust's targets are
//! built in `rust.rs`).

use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::support::{Bench, Target, available};
use crate::fixtures::values::{MANY, check};

fn c(threads: i64, rounds: i64) {
    run(threads, rounds, &["values_main.c"], |bench| {
        bench.pptc(&["values.frame", "clocks.frame"]);
        bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
    });
}

fn cpp(threads: i64, rounds: i64) {
    run(threads, rounds, &["values_main.cpp"], |bench| {
        bench.pptc(&["--emit", "cpp", "values.frame", "clocks.frame"]);
        let sources = ["values_main.cpp", "values.cpp", "clocks.cpp"];
        let args = ["-std=c++17", "-o", "values", "-lpthread"];
        bench.compile("g++", &[&args[..], &sources].concat());
    });
}

fn python(threads: i64, rounds: i64) {
    let bench = Bench::new();
    bench.copy_all(&["values.py", "values.frame", "clocks.frame"]);
    if !modules(&bench, &["values", "clocks"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.args(["values.py", &threads.to_string(), &rounds.to_string()]);
    check(&bench, Target::start(command), threads, rounds);
}

fn java(threads: i64, rounds: i64) {
    let bench = Bench::new();
    bench.copy_all(&["values_main.java", "values.frame", "clocks.frame"]);
    if !java::program(&bench, &["values", "clocks"], &["values_main.java"]) {
        return;
    }
    let args = [threads.to_string(), rounds.to_string()];
    let command = java::java(&bench, "Values", &[&args[0], &args[1]]);
    check(&bench, Target::start(command), threads, rounds);
}

fn node(threads: i64, rounds: i64) {
    let bench = Bench::new();
    bench.copy_all(&["values_main.js", "values.frame", "clocks.frame"]);
    if !node::packages(&bench, &["values", "clocks"]) {
        return;
    }
    let args = [threads.to_string(), rounds.to_string()];
    let command = node::node(&bench, "values_main.js", &[&args[0], &args[1]]);
    check(&bench, Target::start(command), threads, rounds);
}

fn go(threads: i64, rounds: i64) {
    let bench = Bench::new();
    bench.copy_all(&["values_main.go", "values.frame", "clocks.frame"]);
    if !go::program(&bench, &["values", "clocks"], "values_main.go") {
        return;
    }
    let args = [threads.to_string(), rounds.to_string()];
    let command = go::built(&bench, &[&args[0], &args[1]]);
    check(&bench, Target::start(command), threads, rounds);
}

fn run(threads: i64, rounds: i64, sources: &[&str], build: impl FnOnce(&Bench)) {
    let bench = Bench::new();
    bench.copy_all(&["values.frame", "clocks.frame"]);
    bench.copy_all(sources);
    build(&bench);
    let target = bench.start("values", &[&threads.to_string(), &rounds.to_string()]);
    check(&bench, target, threads, rounds);
}

#[test]
fn c_from_one_thread() {
    c(1, 15_000);
}

#[test]
fn c_from_eight_threads() {
    c(8, MANY);
}

#[test]
fn cpp_from_one_thread() {
    if !available("g++") {
        return;
    }
    cpp(1, 15_000);
}

#[test]
fn cpp_from_eight_threads() {
    if !available("g++") {
        return;
    }
    cpp(8, MANY);
}

#[test]
fn python_from_one_thread() {
    python(1, 5_000);
}

#[test]
fn python_from_eight_threads() {
    python(8, 1_000);
}

#[test]
fn java_from_one_thread() {
    java(1, 15_000);
}

#[test]
fn java_from_eight_threads() {
    java(8, 1_000);
}

#[test]
fn node_from_one_worker() {
    node(1, 15_000);
}

#[test]
fn node_from_eight_workers() {
    node(8, 1_000);
}

#[test]
fn go_from_one_thread() {
    go(1, 15_000);
}

#[test]
fn go_from_eight_threads() {
    go(8, MANY);
}
