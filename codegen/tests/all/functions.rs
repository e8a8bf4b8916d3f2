//! The code of `pptc functions` compiles without warnings by gcc and clang, and does not change.

use std::fs;

use crate::support::compiler::{Compiler, Dialect, output_of};
use ppt_codegen::{Compiler as FlagsFor, GeneratedFile, function_flags, functions};

const PROGRAM: &str = "int doubled(int x);\nint doubled(int x) { return 2 * x; }\n\
                       int main(void) { return doubled(0); }\n";

/// The files in a folder of their own, with a program whose functions are shown.
fn on_disk(outputs: &[GeneratedFile]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for output in outputs {
        fs::write(folder.path().join(&output.name), &output.text).unwrap();
    }
    fs::write(folder.path().join("main.c"), PROGRAM).unwrap();
    folder
}

fn flags_of(compiler: Compiler) -> Vec<&'static str> {
    let of = if compiler.c == "clang" { FlagsFor::Clang } else { FlagsFor::Gcc };
    function_flags(of).split_whitespace().collect()
}

/// Compiles without a warning, optimised and not. Without ppt, the program ends with status 0.
fn compiles(dialect: Dialect) {
    let folder = on_disk(&functions(1000));
    for compiler in Compiler::all() {
        for level in ["-O0", "-O2"] {
            let mut arguments = flags_of(compiler);
            arguments.extend([level, "main.c", "ppt_functions.c", "-o", "built"]);
            compiler.run(dialect, folder.path(), &arguments);
            assert_eq!(output_of(folder.path(), "built", &[]), "");
        }
    }
}

#[test]
fn it_compiles_as_c11() {
    compiles(Dialect::C11);
}

#[test]
fn it_compiles_as_cpp17() {
    compiles(Dialect::Cpp17);
}

/// Each object calls its own hooks: those of the C library come before a library that is opened late.
#[test]
fn the_hooks_are_those_of_the_object() {
    let folder = on_disk(&functions(1000));
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            let mut arguments = flags_of(compiler);
            arguments.extend(["-fPIC", "-shared", "main.c", "ppt_functions.c", "-o", "built"]);
            compiler.run(dialect, folder.path(), &arguments);
            let names = std::process::Command::new("nm")
                .args(["-D", "built"])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let names = String::from_utf8(names.stdout).unwrap();
            assert!(names.contains("doubled") && !names.contains("__cyg_profile"), "{names}");
        }
    }
}

#[test]
fn the_limit_is_a_constant_of_the_code_and_the_rest_stays() {
    let (short, long) = (functions(43_210), functions(98_765));
    let names: Vec<&str> = short.iter().map(|output| output.name.as_str()).collect();
    assert_eq!(names, ["ppt_functions.h", "ppt_functions.c"]);
    assert!(short[0].text == long[0].text);
    assert!(short[1].text.contains("#define PPT_FUNCTIONS_MIN_NS INT64_C(43210)\n"));
    assert!(short[1].text.replace("INT64_C(43210)", "INT64_C(98765)") == long[1].text);
    assert!(functions(98_765)[1].text == long[1].text);
}
