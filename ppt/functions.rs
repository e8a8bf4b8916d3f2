//! `pptc functions`: the code and the flags by which a program shows each call of its functions.
//!
//! ```text
//! $ pptc functions
//! $ cc -O2 $(pptc functions --cflags) server.c ppt_functions.c -o server
//! ```

use std::path::Path;

use ppt_codegen::Compiler;
use ppt_text::escaped_lines;
use ppt_text::exit::ExitStatus;

use crate::pptc_args::{FunctionCompiler, Functions as Args};
use crate::stdout;

pub(crate) fn run(args: &Args) -> ExitStatus {
    let done = match args.cflags {
        Some(compiler) => print_flags(compiler),
        None => write(args),
    };
    if let Err(message) = &done {
        eprintln!("pptc: {}", escaped_lines(message));
    }
    ExitStatus::from_success(done.is_ok())
}

fn print_flags(compiler: FunctionCompiler) -> Result<(), String> {
    let compiler = match compiler {
        FunctionCompiler::Gcc => Compiler::Gcc,
        FunctionCompiler::Clang => Compiler::Clang,
    };
    stdout::plain(&format!("{}\n", ppt_codegen::function_flags(compiler)))
        .map_err(|error| format!("cannot write standard output: {error}"))
}

/// Writes the files. No call is longer than `i64` nanoseconds, so a longer limit means the same.
fn write(args: &Args) -> Result<(), String> {
    let min_ns = i64::try_from(args.min.as_nanos()).unwrap_or(i64::MAX);
    let outputs = ppt_codegen::functions(min_ns.unsigned_abs());
    let folder = args.output.as_deref().unwrap_or(Path::new(""));
    ppt_codegen::write_outputs(folder, &outputs).map(drop).map_err(|error| error.to_string())
}
