//! The frame language: text → syntax tree → checked [`Schema`] with its layout.
//!
//! ```
//! let source = b"emit C\nframe example { int kind, who; time sleep, start, end; }";
//! # #[cfg(feature = "parser")] {
//! let compiled = ppt_frame_dsl::compile(source, "example.frame").unwrap();
//! assert_eq!(compiled.schema.buffer, "example");
//! assert_eq!(compiled.schema.stride, 64);
//! # }
//! ```
//!
//! Each stage has its own file. `text` decodes the bytes and finds the comments. `parse` builds the
//! tree of `ast` with the grammar `frame.pest`. `check` turns the tree into a schema. [`layout`]
//! places the fields. All stages report into one sink of [`Diagnostic`]s, so that a run finds as
//! many mistakes as possible.
//!
//! Without the feature `parser`, only the modules that read schemas remain: [`schema`], [`role`],
//! [`edge`], [`metric`], [`layout`], [`mod@columns`].

#![forbid(unsafe_code)]

// The code that pest generates uses this crate if pest is built without std.
#[cfg(feature = "parser")]
extern crate alloc;

#[cfg(feature = "parser")]
mod ast;
#[cfg(feature = "parser")]
mod check;
pub mod columns;
#[cfg(feature = "parser")]
mod compile;
#[cfg(feature = "parser")]
mod diagnostic;
#[cfg(feature = "parser")]
mod draw;
pub mod edge;
#[cfg(feature = "parser")]
mod foreign_types;
#[cfg(feature = "parser")]
mod format;
mod hash;
mod json;
#[cfg(feature = "parser")]
mod language;
pub mod layout;
pub mod metric;
#[cfg(feature = "parser")]
mod mistake;
pub mod names;
#[cfg(feature = "parser")]
mod parse;
#[cfg(feature = "parser")]
mod render;
#[cfg(feature = "parser")]
mod reserved;
pub mod role;
pub mod schema;
mod stored;
#[cfg(feature = "parser")]
mod text;
#[cfg(feature = "parser")]
mod type_words;
mod types;
mod values;
mod verify;
#[cfg(feature = "parser")]
mod wording;

pub use columns::{Column, ColumnType, Measure, Style, TimeType, columns};
#[cfg(feature = "parser")]
pub use compile::{
    CompileFailure, Compiled, Declared, MAX_SOURCE_BYTES, compile, compile_for, parse_edges,
};
#[cfg(feature = "parser")]
pub use diagnostic::{Diagnostic, DiagnosticNote, SourceRange};
#[cfg(feature = "parser")]
pub use draw::draw;
#[cfg(feature = "parser")]
pub use format::format;
#[cfg(feature = "parser")]
pub use language::Language;
pub use layout::Layout;
#[cfg(feature = "parser")]
pub use mistake::Severity;
#[cfg(feature = "parser")]
pub use render::render;
pub use schema::Schema;
pub use stored::Stored;
pub use verify::SchemaError;
