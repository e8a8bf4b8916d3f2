//! Generates the source code of a checked frame file, which is compiled into targets.
//!
//! ```
//! let source = b"frame example { int kind, who; time sleep, start, end; }";
//! let frames = ppt_codegen::parse(source, "example.frame").unwrap();
//! let outputs = ppt_codegen::generate(&frames, "example.frame", &[ppt_codegen::Language::C]).unwrap();
//! assert_eq!(outputs[0].name, "example.h");
//! assert!(outputs[0].text.contains("pptframe_example_t"));
//! ```
//!
//! The fixed part of the output is in files under `runtime/`. This crate writes the part that
//! depends on the schema. The output depends on its input only; it contains no path and no date.

#![forbid(unsafe_code)]

mod c;
mod compile;
mod cpp;
mod emitter;
mod functions;
mod generate;
mod go;
mod java;
mod model;
mod node;
mod output;
mod python;
mod rust;
mod text;
mod write;

pub use compile::{CompileError, compile};
pub use functions::{Compiler, function_flags, functions};
pub use generate::{GenerateError, generate};
pub use output::GeneratedFile;
pub use ppt_frame_dsl::{
    CompileFailure, Compiled, Declared, Diagnostic, Language, MAX_SOURCE_BYTES, Schema, Severity,
    compile as parse, compile_for as parse_for, draw, format, layout::Layout,
};
pub use write::{WriteError, depfile, write_outputs};
