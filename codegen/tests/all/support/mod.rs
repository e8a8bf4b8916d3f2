//! The common parts of the tests of the generators.

pub mod compiler;
pub mod files;
pub mod go;
pub mod java;
pub mod node;
pub mod rust_words;
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

/// Frame files of `tests/golden` whose C++ is compared and compiled, too.
pub const CPP_GOLDENS: [&str; 10] = [
    "example.frame",
    "job.frame",
    "tsc.frame",
    "spans.frame",
    "chains.frame",
    "points.frame",
    "halves.frame",
    "metrics.frame",
    "hashes.frame",
    "addresses.frame",
];

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

    fn new(source: &str, file_name: &str, language: Language) -> Generated {
        let frames = ppt_codegen::parse(source.as_bytes(), file_name).unwrap();
        let outputs = ppt_codegen::generate(&frames, file_name, &[language]).unwrap();
        let stem = Path::new(file_name).file_stem().unwrap().to_str().unwrap().to_owned();
        Generated { stem, schema: frames.schema, outputs }
    }

    pub fn golden(name: &str) -> Generated {
        Generated::of_file(&golden_folder().join(name))
    }

    pub fn of_file(path: &Path) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        Generated::from_source(&fs::read_to_string(path).unwrap(), name)
    }

    /// The C++ of a file of [`CPP_GOLDENS`].
    pub fn cpp(name: &str) -> Generated {
        let source = fs::read_to_string(golden_folder().join(name)).unwrap();
        Generated::new(&source, name, Language::Cpp)
    }

    pub fn cpp_of(source: &str, file_name: &str) -> Generated {
        Generated::new(source, file_name, Language::Cpp)
    }

    /// The Python of a file.
    pub fn python(path: &Path) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        Generated::new(&fs::read_to_string(path).unwrap(), name, Language::Python)
    }

    /// The Java of a file: all classes in one text.
    pub fn java(path: &Path) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = fs::read_to_string(path).unwrap();
        let mut generated = Generated::new(&source, name, Language::Java);
        let is_class = |file: &mut GeneratedFile| file.name.ends_with(".java");
        let mut text = String::new();
        for class in generated.outputs.extract_if(.., is_class) {
            text += &format!("// ---- {} ----\n{}\n", class.name, class.text);
        }
        let name = format!("{}.java", generated.stem);
        generated.outputs.push(GeneratedFile { name, text });
        generated
    }

    /// The Node package of a file without its C: its JavaScript in one text, and its types.
    pub fn node(path: &Path) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = fs::read_to_string(path).unwrap();
        let mut generated = Generated::new(&source, name, Language::Node);
        let of_c = [".h", ".c"];
        let is_more = |file: &mut GeneratedFile| !of_c.iter().any(|end| file.name.ends_with(end));
        let mut text = String::new();
        for file in generated.outputs.extract_if(.., is_more) {
            text += &format!("// ---- {} ----\n{}\n", file.name, file.text);
        }
        let name = format!("{}.js", generated.stem);
        generated.outputs.push(GeneratedFile { name, text });
        generated
    }

    /// The Go package of a file without its C: its Go in one text, and the header that it includes.
    pub fn go(path: &Path) -> Generated {
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = fs::read_to_string(path).unwrap();
        let mut generated = Generated::new(&source, name, Language::Go);
        let is_more = |file: &mut GeneratedFile| file.name.starts_with("frames");
        let mut text = String::new();
        for file in generated.outputs.extract_if(.., is_more) {
            text += &format!("// ---- {} ----\n{}\n", file.name, file.text);
        }
        // The C source is the same as for C, except for a line that hides it from Go without cgo.
        for file in generated.outputs.iter_mut().filter(|output| output.name.ends_with(".c")) {
            assert_eq!(file.text.matches("*/\n\n//go:build cgo\n\n").count(), 1);
            file.text = file.text.replacen("\n//go:build cgo\n\n", "", 1);
        }
        let name = format!("{}.go", generated.stem);
        generated.outputs.push(GeneratedFile { name, text });
        generated
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
