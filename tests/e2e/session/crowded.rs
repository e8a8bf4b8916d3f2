//! Programs that have mapped very much, have functions of one name in several files, or have moved
//! their code: stacks, names and probes are as for others.

use std::fs;

use crate::fixtures::explained::explained;
use crate::fixtures::steady::{is_root, may_capture};
use crate::fixtures::support::{Bench, Table, Target};

const UNWIND: &str = "--stacks=199,unwind";

fn is_permitted(part: &str) -> bool {
    may_capture(part) && is_root()
}

/// The program, linked with `libfield.so`, and a small library.
fn built() -> Bench {
    let bench = Bench::new();
    bench.copy("crowded_main.c");
    let field = "int field_work(int number);\nint field_work(int number) { return number - 1; }\n";
    bench.write("field.c", field);
    bench.cc(&["-shared", "-fPIC", "field.c", "-o", "libfield.so"]);
    let flags = ["-O1", "-fomit-frame-pointer", "-Wl,-rpath,$ORIGIN", "-Wl,--build-id"];
    let files = ["crowded_main.c", "libfield.so", "-o", "crowded", "-ldl"];
    bench.cc(&[&flags[..], &files].concat());
    bench
}

/// Copies of the library: `libraries/0.so` and so on.
fn copied(bench: &Bench, count: usize) -> String {
    fs::create_dir(bench.path("libraries")).unwrap();
    for number in 0..count {
        fs::copy(bench.path("libfield.so"), bench.path(&format!("libraries/{number}.so"))).unwrap();
    }
    bench.path("libraries").to_str().unwrap().to_owned()
}

fn say(target: &mut Target, what: &str) {
    target.say(what);
    target.stdout.wait_for("done");
}

fn frames(bench: &Bench, name: &str) -> usize {
    bench.table("out.bin", &["-b", "probes", "--frame", name]).rows.len()
}

/// Checks that at least 19 of 20 stacks within `burn` pass these functions and reach `main`.
#[track_caller]
fn check_stacks(bench: &Bench, functions: &[&str], said: &str) {
    let table: Table = bench.table("out.bin", &["-b", "stacks", "--frame", "stack"]);
    let has = |row: &Vec<String>, name: &str| row.iter().any(|cell| cell.starts_with(name));
    let inside: Vec<_> = table.rows.iter().filter(|row| has(row, "burn+")).collect();
    let passes = |row: &&&Vec<String>| {
        functions.iter().chain(&["outer+", "main+"]).all(|name| has(row, name))
    };
    let (all, whole) = (inside.len(), inside.iter().filter(passes).count());
    let last = table.rows.last();
    assert!(all > 50 && whole * 20 >= all * 19, "{whole} of {all}: {said}\n{last:?}");
    assert!(!said.contains("no unwind tables"), "{said}");
}

/// Captures stacks and calls of l64a(3), which no other program calls.
#[track_caller]
fn check_whole(bench: &Bench, mut target: Target) {
    let probe: &[&str] = if is_permitted("probes") { &["--probe", "l64a"] } else { &[] };
    let attach = bench.attach(&target, &[&[UNWIND], probe].concat());
    say(&mut target, "burn 500");
    say(&mut target, "calls 300");
    let said = attach.stop();
    target.finish();
    check_stacks(bench, &["compared+", "qsort"], &said);
    if !probe.is_empty() {
        assert!(said.contains("l64a is probed in "), "{said}");
        assert!(frames(bench, "l64a") >= 300, "{said}");
    }
}

#[test]
fn a_thousand_libraries_hide_nothing() {
    if !is_permitted("stacks") {
        return;
    }
    let bench = built();
    let folder = copied(&bench, 1300);
    check_whole(&bench, bench.start("crowded", &["libraries", "1300", &folder]));
    let info = bench.info("out.bin");
    let modules = info["modules"].as_array().unwrap();
    let has_id = |module: &&serde_json::Value| module["build_id"] != "";
    let libraries =
        modules.iter().filter(|module| module["path"].as_str().unwrap().contains("/libraries/"));
    assert_eq!(libraries.filter(has_id).count(), 1300);
    assert!(info["modules_left_out"].is_null());
}

#[test]
fn pieces_of_data_hide_no_code() {
    const PIECES: &str = "60000";
    let most = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    if !is_permitted("stacks") || most.trim().parse::<u32>().unwrap() < 61_000 {
        return eprintln!("skipped: vm.max_map_count is {most}");
    }
    let bench = built();
    let name = "x".repeat(150);
    fs::write(bench.path(&name), vec![0; 1 << 16]).unwrap();
    let path = bench.path(&name);
    let target = bench.start("crowded", &["pieces", PIECES, path.to_str().unwrap()]);
    check_whole(&bench, target);
}

/// An interposed function does not run: the one that does, and the one that does not, are probed.
#[test]
fn a_function_is_probed_in_all_files_that_have_it() {
    if !is_permitted("probes") {
        return;
    }
    let bench = built();
    fs::copy(bench.path("libfield.so"), bench.path("libfirst.so")).unwrap();
    let mut command = bench.command(bench.path("crowded"));
    command.env("LD_PRELOAD", bench.path("libfirst.so"));
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &["--probe", "field_work"]);
    say(&mut target, "calls 70");
    let said = attach.stop();
    target.finish();
    let line = said.lines().find(|line| line.contains("field_work is probed in")).expect(&said);
    assert!(line.contains("/libfirst.so") && line.contains("/libfield.so"), "{said}");
    assert_eq!(frames(&bench, "field_work"), 70, "{said}");
}

#[test]
fn files_beyond_those_that_are_probed_are_counted() {
    if !is_permitted("probes") {
        return;
    }
    let bench = built();
    let folder = copied(&bench, 18);
    let mut target = bench.start("crowded", &["libraries", "18", &folder]);
    let attach = bench.attach(&target, &["--probe", "field_work"]);
    say(&mut target, "calls 7");
    let said = attach.stop();
    let beyond = "not in 3 more files that have it: name one, by --probe FILE:field_work";
    assert!(said.contains(beyond) && said.contains("/libfield.so, "), "{said}");
    assert_eq!(frames(&bench, "field_work"), 7, "what came first is probed: {said}");
    target.finish();
}

#[test]
fn a_name_for_which_the_loader_chooses_is_refused() {
    if !is_permitted("probes") {
        return;
    }
    let bench = Bench::new();
    let source = "#include <stdio.h>\nstatic int one(int number) { return number; }\n\
                  static int (*choose(void))(int) { return one; }\n\
                  int chosen(int number) __attribute__((ifunc(\"choose\")));\n\
                  int main(void) { puts(\"ready\"); fflush(stdout); return chosen(getchar()) & 1; }\n";
    bench.write("chosen.c", source);
    bench.cc(&["chosen.c", "-o", "chosen"]);
    let target = bench.start("chosen", &[]);
    let ran = bench.ppt(&["attach", &target.pid().to_string(), "--probe", "chosen"]);
    let said = explained(&ran.stderr);
    assert!(said.contains("--probe `chosen` cannot be captured in ") && ran.code() == 2, "{said}");
    assert!(
        said.contains("chooses one of several functions for this name (STT_GNU_IFUNC)"),
        "{said}"
    );
    drop(target);
}

#[test]
fn moved_code_keeps_its_names() {
    if !is_permitted("stacks") {
        return;
    }
    let bench = built();
    let mut target = bench.start("crowded", &["moved"]);
    let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    let is_code = |line: &str| line.contains(" r-xp ") && line.ends_with("/crowded");
    assert!(!maps.lines().any(is_code), "{maps}");
    let attach = bench.attach(&target, &[UNWIND]);
    say(&mut target, "burn 500");
    let said = attach.stop();
    check_stacks(&bench, &["compared+", "qsort"], &said);
    if is_permitted("probes") {
        let ran = bench.ppt(&[
            "attach",
            &target.pid().to_string(),
            "--probe",
            "work",
            "-o",
            "probes.bin",
        ]);
        let said = explained(&ran.stderr);
        let why = "\n  the program has moved this code to anonymous memory, where the kernel sets no probes";
        assert!(said.contains(why) && ran.code() == 2, "{said}");
    }
    target.finish();
}

#[test]
fn stacks_pass_the_handler_of_a_signal() {
    if !is_permitted("stacks") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let bench = built();
    let mut target = bench.start("crowded", &["signals"]);
    let attach = bench.attach(&target, &[UNWIND]);
    say(&mut target, "burn 500");
    let said = attach.stop();
    target.finish();
    check_stacks(&bench, &["handled+", "raise+"], &said);
}
