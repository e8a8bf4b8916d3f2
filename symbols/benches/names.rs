//! The cost of a name: ten million lookups of program addresses, with few or many distinct
//! addresses. gcc compiles the program here.
//!
//! `cargo bench -p ppt-symbols --bench names`

use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use ppt_capture::{Module, Modules, Process};
use ppt_symbols::{CaptureHost, SearchPaths, Symbols, functions_of};

const ADDRESSES: usize = 10_000_000;
const FUNCTIONS: usize = 5_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    build(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let start = Instant::now();
    let functions = functions_of(&bytes);
    let took = start.elapsed().as_secs_f64() * 1e3;
    println!("the symbols of a program of {FUNCTIONS} functions are read in {took:.1} ms");
    let inside: Vec<u64> =
        (0..bytes.len() as u64).filter(|&number| functions.find(number).is_some()).collect();
    for distinct in [30, 1_000, 30_000] {
        let step = (inside.len() / distinct).max(1);
        let known: Vec<u64> = inside.iter().copied().step_by(step).take(distinct).collect();
        let process = Process::default();
        let module = Module {
            end: u64::MAX,
            address: Some(0),
            path: path.to_str().unwrap().into(),
            ..Module::default()
        };
        // Without a build id, the file must be older than the capture.
        let host = CaptureHost { created_realtime_ns: u64::MAX, ..CaptureHost::default() };
        let mut symbols = Symbols::new(SearchPaths::default(), host);
        symbols.add(&process, &Modules { mapped: [module].into(), ..Modules::default() });
        let mut namer = symbols.namer(&process);
        let mut random = 1u64;
        let (mut named, start) = (0, Instant::now());
        for _ in 0..ADDRESSES {
            // Xorshift, after Marsaglia.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = known[(random % known.len() as u64) as usize];
            let name = black_box(namer.name(black_box(address)));
            named += usize::from(name.is_some_and(|name| name.ends_with(')')));
        }
        let each = start.elapsed().as_nanos() as f64 / ADDRESSES as f64;
        println!("{} addresses: {each:.1} ns each, {named} have functions", known.len());
    }
}

fn build(folder: &std::path::Path) {
    let mut source = String::from("volatile int x;\n");
    for number in 0..FUNCTIONS {
        writeln!(source, "void f{number}(void) {{ x += {number}; x ^= 7; }}").unwrap();
    }
    source += "int main(void) { return 0; }\n";
    std::fs::write(folder.join("program.c"), source).unwrap();
    let flags = ["-O1", "-Wl,--build-id=none", "program.c", "-o", "program"];
    let built = Command::new("gcc").args(flags).current_dir(folder).status();
    assert!(built.expect("gcc is there").success());
}
