//! `docs/generated-code.md` shows generated code: a block whose fence names a file is part of that file, line by
//! line, except for the text that `…` replaces.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ppt_codegen::Language;

const ELIDED: &str = "…";

/// Blocks of a page whose fences name a file: ```` ```c example.h ````.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text = lines.by_ref().take_while(|line| *line != "```");
        let text: String = text.map(|line| format!("{line}\n")).collect();
        if let Some((_, file)) = info.split_once(' ') {
            blocks.push((file, text));
        }
    }
    blocks
}

/// The first part of a block that does not follow the parts before it in `text`.
fn missing<'b>(block: &'b str, text: &str) -> Option<&'b str> {
    let mut rest = text;
    for part in block.split(&format!("{ELIDED}\n")) {
        let at = format!("\n{rest}").find(&format!("\n{part}"));
        let Some(at) = at else { return Some(part) };
        rest = &rest[at + part.len()..];
    }
    None
}

#[test]
fn the_page_shows_what_is_generated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/generated-code.md")).unwrap();
    let source = fs::read(root.join("examples/dve/example.frame")).unwrap();
    let frames = ppt_codegen::parse(&source, "example.frame").unwrap();
    let languages = [Language::C, Language::Cpp, Language::Rust];
    let outputs = ppt_codegen::generate(&frames, "example.frame", &languages).unwrap();
    let outputs: BTreeMap<_, _> =
        outputs.iter().map(|output| (output.name.as_str(), &output.text)).collect();
    let blocks = blocks(&page);
    for file in ["example.h", "example.c", "example.hpp", "example.rs"] {
        assert!(blocks.iter().any(|(of, _)| *of == file), "the page shows nothing of {file}");
    }
    for (file, block) in &blocks {
        let text = outputs.get(file).unwrap_or_else(|| panic!("{file} is not generated"));
        if let Some(part) = missing(block, text) {
            panic!("docs/generated-code.md: {file} has no such lines (here):\n{part}");
        }
    }
}

#[test]
fn what_is_not_there_is_missed() {
    let text = "one\ntwo\nthree\n";
    assert_eq!(missing("one\n…\nthree\n", text), None);
    assert_eq!(missing("two\nthree\n", text), None);
    assert_eq!(missing("three\n…\none\n", text), Some("one\n"));
    assert_eq!(missing("wo\n", text), Some("wo\n"));
    assert_eq!(blocks("```sh\nno\n```\n```c a.h\nyes\n```\n"), [("a.h", "yes\n".to_owned())]);
}
