//! The code that writes a frame for each call of a program's functions.

use ppt_frame_dsl::Language;

use crate::output::GeneratedFile;

const FRAMES: &str = include_str!("../runtime/c/functions.frame");
const HOOKS: &str = include_str!("../runtime/c/functions.c");

/// The stem of the files. The flags for gcc exclude files with this name.
const FILE_NAME: &str = "ppt_functions.frame";

/// The line before which pragmas for clang exclude the file's functions.
const FIRST_LINE: &str = "#ifndef _GNU_SOURCE\n";
const CLANG_OUT: &str = "#ifdef __clang__\n#pragma clang attribute push(__attribute__((no_instrument_function)), apply_to = function)\n#endif\n";
const CLANG_END: &str = "#ifdef __clang__\n#pragma clang attribute pop\n#endif\n";
/// The line after the code of the buffer.
const LAST_LINE: &str = "#endif /* PPT1_ENABLED */";

/// A family of compilers with the same flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// gcc and g++.
    Gcc,
    /// clang and clang++.
    Clang,
}

/// The flags that instrument the functions of a program.
pub fn function_flags(compiler: Compiler) -> &'static str {
    match compiler {
        Compiler::Gcc => {
            "-finstrument-functions -fno-omit-frame-pointer -fno-optimize-sibling-calls \
             -finstrument-functions-exclude-file-list=/usr/include/,/usr/lib/gcc/,/include/c++/,ppt_functions."
        }
        Compiler::Clang => {
            "-finstrument-functions-after-inlining -fno-omit-frame-pointer \
             -fno-optimize-sibling-calls"
        }
    }
}

/// `ppt_functions.h` and `ppt_functions.c`, which each executable and each shared library of the program
/// contains. Calls of at least `min_ns` nanoseconds are frames `call`, and shorter ones are frames `brief`.
///
/// # Panics
/// Never: the frame file is part of this crate, and a test compiles it.
#[expect(clippy::expect_used, reason = "the frame file is ours")]
pub fn functions(min_ns: u64) -> Vec<GeneratedFile> {
    let frames =
        crate::parse(FRAMES.as_bytes(), FILE_NAME).expect("our frame file has no mistakes");
    let outputs = crate::generate(&frames, FILE_NAME, &[Language::C]);
    let mut outputs = outputs.expect("our frame file takes no names of C");
    let hooks = HOOKS.replace("[ min ]", &format!("INT64_C({min_ns})"));
    for output in outputs.iter_mut().filter(|output| output.name.ends_with(".c")) {
        let text = output.text.replacen(FIRST_LINE, &format!("{CLANG_OUT}{FIRST_LINE}"), 1);
        output.text = text.replacen(LAST_LINE, &format!("{hooks}{LAST_LINE}"), 1) + CLANG_END;
    }
    outputs
}
