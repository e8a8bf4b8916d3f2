//! Go: a package that passes each frame to C by one call of cgo, on top of the C output. Without cgo, the same
//! package does nothing.

mod comment;
mod frames;
mod header;
mod native;
mod off;
mod package;
mod spelling;

use ppt_frame_dsl::Declared;
use ppt_frame_dsl::names::upper_camel;

use self::spelling::{enum_value, exported};
use crate::c::C;
use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Words that cannot be the name of an imported package: those of the language, and more.
const PACKAGES: [&str; 28] = [
    "C",
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "init",
    "interface",
    "main",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
    "var",
];
/// Systems and architectures that Go knows: a file whose name ends with one is compiled for that one only.
const SYSTEMS: [&str; 44] = [
    "386",
    "aix",
    "amd64",
    "amd64p32",
    "android",
    "arm",
    "arm64",
    "arm64be",
    "armbe",
    "darwin",
    "dragonfly",
    "freebsd",
    "hurd",
    "illumos",
    "ios",
    "js",
    "loong64",
    "mips",
    "mips64",
    "mips64le",
    "mips64p32",
    "mips64p32le",
    "mipsle",
    "nacl",
    "netbsd",
    "openbsd",
    "plan9",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv",
    "riscv64",
    "s390",
    "s390x",
    "solaris",
    "sparc",
    "sparc64",
    "test",
    "unix",
    "wasip1",
    "wasm",
    "windows",
    "zos",
    "linux",
];
/// The constraint before the first line of code of the C file: without cgo, Go would refuse the file.
const CONSTRAINT: &str = "//go:build cgo";

/// Writes `STEM.h`, `STEM.c`, and the files of a package.
pub(crate) struct Go;

impl Emitter for Go {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let mut outputs = C.emit(model);
        for output in outputs.iter_mut().filter(|output| output.name.ends_with(".c")) {
            // The banner comes first, and a constraint only has comments before it.
            output.text = output.text.replacen("*/\n", &format!("*/\n\n{CONSTRAINT}\n\n"), 1);
        }
        let mut file = |name: &str, text| outputs.push(GeneratedFile { name: name.into(), text });
        file("frames.go", package::emit(model));
        file("frames_cgo.go", native::emit(model));
        file("frames_cgo.h", header::emit(model));
        file("frames_off.go", off::emit(model));
        outputs
    }

    fn takes(&self, model: &BufferModel<'_>, declared: Declared, name: &str) -> bool {
        let is_exported = |name: &str| exported(model).any(|exported| exported == name);
        match declared {
            Declared::Buffer => PACKAGES.contains(&name),
            Declared::Enum(_) | Declared::Frame(_) | Declared::Metric(_) => {
                is_exported(&upper_camel(name))
            }
            Declared::Value(index, _) => is_exported(&enum_value(&model.schema.enums[index], name)),
            Declared::Field(..) => false,
        }
    }

    fn refuses(&self, model: &BufferModel<'_>) -> Option<String> {
        let stem = model.stem;
        if stem.starts_with(['.', '_']) {
            return Some(format!("Go does not look at a file `{stem}.c`: rename the frame file"));
        }
        let plain = stem.split('.').next().unwrap_or(stem);
        let (_, last) = plain.rsplit_once('_')?;
        SYSTEMS.contains(&last).then(|| {
            format!("Go takes a file `{stem}.c` for one of {last} alone: rename the frame file")
        })
    }
}
