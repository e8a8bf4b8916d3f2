//! gcc and clang, as far as they are installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use super::tried;

/// A family of compilers.
#[derive(Clone, Copy, PartialEq)]
pub struct Compiler {
    pub c: &'static str,
    pub cpp: &'static str,
}

const GCC: Compiler = Compiler { c: "gcc", cpp: "g++" };
const CLANG: Compiler = Compiler { c: "clang", cpp: "clang++" };

/// Warnings that neither user code nor generated code may cause, in C and in C++.
pub const STRICT: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wundef",
    "-Wcast-qual",
    "-Wwrite-strings",
    "-Wmissing-declarations",
    "-Wcomment",
    "-Wunused-macros",
];
pub const STRICT_C: &[&str] =
    &["-std=c11", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wold-style-definition"];
pub const STRICT_CPP: &[&str] = &[
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wold-style-cast",
    "-Wzero-as-null-pointer-constant",
];
/// Warnings that only g++ knows.
const STRICT_GPP: &[&str] = &["-Wuseless-cast"];

/// How a file is compiled that is not linked: to code for a library, or only checked.
pub const CODE: &[&str] = &["-O2", "-fPIC", "-c"];
pub const SYNTAX: &[&str] = &["-fsyntax-only"];

/// Flags that need a library: a compiler may come without those of its sanitizers, a system without a static libc.
const WITH_LIBRARIES: [&str; 2] = ["-fsanitize=thread", "-static"];

/// The language that a file is read as, whatever its name ends in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    C11,
    Cpp17,
}

impl Compiler {
    /// gcc with g++, and clang with clang++, if they are installed.
    pub fn all() -> Vec<Compiler> {
        Compiler::that_take(&[])
    }

    /// Those of the compilers that have what these flags need beside the compiler. Each is tried once.
    pub fn that_take(flags: &[&str]) -> Vec<Compiler> {
        static TRIED: Mutex<BTreeMap<String, Vec<Compiler>>> = Mutex::new(BTreeMap::new());
        let needed: Vec<&str> =
            flags.iter().copied().filter(|flag| WITH_LIBRARIES.contains(flag)).collect();
        let try_all = || [GCC, CLANG].into_iter().filter(|it| it.takes(&needed)).collect();
        TRIED.lock().unwrap().entry(needed.join(" ")).or_insert_with(try_all).clone()
    }

    fn takes(self, flags: &[&str]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let program = "#include <stdio.h>\nint main(void) {\nreturn puts(\"\") < 0; }\n";
        fs::write(folder.path().join("tried.c"), program).unwrap();
        let mut attempts = [(self.c, "c"), (self.cpp, "c++")].map(|(program, language)| {
            let mut command = Command::new(program);
            command.current_dir(folder.path()).args(flags).args(["-x", language, "tried.c"]);
            command
        });
        tried::works(&[&[self.c], flags].concat().join(" "), &mut attempts)
    }

    pub fn gcc() -> Compiler {
        GCC
    }

    /// A call in `folder` that may fail.
    pub fn try_run(self, dialect: Dialect, folder: &Path, arguments: &[&str]) -> Output {
        let (program, language, strict) = match dialect {
            Dialect::C11 => (self.c, "c", STRICT_C),
            Dialect::Cpp17 => (self.cpp, "c++", STRICT_CPP),
        };
        let mut command = Command::new(program);
        command.current_dir(folder).args(STRICT).args(strict).args(["-x", language]);
        if program == GCC.cpp {
            command.args(STRICT_GPP);
        }
        command.args(arguments).output().unwrap()
    }

    /// A call in `folder` that prints nothing.
    pub fn run(self, dialect: Dialect, folder: &Path, arguments: &[&str]) {
        let output = self.try_run(dialect, folder, arguments);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{} {dialect:?} {arguments:?}: {}\n{}",
            self.c,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Runs a program of `folder` to its end and returns what it printed.
pub fn output_of(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(folder.join(program)).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
