//! Builds a program, or a shared library, of generated code.

use std::process::Command;

use ppt_codegen::Language;

use crate::disassembly::{Code, InstructionClass};

/// Compiles a program with the generated code of a buffer, and disassembles it. `change` may first
/// modify the generated text.
pub fn built_of(
    (name, frames, user): (&str, &str, &str),
    compiler: &str,
    language: Language,
    kind: InstructionClass,
    change: &dyn Fn(&mut String),
) -> Code {
    let file = format!("{name}.frame");
    let frames = ppt_codegen::parse(frames.as_bytes(), &file).unwrap();
    let mut outputs = ppt_codegen::generate(&frames, &file, &[language]).unwrap();
    outputs.iter_mut().for_each(|output| change(&mut output.text));
    let folder = tempfile::tempdir().unwrap();
    ppt_codegen::write_outputs(folder.path(), &outputs).unwrap();
    let (program, standard, extension) = match language {
        Language::Cpp => ("user.cpp", "-std=c++17", "cpp"),
        _ => ("user.c", "-std=c11", "c"),
    };
    std::fs::write(folder.path().join(program), user).unwrap();
    let generated = format!("{name}.{extension}");
    let mut command = Command::new(compiler);
    let args = [standard, "-O2", &generated, program, "-o", "built"];
    command.current_dir(folder.path()).args(args);
    if kind == InstructionClass::SharedLibrary {
        command.args(["-fPIC", "-shared"]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Code::read(&folder.path().join("built"), kind, frames.schema.symbol_prefix())
}

/// gcc, which the tests require, and clang, which is optional.
pub fn compilers() -> Vec<&'static str> {
    those_of(["gcc", "clang"])
}

pub fn those_of([gcc, clang]: [&'static str; 2]) -> Vec<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    assert!(there(&gcc), "these tests need {gcc}");
    if !there(&clang) {
        println!("{clang} is skipped: it does not run here");
    }
    [gcc, clang].into_iter().filter(there).collect()
}
