//! Compares generated code with expectations: that of each frame file in `tests/golden`, in the languages of its
//! `emit` line. `everything.frame` has all that it can; each of the others has what one buffer cannot have beside it.
//! Expectations are rewritten only with `PPT_BLESS=1`.
//!
//! The fixed text of `runtime/c`, the same in every output, is one line in the expectations.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ppt_codegen::Language;

use crate::support::{
    CELLS_SOURCE, FIXED_HEADER, FIXED_MODULE, FIXED_SOURCE, FORK_SOURCE, GO_HASH, GO_HASH_HEADER,
    GO_HEADER, GO_NATIVE, GO_NATIVE_HASH, GO_OFF_HASH, GO_RUNTIME, Generated, HASH_HEADER,
    HASH_MODULE, HELLO_SOURCE, JAVA_HASH, JAVA_LIBRARY, JAVA_RUNTIME, MADE_SOURCE, NODE_ADDON,
    NODE_HASH, NODE_RUNTIME, SLOWDOWN_SOURCE, golden_folder, goldens,
};

/// Lines of context before the first difference, and lines shown from there.
const CONTEXT: usize = 3;
const SHOWN: usize = 8;

#[test]
fn golden() {
    let bless = std::env::var_os("PPT_BLESS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for generated in all() {
        for output in &generated.outputs {
            let actual = without_fixed_text(&output.text);
            let beside = golden_folder().join(&output.name);
            if bless {
                fs::write(&beside, actual).unwrap();
                continue;
            }
            let expected = fs::read_to_string(&beside).unwrap_or_default();
            if actual != expected {
                wrong.push(format!("{}\n{}", beside.display(), difference(&expected, &actual)));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\nIf the new output is right, run the tests again with PPT_BLESS=1 and review the diff.",
        wrong.join("\n\n")
    );
}

/// Every golden in every language of its `emit` lines.
fn all() -> Vec<Generated> {
    let in_all = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let emit = ppt_codegen::parse(&fs::read(&path).unwrap(), name).unwrap().emit;
        emit.into_iter().map(move |language| Generated::expectation(&path, language))
    };
    goldens().into_iter().flat_map(in_all).collect()
}

/// No expectation outlives its frame file, or a language of its `emit` line.
#[test]
fn every_expectation_has_a_frame_file() {
    let generated = all().into_iter().flat_map(|generated| generated.outputs);
    let expected: BTreeSet<String> = generated.map(|output| output.name).collect();
    for found in fs::read_dir(golden_folder()).unwrap() {
        let name = found.unwrap().file_name().into_string().unwrap();
        assert!(name.ends_with(".frame") || expected.contains(&name), "{name} is of no frame file");
    }
}

/// The output is a function of its input.
#[test]
fn twice_the_same() {
    for (one, two) in all().iter().zip(all()) {
        assert_eq!(one.outputs, two.outputs);
    }
}

fn without_fixed_text(text: &str) -> String {
    let fixed = [
        (FIXED_HEADER, "runtime/c/target.h"),
        (FIXED_SOURCE, "runtime/c/target.c"),
        (SLOWDOWN_SOURCE, "runtime/c/slowdown.c"),
        (MADE_SOURCE, "runtime/c/made.c"),
        (CELLS_SOURCE, "runtime/c/cells.c"),
        (FORK_SOURCE, "runtime/c/fork.c"),
        (HELLO_SOURCE, "runtime/c/hello.c"),
        (FIXED_MODULE, "runtime/python/module.c"),
        (HASH_HEADER, "runtime/c/hash.h"),
        (HASH_MODULE, "runtime/python/hash.c"),
        (JAVA_RUNTIME, "runtime/java/runtime.java"),
        (JAVA_LIBRARY, "runtime/java/jni.c"),
        (JAVA_HASH, "runtime/java/hash.c"),
        (NODE_RUNTIME, "runtime/node/runtime.js"),
        (NODE_ADDON, "runtime/node/node.c"),
        (NODE_HASH, "runtime/node/hash.c"),
    ];
    let of_go = [
        (GO_RUNTIME, "runtime/go/runtime.go"),
        (GO_HASH, "runtime/go/hash.go"),
        (GO_NATIVE, "runtime/go/native.go"),
        (GO_NATIVE_HASH, "runtime/go/native_hash.go"),
        (GO_OFF_HASH, "runtime/go/off_hash.go"),
        (GO_HEADER, "runtime/go/frames.h"),
        (GO_HASH_HEADER, "runtime/go/hash.h"),
    ];
    fixed.iter().chain(&of_go).fold(text.to_owned(), |text, (fixed, name)| {
        text.replacen(fixed.trim_end(), &format!("[ {name} ]"), 1)
    })
}

/// The first lines that differ, with their numbers.
fn difference(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    if same == old.len() && same == new.len() {
        return "  only the end of the last line differs".into();
    }
    let mut shown = Vec::new();
    let mut show = |sign: char, lines: &[&str], from: usize, to: usize| {
        for (number, line) in lines.iter().enumerate().take(to).skip(from) {
            shown.push(format!("{:5} {sign} {line}", number + 1));
        }
    };
    show(' ', &old, same.saturating_sub(CONTEXT), same);
    // The common rest is shown once.
    let tail = old[same..].iter().rev().zip(new[same..].iter().rev());
    let tail = tail.take_while(|(old, new)| old == new).count();
    show('-', &old, same, (old.len() - tail).min(same + SHOWN));
    show('+', &new, same, (new.len() - tail).min(same + SHOWN));
    shown.join("\n")
}

#[test]
fn differences_read_well() {
    assert_eq!(
        difference("a\nb\nc\nd\ne\n", "a\nb\nc\nD\nE\ne\n"),
        "    1   a\n    2   b\n    3   c\n    4 - d\n    4 + D\n    5 + E"
    );
    assert_eq!(difference("", "a\n"), "    1 + a");
    assert!(difference("a", "a\n").contains("end of the last line"));
}

/// If ppt attached between two checks of the gate, the frame would lack its mark and its stamp. `ppt::update_as`
/// checks the gate once.
#[test]
fn the_macro_form_looks_at_the_gate_once() {
    for (source, verbs) in [
        ("frame f @span { u64 id @key; }", &["begin", "end"][..]),
        ("frame f @span { u64 id @key; u32 rows @end; }", &["begin", "end"]),
        ("frame f @chain(start, stop) { u64 id @key; }", &["step"]),
        ("frame f @point { hash id @in(data); }", &["write"]),
    ] {
        let frames = ppt_codegen::parse(source.as_bytes(), "a.frame").unwrap();
        let outputs = ppt_codegen::generate(&frames, "a.frame", &[Language::Rust]).unwrap();
        for verb in verbs {
            let head = format!("pub fn ppt_{verb}(");
            let (_, body) = outputs[0].text.split_once(&head).expect("the function");
            let body = body.split("pub fn").next().unwrap();
            let body = body.split("thread_local!").next().unwrap();
            assert!(body.contains("::update") && !body.contains("on()"), "{source}: {body}");
        }
    }
}
