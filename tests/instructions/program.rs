//! Builds the measured programs other than C: the block form in C++ and Rust, and adds.

use std::fs;
use std::path::Path;
use std::process::Command;

use ppt_codegen::Language;

const METRICS: &str = "counter seen; histogram waits : duration;";
const LANGUAGES: [Language; 3] = [Language::C, Language::Cpp, Language::Rust];
/// The alignment of a loop has more influence than the cost when off.
pub const FLAGS: [&str; 5] =
    ["-O2", "-Wall", "-Wextra", "-falign-functions=64", "-falign-loops=64"];

/// Writes the generated code of `writer.frame` to `folder`, and builds `block_form_cpp` and
/// `block_form_rust` from it. Returns the arguments for linking them with g++. Files needed for
/// Rust are kept in `kept`.
pub fn parts(folder: &Path, kept: &Path) -> Vec<String> {
    let text = include_str!("../../bench/writer.frame").to_owned() + METRICS;
    let frames = ppt_codegen::parse(text.as_bytes(), "writer.frame").unwrap();
    let outputs = ppt_codegen::generate(&frames, "writer.frame", &LANGUAGES).unwrap();
    ppt_codegen::write_outputs(folder, &outputs).unwrap();
    fs::write(folder.join("block_form_cpp.cpp"), include_str!("block_form.cpp")).unwrap();
    fs::create_dir(folder.join("rust")).unwrap();
    fs::write(folder.join("rust/block_form.rs"), include_str!("block_form.rs")).unwrap();
    fs::rename(folder.join("writer.rs"), folder.join("rust/writer.rs")).unwrap();
    run(folder, "g++", &["-std=c++17", "-c", "block_form_cpp.cpp"]);
    let rust = rust(&folder.join("rust"), kept);
    let libraries = ["-lpthread", "-ldl", "-lm"].map(String::from);
    [vec!["block_form_cpp.o".into(), rust], libraries.into()].concat()
}

/// Runs a compiler in `folder`.
pub fn run(folder: &Path, compiler: &str, args: &[&str]) {
    let status = Command::new(compiler).current_dir(folder).args(FLAGS).args(args).status();
    let status = status.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{compiler} {args:?}: {status}");
}

/// The static library of `block_form.rs`.
fn rust(folder: &Path, kept: &Path) -> String {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("codegen/runtime/rust");
    let manifest = format!(
        "[package]\nname = \"block-form\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = \"block_form.rs\"\ncrate-type = [\"staticlib\"]\n\
         [dependencies]\nppt-probe = {{ path = {probe:?} }}\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let locked = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    fs::copy(locked, folder.join("Cargo.lock")).unwrap();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .current_dir(folder)
        .env("RUSTFLAGS", "-C llvm-args=-align-all-functions=6")
        .env("CARGO_TARGET_DIR", kept)
        .status()
        .unwrap();
    assert!(status.success(), "cargo: {status}");
    kept.join("release/libblock_form.a").to_str().unwrap().into()
}
