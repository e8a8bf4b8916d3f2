//! Counters and histograms in every language, and in files with nothing else.

use serde_json::Value;

use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::support::{Bench, Target, available};

/// A file with counters only.
const FRAMES: &str = "counter seen @unit(\"n\");\ncounter level : i64;\n\
    histogram waits : duration;\nhistogram sizes : u32 (10, 20, 4);\n";

/// Each program adds once for each i from 0 to 99 at a line.
const ROUNDS: i64 = 100;

fn check(bench: &Bench, mut target: Target) {
    let attach = bench.attach(&target, &[]);
    target.say("go");
    target.stdout.wait_for("done");
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let buffer = &info["buffers"][0];
    let of = |list: &str, name: &str| {
        let all = buffer[list].as_array().unwrap();
        all.iter().find(|value| value["name"] == name).unwrap().clone()
    };
    let sum: i64 = (0..ROUNDS).sum();
    assert_eq!(of("counters", "seen")["value"], sum);
    assert_eq!(of("counters", "level")["value"], -sum);
    let waits = of("histograms", "waits");
    assert_eq!((&waits["count"], &waits["sum"]), (&ROUNDS.into(), &(1000 * sum - 5000).into()));
    // 0 to 4 were counted as -1000 each; 94 of 100 are at most 93 000 ns.
    assert_eq!(waits["p50"], bucket(49_000));
    assert_eq!(waits["max"], bucket(99_000));
    let sizes = of("histograms", "sizes");
    assert_eq!((&sizes["count"], &sizes["sum"]), (&ROUNDS.into(), &sum.into()));
    assert_eq!(sizes["p50"], serde_json::json!({"lo": 20, "hi": null}));
    assert_eq!((&buffer["kinds"], &buffer["frames"]), (&serde_json::json!([]), &0.into()));
    assert_eq!(bench.table("out.bin", &[]).rows.len(), 0);
}

/// The exponential bucket of a value.
fn bucket(value: i64) -> Value {
    let shift = 63 - value.leading_zeros() as i64 - 4;
    let lo = value >> shift << shift;
    serde_json::json!({"lo": lo, "hi": lo + (1 << shift)})
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("only.frame", FRAMES);
    bench
}

const C: &str = r#"
#include "only.h"
#include <stdio.h>
int main(void) {
    char line[8];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 100; i++) {
            PPT_ADD_SEEN((unsigned)i);
            PPT_ADD_LEVEL(-i);
            PPT_OBSERVE_WAITS(i < 5 ? -1000 + i * 1000 : i * 1000);
            PPT_OBSERVE_SIZES((unsigned)i);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
"#;

const CPP: &str = r#"
#include "only.hpp"
#include <cstdio>
int main() {
    char line[8];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 100; i++) {
            ppt::only::seen::add(static_cast<unsigned>(i));
            ppt::only::level::add(-i);
            ppt::only::waits::observe(i < 5 ? -1000 + i * 1000 : i * 1000);
            ppt::only::sizes::observe(static_cast<unsigned>(i));
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
"#;

const PYTHON: &str = r#"
import sys
import only
print("ready", flush=True)
for line in sys.stdin:
    for i in range(100):
        only.seen_add(i)
        only.level_add(-i)
        only.waits_observe(-1000 + i * 1000 if i < 5 else i * 1000)
        only.sizes_observe(i)
    if only.on():
        for wrong in [lambda: only.seen_add(-1), lambda: only.sizes_observe(1 << 32)]:
            try:
                wrong()
            except OverflowError as error:
                assert "does not fit" in str(error), error
            else:
                raise AssertionError
    print("done", flush=True)
"#;

const JAVA: &str = r#"
import java.util.Scanner;
import only.*;
class Main {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        Ppt.on(); // loads the library
        System.out.println("ready");
        while (in.hasNextLine()) {
            in.nextLine();
            for (int i = 0; i < 100; i++) {
                Seen.add(i);
                Level.add(-i);
                Waits.observe(i < 5 ? -1000 + i * 1000 : i * 1000);
                Sizes.observe(i);
            }
            for (long wrong : new long[] {-1, 1L << 32})
                try {
                    Sizes.observe(wrong);
                    if (Sizes.on())
                        throw new IllegalStateException("" + wrong);
                } catch (IllegalArgumentException error) {
                    if (!error.getMessage().equals("sizes (u32): " + wrong + " does not fit"))
                        throw error;
                }
            System.out.println("done");
        }
    }
}
"#;

const NODE: &str = r#"
const assert = require('node:assert');
const { seen, level, waits, sizes } = require('./only');
const { line } = require('./lines');
console.log('ready');
while (line() !== null) {
    for (let i = 0; i < 100; i++) {
        seen.add(i % 2 ? i : BigInt(i));
        level.add(-i);
        waits.observe(i < 5 ? -1000 + i * 1000 : i * 1000);
        sizes.observe(i);
    }
    for (const wrong of [-1, 2 ** 32, 0.5, NaN])
        assert.throws(() => sizes.observe(wrong),
            { name: 'RangeError', message: `sizes (u32): ${wrong} does not fit` });
    assert.throws(() => seen.add(-1), { message: 'seen (u64): -1 does not fit' });
    assert.throws(() => seen.add(), { name: 'TypeError', message: 'seen (u64): undefined is none' });
    console.log('done');
}
"#;

const GO: &str = r#"package main

import (
	"fmt"
	"time"

	"program/only"
)

func main() {
	fmt.Println("ready")
	for line() != "" {
		for i := 0; i < 100; i++ {
			only.AddSeen(uint64(i))
			only.AddLevel(int64(-i))
			length := time.Duration(i) * time.Microsecond
			if i < 5 {
				length -= time.Microsecond
			}
			only.ObserveWaits(length)
			only.ObserveSizes(uint32(i))
		}
		fmt.Println("done")
	}
}
"#;

#[test]
fn c() {
    let bench = bench();
    bench.pptc(&["only.frame"]);
    bench.write("main.c", C);
    bench.cc(&["-Wconversion", "only.c", "main.c", "-o", "main"]);
    check(&bench, bench.start("main", &[]));
}

#[test]
fn c_where_nothing_is_compiled_in() {
    let bench = bench();
    bench.pptc(&["only.frame"]);
    bench.write("main.c", C);
    bench.cc(&["-DPPT_DISABLE", "only.c", "main.c", "-o", "main"]);
    let mut target = bench.start("main", &[]);
    target.say("go");
    target.stdout.wait_for("done");
    target.finish();
}

#[test]
fn cpp() {
    if !available("g++") {
        return;
    }
    let bench = bench();
    bench.pptc(&["--emit", "c++", "only.frame"]);
    bench.write("main.cpp", CPP);
    bench.compile("g++", &["-std=c++17", "-Wconversion", "only.cpp", "main.cpp", "-o", "main"]);
    check(&bench, bench.start("main", &[]));
}

#[test]
fn python() {
    let bench = bench();
    if !modules(&bench, &["only"]) {
        return;
    }
    bench.write("main.py", PYTHON);
    let mut command = bench.command("python3");
    command.arg("main.py");
    check(&bench, Target::start(command));
}

#[test]
fn java() {
    let bench = bench();
    bench.write("Main.java", JAVA);
    if java::program(&bench, &["only"], &["Main.java"]) {
        check(&bench, Target::start(java::java(&bench, "Main", &[])));
    }
}

#[test]
fn node() {
    let bench = bench();
    bench.write("main.js", NODE);
    if node::packages(&bench, &["only"]) {
        check(&bench, Target::start(node::node(&bench, "main.js", &[])));
    }
}

#[test]
fn go() {
    let bench = bench();
    bench.write("main.go", GO);
    if go::program(&bench, &["only"], "main.go") {
        check(&bench, Target::start(go::built(&bench, &[])));
    }
}

#[test]
fn rust() {
    let mut command = std::process::Command::new(crate::fixtures::rust::program("counting"));
    let bench = bench();
    command.current_dir(bench.path(""));
    check(&bench, Target::start(command));
}
