//! The compiled code of the path that runs once per frame: when off, one load, one test and one
//! branch; when on, plain stores. The tests read the machine code of gcc's and clang's `-O2`, in a
//! program and in a shared library.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod build;
mod counters;
mod disassembly;
mod expectations;
mod plain_frames;
mod spans;
mod ticks;
