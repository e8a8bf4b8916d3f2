//! The cost of a frame in instructions, counted by callgrind: writing it in C, C++ and Rust, and
//! draining and dumping it; and the cost of adding to a counter or a histogram.

mod budget;
mod program;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const FRAMES: u64 = 10_000;
/// The functions called in each language.
const ACTIONS: [[&str; 3]; 3] = [
    ["block_form", "block_form_cpp", "block_form_rust"],
    ["add", "add_cpp", "add_rust"],
    ["observe", "observe_cpp", "observe_rust"],
];
/// The cost of a call itself.
const CALL: &str = "empty_call";

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn build(folder: &Path, kept: &Path) {
    let parts = program::parts(folder, kept);
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    std::fs::write(folder.join("block_form.c"), include_str!("block_form.c")).unwrap();
    program::run(folder, "gcc", &["-std=c11", "-c", "block_form.c", "writer.c"]);
    let objects = ["block_form.o", "writer.o", "-o", "writer"];
    program::run(folder, "g++", &[&objects[..], &parts].concat());
}

/// Instructions of one call, by function, including callees; under `ppt run` with these options, if
/// there are any.
fn count(folder: &Path, attached: Option<&[&str]>) -> BTreeMap<&'static str, u64> {
    let mut command = Command::new("valgrind");
    if let Some(options) = attached {
        command = Command::new(env!("CARGO_BIN_EXE_ppt"));
        command.args(["run", "-q", "--force"]).args(options).args(["--", "valgrind"]);
    }
    command
        .args(["-q", "--tool=callgrind", "--callgrind-out-file=counted", "./writer"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{FRAMES}").unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
    let mut command = Command::new("callgrind_annotate");
    command.args(["--inclusive=yes", "--threshold=100", "counted"]).current_dir(folder);
    let table = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let of = |form: &str| {
        // 1,234,567 (12.3%)  file:function [object]
        let line = table.lines().find(|line| {
            line.rsplit(':').next().and_then(|piece| piece.split([' ', '\'']).next()) == Some(form)
        });
        let line = line.unwrap_or_else(|| panic!("{form} is not counted:\n{table}"));
        let number = line.split_whitespace().next().unwrap().replace(',', "");
        number.parse::<u64>().unwrap() / FRAMES
    };
    let forms = [CALL].into_iter().chain(ACTIONS.into_iter().flatten());
    forms.map(|form| (form, of(form))).collect()
}

#[test]
fn a_frame_costs_the_same_in_each_language() {
    for tool in ["valgrind", "callgrind_annotate"] {
        if !runs(tool) {
            eprintln!("skipped: {tool} is not installed");
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("block-form");
    build(folder.path(), &kept);
    let count = |attached| count(folder.path(), attached);
    let (off, on, disabled) = (count(None), count(Some(&[])), count(Some(&["--except", "*"])));
    println!("instructions of a call: off {off:?}, disabled {disabled:?}, on {on:?}");
    let net = |counted: &BTreeMap<_, u64>, form| counted[form] - counted[CALL];
    for (forms, tolerance) in ACTIONS.into_iter().zip([0.15, 0.25, 0.25]) {
        for form in forms {
            // One load, one test, one branch.
            assert!(net(&off, form) <= 4, "{form}, off: {off:?}");
            // Its bit, and whether that belongs to this session; no clock, no field, no call.
            assert!(net(&disabled, form) <= 14, "{form}, disabled: {disabled:?}");
            assert!(on[form] > 15, "{form} is not on: {on:?}");
            let (value, c) = (on[form] as f64, on[forms[0]] as f64);
            assert!((value / c - 1.0).abs() <= tolerance, "{form}, on: {on:?}");
        }
    }
    // The thread, whether it is busy, and the gate: a frame does all that, and also stores its
    // fields.
    assert!(on["add"] <= 30 && on["add"] < on["observe"], "{on:?}");
    assert!(on["observe"] < on["block_form"], "{on:?}");
}
