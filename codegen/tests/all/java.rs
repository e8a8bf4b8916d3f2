//! The Java of every golden compiles without a warning, as does its documentation, and its library.

use std::fs;

use crate::support::compiler::{CODE, Compiler};
use crate::support::java::Jdk;
use crate::support::{Generated, goldens};
use ppt_codegen::{Language, generate, parse, write_outputs};

#[test]
fn every_golden_compiles() {
    let Some(jdk) = Jdk::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Vec::new();
    for path in goldens() {
        let generated = Generated::of_file(&path, Language::Java);
        write_outputs(folder.path(), &generated.outputs).unwrap();
        sources.push(format!("{}_jni.c", generated.stem));
    }
    for compiler in Compiler::all() {
        jdk.libraries(compiler, folder.path(), CODE, &sources);
    }
    jdk.classes(folder.path());
    jdk.documentation(folder.path());
}

#[test]
fn an_enum_that_java_has_no_room_for_is_refused() {
    let values: Vec<_> = (0..2501).map(|value| format!("V{value}")).collect();
    let source = format!("enum Large {{ {} }} frame f {{ Large a; }}", values.join(", "));
    let frames = parse(source.as_bytes(), "a.frame").unwrap();
    let error = generate(&frames, "a.frame", &[Language::Java]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Java cannot be generated: enum `Large` has 2501 values, and an enum of Java can have 2500: \
         make the field an integer"
    );
    let Some(jdk) = Jdk::find() else { return };
    let frames = parse(source.replace(", V2500", "").as_bytes(), "a.frame").unwrap();
    let outputs = generate(&frames, "a.frame", &[Language::Java]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_outputs(folder.path(), &outputs).unwrap();
    jdk.classes(folder.path());
}

/// A frame with the largest number of fields, which exceeds the arguments of a Java method.
#[test]
fn frames_of_many_fields_compile() {
    let Some(jdk) = Jdk::find() else { return };
    let fields: Vec<_> = (0..500).map(|field| format!("i64 f{field};")).collect();
    let source = format!("frame many {{ {} }}", fields.join(" "));
    let frames = parse(source.as_bytes(), "a.frame").unwrap();
    let outputs = generate(&frames, "a.frame", &[Language::Java]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_outputs(folder.path(), &outputs).unwrap();
    jdk.libraries(Compiler::gcc(), folder.path(), CODE, &["a_jni.c".into()]);
    jdk.classes(folder.path());
    let class = fs::read_to_string(folder.path().join("a/Many.java")).unwrap();
    assert!(class.contains("Consumer<Frame>") && !class.contains("long f0,"));
}
