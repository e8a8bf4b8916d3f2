//! gcc and clang, if they are installed.

use std::path::Path;
use std::process::{Command, Output};

/// A family of compilers.
#[derive(Clone, Copy)]
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

/// The language that a file is read as, whatever its name ends in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    C11,
    Cpp17,
}

impl Compiler {
    /// gcc, which the tests need, and clang, if it is installed.
    pub fn all() -> Vec<Compiler> {
        let there = |compiler: &Compiler| {
            [compiler.c, compiler.cpp].iter().all(|name| {
                let found = Command::new(name).arg("--version").output();
                found.is_ok_and(|output| output.status.success())
            })
        };
        assert!(there(&GCC), "these tests need gcc and g++");
        if there(&CLANG) {
            return vec![GCC, CLANG];
        }
        println!("clang is skipped: `clang` and `clang++` do not run here");
        vec![GCC]
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
