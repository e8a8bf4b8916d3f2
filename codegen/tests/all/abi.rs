//! The C text and `ppt_segment::abi` agree on every byte that target, agent and listener share.

use std::fmt::Write;
use std::mem::{offset_of, size_of};

use crate::support::Generated;
use crate::support::compiler::{Compiler, Dialect, output_of};
use ppt_segment::abi::{
    ABI_VERSION, CellWords, Claim, Control, DESCRIPTOR_MAGIC, Descriptor, DisabledWords,
    GeometryWords, HEADER_LENGTH, LOG2_SLOTS, MARGIN, MAX_FRAMES, MAX_METRICS, MAX_RINGS,
    MAX_SEGMENTS, MOVING, MappedSegment, MaskPage, NO_GATE, OWNER_HISTORY, OwnerRecord, PAGE,
    ProcessPage, RING_PITCH, RingHeader, SEGMENT_MAGIC, SLOWDOWN_OFFSET, Section, SegmentHeader,
    SlowdownWords, clock_kind, descriptor_flags, ring_state, ring_word, section_kind,
};
use ppt_segment::cells::histogram;

/// A C expression and the value that it must have.
struct Fact {
    expression: String,
    value: u64,
}

fn fact(expression: impl Into<String>, value: impl TryInto<u64>) -> Fact {
    let Ok(value) = value.try_into() else { panic!("no u64") };
    Fact { expression: expression.into(), value }
}

/// The size in bytes of the value that a projection returns.
fn size_of_member<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// Offset and size of each member, with both names if C and Rust differ. In C, each member begins where the
/// previous one ends, which proves that none is missing.
macro_rules! members {
    ($facts:ident, $c:literal is $rust:ident { $($member:ident $(= $name:literal)?),* $(,)? }) => {
        let mut end = 0;
        $(
            let name = [$($name,)? stringify!($member)][0];
            let (offset, size) =
                (offset_of!($rust, $member), size_of_member(|it: &$rust| &it.$member));
            assert_eq!(offset, end, "{}.{name}: a member is missing before it", $c);
            end = offset + size;
            $facts.push(fact(format!("offsetof({}, {name})", $c), offset));
            $facts.push(fact(format!("sizeof((({} *)0)->{name})", $c), size));
        )*
        assert_eq!(end, size_of::<$rust>(), "{}: a member is missing at its end", $c);
    };
}

fn facts() -> Vec<Fact> {
    let mut facts = Vec::new();
    members!(facts, "ppt1_descriptor" is Descriptor {
        magic, self_address = "self", abi_version = "abi", length, schema_hash,
        schema_address = "schema", schema_length, control_address = "control", stride, log2_slots,
        frames, flags, cells, reserved,
    });
    members!(facts, "ppt1_geometry" is GeometryWords {
        size, stride, log2_slots, rings, ring_pitch, masks, process, ring_headers, slots,
    });
    members!(facts, "ppt1_cells" is CellWords { nonce, offset, pitch, rows });
    members!(facts, "ppt1_disabled" is DisabledWords { nonce, bits });
    members!(facts, "ppt1_mapped" is MappedSegment { base, handle, nonce, size });
    members!(facts, "ppt1_section" is Section { kind, flags, offset, length, item });
    members!(facts, "ppt1_header" is SegmentHeader {
        magic, abi_version = "abi", length, nonce, margin, reserved, schema_hash, stride,
        log2_slots, rings, ring_pitch, agent_pid, created_mono_ns, created_real_ns, sections,
    });
    members!(facts, "ppt1_slowdown" is SlowdownWords {
        session, beat, round, frame, start, end, stamps, clock, share, sleeps,
    });
    members!(facts, "ppt1_control" is Control {
        gate, nonce, geometry, clock_kind, target_pid, claim, generation, follow_socket, follow_claim,
        cells, disabled, detach, tick_scale, agent_reserved,
        error, failed_gate, failed_nonce, no_ring, nested, not_mapped, adds_not_mapped,
        target_reserved,
        segments, memfd,
    });
    facts.extend([
        fact("sizeof(ppt1_descriptor)", size_of::<Descriptor>()),
        fact("sizeof(ppt1_geometry)", size_of::<GeometryWords>()),
        fact("sizeof(ppt1_mapped)", size_of::<MappedSegment>()),
        fact("sizeof(ppt1_section)", size_of::<Section>()),
        fact("sizeof(ppt1_header)", size_of::<SegmentHeader>()),
        // The page has the control words, and padding that keeps other data away.
        fact("sizeof(ppt1_control)", PAGE),
        fact("(uint64_t)&PPT1_(control) % PPT1_PAGE", 0),
        fact("offsetof(ppt1_control, rest)", size_of::<Control>()),
        fact("sizeof(((ppt1_control *)0)->segments) / sizeof(ppt1_mapped)", MAX_SEGMENTS),
    ]);
    facts.extend(constants());
    facts.extend(this_descriptor());
    facts
}

fn constants() -> Vec<Fact> {
    let word = |bytes: usize| bytes / 8;
    vec![
        fact("PPT1_PAGE", PAGE),
        fact("PPT1_NO_GATE", NO_GATE),
        fact("PPT1_MOVING", MOVING),
        fact("PPT1_SEGMENT_MAGIC", SEGMENT_MAGIC),
        fact("PPT1_CLOCK_TICKS", clock_kind::TICKS),
        fact("PPT1_STAMP_IS_MONOTONIC", clock_kind::STAMP_IS_MONOTONIC),
        fact("PPT1_FREE", ring_state::FREE),
        fact("PPT1_ACTIVE", ring_state::ACTIVE),
        fact("PPT1_ABI", ABI_VERSION),
        fact("PPT1_HEADER_LENGTH", HEADER_LENGTH),
        fact("PPT1_MARGIN", MARGIN),
        fact("PPT1_MIN_LOG2_SLOTS", *LOG2_SLOTS.start()),
        fact("PPT1_MAX_LOG2_SLOTS", *LOG2_SLOTS.end()),
        fact("PPT1_MAX_RINGS", MAX_RINGS),
        fact("PPT1_MASKS + 1", section_kind::MASKS),
        fact("PPT1_PROCESS + 1", section_kind::PROCESS),
        fact("PPT1_RING_HEADERS + 1", section_kind::RING_HEADERS),
        fact("PPT1_SLOTS + 1", section_kind::SLOTS),
        fact("PPT1_CELL_ROWS + 1", section_kind::CELLS),
        fact("PPT1_MASKED", section_kind::MASKED),
        fact("PPT1_SLOWDOWN * 8", SLOWDOWN_OFFSET),
        fact("PPT1_SLOWS_DOWN", descriptor_flags::SLOWS_DOWN),
        fact("PPT1_CLAIM_NONCE", word(offset_of!(Claim, nonce))),
        fact("PPT1_BELOW", histogram::BELOW),
        fact("PPT1_BUCKETS", histogram::BUCKETS),
        fact("0", histogram::SUM),
        fact("PPT1_RING_WORDS", ring_word::COUNT),
        fact("PPT1_OWNERS", OWNER_HISTORY),
        fact("PPT1_OWNER_WORDS", word(size_of::<OwnerRecord>())),
        fact("PPT1_OWNER_FIRST_SEQ", word(offset_of!(OwnerRecord, first_seq))),
        fact("PPT1_OWNER_CLAIM", word(offset_of!(OwnerRecord, tid))),
        fact("PPT1_MASK_WORDS", MAX_FRAMES / 64),
        fact("PPT1_RING_OWNER", word(offset_of!(RingHeader, owner))),
        fact("PPT1_RING_HISTORY", word(offset_of!(RingHeader, history))),
        fact("PPT1_RELEASED", word(offset_of!(ProcessPage, released))),
        fact("PPT1_NESTED", word(offset_of!(ProcessPage, nested))),
        fact("PPT1_NO_RING", word(offset_of!(ProcessPage, no_ring))),
    ]
}

/// The descriptor of `job.frame`, as it is in the program.
fn this_descriptor() -> Vec<Fact> {
    let job = Generated::golden("job.frame").schema;
    let mut facts = vec![
        fact("PPT1_(descriptor).abi", ABI_VERSION),
        fact("PPT1_(descriptor).length", size_of::<Descriptor>()),
        fact("PPT1_(descriptor).schema_hash", job.hash()),
        fact("PPT1_(descriptor).schema_length", job.to_json().len()),
        fact("PPT1_(descriptor).stride", job.stride),
        fact("PPT1_(descriptor).log2_slots", job.slots.ilog2()),
        fact("PPT1_(descriptor).frames", job.frames.len()),
        fact("PPT1_(descriptor).flags", descriptor_flags::SLOWS_DOWN),
        fact("PPT1_(descriptor).cells", job.cells()),
        fact("PPT1_(descriptor).self == &PPT1_(descriptor)", 1),
        fact("PPT1_(descriptor).control == &PPT1_(control)", 1),
    ];
    for (index, byte) in DESCRIPTOR_MAGIC.into_iter().enumerate() {
        facts.push(fact(format!("PPT1_(descriptor).magic[{index}]"), byte));
    }
    facts
}

#[test]
fn c_and_rust_agree() {
    // C addresses the first member by the start of its page or ring, and a claim's word by its
    // halves.
    assert_eq!((offset_of!(RingHeader, tail), offset_of!(MaskPage, enable)), (0, 0));
    assert_eq!(offset_of!(OwnerRecord, epoch), offset_of!(OwnerRecord, tid) + 4);
    assert_eq!(RING_PITCH as usize, size_of::<RingHeader>());
    assert_eq!(MAX_FRAMES, ppt_frame_dsl::schema::MAX_FRAMES);
    assert_eq!(MAX_METRICS, ppt_frame_dsl::metric::MAX_METRICS);
    assert_eq!(descriptor_flags::UNLOADABLE, 1);

    let facts = facts();
    let mut program = String::from(
        "#include \"job.c\"\n#include <stddef.h>\n#include <stdio.h>\n\nint main(void) {\n",
    );
    for fact in &facts {
        writeln!(program, "    printf(\"%llu\\n\", (unsigned long long)({}));", fact.expression)
            .unwrap();
    }
    program.push_str("}\n");
    let folder = Generated::golden("job.frame").on_disk(&[("abi.c", &program)]);
    for compiler in Compiler::all() {
        compiler.run(Dialect::C11, folder.path(), &["abi.c", "-o", "abi"]);
        let printed = output_of(folder.path(), "abi", &[]);
        assert_eq!(printed.lines().count(), facts.len());
        for (line, fact) in printed.lines().zip(&facts) {
            assert_eq!(line.parse(), Ok(fact.value), "{}: {}", compiler.c, fact.expression);
        }
    }
}

/// The flag states how the code was compiled: a shared library may be unloaded, a program may not.
#[test]
fn only_library_code_is_unloadable() {
    let program =
        "#include \"job.c\"\nint main(void) { return (int)PPT1_(descriptor).flags & 1; }\n";
    let folder = Generated::golden("job.frame").on_disk(&[("flags.c", program)]);
    for compiler in Compiler::all() {
        for (flag, unloadable) in [("-fno-pie", 0), ("-fPIE", 0), ("-fPIC", 1)] {
            compiler.run(Dialect::C11, folder.path(), &[flag, "-c", "flags.c", "-o", "flags.o"]);
            compiler.run(
                Dialect::C11,
                folder.path(),
                &["-x", "none", link(flag), "flags.o", "-o", "flags"],
            );
            let status = std::process::Command::new(folder.path().join("flags")).status().unwrap();
            assert_eq!(status.code(), Some(unloadable), "{} {flag}", compiler.c);
        }
    }
}

fn link(flag: &str) -> &str {
    if flag == "-fno-pie" { "-no-pie" } else { "-pie" }
}
