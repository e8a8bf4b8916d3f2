//! Builds the program that is measured: the block form in C, C++ and Rust.

use std::fs;
use std::path::Path;
use std::process::Command;

use ppt_codegen::Language;

const LANGUAGES: [Language; 3] = [Language::C, Language::Cpp, Language::Rust];
const FLAGS: [&str; 3] = ["-O2", "-Wall", "-Wextra"];

/// Builds `writer` in `folder`. What Rust needs is kept in `kept`.
pub fn build(folder: &Path, kept: &Path) {
    let text = include_str!("../../bench/writer.frame");
    let frames = ppt_codegen::parse(text.as_bytes(), "writer.frame").unwrap();
    let outputs = ppt_codegen::generate(&frames, "writer.frame", &LANGUAGES).unwrap();
    ppt_codegen::write_outputs(folder, &outputs).unwrap();
    fs::write(folder.join("block_form.c"), include_str!("block_form.c")).unwrap();
    fs::write(folder.join("block_form_cpp.cpp"), include_str!("block_form.cpp")).unwrap();
    fs::create_dir(folder.join("rust")).unwrap();
    fs::write(folder.join("rust/block_form.rs"), include_str!("block_form.rs")).unwrap();
    fs::rename(folder.join("writer.rs"), folder.join("rust/writer.rs")).unwrap();
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program).current_dir(folder).args(args).status().unwrap();
        assert!(status.success(), "{program}: {status}");
    };
    let c = ["-std=c11", "-c", "block_form.c", "writer.c"];
    run("gcc", &[&FLAGS[..], &c].concat());
    run("g++", &[&FLAGS[..], &["-std=c++17", "-c", "block_form_cpp.cpp"]].concat());
    let rust = rust(&folder.join("rust"), kept);
    let objects = ["block_form.o", "writer.o", "block_form_cpp.o", "-o", "writer"];
    let libraries = [rust.as_str(), "-lpthread", "-ldl", "-lm"];
    run("g++", &[&objects[..], &libraries].concat());
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
        .env_remove("RUSTFLAGS")
        .env("CARGO_TARGET_DIR", kept)
        .status()
        .unwrap();
    assert!(status.success(), "cargo: {status}");
    kept.join("release/libblock_form.a").to_str().unwrap().into()
}
