//! Whatever may be hostile is fed to what reads it: no panic, no hang, no memory without bound, no
//! access outside of a mapping.
//!
//! Each fuzzer is a function of bytes. `fuzz/run` drives it by libFuzzer, which follows the code's
//! coverage; `tests/replay.rs` runs what that found, and what people thought of, in every test run.

mod capture;
mod experiment;
mod frame_file;
mod memory;
mod metrics;
mod packet;
mod predicate;
mod process;
mod segment;
mod symbols;
mod sync;
mod view_index;

pub use memory::Bounded;

/// One kind of hostile input.
#[derive(Debug)]
pub struct Fuzzer {
    /// The name of the fuzzer, and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    run: fn(&[u8]),
}

/// All of them.
pub const FUZZERS: [Fuzzer; 15] = [
    Fuzzer { name: "frame-file", run: frame_file::text },
    Fuzzer { name: "schema", run: frame_file::schema },
    Fuzzer { name: "predicate", run: predicate::predicate },
    Fuzzer { name: "maps", run: process::maps },
    Fuzzer { name: "elf", run: process::elf },
    Fuzzer { name: "memory", run: process::memory },
    Fuzzer { name: "capture", run: capture::capture },
    Fuzzer { name: "segment", run: segment::segment },
    Fuzzer { name: "symbols", run: symbols::symbols },
    Fuzzer { name: "sync", run: sync::sync },
    Fuzzer { name: "packet", run: packet::packet },
    Fuzzer { name: "request", run: metrics::request },
    Fuzzer { name: "series", run: metrics::series },
    Fuzzer { name: "view-index", run: view_index::view_index },
    Fuzzer { name: "experiment", run: experiment::experiment },
];

/// Most bytes that one input may make ppt allocate.
const MEMORY: usize = 64 << 20;

impl Fuzzer {
    /// The one called `name`.
    pub fn by_name(name: &str) -> Option<&'static Fuzzer> {
        FUZZERS.iter().find(|fuzzer| fuzzer.name == name)
    }

    /// Feeds `input` to it. What does not survive panics, or ends the process: with a message
    /// where more memory is wanted than an input may cost.
    pub fn survive(&self, input: &[u8]) {
        memory::limited(MEMORY, || (self.run)(input));
    }
}
