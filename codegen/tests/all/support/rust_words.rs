//! The Rust of a batch of frame files as a program that checks itself: the generated modules over
//! `ppt-probe`'s own sources, with `words_writer.rs` for their writer.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ppt_codegen::{Language, Layout};
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::schema::{Field, FieldType, Frame, Schema};

/// Compiles and runs the program for these frame files. `Err` describes the mistake, and its file.
pub fn check(texts: &[(String, String)]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut program = head();
    let mut calls = String::new();
    let mut frames = 0;
    for (number, (text, name)) in texts.iter().enumerate() {
        let compiled = ppt_codegen::parse(text.as_bytes(), name).unwrap();
        let outputs = ppt_codegen::generate(&compiled, name, &[Language::Rust]).unwrap();
        ppt_codegen::write_outputs(folder.path(), &outputs).unwrap();
        writeln!(program, "include!(\"{}\");", outputs[0].name).unwrap();
        let frames_of = compiled.schema.frames.iter().enumerate();
        for (id, frame) in frames_of.filter(|entry| !entry.1.is_hidden()) {
            check_frame(&compiled.schema, number, id, frame, &mut program);
            writeln!(calls, "    check_{number}_{id}();").unwrap();
            frames += 1;
        }
        check_metrics(&compiled.schema, number, &mut calls);
    }
    writeln!(program, "fn main() {{\n{calls}    println!(\"checked {frames}\");\n}}").unwrap();
    std::fs::write(folder.path().join("words.rs"), program).unwrap();
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .current_dir(folder.path())
        .args(["--edition", "2024", "-Copt-level=0", "-Ccodegen-units=4", "words.rs"])
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let printed = super::compiler::output_of(folder.path(), "words", &[]);
    if let Some(wrong) = printed.lines().find_map(|line| line.strip_prefix("wrong ")) {
        let number: usize = wrong.split(' ').next().unwrap().parse().unwrap();
        return Err(format!("Rust: {wrong}, of\n{}", texts[number].0));
    }
    assert_eq!(printed, format!("checked {frames}\n"));
    Ok(())
}

fn head() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runtime = root.join("runtime/rust/src");
    let mut text = String::from(
        "#![allow(warnings)]\nextern crate self as ppt_probe;\nextern crate self as ppt_segment;\n",
    );
    for module in ["bytes", "frame", "generated", "now", "text", "time"] {
        let path = runtime.join(module).with_extension("rs");
        let public = if module == "generated" { "pub " } else { "" };
        writeln!(text, "#[path = {path:?}] {public}mod {module};").unwrap();
    }
    for module in ["cells", "word"] {
        let path = root.join("../segment/src").join(module).with_extension("rs");
        writeln!(text, "#[path = {path:?}] pub mod {module};").unwrap();
    }
    let writer = root.join("tests/all/support/words_writer.rs");
    writeln!(text, "#[path = {writer:?}] mod writer;").unwrap();
    // The names of the crate's root that generated code uses: the program computes hashes itself.
    let lib = std::fs::read_to_string(runtime.join("lib.rs")).unwrap();
    let foreign = |line: &&str| ["writer", "hash"].iter().any(|module| line.contains(module));
    let names = lib.lines().filter(|line| line.starts_with("pub use") && !foreign(line));
    text.extend(names.map(|line| format!("{line}\n")));
    text + "use writer::{Kind::{Any, Bool, Text as Chars}, added, expect};\n"
}

/// Adds change the cells that the schema states.
fn check_metrics(schema: &Schema, number: usize, text: &mut String) {
    for (metric, value, cell, other) in super::user::adds(schema) {
        let (module, name, verb) = (&schema.buffer, &metric.name, metric.shape.verb());
        let ty = upper_camel(name);
        writeln!(
            text,
            "    {module}::{ty}::{verb}({value});\n    \
             added({number}, {name:?}, ({cell}, {other:?}, {value}));"
        )
        .unwrap();
    }
}

fn check_frame(schema: &Schema, number: usize, id: usize, frame: &Frame, text: &mut String) {
    let layout = Layout::for_frame(schema, frame);
    let module = &schema.buffer;
    let value = |field: &Field| {
        let ty = match field.ty {
            // A text can be put from a str, too.
            FieldType::Char { len } => format!("::<Text<{len}>>"),
            _ => String::new(),
        };
        format!("{} = expected.value{ty}({})", field.name, field.offset)
    };
    writeln!(text, "fn check_{number}_{id}() {{").unwrap();
    for verb in frame.verbs() {
        // Fields of the other half of a span are 0.
        let given = super::user::given(frame, verb);
        let places = given.map(|field| {
            let kind = match field.ty {
                FieldType::Bool => "Bool",
                FieldType::Char { .. } => "Chars",
                _ => "Any",
            };
            format!("({kind}, {}, {})", field.offset, field.bytes(schema))
        });
        let places: Vec<_> = places.collect();
        writeln!(
            text,
            "    let mut expected = expect({number}, {id}, {}, {}, &[{}]);",
            layout.size,
            schema.multi(),
            places.join(", "),
        )
        .unwrap();
        let all: Vec<_> = super::user::given(frame, verb).map(value).collect();
        let block: String = all.iter().map(|text| format!("f.{text}; ")).collect();
        for field in frame.fields.iter().filter(|field| field.is_own()) {
            let value = match &field.ty {
                FieldType::Enum { name } => {
                    let values = &schema.enum_named(name).unwrap().values;
                    // For a chain, the last step.
                    let named = values.iter().find(|value| value.0 == *verb).or(values.last());
                    format!("{}u8", named.unwrap().1)
                }
                _ => "writer::STAMP".into(),
            };
            let offset = field.offset;
            writeln!(text, "    expected.place({offset}, &{value}.to_le_bytes());").unwrap();
        }
        let ty = upper_camel(&frame.name);
        let step = super::user::steps(schema, frame)
            .map_or(String::new(), |step| format!("{module}::{ty}Step::{}, ", upper_camel(&step)));
        writeln!(
            text,
            "    {module}::{ty}::{verb}({step}|f| {{ {block}}});\n    \
             expected.compare(\"block form, {verb}\");\n    \
             {module}::{verb}_{}!({step}{});\n    expected.compare(\"macro form, {verb}\");",
            frame.name,
            all.join(", ")
        )
        .unwrap();
    }
    text.push_str("}\n");
}
