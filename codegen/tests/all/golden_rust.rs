//! Compares the Rust generated from frame files with expectations, as `golden.rs` does for C.
//! `tests/e2e/languages/rust.rs` compiles all of it without warnings.

use std::fs;

use crate::support::{golden_folder, goldens};
use ppt_codegen::Language;

#[test]
fn golden() {
    let bless = std::env::var_os("PPT_BLESS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for path in goldens() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let frames = ppt_codegen::parse(&fs::read(&path).unwrap(), name).unwrap();
        let outputs = ppt_codegen::generate(&frames, name, &[Language::Rust]).unwrap();
        let [output] = &outputs[..] else { panic!("one file") };
        let beside = golden_folder().join(&output.name);
        if bless {
            fs::write(&beside, &output.text).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != output.text {
            let lines = output.text.lines().zip(1..);
            let old = fs::read_to_string(&beside).unwrap_or_default();
            let mut old = old.lines();
            let first = lines.into_iter().find(|(line, _)| old.next() != Some(line));
            wrong.push(format!("{}: {first:?}", beside.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\nIf the new output is right, run the tests again with PPT_BLESS=1 and review the diff.",
        wrong.join("\n")
    );
}

/// If ppt attached between two checks of the gate, the frame would lack its mark and its stamp. `ppt::update_as`
/// checks the gate once.
#[test]
fn the_macro_form_looks_at_the_gate_once() {
    for (file, verbs) in [
        ("spans.frame", &["begin", "end"][..]),
        ("halves.frame", &["begin", "end"]),
        ("chains.frame", &["step"]),
        ("points.frame", &["write"]),
    ] {
        let source = fs::read(golden_folder().join(file)).unwrap();
        let frames = ppt_codegen::parse(&source, file).unwrap();
        let outputs = ppt_codegen::generate(&frames, file, &[Language::Rust]).unwrap();
        for verb in verbs {
            let head = format!("pub fn ppt_{verb}(");
            let (_, body) = outputs[0].text.split_once(&head).expect("the function");
            let body = body.split("pub fn").next().unwrap();
            let body = body.split("thread_local!").next().unwrap();
            assert!(body.contains("::update") && !body.contains("on()"), "{file}: {body}");
        }
    }
}
