//! The cost of a name: ten million addresses of the calls of a program, few of them or many.
//!
//! `cargo bench -p ppt-symbols --bench names`

use std::hint::black_box;
use std::time::Instant;

use ppt_capture::{Module, Modules, Process};
use ppt_symbols::{Host, Places, Symbols, functions_of};

const ADDRESSES: usize = 10_000_000;

fn main() {
    let exe = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&exe).unwrap();
    let start = Instant::now();
    let functions = functions_of(&bytes);
    println!(
        "reading {} bytes of a program: {:.1} ms",
        bytes.len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    // Places that are in functions, spread over the code.
    let inside: Vec<u64> =
        (0..bytes.len() as u64).filter(|&it| functions.find(it).is_some()).step_by(7).collect();
    for distinct in [30, 1_000, 30_000] {
        let step = (inside.len() / distinct).max(1);
        let known: Vec<u64> = inside.iter().copied().step_by(step).take(distinct).collect();
        let process = Process::default();
        let mut symbols = Symbols::new(Places::default(), Host::default());
        let mut module = Module { start: 0, end: u64::MAX, address: Some(0), ..Module::default() };
        module.path = exe.to_str().unwrap().into();
        // Its own build id is not needed to measure: without one, the file must be old, and is not.
        module.build_id = build_id(&bytes);
        symbols.add(&process, &Modules { mapped: [module].into(), ..Modules::default() });
        let mut namer = symbols.namer(&process);
        let mut random = 1u64;
        let start = Instant::now();
        let mut named = 0;
        for _ in 0..ADDRESSES {
            // Xorshift, after Marsaglia.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = known[(random % known.len() as u64) as usize];
            named += usize::from(
                black_box(namer.name(black_box(address))).is_some_and(|it| it.contains('(')),
            );
        }
        let each = start.elapsed().as_nanos() as f64 / ADDRESSES as f64;
        println!("{distinct:6} addresses, again and again: {each:.1} ns each, {named} have names");
    }
}

/// The build id of an ELF file, from its note.
fn build_id(bytes: &[u8]) -> Vec<u8> {
    let head = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(head.len()).position(|it| it == head).expect("a build id");
    bytes[at + head.len()..][..20].to_vec()
}
