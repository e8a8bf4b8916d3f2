//! The Go package of every golden is formatted by gofmt and passes `go vet`, with cgo and without. The fullest builds
//! in all ways, or with `PPT_LONG=1` every golden.

use std::fs;

use crate::support::compiler::Compiler;
use crate::support::go::{Go, go};
use crate::support::tried::run;
use crate::support::{Generated, goldens, is_long};
use ppt_codegen::{GenerateError, Language, generate, parse, write_outputs};

#[test]
fn every_golden_builds() {
    let Some(tools) = Go::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    for path in goldens() {
        let generated = Generated::of_file(&path, Language::Go);
        let package = folder.path().join(&generated.stem);
        write_outputs(&package, &generated.outputs).unwrap();
        for compiler in Compiler::all() {
            tools.header(compiler, &package);
        }
    }
    tools.vet(folder.path());
    tools.build(folder.path(), if is_long() { "./..." } else { "./everything" });
}

const USER: &str = r#"package main

import "user/job"

func named(who int32) {
	job.WriteWork(job.Work{Who: who, Name: "main"})
}

func guarded(who int32) {
	if job.OnWork() {
		job.WriteWork(job.Work{Who: who, Name: "main"})
	}
}

func measured(who int32) {
	scope := job.StartWork()
	scope.End(job.Work{Who: who})
}

func spanned(id uint64) {
	job.BeginRequest(job.Request{Id: id})
	job.EndRequest(job.Request{Id: id})
}

func added(n uint64) {
	job.AddBytesIn(n)
}

func main() {
	named(1)
	guarded(1)
	measured(1)
	spanned(1)
	added(1)
	job.On()
}
"#;

/// While ppt is not attached, a write calls nothing: the functions that check the gate are inlined, with any
/// number of fields. If the program first asks whether the frame is wanted, its fields are not set either.
#[test]
fn the_way_past_a_closed_gate_is_inlined() {
    if Go::find().is_none() {
        return;
    }
    let many: Vec<_> = (0..100).map(|field| format!("int f{field};")).collect();
    let source = format!(
        "frame work {{ int who; char name[16]; interval time t; {} }} frame request @span {{ u64 id @key; }} \
         counter bytes_in;",
        many.join(" ")
    );
    let frames = parse(source.as_bytes(), "job.frame").unwrap();
    let outputs = generate(&frames, "job.frame", &[Language::Go]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_outputs(&folder.path().join("job"), &outputs).unwrap();
    fs::write(folder.path().join("go.mod"), "module user\n\ngo 1.18\n").unwrap();
    fs::write(folder.path().join("main.go"), USER).unwrap();
    let output = go(folder.path(), &["build", "-gcflags=-m", "-o", "user", "."]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for name in
        ["WriteWork", "OnWork", "StartWork", "BeginRequest", "EndRequest", "AddBytesIn", "On"]
    {
        assert!(said.contains(&format!("inlining call to job.{name}\n")), "{name}: {said}");
    }
    assert!(said.contains("inlining call to job.(*ScopeOfWork).End\n"), "{said}");
    // In machine code, each function loads, tests and branches before it calls anything.
    let code = go(folder.path(), &["tool", "objdump", "-s", r"^main\.(guarded|spanned|added)$"])
        .arg("user")
        .output()
        .unwrap();
    let code = String::from_utf8(code.stdout).unwrap();
    for function in code.split("TEXT ").skip(1) {
        let lines: Vec<_> = function.lines().collect();
        let calls = |line: &&str| line.contains("CALL") || line.contains("BL ");
        let first = lines.iter().position(calls).unwrap();
        let gate = lines[..first].iter().position(|line| line.contains("ppt_page"));
        let gate = gate.unwrap_or_else(|| panic!("it looks at no gate: {function}"));
        let tests = |line: &&str| line.contains("TESTQ") || line.contains("CBZ");
        assert!(lines[gate..first].iter().any(tests), "{function}");
        assert!(
            lines[first..].iter().any(|line| calls(line) && line.contains("ppt_")),
            "{function}"
        );
        assert!(!function.contains("cgocall"), "{function}");
    }
}

/// Names of files that Go does not compile, or on other systems alone.
#[test]
fn names_of_files_that_go_reads_are_refused() {
    let frames = parse(b"buffer a; frame f { int a; }", "a.frame").unwrap();
    let why = |name: &str| match generate(&frames, name, &[Language::Go]) {
        Ok(_) => String::new(),
        Err(GenerateError::TooLarge { why, .. }) => why,
        Err(error) => panic!("{error}"),
    };
    for name in ["a_windows.frame", "b_arm64.frame", "a_b_test.frame"] {
        assert!(why(name).starts_with("Go takes a file `"), "{name}: {}", why(name));
    }
    assert!(why("_a.frame").starts_with("Go does not look at a file `_a.c`"));
    for name in ["a.frame", "windows.frame", "a_windows_x.frame", "a_go.frame"] {
        assert_eq!(why(name), "", "{name}");
    }
}

/// A text that gofmt would not take for a doc comment, or that Go would interpret, stays a comment of one line.
#[test]
fn words_of_frame_files_stay_comments() {
    let Some(tools) = Go::find() else { return };
    let source = "/// # no heading\n///\n/// - no list\n/// ``no quotes''\n/// go:build ignore\n\
        frame f { /// 1. no list\n int a; /// [no]: link\n int b; }\n\
        /// +build ignore\nenum E { A }";
    let frames = parse(source.as_bytes(), "a.frame").unwrap();
    let outputs = generate(&frames, "a.frame", &[Language::Go]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_outputs(&folder.path().join("a"), &outputs).unwrap();
    tools.vet(folder.path());
    let listed = run(&mut go(folder.path(), &["doc", "./a", "F"]));
    assert!(listed.contains("# no heading - no list \"no quotes\" go:build ignore"), "{listed}");
}
