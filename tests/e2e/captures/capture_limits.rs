//! Captures with wrong lengths, read by a `ppt` with little memory: existing content is shown, and
//! claimed content costs nothing.

use std::fs;
use std::process::Stdio;

use crc32c::crc32c;

use crate::fixtures::limits::limit_memory;
use crate::fixtures::support::{Bench, text};

/// Address space of a reader: a fraction of the largest payload allowed in a capture.
const MEMORY: u64 = 96 << 20;

/// A capture of 2,000 frames, in `whole.bin`, as bytes.
fn capture(bench: &Bench) -> Vec<u8> {
    bench.copy_all(&["crew.c", "crew_main.c", "matrix.frame"]);
    bench.pptc(&["matrix.frame"]);
    bench.cc(&["-o", "crew", "crew.c", "crew_main.c", "matrix.c", "-lpthread"]);
    let mut target = bench.start("crew", &[]);
    let attach = bench.attach(&target, &["-o", "whole.bin"]);
    assert_eq!(target.run(), 2000);
    attach.stop();
    target.finish();
    fs::read(bench.path("whole.bin")).unwrap()
}

struct LimitedRun {
    code: i32,
    rows: usize,
    said: String,
}

/// Runs `ppt` with little memory on `bytes`: from a file, or from a pipe.
fn read(bench: &Bench, args: &[&str], bytes: &[u8]) -> LimitedRun {
    fs::write(bench.path("forged.bin"), bytes).unwrap();
    let mut command = bench.command(crate::fixtures::support::ppt());
    command.args(args).stdin(Stdio::null());
    if args.contains(&"-") {
        let mut cat = bench.command("cat");
        let mut cat = cat.arg("forged.bin").stdout(Stdio::piped()).spawn().unwrap();
        command.stdin(cat.stdout.take().unwrap());
        std::thread::spawn(move || cat.wait());
    }
    limit_memory(&mut command, MEMORY);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    let code = output.status.code().unwrap_or_else(|| panic!("{}: {said}", output.status));
    for bad in ["panicked", "memory allocation"] {
        assert!(!said.contains(bad), "{said}");
    }
    LimitedRun { code, rows: text(&output.stdout).lines().count().saturating_sub(1), said }
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Offset of the first chunk of `kind`.
fn find(bytes: &[u8], kind: u8) -> usize {
    let mut at = 256;
    while bytes[at + 20] != kind {
        let len = u32_at(bytes, at + 16) + u32_at(bytes, at + 32);
        at += len.next_multiple_of(64);
    }
    at
}

const SOURCE: u8 = 1;
const FRAMES: u8 = 2;
const CLOCK: u8 = 4;
const INDEX: u8 = 6;
const END: u8 = 7;

/// Writes `value` into the header of the first chunk of `kind`, and corrects its checksum.
fn forge_header(bytes: &[u8], kind: u8, field: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = find(&bytes, kind);
    let header = u32_at(&bytes, at + 16);
    bytes[at + field..at + field + value.len()].copy_from_slice(value);
    seal(&mut bytes[at..at + header]);
    bytes
}

/// Writes `value` into the payload of that chunk, and corrects both checksums.
fn forge_payload(bytes: &[u8], kind: u8, field: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = find(&bytes, kind);
    let payload = at + u32_at(&bytes, at + 16);
    let end = payload + u32_at(&bytes, at + 32);
    bytes[payload + field..payload + field + value.len()].copy_from_slice(value);
    let crc = crc32c(&bytes[payload..end]);
    bytes[at + 56..at + 60].copy_from_slice(&crc.to_le_bytes());
    seal(&mut bytes[at..payload]);
    bytes
}

fn seal(header: &mut [u8]) {
    header[28..32].fill(0);
    let crc = crc32c(header);
    header[28..32].copy_from_slice(&crc.to_le_bytes());
}

/// Lengths beyond any file of some kilobytes, up to those that overflow.
const HUGE: [u64; 6] = [1 << 28, (1 << 28) + 1, 1 << 40, 1 << 62, u64::MAX - 63, u64::MAX];

#[test]
fn lengths_that_lie_cost_no_memory() {
    let bench = Bench::new();
    let whole = capture(&bench);
    let intact = read(&bench, &["dump", "forged.bin"], &whole);
    assert_eq!((intact.code, intact.rows), (0, 2000), "{}", intact.said);

    let mut forged: Vec<(u8, String, Vec<u8>)> = Vec::new();
    for kind in [SOURCE, FRAMES, CLOCK, INDEX] {
        for length in HUGE {
            let bytes = forge_header(&whole, kind, 32, &length.to_le_bytes());
            forged.push((kind, format!("{length} bytes"), bytes));
        }
        let bytes = forge_header(&whole, kind, 40, &u64::MAX.to_le_bytes());
        forged.push((kind, "decoded to more than there is".into(), bytes));
        for length in [1 << 12, u32::MAX - 63, u32::MAX] {
            let mut bytes = whole.clone();
            let at = find(&bytes, kind) + 16;
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            forged.push((kind, format!("header of {length} bytes"), bytes));
        }
    }
    for count in [1 << 16, u32::MAX] {
        let bytes = forge_header(&whole, FRAMES, 80, &count.to_le_bytes());
        forged.push((FRAMES, format!("{count} frames"), bytes));
        let bytes = forge_header(&whole, FRAMES, 92, &count.to_le_bytes());
        forged.push((FRAMES, format!("frames of {count} bytes"), bytes));
    }
    for length in [1 << 20, (1 << 20) + 1, u32::MAX] {
        for field in [0, 4] {
            let bytes = forge_payload(&whole, SOURCE, field, &length.to_le_bytes());
            forged.push((SOURCE, format!("text of {length} bytes in a source"), bytes));
        }
    }
    for count in HUGE {
        let bytes = forge_payload(&whole, INDEX, 8, &count.to_le_bytes());
        forged.push((INDEX, format!("index of {count} entries"), bytes));
    }
    for (name, field) in [("rings", 4), ("drops", 8), ("message", 12)] {
        let bytes = forge_payload(&whole, END, field, &u32::MAX.to_le_bytes());
        forged.push((END, format!("end with {} {name}", u32::MAX), bytes));
    }

    for (kind, name, bytes) in &forged {
        let name = format!("chunk of kind {kind}, {name}");
        // The first chunk of frames is one of four. A source has a copy.
        let rows = if *kind == FRAMES { 1500 } else { 2000 };
        for input in ["forged.bin", "-"] {
            let ran = read(&bench, &["dump", input], bytes);
            assert_eq!((ran.code, ran.rows), (1, rows), "{name}: {}", ran.said);
        }
        let ran = read(&bench, &["info", "--json", "forged.bin"], bytes);
        assert_eq!(ran.code, 1, "{name}: {}", ran.said);
    }
}

/// Chunks of unknown kinds are skipped by their length, however large.
#[test]
fn unknown_chunks_are_passed_over_for_nothing() {
    let bench = Bench::new();
    let whole = capture(&bench);
    let unknown = forge_header(&whole, FRAMES, 20, &[99]);
    let ran = read(&bench, &["dump", "forged.bin"], &unknown);
    assert_eq!((ran.code, ran.rows), (0, 1500), "{}", ran.said);
    for length in HUGE {
        let far = forge_header(&unknown, 99, 32, &length.to_le_bytes());
        for input in ["forged.bin", "-"] {
            let ran = read(&bench, &["dump", input], &far);
            assert!(ran.code <= 1 && ran.rows <= 1500, "{length}: {}", ran.said);
        }
    }
}

/// The largest allowed chunk, really present, as a sparse file. A reader uses the memory for one
/// chunk, however many there are.
#[test]
fn bytes_that_are_nothing_are_passed_over() {
    let bench = Bench::new();
    let mut cut = capture(&bench);
    let at = find(&cut, END);
    cut.truncate(at);
    fs::write(bench.path("holes.bin"), &cut).unwrap();
    let file = fs::OpenOptions::new().write(true).open(bench.path("holes.bin")).unwrap();
    file.set_len(cut.len() as u64 + (16 << 20)).unwrap();
    let bytes = fs::read(bench.path("holes.bin")).unwrap();
    let ran = read(&bench, &["dump", "forged.bin"], &bytes);
    assert_eq!((ran.code, ran.rows), (0, 2000), "{}", ran.said);
}
