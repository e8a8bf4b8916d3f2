//! The package for Node of every golden: its addon compiles without a warning, its module loads by
//! `require` and by `import`.

use std::fs;

use crate::support::compiler::{CODE, Compiler};
use crate::support::node::Node;
use crate::support::{Generated, goldens};
use ppt_codegen::{Language, generate, parse, write_outputs};

#[test]
fn every_golden_compiles_and_loads() {
    let Some(node) = Node::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut stems = Vec::new();
    for path in goldens() {
        let generated = Generated::of_file(&path, Language::Node);
        let package = folder.path().join(&generated.stem);
        write_outputs(&package, &generated.outputs).unwrap();
        node.types(&package);
        stems.push(generated.stem);
    }
    for compiler in Compiler::all() {
        node.addons(compiler, folder.path(), CODE, &stems);
    }
    node.modules(folder.path(), &stems);
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
    write_outputs(&folder.path().join("a"), &outputs).unwrap();
    node.addons(Compiler::gcc(), folder.path(), CODE, &["a".into()]);
    node.modules(folder.path(), &["a".into()]);
    let module = fs::read_to_string(folder.path().join("a/index.js")).unwrap();
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
