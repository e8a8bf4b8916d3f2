//! The tests of the generators. One program, because each would compile and link the same parts.

mod abi;
mod compiles;
mod functions;
mod generated_code_page;
mod go;
mod golden;
mod hash;
mod java;
mod names;
mod node;
mod refuses;
mod slots;
mod support;
mod unwritten;
