//! The compiler of frame files in use: files, exit codes, messages.

use std::fs;
use std::time::SystemTime;

use crate::fixtures::support::{Bench, Ran, assert_ran};

const GOOD: &str = "frame good { int who; time when; }\n";
const BAD: &str = "frame bad { itn who; }\n";
const BAD_MESSAGE: &str = "error[unknown-type]: unknown type `itn`
 --> a.frame:1:13
  |
1 | frame bad { itn who; }
  |             ^^^ not a type
  |
  = help: did you mean `int`?
pptc: 1 error
";

fn pptc(bench: &Bench, args: &[&str]) -> Ran {
    let output = bench.command(env!("CARGO_BIN_EXE_pptc")).args(args).output().unwrap();
    Ran::of(output)
}

fn bench(frame: &str) -> Bench {
    let bench = Bench::new();
    bench.write("a.frame", frame);
    bench
}

#[test]
fn good_files_give_a_header_and_a_source_without_a_word() {
    let bench = bench(GOOD);
    assert_ran(&pptc(&bench, &["a.frame"]), 0, "", "");
    assert_eq!(bench.names(""), ["a.c", "a.frame", "a.h"]);
}

#[test]
fn bad_files_give_1_and_nothing_else() {
    let bench = bench(BAD);
    let ran = pptc(&bench, &["a.frame"]);
    assert_ran(&ran, 1, "", BAD_MESSAGE);
    assert_eq!(bench.names(""), ["a.frame"]);
}

#[test]
fn one_bad_file_does_not_keep_the_others_from_being_written() {
    let bench = bench(BAD);
    bench.write("b.frame", GOOD);
    let ran = pptc(&bench, &["a.frame", "b.frame", "--depfile", "d"]);
    assert_ran(&ran, 1, "", BAD_MESSAGE);
    assert_eq!(bench.names(""), ["a.frame", "b.c", "b.frame", "b.h"], "and no depfile");
}

#[test]
fn bad_usage_gives_2() {
    let bench = bench(GOOD);
    for args in [&[][..], &["--nonsense", "a.frame"], &["--emit", "cobol", "a.frame"]] {
        let ran = pptc(&bench, args);
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    assert_eq!(bench.names(""), ["a.frame"]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let bench = bench(GOOD);
    assert_ran(
        &pptc(&bench, &["none.frame"]),
        1,
        "",
        "pptc: cannot read none.frame: No such file or directory (os error 2)\n",
    );
    fs::create_dir(bench.path("dir.frame")).unwrap();
    assert_ran(
        &pptc(&bench, &["dir.frame"]),
        1,
        "",
        "pptc: dir.frame is a folder: name the frame files in it\n",
    );
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let bench = bench(GOOD);
    bench.write("file", "");
    let ran = pptc(&bench, &["a.frame", "-o", "file"]);
    assert_ran(&ran, 1, "", "pptc: cannot write file: it is not a folder\n");
    let ran = pptc(&bench, &["a.frame", "--depfile", "none/d"]);
    assert_ran(&ran, 1, "", "pptc: cannot write none/d: No such file or directory (os error 2)\n");
}

/// The make rule must state that both files, in either order, depend on `source`.
#[track_caller]
fn check_rule(bench: &Bench, depfile: &str, [one, other]: [&str; 2], source: &str) {
    let rule = fs::read_to_string(bench.path(depfile)).unwrap();
    let either = [format!("{one} {other}: {source}\n"), format!("{other} {one}: {source}\n")];
    assert!(either.contains(&rule), "{rule}");
}

#[test]
fn the_folder_is_made_and_the_depfile_names_what_is_in_it() {
    let bench = bench(GOOD);
    let args = ["a.frame", "-o", "out/deep er", "--depfile", "a.d"];
    assert_ran(&pptc(&bench, &args), 0, "", "");
    assert_eq!(bench.names("out/deep er"), ["a.c", "a.h"]);
    check_rule(&bench, "a.d", ["out/deep\\ er/a.c", "out/deep\\ er/a.h"], "a.frame");
}

#[test]
fn check_and_print_write_nothing() {
    let bench = bench(GOOD);
    assert_ran(&pptc(&bench, &["--check", "a.frame"]), 0, "", "");
    let schema = pptc(&bench, &["--print", "schema", "a.frame"]);
    assert_eq!((schema.code(), schema.stderr.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(schema["frames"][0]["name"], "good");
    let layout = pptc(&bench, &["--print", "layout", "a.frame"]);
    assert_eq!((layout.code(), layout.stderr.as_str()), (0, ""));
    for word in ["who", "when", "padding"] {
        assert!(layout.stdout.contains(word), "{}", layout.stdout);
    }
    assert_eq!(bench.names(""), ["a.frame"]);
}

#[test]
fn what_would_not_change_keeps_its_time() {
    let bench = bench(GOOD);
    let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let time = |name: &str| fs::metadata(bench.path(name)).unwrap().modified().unwrap();
    pptc(&bench, &["a.frame"]);
    for name in ["a.h", "a.c"] {
        let file = fs::File::options().write(true).open(bench.path(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    pptc(&bench, &["a.frame"]);
    assert_eq!((time("a.h"), time("a.c")), (old, old));
    bench.write("a.frame", &GOOD.replace("who", "whom"));
    pptc(&bench, &["a.frame"]);
    assert!(time("a.h") > old && time("a.c") > old);
}

#[test]
fn rust_comes_out_as_one_file() {
    let bench = bench(GOOD);
    assert_ran(&pptc(&bench, &["--emit", "rust", "a.frame"]), 0, "", "");
    assert_eq!(bench.names(""), ["a.frame", "a.rs"]);
    bench.write("a.frame", &format!("emit C, Rust;\n{GOOD}"));
    assert_ran(&pptc(&bench, &["a.frame"]), 0, "", "");
    assert_eq!(bench.names(""), ["a.c", "a.frame", "a.h", "a.rs"]);
}

#[test]
fn stamps_that_cost_get_a_hint() {
    let bench = bench("frame many { time a, b, c; }\n");
    let ran = pptc(&bench, &["a.frame"]);
    assert_eq!(ran.code(), 0);
    assert!(ran.stderr.starts_with("hint[many-stamps]: the frame `many`"), "{}", ran.stderr);
    for text in ["option time tsc;\nframe many { time a, b, c; }\n", "frame few { time a, b; }\n"] {
        bench.write("a.frame", text);
        assert_eq!(pptc(&bench, &["a.frame"]).stderr, "");
    }
}

#[test]
fn warnings_are_no_failure() {
    let bench = bench("frame good { int who @nonsense; }\n");
    let ran = pptc(&bench, &["a.frame"]);
    assert_ran(
        &ran,
        0,
        "",
        "warning[unknown-attribute]: unknown attribute `@nonsense`
 --> a.frame:1:22
  |
1 | frame good { int who @nonsense; }
  |                      ^^^^^^^^^ kept in the schema without a meaning
  |
  = help: known are @at, @unit, @clock, @group, @name, @track, @flow, @counter, @span, @chain, @point, @key, @in, @out, @raw and @thread
pptc: 1 warning
",
    );
    assert_eq!(bench.names(""), ["a.c", "a.frame", "a.h"]);
}

#[test]
fn spaces_in_a_path() {
    let bench = Bench::new();
    fs::create_dir(bench.path("some folder")).unwrap();
    bench.write("some folder/my events.frame", &format!("buffer events;\n{GOOD}"));
    let ran = pptc(&bench, &["some folder/my events.frame", "--depfile", "d"]);
    assert_ran(&ran, 0, "", "");
    assert_eq!(bench.names("some folder"), ["my events.c", "my events.frame", "my events.h"]);
    let made = ["some\\ folder/my\\ events.c", "some\\ folder/my\\ events.h"];
    check_rule(&bench, "d", made, "some\\ folder/my\\ events.frame");
    bench.cc(&["-c", "some folder/my events.c", "-o", "events.o"]);
}

#[test]
fn warnings_can_be_denied() {
    let bench = bench("frame good { int who @nonsense; }\n");
    bench.write("b.frame", "frame big { bytes text[900]; }\n");
    let ran = pptc(&bench, &["--deny-warnings", "a.frame", "b.frame"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.ends_with("pptc: 1 warning, 1 hint (warnings are denied)\n"), "{ran:?}");
    assert_eq!(bench.names(""), ["a.frame", "b.c", "b.frame", "b.h"], "hints are no warnings");
    bench.write("a.frame", "option allow \"unknown-attribute\"; frame good { int who @nonsense; }");
    assert_ran(&pptc(&bench, &["--deny-warnings", "a.frame"]), 0, "", "");
}

#[test]
fn two_files_never_become_one() {
    let bench = Bench::new();
    for folder in ["left", "right"] {
        fs::create_dir(bench.path(folder)).unwrap();
        bench.write(&format!("{folder}/a.frame"), GOOD);
    }
    let both = ["left/a.frame", "right/a.frame"];
    let why = "pptc: left/a.frame and right/a.frame would both generate out/a.h; rename one of \
               them, or write to different folders\n";
    assert_ran(&pptc(&bench, &[&both[..], &["-o", "out"]].concat()), 1, "", why);
    assert_ran(&pptc(&bench, &both), 0, "", "");
    assert_ran(&pptc(&bench, &["left/a.frame", "./left/a.frame", "-o", "out"]), 0, "", "");
}

#[test]
fn what_pptc_did_not_write_is_kept() {
    let bench = bench(GOOD);
    bench.write("a.c", "int main(void) { return 0; }\n");
    let why = "pptc: cannot write a.c: it was not written by pptc, and would be lost: rename the \
               frame file, or choose another folder\n";
    assert_ran(&pptc(&bench, &["a.frame"]), 1, "", why);
    assert_eq!(bench.names(""), ["a.c", "a.frame"]);
    bench.write("b.h", GOOD);
    let why = "pptc: b.h would be overwritten by the generated file; rename it to b.frame\n";
    assert_ran(&pptc(&bench, &["b.h"]), 1, "", why);
    assert_eq!(fs::read_to_string(bench.path("b.h")).unwrap(), GOOD);
}

#[test]
fn what_is_no_file() {
    let bench = bench(GOOD);
    let made = bench.command("mkfifo").arg("fifo.frame").status().unwrap();
    assert!(made.success());
    for (file, why) in [
        ("fifo.frame", "fifo.frame is a pipe: generated files are named after a frame file"),
        ("/dev/null", "/dev/null is a device: generated files are named after a frame file"),
        ("-", "standard input has no name for the generated files (a file called - is ./-)"),
    ] {
        assert_ran(&pptc(&bench, &[file]), 1, "", &format!("pptc: {why}\n"));
    }
    let ran = pptc(&bench, &["--check", "/dev/null"]);
    assert!(ran.code() == 1 && ran.stderr.contains("declares no frame"), "{ran:?}");
}

#[test]
fn folders_that_cannot_be_written() {
    let bench = bench(GOOD);
    bench.write("file", "");
    fs::create_dir_all(bench.path("taken/a.h")).unwrap();
    for (folder, why) in [
        ("file/deep", "cannot write file/deep: Not a directory (os error 20)"),
        ("taken", "cannot write taken/a.h: Is a directory (os error 21)"),
    ] {
        assert_ran(&pptc(&bench, &["a.frame", "-o", folder]), 1, "", &format!("pptc: {why}\n"));
    }
}

#[test]
fn languages_by_their_usual_names() {
    let bench = bench(GOOD);
    assert_ran(&pptc(&bench, &["--emit", "C,C++,Rust", "a.frame"]), 0, "", "");
    assert_eq!(bench.names(""), ["a.c", "a.cpp", "a.frame", "a.h", "a.hpp", "a.rs"]);
}
