//! Compares the hashes of `codegen/runtime/c/hash.h` with those of the crate that Rust programs use: for every
//! length and all paths, by every installed compiler.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::Generated;
use crate::support::compiler::{Compiler, Dialect};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// All lengths up to this one are tested, and some beyond it. It is two blocks of a long input, and a part.
const EVERY: usize = 2400;
const LONGEST: usize = 10_000;

const FRAMES: &str = "frame received { hash id; hash128 body; }";

/// Reads inputs, each behind its length; prints both hashes of each, and that of its first 8 bytes as
/// a number.
const PROGRAM: &str = r#"
#include "HEADER"
#include <stdio.h>

static unsigned char input[LONGEST];

int main(void) {
    uint32_t len;
    while (fread(&len, sizeof len, 1, stdin) == 1) {
        if (fread(input, 1, len, stdin) != len)
            return 1;
        uint64_t number;
        memcpy(&number, input, sizeof number);
        uint64_t const hash = ppt_hash(input, len), of_number = ppt_hash_u64(number);
        uint8_t wide[16];
        ppt_hash128_to(wide, input, len);
        if (fwrite(&hash, sizeof hash, 1, stdout) != 1 || fwrite(wide, sizeof wide, 1, stdout) != 1 ||
            fwrite(&of_number, sizeof of_number, 1, stdout) != 1)
            return 1;
    }
    return 0;
}
"#;

/// Inputs of every length, and `more` of random, mostly short lengths.
fn inputs(more: usize) -> Vec<Vec<u8>> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut lengths: Vec<usize> = (0..=EVERY).collect();
    lengths.extend((0..more).map(|_| {
        let most = [32, 300, LONGEST][random.random_range(0..3)];
        random.random_range(0..=most)
    }));
    let bytes = |len: usize| {
        let mut bytes = vec![0; len];
        random.fill_bytes(&mut bytes);
        bytes
    };
    lengths.into_iter().map(bytes).collect()
}

fn check(compiler: Compiler, dialect: Dialect, optimised: &str, inputs: &[Vec<u8>]) {
    let (generated, header, file) = match dialect {
        Dialect::C11 => (Generated::from_source(FRAMES, "hashes.frame"), "hashes.h", "program.c"),
        Dialect::Cpp17 => (Generated::cpp_of(FRAMES, "hashes.frame"), "hashes.hpp", "program.cpp"),
    };
    let program = PROGRAM.replace("HEADER", header).replace("LONGEST", &LONGEST.to_string());
    let folder = generated.on_disk(&[(file, &program)]);
    compiler.run(dialect, folder.path(), &[optimised, "-I.", "-c", file, "-o", "program.o"]);
    let (_, source) = file.split_once('.').unwrap();
    let source = format!("hashes.{source}");
    compiler.run(dialect, folder.path(), &[optimised, "-I.", "-c", &source, "-o", "hashes.o"]);
    let linked = Command::new(compiler.cpp)
        .current_dir(folder.path())
        .args(["program.o", "hashes.o", "-o", "program", "-lpthread"])
        .status();
    assert!(linked.unwrap().success());
    let mut child = Command::new(folder.path().join("program"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for input in inputs {
                stdin.write_all(&(input.len() as u32).to_le_bytes()).unwrap();
                stdin.write_all(input).unwrap();
            }
        });
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    let mut answers = output.stdout.chunks_exact(32);
    // As in the program, the rest of longer inputs follows a shorter one in memory.
    let mut memory = [0; LONGEST];
    for input in inputs {
        memory[..input.len()].copy_from_slice(input);
        let answer = answers.next().expect("an answer");
        let case = format!("{} {dialect:?} {optimised}: {} bytes", compiler.c, input.len());
        assert_eq!(answer[..8], xxh3_64(input).to_le_bytes(), "{case}");
        assert_eq!(answer[8..24], xxh3_128(input).to_be_bytes(), "{case}");
        assert_eq!(answer[24..], xxh3_64(&memory[..8]).to_le_bytes(), "{case}");
    }
    assert!(answers.next().is_none());
}

#[test]
fn c_and_cpp_compute_the_hashes_of_the_crate() {
    let inputs = inputs(3000);
    for compiler in Compiler::all() {
        for optimised in ["-O0", "-O3"] {
            check(compiler, Dialect::C11, optimised, &inputs);
        }
        check(compiler, Dialect::Cpp17, "-O2", &inputs);
    }
}

/// A million inputs, which takes minutes.
#[test]
#[ignore = "takes minutes: cargo test -p ppt-codegen a_million -- --ignored"]
fn a_million_inputs() {
    let inputs = inputs(1_000_000 / 8);
    for compiler in Compiler::all() {
        for optimised in ["-O0", "-O1", "-O2", "-O3"] {
            check(compiler, Dialect::C11, optimised, &inputs);
        }
    }
}
