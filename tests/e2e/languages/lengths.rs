//! Differences of tick stamps, in histograms of nanoseconds.

use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::support::{Bench, Target, available};

const FRAMES: &str = include_str!("../../targets/lengths.frame");

/// Minimum duration of a sleep in ns.
const NAP: i64 = 20_000_000;
const NAPS: i64 = 5;

fn check(bench: &Bench, mut target: Target) {
    for (clock, is_read_from) in [("auto", "its clock"), ("monotonic", "the monotonic clock")] {
        let attach = bench.attach(&target, &["--clock", clock, "--force"]);
        target.say("go");
        let said = target.stdout.wait_for("done");
        attach.stop();
        let said: Vec<i64> = said.split(' ').map(|number| number.parse().unwrap()).collect();
        let [length, about, unknown] = said[..] else { panic!("{said:?}") };
        // The program's measurement encloses the helper's result. A rate is accurate to 30 ppm.
        let least = NAP - NAP / 1000;
        assert!((least..=about + about / 1000).contains(&length), "{is_read_from}: {said:?}");
        assert_eq!(unknown, -1, "{is_read_from}: one stamp was not taken");
    }
    target.finish();
    let info = bench.info("out.bin");
    let naps = &info["buffers"][0]["histograms"][0];
    assert_eq!(naps["count"], NAPS);
    assert!(naps["sum"].as_i64().unwrap() >= NAPS * NAP * 999 / 1000, "{naps}");
    assert!(naps["p50"]["hi"].as_i64().unwrap() > NAP, "{naps}");
}

const C: &str = r#"
#define _GNU_SOURCE
#include "lengths.h"
#include <stdio.h>
#include <time.h>
static long long monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(void) {
    char line[8];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long long length = 0, about = 0;
        for (int i = 0; i < 5; i++) {
            struct timespec nap = {0, 20000000};
            about = monotonic();
            uint64_t start = NOW();
            nanosleep(&nap, NULL);
            length = BETWEEN(start, NOW());
            about = monotonic() - about;
            OBSERVE(length);
        }
        printf("done %lld %lld %lld\n", length, about, (long long)BETWEEN(0, 7));
        fflush(stdout);
    }
    return 0;
}
"#;

const PYTHON: &str = r#"
import sys, time
import lengths
print("ready", flush=True)
for line in sys.stdin:
    for i in range(5):
        about = time.monotonic_ns()
        start = lengths.now()
        time.sleep(0.02)
        length = lengths.ns_between(start, lengths.now())
        about = time.monotonic_ns() - about
        lengths.naps_observe(length)
    print("done", length, about, lengths.ns_between(0, 7), flush=True)
"#;

const JAVA: &str = r#"
import java.util.Scanner;
import lengths.*;
class Main {
    public static void main(String[] args) throws InterruptedException {
        Scanner in = new Scanner(System.in);
        Ppt.on(); // loads the library
        System.out.println("ready");
        while (in.hasNextLine()) {
            in.nextLine();
            long length = 0, about = 0;
            for (int i = 0; i < 5; i++) {
                about = System.nanoTime();
                long start = Ppt.now();
                Thread.sleep(20);
                length = Ppt.nsBetween(start, Ppt.now());
                about = System.nanoTime() - about;
                Naps.observe(length);
            }
            System.out.println("done " + length + " " + about + " " + Ppt.nsBetween(0, 7));
        }
    }
}
"#;

const NODE: &str = r#"
const { naps, now, nsBetween } = require('./lengths');
const { line } = require('./lines');
const bell = new Int32Array(new SharedArrayBuffer(4));
console.log('ready');
while (line() !== null) {
    let length = 0, about = 0n;
    for (let i = 0; i < 5; i++) {
        about = process.hrtime.bigint();
        const start = now();
        Atomics.wait(bell, 0, 0, 20);
        length = nsBetween(start, now());
        about = process.hrtime.bigint() - about;
        naps.observe(length);
    }
    console.log(`done ${length} ${about} ${nsBetween(0, 7)}`);
}
"#;

const GO: &str = r#"package main

import (
	"fmt"
	"time"

	"program/lengths"
)

func main() {
	fmt.Println("ready")
	for line() != "" {
		var length, about time.Duration
		for i := 0; i < 5; i++ {
			before := time.Now()
			start := lengths.Now()
			time.Sleep(20 * time.Millisecond)
			length = lengths.NsBetween(start, lengths.Now())
			about = time.Since(before)
			lengths.ObserveNaps(length)
		}
		fmt.Println("done", int64(length), int64(about), int64(lengths.NsBetween(0, 7)))
	}
}
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("lengths.frame", FRAMES);
    bench
}

#[test]
fn c() {
    let bench = bench();
    bench.pptc(&["lengths.frame"]);
    let macros = "#define NOW ppt_lengths_now\n#define BETWEEN ppt_lengths_ns_between\n\
        #define OBSERVE PPT_OBSERVE_NAPS\n";
    bench.write(
        "main.c",
        &C.replacen("#include <stdio.h>\n", &format!("#include <stdio.h>\n{macros}"), 1),
    );
    bench.cc(&["-Wconversion", "lengths.c", "main.c", "-o", "main"]);
    check(&bench, bench.start("main", &[]));
}

#[test]
fn cpp() {
    if !available("g++") {
        return;
    }
    let bench = bench();
    bench.pptc(&["--emit", "c++", "lengths.frame"]);
    let macros = "#define NOW ppt::lengths::now\n#define BETWEEN ppt::lengths::ns_between\n\
        #define OBSERVE ppt::lengths::naps::observe\n";
    let main = C.replacen("#include <stdio.h>\n", &format!("#include <stdio.h>\n{macros}"), 1);
    let main = main.replace("lengths.h\"", "lengths.hpp\"").replace("#define _GNU_SOURCE\n", "");
    let main = main.replace("(long long)BETWEEN(0, 7)", "static_cast<long long>(BETWEEN(0, 7))");
    bench.write("main.cpp", &main.replace("NULL", "nullptr"));
    bench.compile("g++", &["-std=c++17", "lengths.cpp", "main.cpp", "-o", "main"]);
    check(&bench, bench.start("main", &[]));
}

#[test]
fn python() {
    let bench = bench();
    if !modules(&bench, &["lengths"]) {
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
    if java::program(&bench, &["lengths"], &["Main.java"]) {
        check(&bench, Target::start(java::java(&bench, "Main", &[])));
    }
}

#[test]
fn node() {
    let bench = bench();
    bench.write("main.js", NODE);
    if node::packages(&bench, &["lengths"]) {
        check(&bench, Target::start(node::node(&bench, "main.js", &[])));
    }
}

#[test]
fn go() {
    let bench = bench();
    bench.write("main.go", GO);
    if go::program(&bench, &["lengths"], "main.go") {
        check(&bench, Target::start(go::built(&bench, &[])));
    }
}

#[test]
fn rust() {
    let mut command = std::process::Command::new(crate::fixtures::rust::program("lengths"));
    let bench = bench();
    command.current_dir(bench.path(""));
    check(&bench, Target::start(command));
}
