//! Compares frame files with their expected results: a file in `tests/fail` with its diagnostics, a
//! file in `tests/pass` with its schema (and its warnings, if any). Adding a file adds a test;
//! expectations are rewritten only with `PPT_BLESS=1`.

use std::fs;
use std::path::{Path, PathBuf};

use ppt_frame_dsl::{Language, Schema, compile, compile_for, draw};

#[test]
fn fail() {
    // Without `emit`, the errors of every language are shown.
    let emits = |source: &[u8]| source.windows(5).any(|window| window == b"emit ");
    let languages = |source: &[u8]| if emits(source) { &[] } else { Language::ALL };
    each("fail", |source, name| match compile_for(source, name, languages(source)) {
        Err(failure) => vec![("stderr", failure.render(false))],
        Ok(_) => panic!("{name} compiles: it belongs into tests/pass"),
    });
}

#[test]
fn pass() {
    each("pass", |source, name| {
        let compiled = compile(source, name).unwrap();
        let schema = &compiled.schema;
        let json = schema.to_json();
        let back = Schema::from_json(json.as_bytes()).unwrap();
        assert_eq!(&back, schema, "{name}");
        assert_eq!(back.to_json(), json, "{name}");
        assert_eq!(back.hash(), schema.hash(), "{name}");
        // The same text with line breaks, including the order of keys.
        let pretty = serde_json::to_string_pretty(schema).unwrap();
        let broken: String = pretty.lines().map(str::trim_start).collect();
        assert_eq!(broken.replace("\": ", "\":"), json.replace("\": ", "\":"), "{name}");
        vec![
            ("json", pretty + "\n"),
            ("layout", format!("hash {:016x}\n\n{}", schema.hash(), draw(schema, false))),
            ("stderr", compiled.render_warnings(false)),
        ]
    });
}

/// Compares the `outputs` for each frame file of a folder with the expectation files next to it; an
/// empty output has no file.
fn each(folder: &str, outputs: impl Fn(&[u8], &str) -> Vec<(&'static str, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|found| found.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "frame"))
        .collect();
    sources.sort();
    assert!(!sources.is_empty(), "no frame files in {}", folder.display());
    let bless = std::env::var_os("PPT_BLESS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for path in sources {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (extension, actual) in outputs(&fs::read(&path).unwrap(), name) {
            let beside = path.with_extension(extension);
            let expected = fs::read_to_string(&beside).unwrap_or_default();
            if bless && actual.is_empty() {
                let _ = fs::remove_file(&beside);
            } else if bless {
                fs::write(&beside, actual).unwrap();
            } else if actual != expected {
                wrong.push(format!(
                    "{}\n--- expected\n{expected}\n--- actual\n{actual}",
                    beside.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\nIf the new output is right, run the tests again with PPT_BLESS=1 and review the diff.",
        wrong.join("\n\n")
    );
}
