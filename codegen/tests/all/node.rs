//! The package for Node of every golden: its addon compiles without a warning, its module loads by
//! `require` and by `import`.

use std::fs;

use crate::support::compiler::Compiler;
use crate::support::goldens;
use crate::support::node::Node;
use ppt_codegen::{GenerateError, Language, generate, parse, parse_for, write_outputs};

#[test]
fn every_golden_compiles_and_loads() {
    let Some(node) = Node::find() else { return };
    let mut refused = Vec::new();
    for path in goldens() {
        let folder = tempfile::tempdir().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = fs::read(&path).unwrap();
        let frames = parse_for(&source, name, &[Language::Node]).unwrap();
        let outputs = match generate(&frames, name, &[Language::Node]) {
            Ok(outputs) => outputs,
            // Some have names that are words of JavaScript.
            Err(GenerateError::Names(_)) => {
                refused.push(name.to_owned());
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        write_outputs(folder.path(), &outputs).unwrap();
        for compiler in Compiler::all() {
            node.addon(compiler, folder.path(), name.trim_end_matches(".frame"));
        }
        node.modules(folder.path());
        node.types(folder.path());
    }
    // It has a field `function`.
    assert_eq!(refused, ["addresses.frame"]);
}

/// More stamps than a word has bits, and the largest number of fields.
#[test]
fn frames_of_many_fields_load() {
    let Some(node) = Node::find() else { return };
    let fields: Vec<_> = (0..400).map(|field| format!("time f{field};")).collect();
    let source = format!("option time ns realtime; frame many {{ {} }}", fields.join(" "));
    let frames = parse(source.as_bytes(), "a.frame").unwrap();
    let outputs = generate(&frames, "a.frame", &[Language::Node]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_outputs(folder.path(), &outputs).unwrap();
    node.addon(Compiler::gcc(), folder.path(), "a");
    node.modules(folder.path());
    let module = fs::read_to_string(folder.path().join("index.js")).unwrap();
    assert!(module.contains("ppt_u32[18] |= 32768;"), "the bit of field 399");
}

/// No character in the name of a frame file ends a text of an output.
#[test]
fn names_of_files_are_escaped() {
    let frames = parse(b"buffer a; frame f { int a; }", "it's.frame").unwrap();
    let outputs = generate(&frames, "it's.frame", &[Language::Node]).unwrap();
    let text = |name: &str| &outputs.iter().find(|output| output.name == name).unwrap().text;
    assert!(text("index.js").contains(r"PPT_ADDON = 'it\'s_node'"));
    assert!(text("binding.gyp").contains(r"'sources': ['it\'s.c', 'it\'s_node.c']"));
}
