//! The C runtime refuses segments that differ from the control page's description, and keeps nothing of them.
//! `codegen/runtime/rust/src/refuses.rs` tests the Rust runtime with the same list.

use std::fmt::Write;

use crate::support::Generated;
use crate::support::compiler::{Compiler, Dialect, output_of};
use crate::support::wrong_segments::{WRONG_GEOMETRIES, WRONG_HEADERS};
use ppt_segment::abi::GeometryWords;
use ppt_segment::{Created, Geometry, Segment, SegmentIdentity};

const PROGRAM: &str = include_str!("support/refuses.c");

/// The program prints this for a frame that was written, otherwise the error's name.
const WRITTEN: &str = "written";

/// Adds an attempt to the program: it describes a segment in the control page, writes a frame, and prints the result.
fn attempt(program: &mut String, made: bool, nonce: u64, g: &GeometryWords) {
    let GeometryWords { size, stride, log2_slots, rings, ring_pitch, .. } = *g;
    let GeometryWords { masks, process, ring_headers, slots, .. } = *g;
    writeln!(
        program,
        "    attempt({}, {nonce}, (ppt1_geometry){{{size}u, {stride}u, {log2_slots}u, {rings}u, \
         {ring_pitch}u, {masks}u, {process}u, {ring_headers}u, {slots}u}});",
        if made { "MADE" } else { "id" },
    )
    .unwrap();
}

#[test]
fn what_no_agent_makes_is_not_written_into() {
    let job = Generated::golden("job.frame");
    let geometry = Geometry::new(job.schema.stride, 4, 3).unwrap();
    let words = geometry.words();
    let nonce = 77;

    let mut program = String::from(PROGRAM);
    let mut expected: Vec<(String, &str)> = Vec::new();
    let mut expect = |what: &str, result| expected.push((what.into(), result));
    for (what, spoil) in WRONG_GEOMETRIES {
        let mut wrong = words;
        spoil(&mut wrong);
        attempt(&mut program, false, nonce, &wrong);
        expect(what, "EPROTO");
        attempt(&mut program, true, nonce, &wrong);
        expect(&format!("{what}, to be made"), "EPROTO");
    }
    for (what, offset) in WRONG_HEADERS {
        writeln!(program, "    spoil(id, {offset});").unwrap();
        attempt(&mut program, false, nonce, &words);
        expect(what, "ESTALE");
        writeln!(program, "    spoil(id, {offset});").unwrap();
    }
    program.push_str("    if (PPT1_(control).segments[0].base != 0)\n        return 1;\n");

    // A smaller segment of the same name, and the geometry of a larger one.
    let larger = Geometry::new(job.schema.stride, 4, 200).unwrap().words();
    for (what, words, result) in [
        ("larger than it is", larger, "ESTALE"),
        ("as it is", words, WRITTEN),
        ("larger than what is mapped", larger, "EPROTO"),
        ("as it is, again", words, WRITTEN),
    ] {
        attempt(&mut program, false, nonce, &words);
        expect(what, result);
    }
    // A mapped segment keeps its shape, whatever becomes of its header.
    writeln!(program, "    spoil(id, {});", WRONG_HEADERS[6].1).unwrap();
    attempt(&mut program, false, nonce, &words);
    expect("as it was", WRITTEN);
    attempt(&mut program, true, nonce + 1, &words);
    expect("made", WRITTEN);
    program.push_str("    return 0;\n}\n");

    let folder = job.on_disk(&[("refuses.c", &program)]);
    for compiler in Compiler::all() {
        compiler.run(Dialect::C11, folder.path(), &["-O1", "refuses.c", "-o", "refuses"]);
        let mut key = std::process::id() as u16;
        let schema_hash = job.schema.hash();
        let identity = SegmentIdentity { nonce, schema_hash, geometry };
        let segment = Segment::create(identity, None, Created::default(), || {
            key = key.wrapping_add(1);
            key
        })
        .unwrap();
        let id = segment.id().unwrap().to_string();
        let printed = output_of(folder.path(), "refuses", &[&id]);
        let said: Vec<_> = printed.lines().collect();
        assert_eq!(said.len(), expected.len(), "{printed}");
        for ((what, result), said) in expected.iter().zip(said) {
            assert_eq!(said, *result, "{}: {what}", compiler.c);
        }
        assert_eq!(segment.ring(0).tail(), 3, "nothing else was written");
    }
}
