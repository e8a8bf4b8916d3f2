//! From a checked frame file to the source code that is compiled into a target.
//!
//! ```
//! let source = b"frame example { int kind, who; time sleep, start, end; }";
//! let frames = ppt_codegen::parse(source, "example.frame").unwrap();
//! let outputs = ppt_codegen::generate(&frames, "example.frame", &[ppt_codegen::Language::C]).unwrap();
//! assert_eq!(outputs[0].name, "example.h");
//! assert!(outputs[0].text.contains("pptframe_example_t"));
//! ```
//!
//! The fixed part of the output lives in real files under `runtime/`; what is here writes only what
//! depends on the schema. The output is a function of its input: no path, no date.

#![forbid(unsafe_code)]

mod c;
mod compile;
mod cpp;
mod emitter;
mod generate;
mod model;
mod output;
mod python;
mod rust;
mod text;
mod write;

pub use compile::{CompileError, compile};
pub use generate::{GenerateError, generate};
pub use output::Output;
pub use ppt_frame_dsl::{
    Compiled, Declared, Diagnostic, Failure, Language, MAX_SOURCE_BYTES, Schema, Severity,
    compile as parse, draw, format, layout::Layout,
};
pub use write::{WriteError, depfile, write_outputs};
