//! The common parts of the tests of the generators.

pub mod compiler;
pub mod files;
pub mod go;
pub mod java;
pub mod node;
pub mod python;
pub mod rust_words;
pub mod tried;
pub mod user;
pub mod wrong_segments;

use std::fs;
use std::path::{Path, PathBuf};

use ppt_codegen::{GeneratedFile, Language, Schema};

/// The fixed text of every header and of every source file, or of those that have hashes.
pub const HASH_HEADER: &str = include_str!("../../../runtime/c/hash.h");
pub const HASH_MODULE: &str = include_str!("../../../runtime/python/hash.c");
pub const FIXED_HEADER: &str = include_str!("../../../runtime/c/target.h");
pub const FIXED_SOURCE: &str = include_str!("../../../runtime/c/target.c");
pub const FIXED_MODULE: &str = include_str!("../../../runtime/python/module.c");
pub const JAVA_RUNTIME: &str = include_str!("../../../runtime/java/runtime.java");
pub const JAVA_LIBRARY: &str = include_str!("../../../runtime/java/jni.c");
pub const JAVA_HASH: &str = include_str!("../../../runtime/java/hash.c");
pub const NODE_RUNTIME: &str = include_str!("../../../runtime/node/runtime.js");
pub const NODE_ADDON: &str = include_str!("../../../runtime/node/node.c");
pub const NODE_HASH: &str = include_str!("../../../runtime/node/hash.c");
pub const GO_RUNTIME: &str = include_str!("../../../runtime/go/runtime.go");
pub const GO_HASH: &str = include_str!("../../../runtime/go/hash.go");
pub const GO_NATIVE: &str = include_str!("../../../runtime/go/native.go");
pub const GO_NATIVE_HASH: &str = include_str!("../../../runtime/go/native_hash.go");
pub const GO_OFF_HASH: &str = include_str!("../../../runtime/go/off_hash.go");
pub const GO_HEADER: &str = include_str!("../../../runtime/go/frames.h");
pub const GO_HASH_HEADER: &str = include_str!("../../../runtime/go/hash.h");
pub const SLOWDOWN_SOURCE: &str = include_str!("../../../runtime/c/slowdown.c");
pub const MADE_SOURCE: &str = include_str!("../../../runtime/c/made.c");
pub const CELLS_SOURCE: &str = include_str!("../../../runtime/c/cells.c");
pub const FORK_SOURCE: &str = include_str!("../../../runtime/c/fork.c");
pub const HELLO_SOURCE: &str = include_str!("../../../runtime/c/hello.c");

/// A frame file, and the C or C++ generated from it.
pub struct Generated {
    pub stem: String,
    pub schema: Schema,
    pub outputs: Vec<GeneratedFile>,
}

impl Generated {
    pub fn from_source(source: &str, file_name: &str) -> Generated {
        Generated::new(source, file_name, Language::C)
    }

    pub fn cpp_of(source: &str, file_name: &str) -> Generated {
        Generated::new(source, file_name, Language::Cpp)
    }

    fn new(source: &str, file_name: &str, language: Language) -> Generated {
        let frames = ppt_codegen::parse(source.as_bytes(), file_name).unwrap();
        let outputs = ppt_codegen::generate(&frames, file_name, &[language]).unwrap();
        let stem = Path::new(file_name).file_stem().unwrap().to_str().unwrap().to_owned();
        Generated { stem, schema: frames.schema, outputs }
    }

    pub fn golden(name: &str) -> Generated {
        Generated::of_file(&golden_folder().join(name), Language::C)
    }

    pub fn cpp(name: &str) -> Generated {
        Generated::of_file(&golden_folder().join(name), Language::Cpp)
    }

    pub fn of_file(path: &Path, language: Language) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        Generated::new(&fs::read_to_string(path).unwrap(), name, language)
    }

    /// The outputs as they are compared: what Java, Node and Go add to the C is one text each.
    pub fn expectation(path: &Path, language: Language) -> Generated {
        let mut generated = Generated::of_file(path, language);
        match language {
            Language::Java => generated.join("java", |name| name.ends_with(".java")),
            Language::Node => {
                generated.join("js", |name| !name.ends_with(".h") && !name.ends_with(".c"));
            }
            Language::Go => {
                generated.join("go", |name| name.starts_with("frames"));
                // The C source is the same as for C, except for a line that hides it from Go without cgo.
                let sources = generated.outputs.iter_mut().filter(|file| file.name.ends_with(".c"));
                for file in sources {
                    assert_eq!(file.text.matches("*/\n\n//go:build cgo\n\n").count(), 1);
                    file.text = file.text.replacen("\n//go:build cgo\n\n", "", 1);
                }
            }
            _ => (),
        }
        generated
    }

    /// Replaces some outputs by one that has the text of all.
    fn join(&mut self, extension: &str, is_part: impl Fn(&str) -> bool) {
        let mut text = String::new();
        for file in self.outputs.extract_if(.., |file| is_part(&file.name)) {
            text += &format!("// ---- {} ----\n{}\n", file.name, file.text);
        }
        self.outputs.push(GeneratedFile { name: format!("{}.{extension}", self.stem), text });
    }

    pub fn header(&self) -> &str {
        self.text("h")
    }

    pub fn source(&self) -> &str {
        self.text("c")
    }

    fn text(&self, extension: &str) -> &str {
        let name = format!("{}.{extension}", self.stem);
        &self.outputs.iter().find(|output| output.name == name).expect("generated").text
    }

    /// The linker's name of `name`.
    pub fn symbol(&self, name: &str) -> String {
        format!("{}{name}", self.schema.symbol_prefix())
    }

    /// Writes both files, and the files `extra`, into a temporary folder.
    pub fn on_disk(&self, extra: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        ppt_codegen::write_outputs(folder.path(), &self.outputs).unwrap();
        for (name, text) in extra {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }
}

pub fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The golden that has all that one buffer can have, on which every way to build is tried; with `PPT_LONG=1`, all
/// goldens.
pub fn fullest() -> Vec<PathBuf> {
    goldens().into_iter().filter(|path| is_long() || path.ends_with("everything.frame")).collect()
}

/// Whether the tests take all the time that they can use.
pub fn is_long() -> bool {
    std::env::var_os("PPT_LONG").is_some()
}

/// The frame files of `tests/golden`, in order.
pub fn goldens() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(golden_folder())
        .unwrap()
        .map(|found| found.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "frame"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no frame files in {}", golden_folder().display());
    paths
}
